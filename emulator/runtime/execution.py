"""Load a NEFF, execute it once, read its outputs: what libnrt does, on an emulated device."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from emulator.debug_stream import DebugStream, Printed
from emulator.device import Device
from emulator.dtypes import numpy_dtype
from emulator.errors import InputError
from emulator.observers import is_observer
from emulator.pace import seldom_collected
from emulator.runtime.known_runs import keep_run, run_known
from emulator.settings import Settings
from formats.dtypes import Dtype
from formats.named_tuple import NamedTuple
from formats.neff import Neff, TensorInfo, open_neff
from formats.nrt.status import NrtStatus
from formats.targets import Target, resolve_target

if TYPE_CHECKING:
    from emulator.diagnosis.graph import Hang
    from emulator.faults import Fault

__all__ = ["Guard", "Result", "Stats", "check_inputs", "execute", "new_device", "result_of", "run", "stats_of"]

Array = npt.NDArray[Any]
Progress = Callable[["Device"], None]
Guard = Callable[["Device"], AbstractContextManager[object]]
_REPORT_SECONDS = 0.3


@dataclass(frozen=True)
class Stats:
    """What an execution did: words by (core, engine), DMA bytes as they arrive, `seconds` of this machine's time."""

    instructions: int = 0
    transfers: int = 0
    dma_bytes: int = 0
    seconds: float = 0.0
    words: Mapping[tuple[int, str], int] = field(default_factory=dict)


@dataclass(frozen=True)
class Result:
    """What came of an execution.

    `outputs` maps names to arrays (what the file did not write is NaN, or 4 in integers), `outputs_by_core` the same
    per physical core. At most one of `fault` and `hang` is set; `time_ps` is emulated time; `prints` is what the
    program printed, in order. `unwritten` counts the bytes of each output that a program which ended did not write.
    """

    outputs: dict[str, Array]
    outputs_by_core: tuple[dict[str, Array], ...]
    fault: Fault | None = None
    hang: Hang | None = None
    findings: tuple[Any, ...] = ()
    warnings: tuple[Any, ...] = ()
    time_ps: int = 0
    stats: Stats = Stats()
    prints: tuple[Printed, ...] = ()
    unwritten: Mapping[str, int] = field(default_factory=dict)

    @property
    def status(self) -> NrtStatus:
        """Return the code that the real runtime would return."""
        if self.fault is not None:
            return self.fault.status
        return NrtStatus.NRT_SUCCESS if self.hang is None else self.hang.status

    @property
    def ok(self) -> bool:
        """Return whether the execution finished."""
        return self.fault is None and self.hang is None


def run(
    neff: Neff | str | os.PathLike[str] | bytes,
    inputs: Mapping[str, Any] | None = None,
    *,
    seed: int | None = None,
    checks: str | Sequence[str] = (),
    timing: bool = True,
    lnc: int | None = None,
    progress: Progress | None = None,
    observers: Sequence[Any] = (),
    max_steps: int | None = None,
    limit_ps: int | None = None,
    max_seconds: float | None = None,
    hang_timeout_ps: int | None = None,
    act: str = "exact",
    target: Target | str | None = None,
) -> Result:
    """Load a NEFF, execute it once with the given inputs and return what came out; see `execute` and `Settings`.

    `lnc` asserts the number of cores that the file was built for.
    """
    opened = neff if isinstance(neff, Neff) else open_neff(neff)
    cores = len(opened.subgraphs)
    if lnc is not None and lnc != cores:
        raise InputError(f"file is for {cores} core(s), not for {lnc}")
    settings = Settings(target, seed, timing, act, hang_timeout_ps, max_steps, limit_ps, max_seconds)
    return execute(opened, inputs or {}, settings, checks=checks, progress=progress, observers=observers)


