"""Loads, stores, transposes and broadcasts."""

from __future__ import annotations

from typing import Any

from formats.neuron_core import PSUM_FP32, start_partitions
from neurontools.builder.trace import Space
from neurontools.nki.dtype import dtype_of
from neurontools.nki.isa.constants import engine
from neurontools.nki.isa.dma import dma_copy, dma_transpose
from neurontools.nki.isa.indirection import first_partition
from neurontools.nki.isa.matmul import nc_matmul, nc_transpose
from neurontools.nki.isa.moves import nc_stream_shuffle, ones_tile, tensor_copy
from neurontools.nki.language.creation import fill
from neurontools.nki.operations import OPERATIONS
from neurontools.nki.regions import MemoryRegion
from neurontools.nki.storage import new_tensor
from neurontools.nki.tensor import NkiTensor
from neurontools.nki.tracer import Tracer, tracer

__all__ = [
    "assign",
    "broadcast_to",
    "expand_dims",
    "in_sbuf",
    "load",
    "load_transpose2d",
    "partition_broadcast",
    "store",
    "transpose",
]


def _tensor(t: Tracer, function: str, argument: str, value: Any, hbm: bool | None = None) -> NkiTensor:
    """Return `value` if it is a tensor, in HBM or on chip as `hbm` says."""
    if not isinstance(value, NkiTensor):
        raise t.error(f"nl.{function}: {argument} is {value!r}, must be an NKI tensor")
    if hbm is not None and (value.allocation.space is Space.HBM) != hbm:
        raise t.error(
            f"nl.{function}: {argument} is {value.name} in {value.buffer.value}, "
            f"must be in {'HBM' if hbm else 'SBUF or PSUM'}"
        )
    return value


def load(src: NkiTensor, dtype: Any = None) -> NkiTensor:
    """Return an SBUF tile with the values of an HBM tensor, dimension 0 in partitions; (n,) becomes (n, 1)."""
    t = tracer()
    _tensor(t, "load", "src", src, hbm=True)
    shape = src.shape if src.ndim > 1 else (*src.shape, 1)
    result = new_tensor(t, shape, src.dtype if dtype is None else dtype_of(dtype))
    dma_copy(result, src)
    return result


def store(dst: NkiTensor, value: NkiTensor) -> None:
    """Write a tile to an HBM tensor of equally many elements; a PSUM tile goes through SBUF."""
    t = tracer()
    _tensor(t, "store", "dst", dst, hbm=True)
    dma_copy(dst, in_sbuf(t, _tensor(t, "store", "value", value, hbm=False)))


def load_transpose2d(src: NkiTensor, dtype: Any = None) -> NkiTensor:
    """Return an SBUF tile (columns, rows) with a transposed 2-D HBM tensor."""
    t = tracer()
    _tensor(t, "load_transpose2d", "src", src, hbm=True)
    if src.ndim != 2:
        raise t.error(f"nl.load_transpose2d: src is of shape {src.shape}, must have two dimensions")
    result = new_tensor(t, (src.shape[1], src.shape[0]), src.dtype)
    dma_transpose(result, src)
    return result if dtype is None else cast(t, result, dtype)


def in_sbuf(t: Tracer, value: NkiTensor) -> NkiTensor:
    """Return `value`, copied to SBUF if it is in PSUM."""
    if value.allocation.space is not Space.PSUM:
        return value
    result = new_tensor(t, value.shape, value.dtype)
    tensor_copy(result, value)
    return result


def cast(t: Tracer, value: NkiTensor, dtype: Any) -> NkiTensor:
    """Return `value`, copied to an SBUF tile of `dtype` if its type is another."""
    wanted = dtype_of(dtype)
    if value.dtype == wanted:
        return value
    result = new_tensor(t, value.shape, wanted)
    tensor_copy(result, value)
    return result


def transpose(x: NkiTensor, dtype: Any = None) -> NkiTensor:
    """Return a 2-D tile with partitions and free dimension swapped, in PSUM (in SBUF when cast, or made by Vector)."""
    t = tracer()
    _tensor(t, "transpose", "x", x, hbm=False)
    if x.ndim != 2:
        raise t.error(f"nl.transpose: x is of shape {x.shape}, must have two dimensions")
    x = in_sbuf(t, x)
    shape = (x.shape[1], x.shape[0])
    if max(shape) <= 32 and not x.dtype.is_float:
        result = new_tensor(t, shape, x.dtype)
        nc_transpose(result, x, engine=engine.vector)
    else:
        # before gen3 the array multiplies to transpose, and its products are fp32
        result = new_tensor(t, shape, x.dtype if t.limits.transpose_exact else dtype_of("float32"), MemoryRegion.psum)
        nc_transpose(result, x)
    return cast(t, result, x.dtype if dtype is None else dtype)


