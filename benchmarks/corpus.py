"""What everything costs a word, over a corpus: the project's performance dashboard.

    python benchmarks/corpus.py [--quick] [--largest BYTES] [--json OUT.json] [--before OLD.json]
                                [--write docs/performance.md]

Members are the examples, kernels of `corpus_kernels.py` in two lengths, and, where NEURONTOOLS_CORPUS names a folder of
fetched checkouts, the kernels of AWS's tutorials, public NEFFs and a fixed sample of nki-library's test cases
(`corpus_nki_library.py`; the packages that its tests need have to be installed, --quick leaves it out).

Of each: processor time a word of building for the first time (running a script up to its launch, tracing, what is
imported for it), for the second time and again, with nothing kept (NEURONTOOLS_LAUNCH_CACHE=off), building what the
launch cache has ("build kept"), loading, and running with timing, without timing, with all checks and with a recorder;
but for the first two builds the best of three or more, as many as fit into a second.  The second build finds little in
the processor's caches, and shares its one chance with whatever else the machine does: of short kernels it takes half as
long again as the best.
To build again is to make the file of a kernel and its arguments: of a script from where its launch looks at the
arguments to where it has the file, as of kernels that are handed to `neurontools.build`; of a .s file all that opening
it takes, reading, assembling and the inputs.  What a script does up to its launch is its own: "opening again" is
opening it as a whole, with the lines of the script, the arrays that it draws, and the copies of these that a command
takes; of vector_add.py that is several times as much, most of it 307,200 random numbers.
"whole" is a run as who calls the library has it, with loading and what becomes of inputs and outputs; "checks" is the
same with all checks, of a file that was not checked before; "whole again" and "checks again" are both of a file whose
way is known, and what is found on it (`emulator/runtime/known_runs.py`).
Each of these works its times out; "again" is a run with timing of a program whose way is known from one before
(`emulator/repeats.py`), "beyond again" what that takes beyond "NumPy".
The unit is a call, the time of one call of `def f(x, y): return x + y` in the same process, so that figures of
different machines compare; it is taken in turns with what is measured, as a machine that others share goes at half its
speed for seconds.  "NumPy" is what the effects of the words and the moves of the transfers take alone, called
one after the other in the order of the run, and "beyond" what a run with timing takes beyond it: the two, runs without
timing, with a recorder, and runs whose way is known, take turns, there and back, for a second at least, and longer
where the best two of any differ by more than 2 %, and the best of each counts ("timing", "no timing" and "recording"
are the best of these and of the rounds of all phases, "again" of the latter).  A member that has no row is named, and
the status is not 0 then, but for public NEFFs that are refused and for what --minutes leaves out.
"Python calls" are counted, not timed: Python and C functions called in a run with timing, a word; no load of the
machine changes them.  One BLAS thread.
"""

import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # before NumPy is imported: spinning threads would measure themselves

import argparse
import contextlib
import copy
import json
import math
import statistics
import sys
import time
import tracemalloc
from pathlib import Path

import numpy as np
from corpus_nki_library import rows_of
from stopping import ENOUGH, turns
from worked_out import no_replays

import neurontools
from emulator import runtime, workspace
from emulator.bound_words import BoundWords
from emulator.checks import kept
from emulator.device import Device
from emulator.dma import system as dma_system
from emulator.pace import at_pace
from emulator.timeline import Recorder
from formats.errors import NeuronError
from formats.neff import open_neff

ROOT = Path(__file__).resolve().parents[1]
CACHE = "NEURONTOOLS_LAUNCH_CACHE"
PHASES = (
    "build", "second build", "build again", "build kept", "opening again",
    "load", "timing", "no timing", "whole", "checks", "whole again", "checks again", "recording",
)  # fmt: skip
CHECKED = ("whole", "checks", "whole again", "checks again")  # which need inputs
# What adds to what, and by how much it may, in per cent.
ADDITIONS = (
    ("timing", "no timing", 30), ("recording", "timing", 60), ("checks", "whole", 60),
    ("checks again", "whole again", 60),
)  # fmt: skip
COLUMNS = (*PHASES, "NumPy", "beyond", "again", "beyond again", "Python calls", "peak MB")
LARGEST = 2 << 20  # bytes of a public NEFF; the quick subset takes a tenth
GROWTH = (("small_tiles", 100, 1000), ("windowed_sums", 1, 10))  # kernels in two lengths
REPEATS, MOST_REPEATS = 3, 100
MANY_CALLS = 40_000


