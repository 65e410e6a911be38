"""Time the same kernels here, on triton-viz's NKI interpreter and on Pallas' TPU interpret mode, in one run.

    NEURONTOOLS_CORPUS=... python benchmarks/peers.py [--rounds N]

triton-viz is read from a checkout in the corpus: its interpreter of values alone, without its tracer; names of `nki`
and `torch` stand in for packages that it does not need for that.  It runs the source of our examples and benchmark
kernels.  Pallas kernels are those of `peers_pallas.py`, in the same tiles, run where jax is installed.  A peer that is
not there, or a kernel that it cannot run, is left out with the reason.

Each side has a process of its own; rounds alternate between them, N at least and more where the best two times of any
side differ (`stopping.py`), and the smallest processor time (of all threads) of a side counts.  Ours is `run` with
timing, of a file that is built already; "values" is the same without timing, "all checks" the same with memcheck,
initcheck, racecheck and synccheck on.  These are of a file that ran before; "worked out" and "checks worked out" are
runs of one of which nothing is known, neither its way nor what was found on it.
triton-viz traces and runs in one, and Pallas runs what `jit` has compiled.  NumPy's time of the same result is taken in
our process.  Results are compared with NumPy's before a figure counts.  One BLAS thread.
"""

import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # before NumPy is imported: spinning threads would measure themselves
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import argparse
import functools
import importlib
import json
import math
import subprocess
import sys
import time
import types
from pathlib import Path

import numpy as np
from stopping import turns

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
SIDES = ("ours", "triton-viz", "pallas")
TOLERANCE = 1e-4


def normal(*shapes):
    """Return arrays of random numbers, the same in every process."""
    random = np.random.default_rng(0)
    return [random.standard_normal(shape, np.float32) for shape in shapes]


