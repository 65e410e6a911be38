"""Copies and transposes by DMA between HBM and SBUF."""

from __future__ import annotations

from itertools import product
from typing import Any

from formats.neuron_core import PARTITIONS
from neurontools.builder.trace import Space
from neurontools.nki.isa.checks import ENGINE_NAMES, tensor
from neurontools.nki.isa.constants import dge_mode as dge_modes
from neurontools.nki.isa.constants import engine as engines
from neurontools.nki.isa.constants import oob_mode as oob_modes
from neurontools.nki.isa.indirect_copy import indirect_copy
from neurontools.nki.isa.instruction import NkiInstruction
from neurontools.nki.isa.refusals import reject, unsupported
from neurontools.nki.regions import MemoryRegion
from neurontools.nki.storage import new_tensor
from neurontools.nki.tensor import NkiTensor
from neurontools.nki.tracer import Tracer, threads, tracer

__all__ = ["check_priority", "dma_copy", "dma_transpose"]

_PSUM = Space.PSUM
_HBM = Space.HBM
_ERROR, _SKIP = oob_modes.error, oob_modes.skip
_ANY_MODE, _HARDWARE = dge_modes.unknown, dge_modes.hwdge
_ANY_ENGINE = engines.unknown


def dma_copy(
    dst: NkiTensor,
    src: NkiTensor,
    priority: int | None = None,
    oob_mode: Any = oob_modes.error,
    dge_mode: Any = dge_modes.unknown,
    engine: Any = engines.unknown,
    name: str | None = None,
    dst_rmw_op: Any = None,
    unique_indices: Any = None,
) -> NkiInstruction:
    """Copy between HBM and SBUF in any direction, casting through fp32; equal element counts, shapes may differ."""
    t = threads.tracer or tracer()
    instruction = "dma_copy"
    key: tuple[Any, ...] | None
    try:
        key = instruction, dst._kind or dst._find_kind(), src._kind or src._find_kind(), oob_mode, dge_mode, engine
        known = t.known.get(key) if priority is None and dst_rmw_op is None else None
    except (AttributeError, TypeError):  # something else than a tensor or a mode
        key = known = None
    if known is not None:
        return NkiInstruction(t.dma(dst._view or dst.base_view, src._view or src.base_view, known[0], False, name))
    if dst_rmw_op is not None:
        raise unsupported(instruction, "dst_rmw_op")
    if src.__class__ is not NkiTensor or src.allocation.space is _PSUM:
        _space(t, instruction, "src", src)
    if dst.__class__ is not NkiTensor or dst.allocation.space is _PSUM:
        _space(t, instruction, "dst", dst)
    if dst.shape != src.shape and dst.size != src.size:
        raise reject(t, instruction, "dst and src", f"of {dst.size} and {src.size} elements ({dst.shape}, {src.shape})",
                     "must have equally many")  # fmt: skip
    if priority is not None:
        check_priority(t, instruction, priority)
    if (dst.dtype.packed or src.dtype.packed) and dst.dtype != src.dtype:
        raise reject(t, instruction, "dst", f"of {dst.dtype}", f"packed types are not cast (src is {src.dtype})")
    owner = None
    if oob_mode is not _ERROR and oob_mode is not _SKIP:
        raise reject(t, instruction, "oob_mode", oob_mode, "must be nisa.oob_mode.error or nisa.oob_mode.skip")
    if dge_mode is not _ANY_MODE or engine is not _ANY_ENGINE:
        owner = _queue_engine(t, instruction, dst, dge_mode, engine)
    if dst._indirection is not None or src._indirection is not None:
        return indirect_copy(t, instruction, dst, src, owner, oob_mode, name)
    # a view that is there already steps over no partitions
    into, given = dst._view, src._view
    if not ((into is None and dst.steps_partitions) or (given is None and src.steps_partitions)):
        if key is not None and priority is None:
            t.known.note(key, (owner,))
        return NkiInstruction(t.dma(into or dst.base_view, given or src.base_view, owner, False, name))
    handle = None
    for one_dst, one_src in _contiguous_partitions(t, dst, src):
        handle = t.dma(one_dst.view_of_storage, one_src.view_of_storage, owner, False, name)
    return NkiInstruction(handle)


