"""Reshapes of SBUF tiles across partitions, which only a copy can do: nothing may tell it from a view.

Simulators that hold a tile as one array make a view of it. Here the elements move by DMA into a new tile, so a kernel
that would see the difference is refused: one that writes to the copy, or reads it after the tile has changed.
"""

from __future__ import annotations

from typing import NamedTuple

from neurontools.builder.dependencies import accesses_of
from neurontools.builder.trace import Allocation, Space
from neurontools.nki.isa.dma import dma_copy
from neurontools.nki.operations import OPERATIONS
from neurontools.nki.storage import new_tensor
from neurontools.nki.tensor import NkiTensor
from neurontools.nki.tracer import Tracer, tracer
from neurontools.nki.views import complain

__all__ = ["check_copies"]


class _Copy(NamedTuple):
    """A reshaped tile, the one that it was copied from, and the first operation behind the copying."""

    copy: Allocation
    whole: Allocation
    behind: int


def across_partitions(x: NkiTensor, shape: tuple[int, ...]) -> NkiTensor:
    """Return a tile of another number of partitions with the elements of `x`, in their order."""
    t = tracer()
    if x.space is not Space.SBUF or t.loops:
        where = f"{x.buffer.value} tensor" if x.space is not Space.SBUF else "tensor in a loop on the device"
        raise complain(f"{x.name}: reshape {shape} changes the {x.shape[0]} partitions of a {where}")
    new = new_tensor(t, shape, x.dtype, name=f"{x.name}_reshaped")
    dma_copy(new, x)
    t.cache.setdefault("reshaped", []).append(_Copy(new.allocation, x.allocation, len(t.ops)))
    return new


def check_copies(t: Tracer) -> None:
    """Refuse a kernel that would see that a reshaped tile is a copy."""
    copies: list[_Copy] = t.cache.get("reshaped", [])
    if not copies:
        return
    stale: dict[int, str] = {}
    for number, op in enumerate(t.ops):
        touched = accesses_of(op)
        for view, write in touched:
            if not write and view.allocation.id in stale:
                raise t.error(f"{stale[view.allocation.id]} changed after it was reshaped across partitions, which "
                              "made a copy; reshape it again", op.source)  # fmt: skip
        for one in copies:
            # the copy itself, and what came before it
            if number < one.behind:
                continue
            for view, write in touched:
                if write and view.allocation is one.copy:
                    raise t.error(f"a write to {one.whole.name} reshaped across partitions would reach a copy only; "
                                  f"write to {one.whole.name} itself", op.source)  # fmt: skip
                if write and view.allocation is one.whole:
                    stale[one.copy.id] = one.whole.name


OPERATIONS["reshape"] = across_partitions