class Calls:
    """The time of one call of a function of two arguments, the best of those that were taken between other things."""

    def __init__(self):
        self.seconds = math.inf

    def take(self):
        """Take it once more: some two milliseconds."""

        def f(x, y):
            return x + y

        started = time.process_time()
        for _ in range(MANY_CALLS):
            f(1, 2)
        self.seconds = min(self.seconds, (time.process_time() - started) / MANY_CALLS)

    def of(self, seconds, phases):
        """Return the times of some phases in calls."""
        return {phase: seconds[phase] / self.seconds for phase in phases if phase in seconds}


def examples():
    """Yield name and opener of the examples."""
    from neurontools.program.configuration import USUAL
    from neurontools.program.opening import open_program

    def opener(path):
        def give():
            opened = open_program(path, USUAL)
            return opened.neff, opened.inputs

        return give

    for path in sorted((ROOT / "examples").iterdir()):
        if path.suffix in (".py", ".s") and path.name != "compare.py":
            yield path.name, opener(path)


def kernel(function, *arrays):
    """Return an opener that builds a kernel."""

    def give():
        neff = neurontools.build(function, *arrays, target="trn2")
        given = [one for one in arrays if isinstance(one, np.ndarray)]
        return neff, dict(zip((tensor.name for tensor in neff.inputs), given, strict=False))

    return give


def kernels(quick):
    """Yield name and opener of kernels of our own."""
    from corpus_kernels import loading_matmul, small_tiles, windowed_sums
    from tiled_matmul import tiled_matmul

    random = np.random.default_rng(0)
    weights = random.standard_normal((128, 3), np.float32)
    for (name, *lengths), function, columns, more in zip(
        GROWTH, (small_tiles, windowed_sums), (64, 2050), ((), (weights,)), strict=True
    ):
        for length in lengths[:1] if quick else lengths:
            x = random.standard_normal((128 * length, columns), np.float32)
            yield f"{name} x{length}", kernel(function, x, *more)
    size = 512 if quick else 1024
    pair = [random.standard_normal((size, size), np.float32) for _ in range(2)]
    yield f"loading_matmul {size}", kernel(loading_matmul, *pair)
    if not quick:
        pair = [random.standard_normal((2048, 2048), np.float32) for _ in range(2)]
        yield "tiled_matmul 2048", kernel(tiled_matmul, *pair)


def tutorials(corpus):
    """Yield name and opener of the kernels of AWS's tutorials, as the tests know them."""
    from tests.nki.test_tutorials import KERNELS, load

    folder = corpus / "aws-neuron-sdk" / "nki" / "examples"
    for name, (file, function, given, _) in KERNELS.items():
        if (folder / file).exists():
            arrays = [np.ones(one, np.float32) if isinstance(one, tuple) else one for one in given]
            with environment_kept():  # one of them chooses a target
                loaded = load(folder / file, function)
            yield f"tutorial {name}", kernel(loaded, *arrays)


def public_files(corpus, largest):
    """Yield name and opener of public NEFFs of so many bytes at most; inputs stay as memory is."""

    def opener(path):
        def give():
            return open_neff(path), None

        return give

    for path in sorted(corpus.rglob("*.neff")):
        if path.stat().st_size <= largest:
            yield f"neff {path.parts[-3]}/{path.name}", opener(path)


def run(neff, inputs, *, timing=True, observers=(), replays=False):
    """Load and run; return the device and the processor times of both."""
    started = time.process_time()
    device = Device(neff.target, len(neff.subgraphs), timing)
    device.replays = replays
    device.load(neff)
    if inputs:
        device.set_inputs(inputs)
    loaded = time.process_time()
    device.observers += [make(device) for make in observers]
    device.run()
    return device, loaded - started, time.process_time() - loaded


@contextlib.contextmanager
def never_again():
    """Have no run go the way of one before; what is known of any is forgotten."""
    for held in workspace._waiting:
        held.ways.clear()
    with no_replays():
        yield


