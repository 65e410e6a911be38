"""The whole state of a device between two completions, without memory that nothing wrote."""

from __future__ import annotations

from typing import TYPE_CHECKING

from emulator.device_memory import Allocation
from emulator.journal.control import Control, Copy
from emulator.memory_state import ChipState, DeviceMemoryState
from formats.named_tuple import NamedTuple
from formats.neuron_core import PARTITIONS

if TYPE_CHECKING:
    from emulator.device import Device
    from emulator.journal.saved import DeviceBytes

__all__ = ["Checkpoint", "Originals", "restore", "size_of", "take"]

# Allocations that the program wrote into, by address, and what they held at the beginning.
Originals = dict[int, tuple[Allocation, "DeviceBytes"]]
# bytes of a Tensor engine's tiles: weights and bits, of the low and of the high latch
_LATCHES = 4 * PARTITIONS * PARTITIONS * 4


class Checkpoint(NamedTuple):
    """A state to run on from: `events` lie before it; `untouched` are allocations that nothing has looked at."""

    events: int
    control: Copy
    chips: tuple[ChipState, ...]
    hbm: DeviceMemoryState
    untouched: tuple[Allocation, ...]
    nbytes: int


def size_of(originals: Originals) -> int:
    """Return how many bytes of HBM a checkpoint keeps, at most."""
    # once for the bytes and once for which of them were written
    return sum(2 * allocation.nbytes for allocation, _ in originals.values() if allocation.touched)


def take(device: Device, control: Control, count: int, originals: Originals,
         untouched: tuple[Allocation, ...]) -> Checkpoint:  # fmt: skip
    """Return a checkpoint of a device that stands right behind a completion."""
    chips = tuple(core.memory.snapshot() for core in device.cores)
    hbm = device.hbm.snapshot(allocation for allocation, _ in originals.values() if allocation.touched)
    nbytes = sum(chip.size for chip in chips) + hbm.size + _LATCHES * len(device.cores)
    return Checkpoint(count, control.copy(), chips, hbm, untouched, nbytes)


def restore(device: Device, control: Control, point: Checkpoint, originals: Originals) -> None:
    """Put a checkpoint back; transfers under way have to be bound again."""
    for core, chip in zip(device.cores, point.chips, strict=True):
        core.memory.restore(chip)
    kept = {address for address, _ in point.hbm.allocations}
    for address, (_, original) in originals.items():
        # the checkpoint is older than the first write into it
        if address not in kept:
            original.restore()
    device.hbm.restore(point.hbm)
    for allocation in point.untouched:
        allocation.untouch()
    control.restore(point.control)
