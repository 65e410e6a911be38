"""One kernel against its reference, for programs that write kernels: right or not, how fast, what bounds it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

from formats.errors import NeuronError
from formats.named_tuple import NamedTuple
from neurontools.tuning.budget import limit_memory

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    import numpy as np

    from formats.neff import Neff

    Array = np.ndarray[Any, Any]

__all__ = ["Evaluation", "evaluate"]


class Evaluation(NamedTuple):
    """What came of a kernel: `error` says why it is not correct, "" where it is."""

    correct: bool
    time_ps: Annotated[int, "emulated time, -1 where it did not run"]
    bottleneck: str
    findings: tuple[str, ...]
    error: str = ""
    difference: Annotated[float, "largest, relative to the largest value of the reference"] = 0.0
    seconds: Annotated[float, "of this machine"] = 0.0


def evaluate(
    kernel: Callable[..., Any],
    inputs: Sequence[Any] | Mapping[str, Any],
    reference: Any,
    *,
    target: str | None = None,
    lnc: int | None = None,
    checks: str | Sequence[str] = "all",
    tolerance: float = 1e-2,
    explain: bool = True,
    max_seconds: float = 60.0,
    max_megabytes: int = 4096,
    isolated: bool = True,
) -> Evaluation:
    """Run a kernel on the emulator and return whether it is right, its time, its bottleneck and its findings.

    `inputs` are its arguments, or its keywords by name; `reference` the result (an array, or one per result) or a
    function that gives it from the same inputs.  A result is right where no element is further from the reference than
    `tolerance` times the reference's largest value, and no check has a serious finding.  Whatever the kernel does is a
    value of the result: a broken limit, a fault, a hang, an endless loop, too much memory.  `isolated` runs it in a
    process of its own, which the budgets end; systems without `fork` run it in this one.
    """
    started = perf_counter()
    names = (checks,) if isinstance(checks, str) else tuple(checks)
    wanted = _Wanted(kernel, inputs, reference, target, lnc, names, tolerance, explain, max_seconds)
    if not (isolated and hasattr(os, "fork")):
        return _guarded(wanted)._replace(seconds=perf_counter() - started)
    from multiprocessing import get_context  # deferred: start-up

    context = get_context("fork")  # the kernel is a function of this process: nothing else could be handed over
    mine, its = context.Pipe(duplex=False)
    process = context.Process(target=_child, args=(its, wanted, max_megabytes), daemon=True)
    process.start()
    its.close()
    try:
        found = _answer(mine, max_seconds)
        if isinstance(found, str) and found == "":
            process.join(1)
            found = f"the process ended with status {process.exitcode}"
    finally:
        mine.close()
        # One that has answered ends by itself in a moment, and may be writing what tools in it collect.
        if process.is_alive():
            process.join(0.2)
            process.kill()
        process.join()
        process.close()
    seconds = perf_counter() - started
    return _failed(found, seconds) if isinstance(found, str) else found._replace(seconds=seconds)


class _Wanted(NamedTuple):
    kernel: Callable[..., Any]
    inputs: Sequence[Any] | Mapping[str, Any]
    reference: Any
    target: str | None
    lnc: int | None
    checks: tuple[str, ...]
    tolerance: float
    explain: bool
    max_seconds: float


def _failed(error: str, seconds: float = 0.0) -> Evaluation:
    return Evaluation(False, -1, "", (), error, float("inf"), seconds)


def _answer(connection: Connection, max_seconds: float) -> Evaluation | str:
    """Return what the process says, or why it says nothing; "" where it has ended."""
    try:
        # The run in the process stops at the same budget; this ends Python that loops before or behind it.
        if not connection.poll(max_seconds):
            return f"over {max_seconds:g} s"
        return Evaluation(*connection.recv())
    except EOFError:
        return ""


def _child(connection: Connection, wanted: _Wanted, max_megabytes: int) -> None:
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)  # what kernels print is the caller's only where he runs them himself
    limit_memory(max_megabytes)
    try:
        found = _guarded(wanted)
    except MemoryError:
        found = _failed(f"over {max_megabytes} MB")
    connection.send(tuple(found))
    connection.close()


def _guarded(wanted: _Wanted) -> Evaluation:
    """Run the kernel; errors of the kernel, its author's too, are values."""
    try:
        return _run(wanted)
    except NeuronError as error:
        return _failed(" ".join(str(error).split()))
    except MemoryError:
        raise  # the process that has the budget says how much that is
    except Exception as error:  # noqa: BLE001  an author's kernel may raise anything, and thousands are evaluated
        return _failed(f"{type(error).__name__}: {' '.join(str(error).split())}")


