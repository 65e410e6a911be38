"""Copies, fills, shuffles and transposes inside the core."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from formats import isa as words
from formats.dtypes import Dtype
from formats.neuron_core import PARTITIONS, start_partitions
from neurontools.builder.trace import Space, View
from neurontools.nki.dtype import DType, dtype_of
from neurontools.nki.isa.checks import number, pick_engine, same_free, same_partitions, starts_text, tensor, tile
from neurontools.nki.isa.constants import engine as engines
from neurontools.nki.isa.indirection import first_partition
from neurontools.nki.isa.instruction import NkiInstruction
from neurontools.nki.isa.refusals import reject, told
from neurontools.nki.storage import new_tensor
from neurontools.nki.tensor import NkiTensor
from neurontools.nki.tracer import Tracer, threads, tracer

__all__ = ["memset", "nc_stream_shuffle", "tensor_copy"]

_SHUFFLED = frozenset((*range(32), 255))  # what elements of a mask may be


def tensor_copy(
    dst: NkiTensor, src: NkiTensor, engine: Any = engines.unknown, name: str | None = None, dtype: Any = None
) -> NkiInstruction:
    """Copy a tile, casting through fp32 when the types differ; Vector engine unless another is asked for."""
    t = threads.tracer or tracer()
    key: tuple[Any, ...] | None
    try:
        key = "tensor_copy", dst._kind or dst._find_kind(), src._kind or src._find_kind(), engine
        known = t.known.get(key) if dtype is None else None
    except (AttributeError, TypeError):  # something else than a tensor or an engine
        key = known = None
    if known is not None:
        word, chosen = known
        views = {"src": src._view or src.base_view, "dst": dst._view or dst.base_view}
        return NkiInstruction(t.compute(word, chosen, views, {}, name))
    src_view = tile(t, "tensor_copy", "src", src)
    dst_view = tile(t, "tensor_copy", "dst", dst)
    if dtype is not None and dtype_of(dtype) != dst.dtype:
        raise reject(t, "tensor_copy", "dtype", dtype, f"must be the {dst.dtype} of dst")
    if src_view.partitions != dst_view.partitions:
        same_partitions(t, "tensor_copy", "dst and src", dst_view, src_view)
    same_free(t, "tensor_copy", "dst and src", dst, src)
    chosen = pick_engine(t, "tensor_copy", engine, "DVE", ("DVE", "Activation", "Pool"))
    if chosen != "DVE":
        if chosen == "Activation" and not t.limits.scalar_engine_copies:
            raise reject(t, "tensor_copy", "engine", "scalar", "needs gen3 (use nisa.activation with op=nl.copy)")
        if chosen == "Pool":
            no_psum(t, "tensor_copy", dst_view, src_view)
    word = words.Copy if src_view.dtype is dst_view.dtype else words.Cast
    if key is not None:
        t.known.note(key, (word, chosen))
    return NkiInstruction(t.compute(word, chosen, {"src": src_view, "dst": dst_view}, {}, name))


def no_psum(t: Tracer, instruction: str, *views: View) -> None:
    """Refuse PSUM operands of the GpSimd engine."""
    for view in views:
        if view.allocation.space is Space.PSUM:
            raise reject(
                t, instruction, "engine", f"gpsimd with {view.allocation.name} in PSUM", "GpSimd has no access to PSUM"
            )


def memset(dst: NkiTensor, value: Any, engine: Any = engines.unknown, name: str | None = None) -> NkiInstruction:
    """Fill a tile with a number, given in the tile's own type; Vector engine unless GpSimd is asked for."""
    t = threads.tracer or tracer()
    key: tuple[Any, ...] | None = None
    if value.__class__ is float or value.__class__ is int:
        try:
            key = "memset", dst._kind or dst._find_kind(), engine
            known = t.known.get(key)
        except (AttributeError, TypeError):  # something else than a tensor or an engine
            key = known = None
        if known is not None:
            views = {"dst": dst._view or dst.base_view}
            return NkiInstruction(t.compute(words.Memset, known[0], views, {"value": float(value)}, name))
    view = tile(t, "memset", "dst", dst)
    if not number(value):
        raise reject(t, "memset", "value", told(value), "must be a number known while tracing")
    if isinstance(value, np.generic):
        value = value.item()
    if dst.dtype.packed and value != 0:
        raise reject(t, "memset", "value", value, f"packed {dst.dtype} takes 0 only")
    chosen = pick_engine(t, "memset", engine, "DVE", ("DVE", "Pool"))
    if chosen == "Pool":
        no_psum(t, "memset", view)
    fill = of_type(t, "memset", "value", value, dst.dtype)
    if key is not None and dst.dtype.is_float:
        t.known.note(key, (chosen,))
    return NkiInstruction(t.compute(words.Memset, chosen, {"dst": view}, {"value": fill}, name))


def of_type(t: Tracer, instruction: str, argument: str, value: float, dtype: DType) -> int | float:
    """Return a number as words hold it for tiles of a type; refuse one that the type does not have."""
    if dtype.is_float:
        return float(value)
    if value != value or value in (float("inf"), float("-inf")):
        raise reject(t, instruction, argument, value, f"is no {dtype}")
    result = int(value)
    if not dtype.packed:
        bounds = np.iinfo(dtype.code.numpy_name)
        if not bounds.min <= result <= bounds.max:
            raise reject(t, instruction, argument, value, f"must be {bounds.min} to {bounds.max} for {dtype}")
    return result


def ones_tile(t: Tracer, code: Dtype) -> NkiTensor:
    """Return 128 x 128 ones in SBUF, one per element type and trace; stationary operand of partition broadcasts."""
    key = ("ones", code)
    found: NkiTensor | None = t.cache.get(key)
    if found is None:
        dtype = dtype_of(code)
        found = new_tensor(t, (PARTITIONS, PARTITIONS), dtype, name=f"ones_{dtype}")
        memset(found, 1.0)
        t.cache[key] = found
    return found


def nc_stream_shuffle(dst: NkiTensor, src: NkiTensor, shuffle_mask: Any, name: str | None = None) -> NkiInstruction:
    """Permute partitions inside each group of 32 by a mask of 32 source partitions; 255 leaves one untouched."""
    t = threads.tracer or tracer()
    instruction = "nc_stream_shuffle"
    tensor(t, instruction, "src", src)
    tensor(t, instruction, "dst", dst)
    mask = tuple(map(operator.index, shuffle_mask))
    if len(mask) != 32:
        raise reject(t, instruction, "shuffle_mask", f"{len(mask)} long", "must have 32 elements")
    if not _SHUFFLED.issuperset(mask):
        raise reject(t, instruction, "shuffle_mask", list(mask), "elements must be 0 to 31, or 255")
    src_view, dst_view = tile(t, instruction, "src", src), tile(t, instruction, "dst", dst)
    if src.dtype != dst.dtype:
        raise reject(t, instruction, "dst", f"of {dst.dtype}", f"must have the type of src, {src.dtype}")
    same_free(t, instruction, "dst and src", dst, src)
    # the word moves whole groups of 32 partitions, however few of the last one a tile has
    active = -(-max(src.shape[0], dst.shape[0]) // 32) * 32
    for argument, view in (("src", src_view), ("dst", dst_view)):
        start = first_partition(view)
        if start not in start_partitions(active):
            legal = f"{active} active partitions must start at {starts_text(active)}"
            raise reject(t, instruction, argument, f"from partition {start}", legal)
    op = t.compute(words.StreamShuffle, "DVE", {"src": src_view, "dst": dst_view}, {"mask": mask}, name)
    return NkiInstruction(op)
