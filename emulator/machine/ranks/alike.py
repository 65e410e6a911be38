"""Prove that the times of ranks do not depend on their data, or say what they may depend on."""

from __future__ import annotations

from collections.abc import Sequence

from emulator.device import Device
from emulator.dma.collectives import V_FORMS, CollectiveTransfer
from emulator.dma.transfer import Side
from emulator.faults import source_line
from emulator.loaded import LoadedWord
from emulator.settings import Settings
from formats import isa
from formats.isa import BranchCompare
from formats.neff import Neff

__all__ = ["decided_by_data", "differing"]


def differing(neffs: Sequence[Neff | None], settings: Settings) -> str:
    """Return why ranks that run these programs cannot stand for each other, "" where nothing here says so."""
    first = neffs[0]
    for rank, neff in enumerate(neffs):
        if neff is None:
            return f"rank {rank} runs no program"
        if neff is not first and neff.to_bytes() != (b"" if first is None else first.to_bytes()):
            return f"rank {rank} runs another program than rank 0"
    if settings.seed is not None:
        return "a seed shakes the schedule of every rank in its own way"
    return ""


def decided_by_data(device: Device) -> str:
    """Return which word of a loaded program lets data decide what happens when, "" where none does.

    Everything that a device does and that takes time follows from its words then: costs are those of operands, not of
    values; descriptors are known before anything runs; the groups of collectives are constants that nothing overwrites.
    """
    groups: list[Side] = []
    written: list[tuple[str, Side]] = []
    for core in device.cores:
        for engine, stream in core.engines.items():
            for loaded in stream.words:
                where = f"{engine} pc {loaded.pc}{_line(device, core.index, engine, loaded)}"
                if (why := _decides(loaded.word)) is not None:
                    return f"{where}: {why}"
                if loaded.transfer is None:
                    continue
                transfer = loaded.transfer()
                if isinstance(transfer, CollectiveTransfer):
                    groups.append(transfer.groups)
                written += [(where, side) for side in transfer.writes]
    if any(side.space != "HBM" for side in groups):
        return "the groups of a collective are not in device memory"
    for where, side in written:
        if side.space == "HBM" and any(_meet(side, each) for each in groups):
            return f"{where}: {side.space} {side.address:#x} has the groups of a collective, and is written"
    inputs = {} if device.model is None else {each.name for each in device.model.inputs}
    for side in groups:
        if side.limit is not None and side.limit.name in inputs:
            return f"input {side.limit.name!r} has the groups of a collective"
    return ""


def _decides(word: isa.Instruction) -> str | None:
    if isinstance(word, isa.CompareBranch):
        return None if word.compare == BranchCompare.ALWAYS else "a branch that a register decides"
    if isinstance(word, isa.Collective) and word.kind in V_FORMS:
        return "a collective whose sizes are data"
    return f"{word.NAME} reads what decides" if type(word).DECIDES else None


def _line(device: Device, core: int, engine: str, loaded: LoadedWord) -> str:
    line = source_line(device.cores[core].source_of(engine, loaded.pc))
    return f" ({line})" if line else ""


def _meet(one: Side, two: Side) -> bool:
    """Return whether two sides may touch common bytes of device memory."""
    low, high = one.span
    return low < two.span[1] and two.span[0] < high
