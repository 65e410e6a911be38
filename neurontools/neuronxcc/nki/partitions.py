"""Tensors brought to where engines reach them: those begin at a few partitions only (hardware.md 2.4)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from formats.neuron_core import start_partitions
from neurontools.builder.trace import Space
from neurontools.nki import isa
from neurontools.nki import language as nl
from neurontools.nki.tensor import NkiTensor

__all__ = ["moved", "operand", "put", "reached", "ready", "written"]


def ready(value: Any) -> Any:
    """Return an operand where engines reach it."""
    if not isinstance(value, NkiTensor) or reached(value):
        return value
    return nl.load(value) if value.space is Space.HBM else moved(value)


def reached(tensor: NkiTensor) -> bool:
    """Return whether engines reach a tensor."""
    if not tensor.on_chip:
        return False
    start, count = tensor.offset // tensor._row, tensor.shape[0]
    return start in start_partitions(count)


def moved(tensor: NkiTensor) -> NkiTensor:
    """Return a copy that begins at partition 0; DMA reaches every partition, but of SBUF only."""
    if tensor.space is Space.PSUM:
        # DMA does not read PSUM: an engine copies from partition 0 on, and what is above is cut off
        first = tensor.offset // tensor._row
        above = tensor._make((first + tensor.shape[0], *tensor.shape[1:]), tensor.strides, tensor.offset % tensor._row)
        tensor = nl.copy(above)[first:]
    copy = nl.ndarray(tensor.shape, tensor.dtype, nl.sbuf)
    isa.dma_copy(copy, tensor)
    return copy


@contextmanager
def written(part: NkiTensor) -> Iterator[NkiTensor]:
    """Yield a tile where engines reach it; all that they write there goes into `part`, wherever that begins."""
    tile = part if reached(part) else nl.ndarray(part.shape, part.dtype, nl.sbuf)
    yield tile
    if tile is not part:
        isa.dma_copy(part, tile)


def put(dst: NkiTensor, src: NkiTensor) -> None:
    """Copy a tile that an engine has made into a part of another, wherever that begins."""
    if reached(dst):
        isa.tensor_copy(dst, src)
    else:
        isa.dma_copy(dst, src)


def operand(value: Any) -> Any:
    """Return an operand on chip where engines reach it, anything else as it is."""
    return moved(value) if isinstance(value, NkiTensor) and value.on_chip and not reached(value) else value
