"""`neurontools selftest jax`: JAX's primitive harnesses, lowered to HLO and compared with XLA on a CPU."""

from __future__ import annotations

from neurontools.command.lazy import command_app
from neurontools.command.options import Json
from neurontools.selftest.reporting import Backend, Dask, Jobs, Least, Only, Rows, Sample, run_command
from neurontools.selftest.rows import SuiteResult


def selftest_jax(
    sample: Sample = None,
    only: Only = None,
    backend: Backend = "interpreter",
    jobs: Jobs = 1,
    dask: Dask = None,
    rows: Rows = None,
    least: Least = None,
    json: Json = False,
) -> None:
    """Run JAX's primitive harnesses, and compare with XLA on a CPU.

    Every harness is lowered to HLO; the reference interpreter, or the compiler with the emulator, evaluates it.
    Tolerances are JAX's own. The exit status is 1 when a case ends in a traceback. Needs the extra `jax`.
    """
    run_command("jax", backend, sample, only, jobs, dask, rows, least, json)


app = command_app(selftest_jax, result=SuiteResult)