def execute(
    neff: Neff | str | os.PathLike[str] | bytes,
    inputs: Mapping[str, Any],
    settings: Settings,
    *,
    checks: str | Sequence[str] = (),
    progress: Progress | None = None,
    observers: Sequence[Any] = (),
    guard: Guard = nullcontext,
) -> Result:
    """Load a NEFF, execute it once with the given inputs and return what came out.

    `neff` is an open file, a path or its bytes; `inputs` maps tensor names to arrays of the file's shapes and element
    types. `checks` are names as in `emulator.checks.tools_of` ("race", "memcheck", "all"), or a single one. `progress`
    is called with the device a few times a second; `observers` see every event (`on_event`), are told of the loaded
    device (`attach`) and of the end (`finish`) where they want to know, and what they keep in `findings` is returned.
    `guard(device)` is entered around the run itself.
    Faults and hangs are values of the result; raises InputError for wrong inputs and unknown checks, LoadError,
    UnsupportedError or FormatError where the file cannot be loaded.
    """
    # What is loaded and what watches is as many objects as what runs, and nearly all of it is gone by the end.
    with seldom_collected():
        return _executed(neff, inputs, settings, checks, progress, observers, guard)


def _executed(
    neff: Neff | str | os.PathLike[str] | bytes,
    inputs: Mapping[str, Any],
    settings: Settings,
    checks: str | Sequence[str],
    progress: Progress | None,
    observers: Sequence[Any],
    guard: Guard,
) -> Result:
    opened = neff if isinstance(neff, Neff) else open_neff(neff)
    watching = list(observers)
    tools: tuple[str, ...] = ()
    if checks:
        from emulator.checks.again import Again  # deferred: start-up

        checking = Again(checks)
        tools, watching = checking.tools, [checking, *watching]
    arrays = check_inputs(opened, inputs)
    alone = not observers and progress is None and guard is nullcontext
    started = perf_counter()
    known = run_known(opened, settings, arrays, tools) if alone else None
    if known is not None:
        return _result_again(*known, perf_counter() - started)
    device = new_device(opened, settings, unseen=alone)
    device.observers.extend(observer for observer in watching if is_observer(observer))
    device.load(opened)
    device.set_inputs(arrays, borrowed=alone)
    for observer in watching:
        if hasattr(observer, "attach"):
            observer.attach(device)
    stream = DebugStream.of(device)
    if stream is not None:
        device.observers.append(stream)
    started = perf_counter()
    with guard(device):
        if progress is None:
            device.run()
        else:
            _run_with(device, progress)
    seconds = perf_counter() - started
    for observer in watching:
        if hasattr(observer, "finish"):
            observer.finish()
    findings = tuple(finding for observer in watching for finding in getattr(observer, "findings", ()))
    result = result_of(device, seconds, findings, () if stream is None else stream.records(), last=not observers)
    if alone and stream is None and device.way is not None:
        by_core = tuple([tuple(each) for each in result.outputs_by_core])
        keep_run(device, settings, _Known(replace(result, outputs={}, outputs_by_core=(), findings=()), by_core))
    if not observers:
        # Nobody else has seen the device: its memories serve the next run, and so does what checks keep beside them.
        device.release()
        for observer in watching:
            if hasattr(observer, "release"):
                observer.release()
    return result


class _Known(NamedTuple):
    """What a known run gives: a result, whose outputs are others each time, and the outputs of each core by name."""

    result: Result
    by_core: tuple[tuple[str, ...], ...]


def _result_again(outputs: dict[str, Array], known: _Known, findings: Sequence[Any], seconds: float) -> Result:
    """Return what came of a run that is known."""
    found = known.result
    by_core = tuple([{name: outputs[name] for name in names} for names in known.by_core])
    stats = replace(found.stats, seconds=seconds, words=dict(found.stats.words))
    own = tuple([finding.copy() for finding in findings])
    return replace(
        found, outputs=outputs, outputs_by_core=by_core, findings=own, stats=stats, unwritten=dict(found.unwritten)
    )