def expand_dims(x: NkiTensor, axis: int) -> NkiTensor:
    """Return the view of `x` with a dimension of size 1 inserted at `axis`."""
    return _tensor(tracer(), "expand_dims", "x", x).expand_dim(axis)


def broadcast_to(x: NkiTensor, shape: Any, dtype: Any = None) -> NkiTensor:
    """Return a tile of `shape` that repeats `x` along its dimensions of size 1; `x` itself when nothing changes."""
    t = tracer()
    _tensor(t, "broadcast_to", "x", x, hbm=False)
    wanted = tuple(shape)
    if len(wanted) != x.ndim or any(old not in (1, new) for old, new in zip(x.shape, wanted, strict=True)):
        raise t.error(f"nl.broadcast_to: x of shape {x.shape} cannot become {wanted}")
    kind = x.dtype if dtype is None else dtype_of(dtype)
    if wanted == x.shape:
        return cast(t, x, kind)
    if wanted[0] != x.shape[0]:
        x = partition_broadcast(t, x, wanted[0])
    if wanted == x.shape:
        return cast(t, x, kind)
    result = new_tensor(t, wanted, kind)
    tensor_copy(result, stretch(x, wanted))
    return result


def stretch(x: NkiTensor, shape: tuple[int, ...]) -> NkiTensor:
    """Return the view of `x` with free dimensions of size 1 repeated up to `shape`."""
    for axis in range(1, len(shape)):
        if x.shape[axis] != shape[axis]:
            x = x.broadcast(axis, shape[axis])
    return x


def partition_broadcast(t: Tracer, x: NkiTensor, partitions: int) -> NkiTensor:
    """Return an SBUF tile that repeats the one partition of `x` over `partitions`.

    Floats: ones (1, partitions) times the row on the Tensor engine, one product per element and so exact, then a
    copy out of PSUM.  Other types: one stream shuffle per 32 partitions, which moves bits.
    """
    x = _aligned_row(t, in_sbuf(t, x))
    result = new_tensor(t, (partitions, *x.shape[1:]), x.dtype)
    if x.dtype not in t.limits.matmul_dtypes:
        for first in range(0, partitions, 32):
            nc_stream_shuffle(result[first : min(first + 32, partitions)], x, [0] * 32)
        return result
    start = first_partition(x.view_of_storage)
    stationary = ones_tile(t, x.code)[start : start + 1, 0:partitions]
    row, flat = x.reshape((1, x.free_size)), result.reshape((partitions, x.free_size))
    width = PSUM_FP32
    for first in range(0, x.free_size, width):
        last = min(first + width, x.free_size)
        product = new_tensor(t, (partitions, last - first), dtype_of("float32"), MemoryRegion.psum)
        nc_matmul(product, stationary, row[:, first:last])
        tensor_copy(flat[:, first:last], product)
    return result


def _aligned_row(t: Tracer, x: NkiTensor) -> NkiTensor:
    """Return `x` (one partition), moved to partition 0 by DMA if engines cannot start where it is, and contiguous."""
    if first_partition(x.view_of_storage) % 32 == 0 and x.is_contiguous():
        return x
    result = new_tensor(t, x.shape, x.dtype)
    dma_copy(result, x)
    return result


def assign(target: NkiTensor, value: Any) -> None:
    """Write a number, a tile or an HBM tensor through a view: MEMSET, copy or DMA, whatever the two memories need."""
    t = tracer()
    if not isinstance(value, NkiTensor):
        fill(target, value)
        return
    if value.shape != target.shape and value.size != target.size:
        if (
            value.ndim == target.ndim
            and all(old in (1, new) for old, new in zip(value.shape, target.shape, strict=True))
            and (value.shape[0] == target.shape[0] or not value.on_chip)
        ):
            value = _stretch_any(value, target.shape)
        else:
            raise t.error(f"{target.name}: a value of shape {value.shape} does not fit the selected {target.shape}")
    if target.on_chip and value.on_chip:
        # DMA has no path to PSUM, and engines begin at a few partitions only
        if Space.PSUM in (target.space, value.space) or (
            _engine_start(target) and _engine_start(value) and target.shape[0] == value.shape[0]
        ):
            tensor_copy(target, value)
            t.assigned.append(t.ops[-1])
        else:
            dma_copy(target, value)
    elif target.space is Space.PSUM:
        tensor_copy(target, load(value))
    else:
        dma_copy(target, in_sbuf(t, value))


def _stretch_any(value: NkiTensor, shape: tuple[int, ...]) -> NkiTensor:
    for axis in range(1 if value.on_chip else 0, len(shape)):
        if value.shape[axis] != shape[axis]:
            value = value.broadcast(axis, shape[axis])
    return value


def _engine_start(x: NkiTensor) -> bool:
    """Return whether engines can address the partitions of `x` (hardware.md 2.3)."""
    return not x.steps_partitions and first_partition(x.view_of_storage) in start_partitions(x.shape[0])


OPERATIONS["assign"] = assign
