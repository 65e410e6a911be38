"""What of a file is executed by inference: no public file shows it, but there is one way in which it can be meant.

The order WZXY of a transpose is established for one block of two- or four-byte elements (formats.md 13). That W and Z
count further blocks, and that elements of other sizes are whole elements, follows from the names of the dimensions.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from formats.neff.understood import UnknownPart

if TYPE_CHECKING:
    from formats.neff.subgraph import Subgraph
    from formats.neff.transfers import Descriptor

__all__ = ["inferred_in_subgraph"]

_SEEN_SIZES = (2, 4)  # bytes of an element, in 288 descriptors of eight public files


def inferred_in_subgraph(subgraph: Subgraph) -> Iterator[UnknownPart]:
    """Yield what of the DMA blocks of a subgraph runs by inference, with the inference."""
    for block in subgraph.dma_blocks.values():
        where = f"{subgraph.name}/{block.engine} dma {block.queue} {block.block_id}"
        for number, one in enumerate(block.descriptors):
            if one.transpose_op is not None:
                yield from (UnknownPart(f"{where} descriptor {number}", text) for text in _transpose(one))


def _transpose(one: Descriptor) -> Iterator[str]:
    size = one.transpose_element_size
    blocks = " x ".join(map(str, one.transpose_shape[:2]))
    if any(length != 1 for length in one.transpose_shape[:2]):
        yield f"{one.transpose_op} over {blocks} blocks is executed block by block (inferred; formats.md 13)"
    if size is not None and size not in _SEEN_SIZES:
        yield f"{one.transpose_op} of {size}-byte elements is executed element by element (inferred; formats.md 13)"
