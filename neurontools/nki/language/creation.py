"""Functions that make tensors."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import Any

import numpy as np

from formats.neuron_core import PARTITIONS
from neurontools.builder.trace import Space
from neurontools.nki.dtype import DType, dtype_of, uint8
from neurontools.nki.isa.dma import dma_copy
from neurontools.nki.isa.moves import memset
from neurontools.nki.operations import OPERATIONS
from neurontools.nki.regions import MemoryRegion, region_of
from neurontools.nki.storage import constant_tensor, load_constant, new_tensor
from neurontools.nki.tensor import NkiTensor
from neurontools.nki.tracer import threads, tracer
from neurontools.nki.views import complain

__all__ = [
    "empty_like",
    "fill",
    "full",
    "ndarray",
    "ones",
    "shared_constant",
    "shared_identity_matrix",
    "zeros",
    "zeros_like",
]

_FILL_BYTES = 16 << 10
_HBM = Space.HBM
_INTEGER = frozenset((int,))


def _shape(shape: Any) -> tuple[int, ...]:
    try:
        result = (
            tuple(operator.index(one) for one in shape) if isinstance(shape, Iterable) else (operator.index(shape),)
        )
    except TypeError:
        raise complain(f"shape {shape!r} is not made of integers") from None
    if not result or min(result) < 1:
        raise complain(f"shape {result} must have dimensions of at least 1")
    return result


def ndarray(shape: Any, dtype: Any, buffer: Any = MemoryRegion.sbuf, name: str = "", address: Any = None) -> NkiTensor:
    """Allocate a tensor, its contents undefined; `address` is (partition, byte in the partition), on chip only."""
    t = threads.tracer or tracer()
    region = buffer if buffer.__class__ is MemoryRegion else region_of(buffer)
    place = None
    if address is not None:
        if region.space is _HBM:
            raise t.error(
                f"ndarray: address={address} of a tensor in {region.value}; only SBUF and PSUM have addresses"
            )
        try:
            partition, byte = map(operator.index, address)
        except (TypeError, ValueError):
            raise t.error(f"ndarray: address={address!r} must be (partition, byte)") from None
        place = (partition, byte)
    kind = dtype if dtype.__class__ is DType else dtype_of(dtype)
    if not (shape.__class__ is tuple and shape and _INTEGER.issuperset(map(type, shape)) and min(shape) > 0):
        shape = _shape(shape)
    return new_tensor(t, shape, kind, region, name, place)


def full(shape: Any, fill_value: Any, dtype: Any, buffer: Any = MemoryRegion.sbuf, name: str = "") -> NkiTensor:
    """Allocate a tensor and fill it with a number."""
    result = ndarray(shape, dtype, buffer, name)
    fill(result, fill_value)
    return result


def zeros(shape: Any, dtype: Any, buffer: Any = MemoryRegion.sbuf, name: str = "") -> NkiTensor:
    """Allocate a tensor of zeros."""
    return full(shape, 0, dtype, buffer, name)


def ones(shape: Any, dtype: Any, buffer: Any = MemoryRegion.sbuf, name: str = "") -> NkiTensor:
    """Allocate a tensor of ones."""
    return full(shape, 1, dtype, buffer, name)


def empty_like(x: NkiTensor, dtype: Any = None, buffer: Any = None, name: str = "") -> NkiTensor:
    """Allocate a tensor with the shape of `x`, and its type and memory unless given."""
    return ndarray(x.shape, x.dtype if dtype is None else dtype, x.buffer if buffer is None else buffer, name)


def zeros_like(x: NkiTensor, dtype: Any = None, buffer: Any = None, name: str = "") -> NkiTensor:
    """Allocate zeros with the shape of `x`, and its type and memory unless given."""
    result = empty_like(x, dtype, buffer, name)
    fill(result, 0)
    return result


def fill(target: NkiTensor, value: Any) -> None:
    """Write one number everywhere: MEMSET on chip; in HBM a filled SBUF tile, stored as often as it takes."""
    if target.on_chip:
        memset(target, value)
        return
    if target.is_contiguous():
        most = _FILL_BYTES // target.itemsize
        # Rows of equal length, where that leaves few partitions idle; else what is left over is filled behind them.
        even = next((one for one in range(PARTITIONS, PARTITIONS // 2 - 1, -1) if target.size % one == 0), PARTITIONS)
        free = min(most, -(-target.size // even))
        flat, done = target.reshape((target.size,)), 0
        while done < target.size:
            rows = min(PARTITIONS, (target.size - done) // free)
            count = rows * free or target.size - done
            shape = (rows, free) if rows else (1, count)
            dma_copy(flat.slice(0, done, done + count).reshape(shape), _filled(target, value, shape))
            done += count
        return
    # A tile of the very shape, as parts of it do not pair with rows of another.
    rows, free = target.shape[0], target.size // target.shape[0]
    if rows <= PARTITIONS and free * target.itemsize <= _FILL_BYTES:
        dma_copy(target, _filled(target, value, target.shape if target.ndim > 1 else (rows, 1)))
        return
    axis = 0 if rows > PARTITIONS else max(range(1, target.ndim), key=target.shape.__getitem__)
    half = target.shape[axis] // 2
    fill(target.slice(axis, 0, half), value)
    fill(target.slice(axis, half, target.shape[axis]), value)


def _filled(target: NkiTensor, value: Any, shape: tuple[int, ...]) -> NkiTensor:
    """Return an SBUF tile of one number in the type of `target`, made once for each shape."""
    t = tracer()
    # the same fill may be wanted of many tensors, and its tile is never written again
    key = ("fill", target.dtype, repr(value), shape)
    tile: NkiTensor | None = t.cache.get(key)
    if tile is None:
        tile = t.cache[key] = new_tensor(t, shape, target.dtype)
        memset(tile, value)
    return tile


def shared_constant(constant: Any) -> NkiTensor:
    """Return an HBM tensor with the values of a NumPy array, or of the .npy file of that path."""
    t = tracer()
    if isinstance(constant, str):
        try:
            constant = np.load(constant, allow_pickle=False)
        except (OSError, ValueError) as error:
            raise t.error(f"shared_constant: {constant}: {error}") from error
    if not isinstance(constant, np.ndarray):
        raise t.error(f"shared_constant: {constant!r} must be a NumPy array or the path of a .npy file")
    return constant_tensor(t, constant, "shared_constant")


def shared_identity_matrix(n: int, dtype: Any = uint8, dst: NkiTensor | None = None) -> NkiTensor:
    """Return an n x n identity matrix in SBUF, in `dst` when given; made once for each size and type."""
    t = tracer()
    kind: DType = dtype_of(dtype) if dst is None else dst.dtype
    if dst is not None and dst.shape != (n, n):
        raise t.error(f"shared_identity_matrix: dst is of shape {dst.shape}, must be of shape {(n, n)}")
    key = ("identity_matrix", n, kind)
    if dst is None and key in t.cache:
        found: NkiTensor = t.cache[key]
        return found
    values = np.eye(n, dtype=kind.numpy)
    if dst is not None:
        dma_copy(dst, constant_tensor(t, values, f"identity_{kind}", kind))
        return dst
    result: NkiTensor = load_constant(t, values, f"identity_{kind}", kind)
    t.cache[key] = result
    return result


OPERATIONS["ndarray"] = ndarray
