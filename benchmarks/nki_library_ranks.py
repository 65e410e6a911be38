"""Run the cases of AWS's nki-library that take several devices on as many ranks, against the goldens of the suite.

    python benchmarks/nki_library_ranks.py CHECKOUT BRIDGE OUT.json [PYTEST ARGUMENT ...]

CHECKOUT and BRIDGE as in `nki_library.py`; what follows selects tests, by default `experimental/collectives`.
Simulation mode of the suite starts one rank, and knows nothing of its inputs for each rank.  Here
`Orchestrator.execute` builds the kernel once, runs it on all ranks of trn2.48xlarge machines, gives each what
`PerRankLazyInputGenerator` makes for it, and holds each output against `PerRankLazyGoldenGenerator` with the suite's
own tolerances.  Tests and generators are the suite's.

This file is also the pytest plugin that does it (NKI_LIBRARY_RANKS names the output).
"""

import inspect
import json
import os
import subprocess
import sys
import time
from pathlib import Path

BELOW = "test/integration/nkilib"
USUAL = f"{BELOW}/experimental/collectives"
_CHIP = "trn2"
_PER_INSTANCE = {1: 128, 2: 64}  # ranks, by physical cores of each
_rows, _current = [], {}


def pytest_configure(config):
    """Let cases of several ranks run on so many."""
    from test.utils.test_orchestrator import Orchestrator

    alone = Orchestrator.execute

    def execute(self, kernel_under_test):
        ranks = getattr(kernel_under_test.inference_args, "collective_ranks", 1) or 1
        if ranks == 1:
            return alone(self, kernel_under_test)
        return _on_ranks(kernel_under_test, ranks)

    Orchestrator.execute = execute


def _of_rank(generator, rank):
    """Return what a generator gives a rank, or the one dictionary of all ranks."""
    if hasattr(generator, "for_rank"):
        return generator.for_rank(rank)
    return getattr(generator, "output_ndarray", generator)


def _on_ranks(case, ranks):
    import numpy as np

    from emulator.runtime.ranks import Ranks, execute_ranks
    from neurontools.nki.launch import build_neff

    lnc = case.compiler_input.logical_nc_config
    inputs = [_of_rank(case.kernel_input, rank) for rank in range(ranks)]
    kernel = getattr(case.kernel_func, "func", case.kernel_func)
    neff = build_neff(kernel, (), dict(inputs[0]), lnc=lnc, target=_CHIP)
    given = [{one.name: np.asarray(mine[one.name.split(".")[0]]) for one in neff.inputs} for mine in inputs]
    _current["ranks"], _current["lnc"] = ranks, lnc
    found = execute_ranks(neff, given, Ranks(ranks, None, -(-ranks // _PER_INSTANCE[lnc])))
    assert found.ok, found.hang or next(one.fault for one in found.results if one.fault is not None)
    _current["time_us"] = found.time_ps / 1e6
    wanted = case.validation_args
    worst = 0.0
    # Of a golden for all ranks the suite holds rank 0 against it (`OutputValidator.validate`).
    checked = range(ranks) if hasattr(wanted.golden_output, "for_rank") else range(1)
    taken = {one.name for one in neff.inputs}
    for rank in checked:
        golden = list(_of_rank(wanted.golden_output, rank).values())
        # An input that the kernel writes into is an output too; goldens are of what it returns.
        outputs = [array for name, array in found.results[rank].outputs.items() if name not in taken]
        for one, right in zip(outputs, golden, strict=True):
            mine, theirs = np.asarray(one, np.float32), np.asarray(right, np.float32)
            worst = max(worst, float(np.abs(mine.reshape(-1) - theirs.reshape(-1)).max()))
            np.testing.assert_allclose(mine.reshape(theirs.shape), theirs, rtol=wanted.relative_accuracy,
                                       atol=wanted.absolute_accuracy, err_msg=f"rank {rank}")  # fmt: skip
    _current["largest difference"] = worst


def pytest_runtest_setup(item):
    """Begin a row."""
    _current.clear()
    _current.update(case=item.nodeid.removeprefix(BELOW + "/"), began=time.process_time())


def pytest_runtest_makereport(item, call):
    """End a row: keep it, and write all rows so far."""
    if call.when == "call":
        _current["seconds"] = round(time.process_time() - _current.pop("began"), 1)
        error = None if call.excinfo is None else f"{call.excinfo.typename}: {call.excinfo.value}"
        _current["error"] = None if error is None else error.strip().splitlines()[0][:300]
        _rows.append(dict(_current))
        Path(os.environ["NKI_LIBRARY_RANKS"]).write_text(json.dumps(_rows, indent=1))


def main():
    """Run the selected tests in a pytest of their own and print what became of each."""
    checkout, bridge, out, *rest = sys.argv[1:]
    import neurontools

    here = Path(inspect.getfile(neurontools)).parent
    path = [
        bridge,
        *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep)),
        here / "nki_path",
        here.parent,
        Path(__file__).resolve().parent,
        Path(checkout, "src"),
        checkout,
    ]
    environment = {
        **os.environ, "PYTHONPATH": os.pathsep.join(map(str, path)), "NEURON_PYTHONHASHSEED": "0",
        "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1", "OPENBLAS_NUM_THREADS": "1",
        "NKILIB_SIMULATION_RUN_ALL": "1", "NKI_LIBRARY_RANKS": str(Path(out).resolve()),
    }  # fmt: skip
    words = [sys.executable, "-m", "pytest", "-p", "nki_library_bridge", "-p", "nki_library_ranks", *(rest or [USUAL]),
             "-c", "test/pytest.ini", "--rootdir", ".", "--test-mode", "simulation", "-q", "--tb=no",
             "--show-capture=no", "--force-local-cleanup", "--output-directory", f"{out}.d"]  # fmt: skip
    subprocess.run(words, cwd=checkout, env=environment, check=False)
    rows = json.loads(Path(out).read_text())
    for row in rows:
        became = (
            row["error"] or f"right, {row.get('time_us', 0):,.1f} us, off by {row.get('largest difference', 0):.2g}"
        )
        print(f"{row['case'].split('::')[-1]} ({row.get('ranks', 1)} ranks): {became}")
    print(f"{sum(row['error'] is None for row in rows)} of {len(rows)} right")


if __name__ == "__main__":
    main()