def logging(function, pick, put, log):
    """Return a function that does the same, and sees to it that what it binds writes itself down when it is called."""

    def bound(*arguments):
        made = function(*arguments)
        step = pick(made)
        if step is None or getattr(step, "is_logged", False):
            return made

        def logged():
            log.append(step)
            step()

        logged.is_logged = True
        return put(made, logged)

    return bound


def rounds(least):
    """Yield at least so many times, and more often what takes little."""
    begun = time.process_time()
    for turn in range(MOST_REPEATS):
        if turn >= least and time.process_time() - begun > ENOUGH:
            return
        yield turn


def logged(neff, inputs):
    """Return a device behind its run, and the effects and moves of that run in order."""

    def put(bound, step):
        action = copy.copy(bound.action)  # the next run finds the one that the engine keeps
        action.effect = step
        return bound.with_action(action)

    def forgotten(bound_words, kept):
        """Have an engine ask for each word."""

    log, kept = [], (BoundWords.bound, BoundWords._look_in, dma_system.bind)
    # A branch finds its target from where its engine stands, so it cannot be called out of its place.
    BoundWords.bound = logging(kept[0], lambda bound: None if bound.action.serial else bound.action.effect, put, log)
    BoundWords._look_in = forgotten
    dma_system.bind = logging(kept[2], lambda move: move, lambda move, step: step, log)
    try:
        device = run(neff, inputs)[0]
    finally:
        BoundWords.bound, BoundWords._look_in, dma_system.bind = kept
    return device, tuple(log)


def in_turns(neff, inputs, least):
    """Return effects and moves alone, runs with timing, without, recorded, and of a known way, each the best, in calls.

    They take turns, so that what slows the machine down for a while slows all of them down; where the best two of any
    differ, there are more turns.  Every other turn goes the other way round: a run finds in the caches what the one
    before it left there, and effects alone, which work on memories of their own, leave a run nothing.
    """
    device, steps = logged(neff, inputs)

    def alone():
        with at_pace():
            started = time.process_time()
            for step in steps:
                step()
            return time.process_time() - started

    def running(**options):
        def whole():
            other, _, seconds = run(neff, inputs, **options)
            other.release()
            return seconds

        return whole

    ways = {
        "NumPy": alone,
        "timing": running(),
        "no timing": running(timing=False),
        "recording": running(observers=(Recorder,)),
        "again": running(replays=True),
    }
    found, calls = {phase: [] for phase in ways}, Calls()
    for turn in turns(found, least):
        calls.take()
        for phase in reversed(ways) if turn % 2 else ways:
            found[phase].append(ways[phase]())
    device.release()
    return calls.of({phase: min(seconds) for phase, seconds in found.items()}, ways)


@contextlib.contextmanager
def environment_kept():
    """Take back what a script writes into the environment: a target that one chose would be that of all behind it."""
    before = dict(os.environ)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


@contextlib.contextmanager
def launches_timed():
    """Yield a list of the processor times of launches, up to where they have their files."""
    from neurontools.nki import launch

    begun, spent = [], []
    plain, prepare = launch.Arguments, launch._prepare

    def arguments(*given):
        begun[:] = [time.process_time()]
        return plain(*given)

    def timed(*given):
        ready = prepare(*given)
        spent.append(time.process_time() - begun[0])
        return ready

    launch.Arguments, launch._prepare = arguments, timed
    try:
        yield spent
    finally:
        launch.Arguments, launch._prepare = plain, prepare


def counted(work):
    """Return how many functions of Python and C a call of `work` calls."""
    calls = 0

    def count(frame, event, argument):
        nonlocal calls
        calls += event == "call" or event == "c_call"

    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(None)
    return calls


def called_seconds(neff, inputs, **options):
    """Return the processor time of a run as who calls the library has it."""
    started = time.process_time()
    runtime.run(neff, inputs, **options)
    return time.process_time() - started


def builds(repeats):
    """Yield what each build counts as; those that the launch cache has begin with its third."""
    yield from ("build", "second build")
    for phase in ("build again", "build kept"):
        for _ in rounds(max(repeats, 3)):
            yield phase