def _space(t: Tracer, instruction: str, argument: str, value: Any) -> None:
    if value.__class__ is not NkiTensor:
        tensor(t, instruction, argument, value)
    if value.allocation.space is Space.PSUM:
        raise reject(t, instruction, argument, f"{value.name} in PSUM", "DMA has no path to PSUM (copy through SBUF)")


def check_priority(t: Tracer, instruction: str, priority: Any) -> None:
    """Refuse a priority that is none of 0 to 3, or any before gen4."""
    if priority is None:
        return
    if t.generation < 4:
        raise reject(t, instruction, "priority", priority, "needs gen4")
    if priority not in (0, 1, 2, 3):
        raise reject(t, instruction, "priority", priority, "must be 0 to 3")


def _queue_engine(t: Tracer, instruction: str, dst: NkiTensor, dge_mode: Any, engine: Any) -> str | None:
    """Return the engine that owns the queue; None leaves it to the builder, which knows what each engine is busy with.

    hwdge has Sync and Scalar. Source: hardware.md 4.4.
    """
    dge_mode = _mode(t, instruction, dge_mode)
    store = dst.allocation.space is _HBM
    if dge_mode is _HARDWARE:
        if not t.limits.hardware_dge:
            raise reject(t, instruction, "dge_mode", "hwdge", "needs gen3")
        if engine is _ANY_ENGINE:
            return "Activation" if store else "SP"
        if engine not in (engines.sync, engines.scalar):
            raise reject(t, instruction, "engine", engine, "must be nisa.engine.sync or nisa.engine.scalar")
        return ENGINE_NAMES[engine]
    if engine is not _ANY_ENGINE:
        raise reject(t, instruction, "engine", engine, "goes with dge_mode=nisa.dge_mode.hwdge only")
    if dge_mode is dge_modes.swdge:
        return "Pool"
    return None


def _mode(t: Tracer, instruction: str, dge_mode: Any) -> dge_modes:
    """Return the mode that a member or, as AWS's kernels have it, its number stands for."""
    try:
        return dge_modes(dge_mode)
    except ValueError:
        names = ", ".join(str(one) for one in dge_modes)
        raise reject(t, instruction, "dge_mode", repr(dge_mode), f"must be one of {names}") from None


def _contiguous_partitions(t: Tracer, dst: NkiTensor, src: NkiTensor) -> list[tuple[NkiTensor, NkiTensor]]:
    """Return one pair per partition, where a side steps over partitions or repeats one."""
    rows = dst.shape[0]
    if src.shape[0] != rows:
        raise reject(t, "dma_copy", "dst and src", f"of shapes {dst.shape} and {src.shape}",
                     "must agree in dimension 0 where a side steps over partitions")  # fmt: skip
    return [(dst[row : row + 1], src[row : row + 1]) for row in range(rows)]


# the one permutation of each rank that the docstring allows
_AXES = {2: (1, 0), 3: (2, 1, 0), 4: (3, 1, 2, 0)}