def _run(wanted: _Wanted) -> Evaluation:
    from neurontools.nki.errors import KernelFaultError  # deferred: start-up
    from neurontools.nki.launch import launch  # deferred: start-up
    from neurontools.program.configuration import RunConfiguration  # deferred: start-up
    from neurontools.program.launches import Launches, using  # deferred: start-up
    from neurontools.tuning.child import bottleneck  # deferred: start-up

    given = wanted.inputs
    args, kwargs = ((), dict(given)) if isinstance(given, Mapping) else (tuple(given), {})
    want = wanted.reference(*args, **kwargs) if callable(wanted.reference) else wanted.reference
    kept: list[tuple[str, Neff | bytes, dict[str, Any]]] = []

    def before(name: str, neff: Neff | bytes, inputs: Mapping[str, Any]) -> None:
        kept.append((name, neff, {key: array.copy() for key, array in inputs.items()}))

    configuration = RunConfiguration(checks=wanted.checks, max_seconds=wanted.max_seconds, nki="neurontools")
    launches = Launches(configuration, before if wanted.explain else None)
    error = ""
    got: Any = None
    with using(launches):
        try:
            got = launch(wanted.kernel, args, kwargs, wanted.lnc, wanted.target)
        except KernelFaultError as fault:
            error = " ".join(str(fault).split())
    result = launches.done[-1].made.result
    findings = tuple(f"{one.tool}: {one.kind}: {one.message}" for one in result.findings)
    difference = float("inf")
    if not error:
        difference, error = _compare(got, want, wanted.tolerance)
    if not error and any(one.serious for one in result.findings):
        error = next(text for one, text in zip(result.findings, findings, strict=True) if one.serious)
    why = bottleneck(*kept[0]) if kept and result.ok else ""
    return Evaluation(not error, result.time_ps, why, findings, error, difference)


def _compare(got: Any, want: Any, tolerance: float) -> tuple[float, str]:
    """Return how far results are from the reference, and what is wrong with that, if anything."""
    import numpy as np  # deferred: start-up

    results = list(got) if isinstance(got, list | tuple) else [got]
    wanted = list(want) if isinstance(want, list | tuple) else [want]
    if len(results) != len(wanted):
        return float("inf"), f"{len(results)} results, the reference has {len(wanted)}"
    largest = 0.0
    for number, (one, other) in enumerate(zip(results, wanted, strict=True)):
        mine, right = np.asarray(one).astype(np.float64), np.asarray(other).astype(np.float64)
        if mine.shape != right.shape:
            return float("inf"), f"result {number} has shape {mine.shape}, the reference {right.shape}"
        if not right.size:
            continue
        # Of what is finite: one infinity in the reference would let any error of the rest pass.
        scale = float(np.abs(right[np.isfinite(right)]).max(initial=0.0)) or 1.0
        same = (mine == right) | (np.isnan(mine) & np.isnan(right))
        with np.errstate(invalid="ignore"):
            apart = np.where(same, 0.0, np.abs(mine - right)) / scale
        apart[np.isnan(apart)] = np.inf  # a NaN on one side, infinities of both signs
        largest = max(largest, float(apart.max()))
        if largest > tolerance:
            place = tuple(int(at) for at in np.unravel_index(int(apart.argmax()), apart.shape))
            return largest, (f"result {number} differs by {largest:.1e} of its largest value, first of all at "
                             f"{list(place)}: {mine[place]:g}, not {right[place]:g}")  # fmt: skip
    return largest, ""
