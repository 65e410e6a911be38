"""What an instruction reads and writes, without executing it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from emulator.action import regions_of_word
from emulator.dma.regions import regions_of
from formats.errors import NotFoundError

if TYPE_CHECKING:
    from emulator.machine_view import MachineView
    from formats.regions import Region

__all__ = ["touched"]


def touched(machine: MachineView, core: int, engine: str, pc: int) -> tuple[tuple[Region, ...], tuple[Region, ...]]:
    """Return (reads, writes) of a word and of the transfer that it starts; NotFoundError where there is no such word.

    Raises NeuronError where the word cannot be executed at all, as the engine would when it gets there.
    """
    own = machine.cores[core].engines[engine]
    loaded = next((word for word in own.words if word.pc == pc), None)
    if loaded is None:
        raise NotFoundError(f"no {engine} pc {pc}")
    if loaded.transfer is None:
        return regions_of_word(own, loaded.word)
    transfer, width = loaded.transfer(), machine.arch.sbuf_bytes.whole
    return regions_of(transfer.reads, width), regions_of(transfer.writes, width)