def softmax(x):
    """Return the softmax of rows."""
    powers = np.exp(x - x.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def rmsnorm(x, weight):
    """Return rows over the root of their mean square, times a weight."""
    return x / np.sqrt((x * x).mean(axis=1, keepdims=True) + 1e-5) * weight


def product(a_t, b):
    """Return a_t.T @ b."""
    return a_t.T @ b


def attention(q_t, k_t, v):
    """Return one head of attention."""
    return softmax(q_t.T @ k_t / math.sqrt(len(q_t))) @ v


def sums(x):
    """Return exp(2 x) + x."""
    return np.exp(2 * x) + x


# fmt: off
KERNELS = {
    "small_tiles x200":    ("corpus_kernels", "small_tiles", sums, [(25600, 64)]),
    "loading_matmul 512":  ("corpus_kernels", "loading_matmul", product, [(512, 512), (512, 512)]),
    "loading_matmul 1024": ("corpus_kernels", "loading_matmul", product, [(1024, 1024), (1024, 1024)]),
    "tiled_matmul 1024":   ("tiled_matmul", "tiled_matmul", product, [(1024, 1024), (1024, 1024)]),
    "softmax 1024":        ("softmax", "softmax", softmax, [(1024, 1024)]),
    "rmsnorm 1024":        ("rmsnorm", "rmsnorm", rmsnorm, [(1024, 1024), (1024,)]),
    "attention 512":       ("attention", "attention", attention, [(64, 512), (64, 512), (512, 64)]),
}
# fmt: on


def kernel_of(name):
    """Return a kernel's function, its inputs, and what NumPy makes of them."""
    module, function, reference, shapes = KERNELS[name]
    arrays = normal(*shapes)
    return getattr(importlib.import_module(module), function), arrays, reference


def ours():
    """Return a function that prepares a kernel: what is timed, by name, each giving a result."""
    from worked_out import no_replays

    import neurontools
    from emulator.checks import kept

    neurontools.nki.install()

    def prepare(name):
        kernel, arrays, reference = kernel_of(name)
        neff = neurontools.build(kernel, *arrays, target="trn2")
        inputs = dict(zip((tensor.name for tensor in neff.inputs), arrays, strict=True))

        unknown = neurontools.build(kernel, *arrays, target="trn2")  # its runs keep nothing

        def emulated(of=neff, **options):
            return next(iter(neurontools.run(of, inputs, **options).outputs.values()))

        def worked_out(**options):
            kept._FILES.pop(unknown, None)  # as if nobody had checked it
            with no_replays():
                return emulated(unknown, **options)

        return {
            "time": emulated, "values": lambda: emulated(timing=False), "checked": lambda: emulated(checks="all"),
            "worked out": worked_out, "checks worked out": lambda: worked_out(checks="all"),
            "NumPy": lambda: reference(*arrays),
        }  # fmt: skip

    return prepare


class _Names(types.ModuleType):
    """A package of names: every attribute is its own name."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return name


class _Enumerations(_Names):
    """A package of enumerations, whose members are names."""

    def __getattr__(self, name):
        return _Names(super().__getattr__(name))


def stand_in(name, module=_Names, **attributes):
    """Put a package of names where imports find it."""
    found = sys.modules[name] = module(name)
    found.__dict__.update(attributes)
    return found


def triton_viz():
    """Return a function that prepares a kernel on triton-viz's interpreter; ImportError says why there is none."""
    folder = Path(os.environ.get("NEURONTOOLS_CORPUS", "")) / "triton-viz"
    if "NEURONTOOLS_CORPUS" not in os.environ or not (folder / "triton_viz").is_dir():
        raise ImportError("NEURONTOOLS_CORPUS names no folder with a checkout of triton-viz")
    sys.path.append(str(folder))
    stand_in("triton_viz.version", types.ModuleType, __version__="0", git_version="")  # made when it is installed
    stand_in("torch", Tensor=type("Tensor", (), {}), dtype=type("dtype", (), {}))
    language, isa = stand_in("nki.language", shared_hbm="hbm"), stand_in("nki.isa", _Enumerations)
    stand_in("nki", jit=lambda function: function, language=language, isa=isa)
    interpreter = importlib.import_module("triton_viz.core.simulation.nki_beta2")
    interpreter.nki_patch_lang()

    def prepare(name):
        kernel, arrays, _ = kernel_of(name)

        def interpreted():
            results = []

            @functools.wraps(kernel)  # it binds what it is given to the kernel's parameters
            def keep(*given):
                results.append(kernel(*given))

            interpreter.NKIBeta2InterpretedFunction(keep).run(*arrays)
            return np.asarray(results[0].data)

        return {"time": interpreted}

    return prepare


def pallas():
    """Return a function that prepares a kernel in Pallas' interpret mode; ImportError says why there is none."""
    from peers_pallas import KERNELS as WRITTEN

    def prepare(name):
        _, function, _, shapes = KERNELS[name]
        if function not in WRITTEN:
            raise LookupError(f"{function} has no twin for Pallas")
        arrays = normal(*shapes)
        call = WRITTEN[function]
        return {"time": lambda: np.asarray(call(*arrays))}

    return prepare


def serve(side):
    """Measure what standard input asks for, a line of JSON for each: {name: seconds}, or why not."""
    sys.path[:0] = [str(ROOT / "examples"), str(HERE)]
    answers, sys.stdout = sys.stdout, sys.stderr  # kernels and packages may print
    prepared = {}

    def say(**answer):
        print(json.dumps(answer), file=answers, flush=True)

    try:
        prepare = {"ours": ours, "triton-viz": triton_viz, "pallas": pallas}[side]()
    except ImportError as error:
        say(absent=str(error))
        return
    say()
    for line in sys.stdin:
        name = line.strip()
        try:
            if name not in prepared:
                prepared[name] = prepare(name)
                _, _, reference, shapes = KERNELS[name]
                want = reference(*normal(*shapes))
                for function in prepared[name].values():
                    error = float(np.abs(function() - want).max() / np.abs(want).max())  # and warms up
                    if not error < TOLERANCE:
                        raise ArithmeticError(f"the result is {error:.1e} off")
            found = {}
            for what, function in prepared[name].items():
                started = time.process_time()
                function()
                found[what] = time.process_time() - started
            say(seconds=found)
        except Exception as error:  # noqa: BLE001  another project's interpreter: its answer
            say(refused=f"{type(error).__name__}: {error}".splitlines()[0][:160])


def asked(child, name):
    """Return what a side's process answers about a kernel."""
    try:
        print(name, file=child.stdin, flush=True)
    except BrokenPipeError:
        return {"refused": "its process had ended"}
    return json.loads(child.stdout.readline() or '{"refused": "its process ended"}')


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--serve", choices=SIDES, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(options.serve)
        return
    running = {}
    for side in SIDES:
        child = subprocess.Popen([sys.executable, __file__, "--serve", side], stdin=subprocess.PIPE,
                                 stdout=subprocess.PIPE, text=True)  # fmt: skip
        absent = json.loads(child.stdout.readline() or '{"absent": "its process ended"}').get("absent")
        if absent:
            print(f"{side} is left out: {absent}", file=sys.stderr)
            child.communicate()
        else:
            running[side] = child
    reasons = []
    print("| kernel | ours / NumPy | values alone | triton-viz / NumPy | Pallas / NumPy | ours / triton-viz | values "
          "alone | all checks | worked out | checks worked out | ours / Pallas |")  # fmt: skip
    print("|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
    for name in KERNELS:
        found, sides = {}, list(running)
        for _ in turns(found, options.rounds, time.monotonic):
            for side in sides.copy():
                answer = asked(running[side], name)
                if "refused" in answer:
                    sides.remove(side)
                    reasons.append(f"{name} on {side}: {answer['refused']}")
                    for key in [key for key in found if key[0] == side]:
                        del found[key]
                for what, seconds in answer.get("seconds", {}).items():
                    found.setdefault((side, what), []).append(seconds)
        best = {key: min(seconds) for key, seconds in found.items()}
        plain, time_, values, all_, first, first_all = (
            best.get(("ours", what))
            for what in ("NumPy", "time", "values", "checked", "worked out", "checks worked out")
        )
        viz, tpu = (best.get((side, "time")) for side in SIDES[1:])
        pairs = ((time_, plain), (values, plain), (viz, plain), (tpu, plain), (time_, viz), (values, viz), (all_, viz),
                 (first, viz), (first_all, viz), (time_, tpu))  # fmt: skip
        cells = [f"{a / b:.2g}" if a and b else "" for a, b in pairs]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)
    for child in running.values():
        child.communicate()
    print(*reasons, sep="\n", file=sys.stderr)


if __name__ == "__main__":
    main()
