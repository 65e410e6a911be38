"""Reshapes of SBUF tiles across partitions, which only a copy can do: nothing may tell it from a view.

Simulators that hold a tile as one array make a view of it. Here the elements move by DMA into a new tile, so a kernel
that would see the difference is refused: one that writes to the copy, or reads it after the tile has changed.
"""

from __future__ import annotations

from formats.named_tuple import NamedTuple
from neurontools.builder.dependencies import accesses_of
from neurontools.builder.trace import Allocation, Space
from neurontools.nki.isa.dma import dma_copy
from neurontools.nki.operations import OPERATIONS
from neurontools.nki.storage import new_tensor
from neurontools.nki.tensor import NkiTensor
from neurontools.nki.tracer import Tracer, tracer
from neurontools.nki.views import complain

__all__ = ["check_copies", "note_copy", "shift_copies"]


class _Copy(NamedTuple):
    """A copy, the tile that it was copied from, the first operation behind the copying, and what made it."""

    copy: Allocation
    whole: Allocation
    behind: int
    how: str


def note_copy(t: Tracer, copy: Allocation, whole: Allocation, how: str) -> None:
    """Remember that a kernel takes two tiles for one: what it does to one from here on must not show in the other."""
    t.cache.setdefault("copies", []).append(_Copy(copy, whole, len(t.ops), how))


def across_partitions(x: NkiTensor, shape: tuple[int, ...]) -> NkiTensor:
    """Return a tile of another number of partitions with the elements of `x`, in their order."""
    t = tracer()
    if x.space is not Space.SBUF or t.loops:
        where = f"{x.buffer.value} tensor" if x.space is not Space.SBUF else "tensor in a loop on the device"
        raise complain(f"{x.name}: reshape {shape} changes the {x.shape[0]} partitions of a {where}")
    new = new_tensor(t, shape, x.dtype, name=f"{x.name}_reshaped")
    dma_copy(new, x)
    note_copy(t, new.allocation, x.allocation, "reshaped across partitions")
    return new


def shift_copies(t: Tracer, at: int, count: int) -> None:
    """Keep the numbers of copies right where operations are put in at `at`."""
    copies: list[_Copy] = t.cache.get("copies", [])
    copies[:] = [one._replace(behind=one.behind + count) if one.behind > at else one for one in copies]


def check_copies(t: Tracer) -> None:
    """Refuse a kernel that would see that a tile is a copy of another."""
    copies: list[_Copy] = t.cache.get("copies", [])
    if not copies:
        return
    by_copy = {one.copy.id: one for one in copies}
    by_whole: dict[int, list[_Copy]] = {}
    for one in copies:
        by_whole.setdefault(one.whole.id, []).append(one)
    stale: set[int] = set()
    for number, op in enumerate(t.ops):
        touched = accesses_of(op)
        for view, write in touched:
            found = by_copy.get(view.allocation.id)
            # what came before the copying, and the copying itself, is no use of a copy
            if found is None or number < found.behind:
                continue
            if write:
                raise t.error(f"a write to {found.whole.name} {found.how} would reach a copy only; write to "
                              f"{found.whole.name} itself", op.source)  # fmt: skip
            if found.copy.id in stale:
                raise t.error(f"{found.whole.name} changed after it was {found.how}, which made a copy; what is read "
                              "here has to be made again", op.source)  # fmt: skip
        for view, write in touched:
            if write:
                stale.update(one.copy.id for one in by_whole.get(view.allocation.id, ()) if number >= one.behind)


OPERATIONS["reshape"] = across_partitions
