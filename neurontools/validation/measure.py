"""Run what a target describes on the emulator and take the number that it publishes."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from emulator.cost import figure
from formats.dtypes import Dtype
from formats.errors import UnsupportedError
from formats.named_tuple import NamedTuple
from formats.neuron_core import PARTITIONS
from neurontools.validation import phases
from neurontools.validation.calls import Call, call_of, load_of
from neurontools.validation.observers import Active, Moving, Observer, Span, Transfers, Words
from neurontools.validation.targets import PICOSECONDS, Target

if TYPE_CHECKING:
    from emulator.device import Device

__all__ = ["Measurement", "measure"]

CORPUS = "NEURONTOOLS_CORPUS"
_LONG_ROW = 32768  # bytes; the published curve is relative to rows of this length


class Measurement(NamedTuple):
    """What the emulator gave for a target, in its unit; `why` says why there is none."""

    target: Target
    ours: float | None
    why: str = ""

    @property
    def error(self) -> float | None:
        """Return ours over published, less one."""
        return None if self.ours is None else self.ours / self.target.value - 1

    @property
    def ok(self) -> bool | None:
        """Return whether the error is within what is aimed at."""
        return None if self.error is None else abs(self.error) <= self.target.limit


def measure(target: Target) -> Measurement:
    """Return what the emulator gives for a target; a row that cannot be run says why."""
    kind, *words = target.measure.split()
    scale = PICOSECONDS.get(target.unit, 1.0)
    if kind == "program":
        corpus = os.environ.get(CORPUS)
        folder = Path(corpus or "", target.kernel.removeprefix("file "))
        program = next(folder.glob("*.neff"), None) if corpus else None
        if program is None:
            return Measurement(target, None, f"needs {CORPUS} with a checkout of its repository")
        return Measurement(target, _program(program) / scale)
    return Measurement(target, _MEASURES[kind](target, *words) / scale)


def _run(target: Target, call: Call, *observers: Observer, without: tuple[str, ...] = ()) -> Device:
    """Trace, build and run a call for a target; UnsupportedError where it does not finish."""
    from emulator.device import Device  # deferred: start-up
    from neurontools.api import build  # deferred: start-up

    neff = build(call.kernel, *call.arrays, *call.parameters, target=target.chip)
    device = Device(neff.target, len(neff.subgraphs), without=without)
    device.load(neff)
    device.set_inputs(dict(zip((tensor.name for tensor in neff.inputs), call.arrays, strict=False)))
    _finish(device, target.id, *observers)
    return device


def _finish(device: Device, name: str, *observers: Observer) -> None:
    device.observers.extend(observers)
    if device.run() != "finished":  # a time of what stopped on the way would look like a good one
        raise UnsupportedError(f"{name}: {device.fault or device.hang}")


# --- kernels ---------------------------------------------------------------------------------------------------------


def _words(target: Target, opcode: str) -> list[tuple[int, int]]:
    """Return begins and ends of the words of an opcode; the Tensor engine's clock is up, as in the publication."""
    words = Words(opcode)
    _run(target, call_of(target), words, without=("throttle",))
    if not words.seen:
        raise UnsupportedError(f"{target.id}: its kernel has no {opcode}")
    return words.seen


def _latency(target: Target, opcode: str) -> float:
    """Return the duration of the last word of an opcode."""
    issued, done = _words(target, opcode)[-1]
    return done - issued


def _interval(target: Target, opcode: str) -> float:
    """Return the time between the starts of the last two words of an opcode."""
    # The last two: the pipeline is full, and nothing of the start is among them.
    (before, _), (last, _) = _words(target, opcode)[-2:]
    return last - before


class _KernelTimes(NamedTuple):
    """What targets of one kernel share, in picoseconds: device time, and active times by what was active."""

    time: float
    active: dict[str, int]


_kept: dict[tuple[str, str, str], _KernelTimes] = {}


def _times(target: Target) -> _KernelTimes:
    """Return device time, and active times of engines, of packets in sum ("packets") and of any transfer ("dma").

    Of packets profiles show a little more than the time until the next one can start.
    """
    chip = target.chip
    key = chip, target.kernel, repr(sorted(target.arguments.items()))
    if key not in _kept:
        active, moving = Active(), Moving()
        device = _run(target, call_of(target), active, moving)
        time = device.now_ps + figure("runtime_overhead", chip) * 1e6
        packets = sum(ring.completed for rings in device.dma.rings() for ring in rings)
        busy = sum(device.dma.engines[0].busy_ps)
        shown = busy + packets * round(figure("packet_shown", chip) * 1000)
        _kept[key] = _KernelTimes(time, {**active.ps, "packets": shown, "dma": moving.ps})
        device.release()  # tensors of the large kernels are gigabytes
    return _kept[key]


def _time(target: Target) -> float:
    """Return the device time: that of the program and what the runtime puts around it."""
    return _times(target).time


def _active(target: Target, name: str) -> float:
    """Return how long an engine, "packets" or "dma" was active."""
    return _times(target).active[name]


# --- DMA -------------------------------------------------------------------------------------------------------------


def _rate(target: Target, width: int) -> float:
    """Return bytes per picosecond of loads of 128 x `width` bytes, one behind the other on one queue."""
    transfers = Transfers()
    times = 5 if width > 8192 else 24  # short rows need more of them until the rate is steady
    _run(target, load_of(target, width, times, one_queue=True), transfers)
    first, last = transfers.seen[1], transfers.seen[-1]  # not the one that found the queue idle
    return PARTITIONS * width * (len(transfers.seen) - 2) / (last.completed_ps - first.completed_ps)


_full_rates: dict[str, float] = {}


def _curve(target: Target) -> float:
    """Return the throughput relative to that of long rows."""
    if target.chip not in _full_rates:
        _full_rates[target.chip] = _rate(target, _LONG_ROW)
    return _rate(target, target.size("width")) / _full_rates[target.chip]


def _transfer(target: Target) -> float:
    """Return the time from trigger to semaphore of one load."""
    transfers, width = Transfers(), target.size("width")
    _run(target, load_of(target, width, 1), transfers)
    found = transfers.seen[0]
    return found.completed_ps - found.triggered_ps


# --- files of the corpus ---------------------------------------------------------------------------------------------


def _program(path: Path) -> float:
    """Return how long a compiled program takes from its first trigger to the end of its last word."""
    import numpy as np

    from emulator.device import Device  # deferred: start-up
    from emulator.dtypes import numpy_dtype  # deferred: start-up
    from formats.neff import open_neff  # deferred: start-up

    neff = open_neff(path)
    device = Device(neff.target, len(neff.subgraphs))
    device.load(neff)
    random = np.random.default_rng(0)
    device.set_inputs(
        {
            tensor.name: (random.random(tensor.shape, np.float32) * 2 - 1).astype(
                numpy_dtype(Dtype.from_numpy_name(tensor.dtype))
            )
            for tensor in neff.inputs
        }
    )
    span = Span()
    _finish(device, path.parent.name, span)
    return span.last - span.first


_MEASURES: dict[str, Callable[..., float]] = {
    "latency": _latency,
    "interval": _interval,
    "time": _time,
    "active": _active,
    "curve": _curve,
    "transfer": _transfer,
    "dma": phases.dma,
    "figure": phases.figure_of,
    "word": phases.word,
    "chain": phases.chain,
}
