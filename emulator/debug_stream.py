"""What a program prints while it runs: an event per tensor, when the last byte of it has arrived."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from formats.debug_stream import is_printed, prefix_of
from formats.named_tuple import NamedTuple

if TYPE_CHECKING:
    from emulator.device import Device
    from emulator.events import Event
    from emulator.placement import DeviceTensor
    from formats.regions import Region

__all__ = ["DebugStream", "Printed"]


class Printed(NamedTuple):
    """One event of the stream: the completion that ended it, when, on which core, what stands before the values."""

    number: int
    time_ps: int
    core: int
    prefix: str
    values: npt.NDArray[Any]


class DebugStream:
    """An observer that takes down what a program prints.

    Where a device goes back and on again, it prints the same again, which takes the place of what is there.
    """

    def __init__(self) -> None:
        self._records: dict[int, Printed] = {}
        self._device: Device | None = None
        self._tensors: tuple[DeviceTensor, ...] = ()
        self._arrived: dict[tuple[str, int], int] = {}
        self._last = -1

    @classmethod
    def of(cls, device: Device) -> DebugStream | None:
        """Return an observer of a loaded device, None where its program prints nothing."""
        model = device.model
        names = [] if model is None else [info.name for info in model.outputs if is_printed(info.name)]
        if model is None or not names:
            return None
        stream = cls()
        stream._device = device
        stream._tensors = tuple(model.tensors[name] for name in names)
        return stream

    def on_event(self, event: Event) -> None:
        """Take down the tensors that a transfer completes."""
        if event.kind != "dma":
            return
        if event.number <= self._last:
            self._arrived.clear()
        self._last = event.number
        for region in event.writes:
            if region.space == "HBM":
                for tensor in self._tensors:
                    if tensor.address <= region.byte < tensor.address + tensor.nbytes:
                        self._arrive(event, tensor, region)

    def _arrive(self, event: Event, tensor: DeviceTensor, region: Region) -> None:
        assert self._device is not None  # an observer is made by `of`
        cores = len(self._device.cores)
        key = tensor.name, event.core
        arrived = self._arrived.get(key, 0) + region.size
        if arrived < tensor.nbytes // cores:
            self._arrived[key] = arrived
            return
        self._arrived[key] = 0
        values = self._device.tensor(tensor.name)
        part = values if cores == 1 else values[event.core]
        self._records[event.number] = Printed(event.number, event.time_ps, event.core, prefix_of(tensor.name), part)

    def records(self, events: int | None = None) -> tuple[Printed, ...]:
        """Return what was printed, in the order of completion; by the first so many completions if asked."""
        return tuple(one for number, one in sorted(self._records.items()) if events is None or number < events)
