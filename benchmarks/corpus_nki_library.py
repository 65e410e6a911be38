"""Measure kernels of AWS's nki-library for `corpus.py`: a fixed sample of its test cases, each in its own test.

The cases are those of `corpus_nki_library.txt`.  A pytest in a process of its own runs the library's tests with the
bridge plugin (docs/nki-library.md; NKI_LIBRARY_BRIDGE names its folder where it is elsewhere); where a test launches
its kernel, the kernel is measured as every other member is, and the test ends.  "build" is the first tracing and
building of the kernel in that process.

This file is also the pytest plugin that does it (CORPUS_NKI_LIBRARY names the output).
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
from pathlib import Path

HERE = Path(__file__).resolve().parent
BRIDGE = HERE.parents[1] / "shared" / "tools" / "nki_library_bridge"
BELOW = "test/integration/nkilib"
NEEDED = ("torch", "scipy", "pytest", "pytest_html", "xdist", "filelock", "allpairspy", "plotext", "fabric2",
          "aws_embedded_metrics", "boto3")  # fmt: skip
OUT = "CORPUS_NKI_LIBRARY"
_building, _call = {}, []


def rows_of(corpus, deadline):
    """Yield name, words and figures of the sample; a reason in place of words and figures where nothing can run."""
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
        command = [
            sys.executable, "-m", "pytest", "-p", "nki_library_bridge", "-p", "corpus_nki_library", *cases,
            "-c", "test/pytest.ini", "--rootdir", ".", "--test-mode", "simulation", "-q", "--tb=line",
            "--show-capture=no", "--force-local-cleanup", "--output-directory", str(Path(folder, "out")),
            "-p", "no:cacheprovider", "-n", "0",
        ]  # fmt: skip
        left = None if deadline == math.inf else max(deadline - time.monotonic(), 1)
        try:
            subprocess.run(command, cwd=checkout, env=environment, capture_output=True, timeout=left, check=False)
        except subprocess.TimeoutExpired:
            print("the time is over; not all of nki-library was measured", file=sys.stderr)
        for line in out.read_text().splitlines() if out.exists() else ():
            row = json.loads(line)
            yield row["name"], row["words"], row["figures"]


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


def _measure(kernel, neff, values):
    """Measure a launch, write its row, and end the test."""
    import pytest
    from corpus import REPEATS, call_seconds, measure

    from formats.neff import open_neff

    _call[:] = [min([*_call, call_seconds()])]
    prepare, arguments = _building["prepare"], _building["arguments"]

    def opener():
        return open_neff(prepare(*arguments).neff), dict(values)

    words, figures = measure(opener, _call[0], REPEATS)
    figures["build"] = round(_building["seconds"] / _call[0] / words)
    with Path(os.environ[OUT]).open("a") as file:
        file.write(json.dumps({"name": _name(kernel), "words": words, "figures": figures}) + "\n")
    pytest.skip("measured")


def _name(kernel):
    """Return a short name: the kernel's, and the parameters of the case as far as a line of a table holds them."""
    _, _, parameters = _building["name"].partition("[")
    return f"nki-library {kernel} {parameters.rstrip(']')[:60]}".replace("|", "/")
