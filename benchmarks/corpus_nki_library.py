"""Measure kernels of AWS's nki-library for `corpus.py`: a fixed sample of its test cases, each in its own test.

The cases are those of `corpus_nki_library.txt`.  A pytest in a process of its own runs the library's tests with the
bridge plugin (docs/nki-library.md; NKI_LIBRARY_BRIDGE names its folder where it is elsewhere); where a test launches
its kernel, the kernel is measured as every other member is, and the test ends.  "build" is the first tracing and
building of the kernel in that process.

This file is also the pytest plugin that does it (CORPUS_NKI_LIBRARY names the output).  Cases that a process leaves
unmeasured are tried once more in another one, and those that have no row then are given with the reason.
"""

import importlib.util
import inspect
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

HERE = Path(__file__).resolve().parent
BRIDGE = HERE.parents[1] / "shared" / "tools" / "nki_library_bridge"
BELOW = "test/integration/nkilib"
NEEDED = ("torch", "scipy", "pytest", "pytest_html", "xdist", "filelock", "allpairspy", "plotext", "fabric2",
          "aws_embedded_metrics", "boto3")  # fmt: skip
OUT = "CORPUS_NKI_LIBRARY"
MEASURED = "measured"  # why a test is skipped
TRIES = 2
_building = {}


def rows_of(corpus, deadline):
    """Yield name, words and figures of the sample; a reason in place of words, and no figures, for what has no row."""
    checkout, bridge = corpus / "nki-library", Path(os.environ.get("NKI_LIBRARY_BRIDGE", BRIDGE))
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    for what, is_there in ((checkout, (checkout / BELOW).is_dir()), (bridge, bridge.is_dir())):
        if not is_there:
            yield "nki-library", f"{what} is not there", None
            return
    if missing:
        yield "nki-library", f"its tests also need {', '.join(missing)}", None
        return
    import neurontools

    lines = (HERE / "corpus_nki_library.txt").read_text().splitlines()
    cases = [f"{BELOW}/{line}" for line in lines if line and not line.startswith("#")]
    path = [
        bridge,
        Path(inspect.getfile(neurontools)).parent / "nki_path",
        HERE.parent,
        HERE,
        checkout / "src",
        checkout,
    ]
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "rows")
        environment = os.environ | {
            "PYTHONPATH": os.pathsep.join([*map(str, path), os.environ.get("PYTHONPATH", "")]),
            "NEURON_PYTHONHASHSEED": "0",
            "PYTHONHASHSEED": "0",
            "OPENBLAS_NUM_THREADS": "1",
            OUT: str(out),
        }
        environment.pop("NKI_BRIDGE_PERMISSIVE", None)
        reasons, left, names = {}, cases, Counter()
        for _ in range(TRIES):
            seconds = None if deadline == math.inf else max(deadline - time.monotonic(), 1)
            ended = _run(checkout, left, environment, folder, seconds)
            entries = [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []
            out.unlink(missing_ok=True)
            for row in entries:
                if "figures" in row:
                    name = row["name"]
                    names[name] += 1  # of cases whose parameters begin alike
                    yield f"{name} ({names[name]})" if names[name] > 1 else name, row["words"], row["figures"]
                else:
                    reasons[row["case"]] = row["reason"]
            measured = {row["case"] for row in entries if "figures" in row}
            left = [case for case in left if case.removeprefix(BELOW + "/") not in measured]
            if not left or ended == "the time is over":
                break
        for case in left:
            name = case.removeprefix(BELOW + "/")
            yield f"nki-library {name}", reasons.get(name, ended), None


def _run(checkout, cases, environment, folder, seconds):
    """Measure cases in a process; return how that ended, for those that it says nothing of."""
    command = [
        sys.executable, "-m", "pytest", "-p", "nki_library_bridge", "-p", "corpus_nki_library", *cases,
        "-c", "test/pytest.ini", "--rootdir", ".", "--test-mode", "simulation", "-q", "--tb=line",
        "--show-capture=no", "--force-local-cleanup", "--output-directory", str(Path(folder, "out")),
        "-p", "no:cacheprovider", "-n", "0",
    ]  # fmt: skip
    try:
        done = subprocess.run(
            command, cwd=checkout, env=environment, timeout=seconds, check=False, text=True, errors="replace",
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return "the time is over"
    last = next((line for line in reversed(done.stdout.splitlines()) if line.strip()), "it said nothing")
    return f"its process ended with {done.returncode}: {last}"


def pytest_runtest_setup(item):
    """Have every launch of a case measured instead of run."""
    from neurontools.nki import launch
    from neurontools.program import launches

    if "prepare" not in _building:
        prepare = _building["prepare"] = launch._prepare

        def timed(*arguments):
            started = time.process_time()
            ready = prepare(*arguments)
            _building.update(arguments=arguments, seconds=time.process_time() - started)
            return ready

        launch._prepare = timed
    _building["name"] = item.nodeid.removeprefix(BELOW + "/")
    launches.stand(launches.Launches(before=_measure))


def pytest_runtest_logreport(report):
    """Write down why a case was not measured, and which it was."""
    reason = str(report.longrepr[2]) if isinstance(report.longrepr, tuple) else str(report.longrepr)
    if (report.outcome == "passed" and report.when != "call") or reason.endswith(MEASURED):
        return  # a case that passes launched nothing
    reason = "it launched no kernel" if report.outcome == "passed" else reason.splitlines()[-1]
    _write({"case": report.nodeid.removeprefix(BELOW + "/"), "reason": reason})


def _write(row):
    with Path(os.environ[OUT]).open("a") as file:
        file.write(json.dumps(row) + "\n")


def _measure(kernel, neff, values):
    """Measure a launch, write its row, and end the test."""
    import pytest
    from corpus import REPEATS, measure

    from formats.neff import open_neff

    prepare, arguments = _building["prepare"], _building["arguments"]

    def opener():
        return open_neff(prepare(*arguments).neff), dict(values)

    words, figures = measure(opener, REPEATS, _building["seconds"])
    _write({"case": _building["name"], "name": _name(kernel), "words": words, "figures": figures})
    pytest.skip(MEASURED)


def _name(kernel):
    """Return a short name: the kernel's, and the parameters of the case as far as a line of a table holds them."""
    _, _, parameters = _building["name"].partition("[")
    return f"nki-library {kernel} {parameters.rstrip(']')[:60]}".replace("|", "/")