def measure(opener, repeats, first=None):
    """Return words and figures of a member: phases in calls a word, Python calls a word, megabytes at most.

    `first` are the seconds that its first build took, where that was before.
    """
    best, calls = {}, Calls()
    for phase in builds(repeats):
        calls.take()
        setting = os.environ.pop(CACHE, None)
        if phase != "build kept":
            os.environ[CACHE] = "off"
        with launches_timed() as launched:
            started = time.process_time()
            neff, inputs = opener()
            seconds = time.process_time() - started
        if launched and phase not in ("build", "build kept"):
            best["opening again"] = min(best.get("opening again", math.inf), seconds)
        if launched and phase != "build":
            seconds = launched[-1]
        best[phase] = min(best.get(phase, math.inf), seconds)
        os.environ.pop(CACHE, None)
        if setting is not None:
            os.environ[CACHE] = setting
    if first is not None:
        best["build"] = first
    units, calls = calls.of(best, PHASES), Calls()
    for _ in rounds(repeats):
        calls.take()
        device, load, timed = run(neff, inputs)
        words = sum(engine.completed for core in device.cores for engine in core.engines.values())
        device.release()
        other, _, untimed = run(neff, inputs, timing=False)
        other.release()
        watched, _, recorded = run(neff, inputs, observers=(Recorder,))
        watched.release()
        for _ in range(3):  # the second makes the way known
            other, _, again = run(neff, inputs, replays=True)
            other.release()
        called = [math.inf] * len(CHECKED)
        if inputs is not None:
            with never_again():
                called[0] = called_seconds(neff, inputs)
                kept._FILES.pop(neff, None)  # as if nobody had checked it
                called[1] = called_seconds(neff, inputs, checks="all")
            for _ in range(3):  # here, too, the second makes the way known
                called[2] = called_seconds(neff, inputs)
            for _ in range(3):
                called[3] = called_seconds(neff, inputs, checks="all")
        seconds_of = (load, timed, untimed, *called, recorded)
        for phase, seconds in zip(PHASES[PHASES.index("load") :], seconds_of, strict=True):
            if phase not in CHECKED or inputs is not None:
                best[phase] = min(best.get(phase, math.inf), seconds)
        best["again"] = min(best.get("again", math.inf), again)
    units |= calls.of(best, (*PHASES[PHASES.index("load") :], "again"))
    beside = in_turns(neff, inputs, repeats)
    units["NumPy"] = beside["NumPy"]
    for phase in ("timing", "no timing", "recording"):
        units[phase] = min(units[phase], beside[phase])
    units["beyond"], units["beyond again"] = beside["timing"] - beside["NumPy"], beside["again"] - beside["NumPy"]
    figures = {phase: round(count / words) for phase, count in units.items()}
    figures["call ns"] = round(calls.seconds * 1e9, 1)
    figures["Python calls"] = round(counted(lambda: run(neff, inputs)) / words, 1)
    tracemalloc.start()
    run(neff, inputs)
    figures["peak MB"] = round(tracemalloc.get_traced_memory()[1] / 1e6, 1)
    tracemalloc.stop()
    return words, figures


def summary(rows):
    """Return median, 95th percentile and worst of each column."""
    found = {}
    for column in COLUMNS:
        values = sorted(row["figures"][column] for row in rows.values() if column in row["figures"])
        if values:
            found[column] = statistics.median(values), values[min(int(len(values) * 0.95), len(values) - 1)], values[-1]
    return found


def additions(rows):
    """Yield lines of what timing, recording and checks add to a run, and to which members more than they should."""
    for column, base, goal in ADDITIONS:
        found = {}
        for name, row in rows.items():
            with_it, without = row["figures"].get(column), row["figures"].get(base)
            if with_it is not None and without:
                found[name] = 100 * (with_it / without - 1)
        values = sorted(found.values())
        if values:
            ends = statistics.median(values), values[min(int(len(values) * 0.95), len(values) - 1)], values[-1]
            above = [f"`{name}` {value:.0f}" for name, value in found.items() if value > goal]
            line = (
                f"* {column} over {base}: {ends[0]:.0f} % in the median, {ends[1]:.0f} at 95 %, {ends[2]:.0f} at worst"
            )
            line += f"; above {goal} are {len(above)} of {len(values)}"
            yield line + (": " + ", ".join(above) if above else "")


