"""Copies at addresses that the device finds out: gather, scatter, dynamic starts."""

from __future__ import annotations

from typing import Any

from neurontools.builder.trace import IndirectDmaOp
from neurontools.nki.isa.constants import oob_mode as oob_modes
from neurontools.nki.isa.instruction import NkiInstruction
from neurontools.nki.isa.refusals import reject
from neurontools.nki.tensor import Indirection, NkiTensor
from neurontools.nki.tracer import Tracer, kernel_line

__all__ = ["indirect_copy"]


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
        raise reject(t, instruction, argument, f"{side.name} of shape {side.shape}",
                     f"dimension 0 must be the {found.rows} elements that its indices stand for")  # fmt: skip