def dma_transpose(
    dst: NkiTensor,
    src: NkiTensor,
    axes: Any = None,
    priority: int | None = None,
    dge_mode: Any = dge_modes.unknown,
    oob_mode: Any = oob_modes.error,
    name: str | None = None,
) -> NkiInstruction:
    """Transpose from HBM or SBUF into SBUF; the permutation follows from the rank, (1,0), (2,1,0) or (3,1,2,0).

    Types of 2 and 4 bytes use the DMA's transpose from gen3 on, one operation per inner index; anything else is an
    ordinary copy with the permuted pattern.
    """
    t = tracer()
    instruction = "dma_transpose"
    _space(t, instruction, "src", src)
    _space(t, instruction, "dst", dst)
    if dst.allocation.space is not Space.SBUF:
        raise reject(t, instruction, "dst", f"{dst.name} in HBM", "must be in SBUF")
    if src.indirection is not None and t.generation < 3:
        raise reject(t, instruction, "src", f"{src.name} with indices", "needs gen3")
    if dst.dtype != src.dtype:
        raise reject(t, instruction, "dst", f"of {dst.dtype}", f"must have the type of src, {src.dtype}")
    order = _AXES.get(src.ndim)
    if order is None or (axes is not None and tuple(axes) != order):
        raise reject(
            t, instruction, "axes", axes, f"must be (1, 0), (2, 1, 0) or (3, 1, 2, 0) for the rank, here {src.ndim}"
        )
    wanted = tuple(src.shape[axis] for axis in order)
    if dst.shape != wanted:
        raise reject(t, instruction, "dst", f"of shape {dst.shape}", f"must be {wanted}")
    check_priority(t, instruction, priority)
    dge_mode = _mode(t, instruction, dge_mode)
    if src.indirection is not None:
        _gather_form(t, src, dge_mode)
        return indirect_copy(t, instruction, dst, src, "Pool", oob_mode, name, order=order)
    if oob_mode is _SKIP:
        raise reject(t, instruction, "oob_mode", oob_mode, "goes with indices only")
    if dge_mode is dge_modes.hwdge:
        _hardware_form(t, src)
    elif dge_mode not in (dge_modes.unknown, dge_modes.none):  # which is not documented here; AWS's kernels use it
        raise reject(t, instruction, "dge_mode", dge_mode, "must be unknown, none or hwdge")
    # Direct words cannot transpose, and Sync, which computes nothing, has a queue of lists.
    owner = "SP"
    handle = None
    if t.generation >= 3 and src.itemsize in (2, 4) and dst.itemsize == src.itemsize:
        for inner in product(*(range(extent) for extent in src.shape[1:-1])):
            key = (slice(None), *inner, slice(None))
            handle = t.dma(dst[key].view_of_storage, src[key].view_of_storage, owner, True, name)
    else:
        if src.allocation.space is Space.SBUF:
            # A pattern cannot walk over partitions inside a row, so these elements go through HBM.
            passing = new_tensor(t, src.shape, src.dtype, MemoryRegion.private_hbm, "transpose_source")
            t.dma(passing.view_of_storage, src.view_of_storage, owner, False, name)
            src = passing
        handle = t.dma(dst.view_of_storage, src.permute(order).view_of_storage, owner, False, name)
    return NkiInstruction(handle)


def _gather_form(t: Tracer, src: NkiTensor, dge_mode: Any) -> None:
    """Check the limits of a transpose by a vector of indices. Source: the dma_transpose docstring."""
    instruction = "dma_transpose"
    found = src.indirection
    if found is None or found.kind != "vector":
        return
    if dge_mode not in (dge_modes.unknown, dge_modes.swdge, dge_modes.none):
        raise reject(t, instruction, "dge_mode", dge_mode, "must be unknown or swdge with indices")
    if src.dtype.itemsize != 2:
        raise reject(t, instruction, "src", f"of {src.dtype}", "types of 2 bytes are transposed by index")
    if src.ndim == 4 and 1 not in src.shape[1:3]:
        raise reject(t, instruction, "src.shape", src.shape, "shape[1] or shape[2] must be 1 with indices")
    if src.shape[0] % 16:
        raise reject(t, instruction, "src.shape[0]", src.shape[0], "must be a multiple of 16 with indices")
    indices = found.indices
    rows, columns = indices.shape[0], indices.size // indices.shape[0]
    if indices.dtype != "uint32":
        raise reject(t, instruction, "indices", f"of {indices.dtype}", "must be uint32")
    if rows % 16 or (columns > 1 and rows != PARTITIONS):
        limit = "a multiple of 16" if columns == 1 else "128 in more than one column"
        raise reject(t, instruction, "partitions of the indices", rows, f"must be {limit}")


def _hardware_form(t: Tracer, src: NkiTensor) -> None:
    """Check the limits of the hardware descriptor engine. Source: hardware.md 4.5."""
    instruction = "dma_transpose"
    if not t.limits.hardware_dge:
        raise reject(t, instruction, "dge_mode", "hwdge", "needs gen3")
    if src.dtype.itemsize != 2:
        raise reject(t, instruction, "src", f"of {src.dtype}", "hwdge transposes types of 2 bytes")
    if src.shape[-1] > PARTITIONS:
        raise reject(t, instruction, "src.shape[-1]", src.shape[-1], "at most 128 with hwdge")
    if src.ndim == 2:
        if src.shape[0] != 16:
            raise reject(t, instruction, "src.shape[0]", src.shape[0], "must be 16 with hwdge")
    elif src.shape[0] not in (1, 2, 4, 8, 16) or src.shape[0] * src.shape[-2] % 16:
        raise reject(
            t,
            instruction,
            "src.shape",
            src.shape,
            "shape[0] must be 1, 2, 4, 8 or 16 and shape[0] * shape[-2] a multiple of 16 with hwdge",
        )