def page(rows, before):
    """Return a table of all members in Markdown, with figures of another run where they are given."""

    def cell(name, column):
        new = rows[name]["figures"].get(column)
        old = before.get(name, {}).get("figures", {}).get(column)
        return "" if new is None else f"{new:,}" if old is None else f"{old:,} → {new:,}"

    units = [row["figures"]["call ns"] for row in rows.values()]
    lines = [
        f"One call: {min(units):.0f} to {max(units):.0f} ns, by member.",
        "",
        "| member | words | " + " | ".join(COLUMNS) + " |",
        "|---|--:|" + "--:|" * len(COLUMNS),
    ]
    for name, row in rows.items():
        lines.append(f"| {name} | {row['words']:,} | " + " | ".join(cell(name, one) for one in COLUMNS) + " |")
    now, then = summary(rows), summary({name: before[name] for name in rows if name in before})
    for index, what in enumerate(("median", "95 %", "worst")):
        cells = [
            f"{then[one][index]:,} → {now[one][index]:,}" if one in then else f"{now[one][index]:,}"
            for one in COLUMNS
            if one in now
        ]
        lines.append(f"| **{what}** | | " + " | ".join(cells) + " |")
    for name, short, long in GROWTH:
        ends = [rows[f"{name} x{length}"]["figures"] for length in (short, long) if f"{name} x{length}" in rows]
        if len(ends) == 2:
            running, building = (ends[1][column] / ends[0][column] for column in ("timing", "build again"))
            lines += [
                "",
                f"Growth: in a program {long // short} times as long a word of {name} costs {running:.2f} times as "
                f"much to run with timing, and {building:.2f} times to trace and build.",
            ]
    return [*lines, "", "What is added:", "", *additions(rows)]


def main():
    """Measure every member and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="short kernels, small files, two runs each")
    parser.add_argument("--minutes", type=float, help="end after so many (2 with --quick); the rest is named")
    parser.add_argument(
        "--largest", type=int, help=f"bytes of a public NEFF at most ({LARGEST:,}, a tenth with --quick)"
    )
    parser.add_argument("--json", type=Path, help="write figures to a file, for a later --before")
    parser.add_argument("--before", type=Path, help="show figures of an earlier run beside these")
    parser.add_argument("--write", type=Path, help="put the table into a page, behind its line <!-- corpus -->")
    options = parser.parse_args()
    sys.path[:0] = [str(ROOT), str(ROOT / "examples")]
    neurontools.nki.install()
    members = [*examples(), *kernels(options.quick)]
    if "NEURONTOOLS_CORPUS" in os.environ:
        corpus = Path(os.environ["NEURONTOOLS_CORPUS"])
        members += [
            *tutorials(corpus),
            *public_files(corpus, options.largest or (LARGEST // 10 if options.quick else LARGEST)),
        ]
    rows, lost = {}, 0
    minutes = options.minutes or (2 if options.quick else math.inf)
    deadline = time.monotonic() + 60 * minutes
    for name, opener in members:
        if time.monotonic() > deadline:
            print(f"{minutes:g} minutes are over; not measured: {name}", file=sys.stderr)
            continue
        try:
            with environment_kept():
                words, figures = measure(opener, 2 if options.quick else REPEATS)
        except NeuronError as error:
            print(f"{name}: {error}", file=sys.stderr)
            lost += not name.startswith("neff ")  # public files hold what is not modelled
            continue
        rows[name] = {"words": words, "figures": figures}
        print(f"{name}: {words} words, {figures}", file=sys.stderr, flush=True)
    if "NEURONTOOLS_CORPUS" in os.environ and not options.quick:
        for name, words, figures in rows_of(corpus, deadline):
            if figures is None:
                print(f"not measured: {name}: {words}", file=sys.stderr)
                lost += time.monotonic() < deadline  # else it was asked for
                continue
            rows[name] = {"words": words, "figures": figures}
            print(f"{name}: {words} words, {figures}", file=sys.stderr, flush=True)
    before = json.loads(options.before.read_text())["rows"] if options.before else {}
    lines = page(rows, before)
    print("\n".join(lines))
    if options.json:
        options.json.write_text(json.dumps({"rows": rows}, indent=1) + "\n")
    if options.write:
        head, _, behind = options.write.read_text().partition("<!-- corpus -->\n")
        section = behind.find("\n## ")
        rest = "" if section < 0 else behind[section:]
        options.write.write_text(head + "<!-- corpus -->\n" + "\n".join(lines) + "\n" + rest)
    if lost:
        sys.exit(f"{lost} members have no row; the reasons are above")


if __name__ == "__main__":
    main()
