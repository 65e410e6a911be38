"""DMA at addresses that the device finds out: gather, scatter, dynamic starts; and DMA that adds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from neurontools.nki.isa.checks import reject, tensor
from neurontools.nki.isa.constants import oob_mode as oob_modes
from neurontools.nki.isa.instruction import NkiInstruction
from neurontools.nki.operators import operator_of
from neurontools.nki.tensor import Indirection, NkiTensor
from neurontools.nki.tracer import Tracer, kernel_line, tracer
from neurontools.trace import DmaComputeOp, IndirectDmaOp, Space

__all__ = ["dma_compute", "indirect_copy"]

_MOST_SOURCES = 16


def indirect_copy(
    t: Tracer,
    instruction: str,
    dst: NkiTensor,
    src: NkiTensor,
    owner: str | None,
    oob_mode: Any,
    name: str | None,
    *,
    accumulate: bool = False,
    order: tuple[int, ...] | None = None,
) -> NkiInstruction:
    """Append a copy with an indirect side; a vector of indices is read by GpSimd, which owns that queue."""
    if dst.indirection is not None and src.indirection is not None:
        raise reject(t, instruction, "dst and src", "both indirect", "one side may be")
    for argument, one in (("dst", dst), ("src", src)):
        if one.indirection is not None and one.indirection.base is not None:
            raise reject(t, instruction, argument, f"an indirect view of {one.name}", "this operand cannot be indirect")
    scatter = dst.indirection is not None
    side = dst if scatter else src
    found = side.indirection
    assert found is not None  # the caller has looked
    _unbroken(t, instruction, "dst" if scatter else "src", side, found)
    if oob_mode not in (oob_modes.error, oob_modes.skip):
        raise reject(t, instruction, "oob_mode", oob_mode, "must be nisa.oob_mode.error or nisa.oob_mode.skip")
    vector = found.kind == "vector"
    op = IndirectDmaOp(
        dst.base_view,
        src.base_view,
        found.indices.view_of_storage,
        found.step,
        found.rows if vector else 0,
        "Pool" if vector or not t.limits.hardware_dge else owner,
        kernel_line(),
        name,
        scatter=scatter,
        skip=oob_mode is oob_modes.skip,
        accumulate=accumulate,
        order=order,
    )
    t.ops.append(op)
    if dst.allocation.kind == "input":
        t.written.add(dst.allocation.id)
    return NkiInstruction(op)


def _unbroken(t: Tracer, instruction: str, argument: str, side: NkiTensor, found: Indirection) -> None:
    """Refuse a view that was cut or turned in the dimension that takes its places from a vector."""
    if found.kind == "vector" and (side.shape[0] != found.rows or side.strides[0] != found.stride):
        raise reject(
            t,
            instruction,
            argument,
            f"{side.name} of shape {side.shape}",
            f"dimension 0 must be the {found.rows} elements that its indices stand for",
        )


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
