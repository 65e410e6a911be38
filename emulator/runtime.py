"""Load a NEFF, execute it once, read its outputs: what libnrt does, on an emulated device."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from emulator.device import Device
from emulator.dtypes import numpy_dtype
from emulator.errors import InputError
from formats.dtypes import Dtype
from formats.neff import Neff, TensorInfo, open_neff
from formats.nrt.status import NrtStatus

if TYPE_CHECKING:
    from emulator.faults import Fault
    from emulator.hang import Hang

__all__ = ["Result", "Stats", "check_inputs", "run"]

Array = npt.NDArray[Any]
Progress = Callable[["Device"], None]
_PROGRESS_EVERY = 2048  # completions between two calls of the progress hook


@dataclass(frozen=True)
class Stats:
    """What an execution did; busy times are picoseconds per (core, engine)."""

    instructions: int = 0
    transfers: int = 0
    dma_bytes: int = 0
    seconds: float = 0.0
    words: Mapping[tuple[int, str], int] = field(default_factory=dict)


@dataclass(frozen=True)
class Result:
    """What came of an execution.

    `outputs` maps names to arrays (what the file did not write is NaN or all ones), `outputs_by_core` the same per
    physical core. At most one of `fault` and `hang` is set; `time_ps` is emulated time.
    """

    outputs: dict[str, Array]
    outputs_by_core: tuple[dict[str, Array], ...]
    fault: Fault | None = None
    hang: Hang | None = None
    findings: tuple[Any, ...] = ()
    warnings: tuple[Any, ...] = ()
    time_ps: int = 0
    stats: Stats = Stats()

    @property
    def status(self) -> NrtStatus:
        """Return the code that the real runtime would return."""
        if self.fault is not None:
            return self.fault.status
        return NrtStatus.NRT_SUCCESS if self.hang is None else NrtStatus.NRT_TIMEOUT

    @property
    def ok(self) -> bool:
        """Tell whether the execution finished."""
        return self.fault is None and self.hang is None


def run(
    neff: Neff | str | os.PathLike[str] | bytes,
    inputs: Mapping[str, Any] | None = None,
    *,
    seed: int | None = None,
    checks: Sequence[str] = (),
    timing: bool = True,
    lnc: int | None = None,
    progress: Progress | None = None,
) -> Result:
    """Load a NEFF, execute it once with the given inputs and return what came out.

    `neff` is an open file, a path or its bytes; `inputs` maps tensor names to arrays of the file's shapes and element
    types. `seed` shakes the schedule, `timing=False` gives every step the same time, `lnc` asserts the number of cores.
    `progress` is called with the device every few thousand completions. Faults and hangs are values of the result;
    raises InputError for wrong inputs, LoadError, UnsupportedError or FormatError where the file cannot be loaded.
    """
    opened = neff if isinstance(neff, Neff) else open_neff(neff)
    if lnc is not None and lnc != len(opened.subgraphs):
        raise InputError(f"file is for {len(opened.subgraphs)} core(s), not for {lnc}")
    if checks:
        raise InputError(f"unknown check {checks[0]!r}")
    arrays = check_inputs(opened, inputs or {})
    device = Device(opened.target, cores=len(opened.subgraphs), timing=timing, seed=seed)
    device.load(opened)
    device.set_inputs(arrays)
    started = perf_counter()
    if progress is None:
        device.run()
    else:
        _run_with(device, progress)
    return _result(device, perf_counter() - started)


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
    """Step the device to its end and report on the way."""
    count = 0
    while device.step() is not None:
        count += 1
        if count % _PROGRESS_EVERY == 0:
            progress(device)
    progress(device)


def _result(device: Device, seconds: float) -> Result:
    outputs = device.outputs()
    words = {(core.index, name): engine.completed for core in device.cores for name, engine in core.engines.items()}
    queues = device.dma.queues
    stats = Stats(
        sum(words.values()),
        sum(queue.completed for queue in queues),
        sum(queue.nbytes for queue in queues),
        seconds,
        words,
    )
    return Result(
        outputs,
        tuple(dict(outputs) for _ in device.cores),
        device.fault,
        device.hang,
        (),
        tuple(device.warnings),
        device.now_ps,
        stats,
    )