def new_device(neff: Neff, settings: Settings, *, unseen: bool = False) -> Device:
    """Return an empty device of the kind that a NEFF asks for; InputError for a target of another generation."""
    target = neff.target if settings.target is None else resolve_target(settings.target)
    if target.generation != neff.target.generation:
        raise InputError(f"the file is for {neff.target.name}, not {target.name}")
    if str(settings.target).lower() != target.name:
        target = neff.target  # a generation or an architecture code names no chip: the file's own stays
    return Device(
        target,
        len(neff.subgraphs),
        settings.timing,
        settings.seed,
        max_steps=settings.max_steps,
        limit_ps=settings.limit_ps,
        hang_timeout_ps=settings.hang_timeout_ps,
        act=settings.act,
        max_seconds=settings.max_seconds,
        unseen=unseen,
    )


def check_inputs(neff: Neff, inputs: Mapping[str, Any]) -> dict[str, Array]:
    """Return the inputs as arrays of the file's element types and shapes.

    Raises InputError that lists the expected names, or names the tensor whose shape or element type is another one.
    """
    expected = {tensor.name: tensor for tensor in neff.inputs}
    listing = ", ".join(f"{t.name} {t.dtype}{list(t.shape)}" for t in expected.values()) or "none"
    unknown, missing = sorted(set(inputs) - set(expected)), sorted(set(expected) - set(inputs))
    if unknown:
        raise InputError(f"no input {unknown[0]!r}; the file takes {listing}")
    if missing:
        raise InputError(f"input {missing[0]!r} is not given; the file takes {listing}")
    return {name: _check_input(tensor, inputs[name]) for name, tensor in expected.items()}


def _check_input(tensor: TensorInfo, value: Any) -> Array:
    array = np.asarray(value)
    wanted = numpy_dtype(Dtype.from_numpy_name(tensor.dtype))
    if array.dtype != wanted:
        raise InputError(f"input {tensor.name!r} has element type {array.dtype}, expected {tensor.dtype}")
    if array.shape != tensor.shape:
        raise InputError(f"input {tensor.name!r} has shape {list(array.shape)}, expected {list(tensor.shape)}")
    return array


def _run_with(device: Device, progress: Progress) -> None:
    """Run in slices of emulated time that take about a third of a second each, and report after every one."""
    # How many picoseconds take a third of a second depends on the program: doubled from one until it does.
    span = 1
    started = perf_counter()
    while device.run(until=device.now_ps + span) == "until":
        spent = perf_counter() - started
        if spent < _REPORT_SECONDS / 2:
            span *= 2
            continue
        if spent > _REPORT_SECONDS * 2:
            span = max(1, span // 2)
        progress(device)
        started = perf_counter()
    progress(device)


def result_of(
    device: Device, seconds: float, findings: tuple[Any, ...], prints: tuple[Printed, ...], *, last: bool = False
) -> Result:
    """Return what came of an execution that has ended; `last` says that the device is of no use after that."""
    outputs = device.outputs(last)
    by_core: tuple[dict[str, Array], ...] = ()
    if device.model is not None:
        # Cores of one logical core share their outputs; each fills its part.
        by_core = tuple(
            {name: array for name, array in outputs.items() if name in core.placement.by_name}
            for core in device.model.cores
        )
    unwritten: dict[str, int] = {}
    if device.model is not None and device.outcome == "finished":
        for name in outputs:
            held = device.hbm.allocations[device.model.tensors[name].address]
            if held.written_bytes < held.nbytes:
                unwritten[name] = held.nbytes - held.written_bytes
    return Result(
        outputs, by_core, device.fault, device.hang, findings, tuple(device.warnings), device.now_ps,
        stats_of(device, seconds), prints, unwritten,
    )  # fmt: skip


def stats_of(device: Device, seconds: float) -> Stats:
    """Return what a device has done so far."""
    words = {(core.index, name): engine.completed for core in device.cores for name, engine in core.engines.items()}
    return Stats(
        instructions=sum(words.values()),
        transfers=sum(queue.completed for queue in device.queues),
        dma_bytes=sum(queue.nbytes for queue in device.queues),
        seconds=seconds,
        words=words,
    )
