"""What an instruction reads and writes, without executing it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from emulator.action import make_action
from emulator.dma.regions import regions_of
from formats.errors import NotFoundError

if TYPE_CHECKING:
    from emulator.device import Device
    from emulator.events import Region

__all__ = ["touched"]


def touched(device: Device, core: int, engine: str, pc: int) -> tuple[tuple[Region, ...], tuple[Region, ...]]:
    """Return (reads, writes) of a word and of the transfer that it starts; NotFoundError where there is no such word.

    Raises NeuronError where the word cannot be executed at all, as the engine would when it gets there.
    """
    sequencer = device.cores[core].engines[engine]
    loaded = next((word for word in sequencer.words if word.pc == pc), None)
    if loaded is None:
        raise NotFoundError(f"no {engine} pc {pc}")
    action = make_action(sequencer, loaded.word, loaded.transfer is not None)
    reads, writes = action.read_regions, action.write_regions
    if loaded.transfer is not None:
        transfer, width = loaded.transfer(), device.arch.sbuf_bytes.whole
        reads, writes = reads + regions_of(transfer.reads, width), writes + regions_of(transfer.writes, width)
    return reads, writes
