"""Compare emulated times with the device times that AWS's nki-library tests expect, row by row.

    python benchmarks/nki_library.py CHECKOUT BRIDGE OUT.json [--seconds N] [PYTEST ARGUMENT ...]

CHECKOUT is a checkout of nki-library that can be collected, BRIDGE the folder of its bridge plugin
(docs/nki-library.md); what follows selects tests, relative to `test/integration/nkilib/core`.  Every selected case
that carries an expected time is traced, built and run with timing on; results are not compared, its own test run does
that.  A case that takes longer than N seconds (120) of this machine is left out, and said so.  The expected times are
read from the checkout, their unit is taken as picoseconds.  What the runtime puts around a program is added to ours.

This file is also the pytest plugin that does it (NKI_LIBRARY_TIMES names the output).
"""

import contextlib
import inspect
import json
import os
import signal
import statistics
import subprocess
import sys
from pathlib import Path

BELOW = "test/integration/nkilib/core"
_EXPECTED = ("tpbSgCyclesSum", "cyclesQoR")
_LEAST = 1_000_000  # an expected time; every other number of a configuration is smaller
_rows, _current, _way = [], {}, contextlib.ExitStack()


def expected_of(item):
    """Return the expected picoseconds of a test case by number of cores; the key None stands for any number."""
    parameters = getattr(getattr(item, "callspec", None), "params", {})
    for name in _EXPECTED:
        value = parameters.get(name)
        if isinstance(value, tuple | list):  # (a condition, the time)
            value = next((x for x in value if isinstance(x, int | float)), None)
        if isinstance(value, int | float):
            return {None: value}
    for value in parameters.values():
        for config in (getattr(value, "tensors", None) or {}).values():
            if isinstance(config, dict):
                return _from_vectors(item.module, config)
    return {}


def _from_vectors(module, config):
    """Return the times in the vectors of a module that a configuration was made of."""
    wanted = [_plain(value) for value in config.values()]
    found = {}
    for vectors in vars(module).values():
        for vector in vectors if isinstance(vectors, list) else ():
            if isinstance(vector, list | tuple):
                times = [x for x in vector if isinstance(x, int) and x >= _LEAST]
                left = _less([_plain(x) for x in vector if not isinstance(x, int) or x < _LEAST], wanted)
                if len(times) == 1 and left is not None:
                    found.setdefault(int(left[0]) if left else None, set()).add(times[0])
    return {cores: times.pop() for cores, times in found.items() if len(times) == 1}


def _plain(value):
    value = getattr(value, "value", value)
    return repr(int(value) if isinstance(value, bool) else value)


def _less(have, wanted):
    """Return what is left of `have` without `wanted`: nothing, or the number of cores, else None."""
    left = list(have)
    for one in wanted:
        if one not in left:
            return None
        left.remove(one)
    return left if not left or (len(left) == 1 and left[0] in ("1", "2")) else None


def _timed(name, neff, values):
    """Run what a test has built, note the time, and end the test."""
    import pytest

    from emulator import runtime
    from emulator.cost import figure

    if not _current:
        return
    from formats.neff import open_neff

    expected, opened = _current.pop("expected"), open_neff(neff)
    wanted = expected.get(len(opened.subgraphs), expected.get(None))
    if wanted is None:
        pytest.skip("no time for this number of cores")
    result = runtime.run(opened, values)
    _current["expected_us"] = wanted / 1e6
    _current["emulated_us"] = result.time_ps / 1e6 + figure("runtime_overhead", opened.target.name)
    _current["ok"] = result.ok
    _current["instructions"] = result.stats.instructions
    _current["kernel"] = name
    pytest.skip("timed")


def pytest_collection_modifyitems(config, items):
    """Keep the cases that have an expected time."""
    items[:] = [item for item in items if expected_of(item)]


def pytest_runtest_setup(item):
    """Begin a row."""
    import pytest

    from neurontools.program.launches import Launches, using

    _way.enter_context(using(Launches(before=_timed)))
    _current.clear()
    _current.update(case=item.nodeid.removeprefix(BELOW + "/"), expected=expected_of(item))

    def too_long(number, frame):
        _current["left_out"] = "takes longer than the limit"
        pytest.skip("too long")

    signal.signal(signal.SIGALRM, too_long)
    signal.alarm(int(os.environ.get("NKI_LIBRARY_SECONDS", "120")))


def pytest_runtest_makereport(item, call):
    """End a row: keep it, and write all rows so far."""
    if call.when == "call":
        signal.alarm(0)
        _way.close()
        if call.excinfo is not None and "emulated_us" not in _current:
            _current.pop("expected", None)
            _current.setdefault("left_out", str(call.excinfo.value).splitlines()[0][:200])
        _rows.append(dict(_current))
        _current.clear()
        Path(os.environ["NKI_LIBRARY_TIMES"]).write_text(json.dumps(_rows, indent=1))


def summary(rows):
    """Return lines: one per row, then the median absolute error per test file and over all."""
    timed = [row for row in rows if row.get("ok")]
    lines = []
    by_file = {}
    for row in sorted(timed, key=lambda row: row["case"]):
        error = row["emulated_us"] / row["expected_us"] - 1
        by_file.setdefault(row["case"].split("::")[0], []).append(error)
        lines.append(f"{row['expected_us']:10.1f} {row['emulated_us']:10.1f} {error:+8.1%}  {row['case']}")
    for name, errors in by_file.items():
        lines.append(
            f"{name}: {len(errors)} rows, median absolute error "
            f"{statistics.median(map(abs, errors)):.1%}, median {statistics.median(errors):+.1%}"
        )
    every = [error for errors in by_file.values() for error in errors]
    if every:
        lines.append(
            f"all: {len(every)} rows, median absolute error {statistics.median(map(abs, every)):.1%}, "
            f"median {statistics.median(every):+.1%}; {len(rows) - len(timed)} cases left out"
        )
    return lines


def main():
    """Run the selected tests in a pytest of their own and print the comparison."""
    checkout, bridge, out, *rest = sys.argv[1:]
    seconds = "120"
    if rest[:1] == ["--seconds"]:
        seconds, rest = rest[1], rest[2:]
    import neurontools

    here = Path(inspect.getfile(neurontools)).parent
    path = [bridge, here / "nki_path", here.parent, Path(__file__).resolve().parent, Path(checkout, "src"), checkout]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(map(str, path)),
        "NEURON_PYTHONHASHSEED": "0",
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "NKILIB_SIMULATION_RUN_ALL": "1",
        "NKI_LIBRARY_TIMES": str(Path(out).resolve()),
        "NKI_LIBRARY_SECONDS": seconds,
    }
    below = Path(checkout, BELOW)
    selected = [
        f"{BELOW}/{one}" if not one.startswith("-") and (below / one.split("::")[0]).exists() else one for one in rest
    ]
    subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-p",
            "nki_library_bridge",
            "-p",
            "nki_library",
            *selected,
            "-c",
            "test/pytest.ini",
            "--rootdir",
            ".",
            "--test-mode",
            "simulation",
            "-q",
            "--tb=no",
            "--show-capture=no",
            "--force-local-cleanup",
            "-p",
            "no:cacheprovider",
            "--output-directory",
            str(Path(out).resolve().with_suffix(".d")),
        ],
        cwd=checkout,
        env=environment,
        check=False,
    )
    if not Path(out).exists():
        sys.exit("no test case with an expected time was selected")
    print("\n".join(summary(json.loads(Path(out).read_text()))))


if __name__ == "__main__":
    main()
