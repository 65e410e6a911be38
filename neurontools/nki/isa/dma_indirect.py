"""DMA that adds, at addresses that the device may find out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from neurontools.builder.trace import DmaComputeOp, Space
from neurontools.nki.isa.checks import tensor
from neurontools.nki.isa.constants import oob_mode as oob_modes
from neurontools.nki.isa.indirect_copy import indirect_copy
from neurontools.nki.isa.instruction import NkiInstruction
from neurontools.nki.isa.refusals import reject
from neurontools.nki.operators import operator_of
from neurontools.nki.tensor import NkiTensor
from neurontools.nki.tracer import Tracer, kernel_line, tracer

__all__ = ["dma_compute"]

# sources of one descriptor (formats.md 3.6)
_MOST_SOURCES = 16


def dma_compute(
    dst: NkiTensor,
    srcs: Sequence[NkiTensor],
    reduce_op: Any = None,
    scales: Sequence[float] | None = None,
    unique_indices: bool = True,
    oob_mode: Any = oob_modes.error,
    name: str | None = None,
) -> NkiInstruction:
    """Add up to 16 tensors in HBM or SBUF into `dst`, in fp32.

    With an indirect side: dst[indices] += src, or dst += src[indices].
    """
    t = tracer()
    instruction = "dma_compute"
    if not isinstance(srcs, Sequence):
        raise reject(t, instruction, "srcs", repr(srcs), "must be a list of tensors")
    sources = tuple(srcs)
    operator = operator_of(reduce_op)
    if operator is None or operator.name != "add":
        raise reject(t, instruction, "reduce_op", reduce_op, "must be nl.add")
    if scales is not None and (len(scales) != len(sources) or any(scale != 1.0 for scale in scales)):
        raise reject(t, instruction, "scales", scales, f"must be None or {len(sources)} times 1.0")
    if not 2 <= len(sources) <= _MOST_SOURCES:
        raise reject(t, instruction, "srcs", f"{len(sources)} tensors", f"must be 2 to {_MOST_SOURCES}")
    for argument, one in (("dst", dst), *((f"srcs[{index}]", one) for index, one in enumerate(sources))):
        if tensor(t, instruction, argument, one).allocation.space is Space.PSUM:
            raise reject(t, instruction, argument, f"{one.name} in PSUM", "DMA has no path to PSUM")
        if one.size != dst.size:
            raise reject(t, instruction, argument, f"of {one.size} elements", f"must have the {dst.size} of dst")
    if dst.indirection is not None or any(one.indirection is not None for one in sources):
        return _modify(t, dst, sources, unique_indices, oob_mode, name)
    op = DmaComputeOp(dst.view_of_storage, tuple(one.view_of_storage for one in sources), kernel_line(), name)
    t.ops.append(op)
    if dst.allocation.kind == "input":
        t.written.add(dst.allocation.id)
    return NkiInstruction(op)


def _modify(
    t: Tracer, dst: NkiTensor, sources: tuple[NkiTensor, ...], unique: bool, oob_mode: Any, name: str | None
) -> NkiInstruction:
    """Append dst[indices] += src, or dst += src[indices]."""
    instruction = "dma_compute"
    if len(sources) != 2:
        raise reject(t, instruction, "srcs", f"{len(sources)} tensors", "must be two with indices")
    if not unique:
        raise reject(t, instruction, "unique_indices", unique, "must be True with indices")
    # the word adds to dst, which therefore stands among the sources
    others = [one for one in sources if not _same_place(one, dst)]
    if len(others) != 1:
        raise reject(t, instruction, "srcs", "two other tensors", "one of them must be dst")
    return indirect_copy(t, instruction, dst, others[0], "Pool", oob_mode, name, accumulate=True)


def _same_place(one: NkiTensor, other: NkiTensor) -> bool:
    a, b = one.indirection, other.indirection
    if (a is None) != (b is None):
        return False
    same_index = a is None or b is None or a.indices.view_of_storage == b.indices.view_of_storage
    return same_index and one.base_view == other.base_view
