"""`neurontools selftest onnx`: ONNX's node tests, made HLO and compared with their expected outputs."""

from __future__ import annotations

from neurontools.command.lazy import command_app
from neurontools.command.options import Json
from neurontools.selftest.reporting import Backend, Dask, Jobs, Least, Only, Rows, Sample, run_command
from neurontools.selftest.rows import SuiteResult


def selftest_onnx(
    sample: Sample = None,
    only: Only = None,
    backend: Backend = "interpreter",
    jobs: Jobs = 1,
    dask: Dask = None,
    rows: Rows = None,
    least: Least = None,
    json: Json = False,
) -> None:
    """Run ONNX's node tests, and compare with their expected outputs.

    Every model is made HLO by a thin importer; the reference interpreter, or the compiler with the emulator, evaluates
    it. Inputs that decide shapes are constants of the module. The exit status is 1 when a case ends in a traceback.
    Needs the extra `onnx`.
    """
    run_command("onnx", backend, sample, only, jobs, dask, rows, least, json)


app = command_app(selftest_onnx, result=SuiteResult)
