"""Small programs: sums of vectors cut up in different ways, transposes, single instructions, single transfers."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

import neurontools.nki.isa as nisa
import neurontools.nki.language as nl
from neurontools.nki.operators import Operator

__all__ = [
    "act",
    "fold",
    "load_and_use",
    "loads",
    "pair",
    "product",
    "scalar_tile",
    "scaled",
    "transpose",
    "vector_add",
]

_P = 128
_SOFTWARE = nisa.dge_mode.swdge
_AHEAD = 8

Place = TypeVar("Place")
Loaded = TypeVar("Loaded")


def _tile(rows: int, width: int, dtype: nl.DType, buffer: nl.MemoryRegion = nl.sbuf) -> nl.NkiTensor:
    return nl.ndarray((rows, width), dtype=dtype, buffer=buffer)


def _zeros(rows: int, width: int, dtype: nl.DType) -> nl.NkiTensor:
    tile = _tile(rows, width, dtype)
    nisa.memset(dst=tile, value=0.0)
    return tile


def _ahead(places: Iterable[Place], load: Callable[[Place], Loaded]) -> Iterator[tuple[Place, Loaded]]:
    """Yield places with what `load` gives for them, a few loads ahead: one queue carries the stores too."""
    loaded: deque[tuple[Place, Loaded]] = deque()
    for number, place in enumerate(places):
        loaded.append((place, load(place)))
        if number >= _AHEAD:
            yield loaded.popleft()
    yield from loaded


def vector_add(a: nl.NkiTensor, b: nl.NkiTensor, partitions: int, width: int) -> nl.NkiTensor:
    """Add two vectors in tiles of `partitions` rows of `width` elements; GpSimd makes all descriptors.

    That is what H-1 to H-3 say of the published program: three transfers of 0.5 to 0.63 us for every tile, and no
    transfer that waits for another.
    """
    (n,) = a.shape
    out = nl.ndarray((n,), dtype=a.dtype, buffer=nl.shared_hbm)

    def load(part: slice) -> tuple[nl.NkiTensor, nl.NkiTensor]:
        pair = _tile(partitions, width, a.dtype), _tile(partitions, width, a.dtype)
        for tile, source in zip(pair, (a, b), strict=True):
            nisa.dma_copy(dst=tile, src=source[part].reshape((partitions, width)), dge_mode=_SOFTWARE)
        return pair

    step = partitions * width
    for part, (left, right) in _ahead([slice(start, start + step) for start in range(0, n, step)], load):
        done = _tile(partitions, width, a.dtype)
        nisa.tensor_tensor(dst=done, data1=left, data2=right, op=nl.add)
        nisa.dma_copy(dst=out[part].reshape((partitions, width)), src=done, dge_mode=_SOFTWARE)
    return out


def transpose(x: nl.NkiTensor) -> nl.NkiTensor:
    """Transpose a matrix through the Tensor engine, in tiles of 128 x 128; transfers as for `vector_add`."""
    rows, columns = x.shape
    out = nl.ndarray((columns, rows), dtype=x.dtype, buffer=nl.shared_hbm)

    def load(place: tuple[int, int]) -> nl.NkiTensor:
        r, c = place
        tile = _tile(_P, _P, x.dtype)
        nisa.dma_copy(dst=tile, src=x[r : r + _P, c : c + _P], dge_mode=_SOFTWARE)
        return tile

    for (r, c), tile in _ahead([(r, c) for r in range(0, rows, _P) for c in range(0, columns, _P)], load):
        done, turned = _tile(_P, _P, x.dtype), _tile(_P, _P, x.dtype, nl.psum)
        nisa.nc_transpose(dst=turned, data=tile)
        nisa.tensor_copy(dst=done, src=turned)
        nisa.dma_copy(dst=out[c : c + _P, r : r + _P], src=done, dge_mode=_SOFTWARE)
    return out


def pair(x: nl.NkiTensor, width: int, dtype: nl.DType, rows: int = _P) -> nl.NkiTensor:
    """Multiply two tiles on the Vector engine."""
    done = _tile(rows, width, dtype)
    nisa.tensor_tensor(dst=done, data1=_zeros(rows, width, dtype), data2=_zeros(rows, width, dtype), op=nl.multiply)
    return x


def act(
    x: nl.NkiTensor, width: int, dtype: nl.DType, rows: int = _P, times: int = 1, op: Operator = nl.exp
) -> nl.NkiTensor:
    """Apply a function on the Scalar engine, `times` in a chain."""
    tile = _zeros(rows, width, dtype)
    for _ in range(times):
        done = _tile(rows, width, dtype)
        nisa.activation(dst=done, op=op, data=tile)
        tile = done
    return x


def scaled(x: nl.NkiTensor, width: int, source: nl.DType, result: nl.DType) -> nl.NkiTensor:
    """Multiply a tile by a number."""
    done = _tile(_P, width, result)
    nisa.tensor_scalar(dst=done, data=_zeros(_P, width, source), op0=nl.multiply, operand0=2.0)
    return x


def fold(x: nl.NkiTensor, width: int, dtype: nl.DType, op: Operator) -> nl.NkiTensor:
    """Reduce a tile along its rows."""
    done = _tile(_P, 1, dtype)
    nisa.tensor_reduce(dst=done, op=op, data=_zeros(_P, width, dtype), axis=1, keepdims=True)
    return x


def scalar_tile(x: nl.NkiTensor, width: int, times: int = 1) -> nl.NkiTensor:
    """Scale a tile by a column and multiply it by one that comes from PSUM."""
    column, left = _zeros(_P, 1, nl.float32), _zeros(_P, width, nl.bfloat16)
    right = _tile(_P, width, nl.float32, nl.psum)
    nisa.memset(dst=right, value=0.0)
    for _ in range(times):
        done = _tile(_P, width, nl.float32)
        nisa.scalar_tensor_tensor(
            dst=done, data=left, op0=nl.multiply, operand0=column, op1=nl.multiply, operand1=right
        )
    return x


def product(
    x: nl.NkiTensor, width: int, columns: int, dtype: nl.DType, times: int = 1, turn: bool = False
) -> nl.NkiTensor:
    """Multiply, or transpose, on the Tensor engine."""
    right, left = _zeros(_P, width, dtype), _zeros(_P, columns, dtype)  # the stationary one last: nothing waits else
    for _ in range(times):
        if turn:
            nisa.nc_transpose(dst=_tile(_P, _P, dtype, nl.psum), data=left)
        else:
            nisa.nc_matmul(dst=_tile(columns, width, nl.float32, nl.psum), stationary=left, moving=right)
    return x


def loads(x: nl.NkiTensor, width: int, times: int, one_queue: bool = False) -> nl.NkiTensor:
    """Load the same rows `times` into different tiles, on the Sync engine's queue alone if `one_queue`."""
    engine = nisa.engine.sync if one_queue else nisa.engine.unknown
    mode = nisa.dge_mode.hwdge if one_queue else nisa.dge_mode.unknown
    for _ in range(times):
        nisa.dma_copy(dst=_tile(x.shape[0], width, x.dtype), src=x[:, 0:width], engine=engine, dge_mode=mode)
    return x


def load_and_use(x: nl.NkiTensor) -> nl.NkiTensor:
    """Load a tile, use it, store it."""
    rows, width = x.shape
    out = nl.ndarray((rows, width), dtype=x.dtype, buffer=nl.shared_hbm)
    tile, done = _tile(rows, width, x.dtype), _tile(rows, width, x.dtype)
    nisa.dma_copy(dst=tile, src=x)
    nisa.activation(dst=done, op=nl.exp, data=tile)
    nisa.dma_copy(dst=out, src=done)
    return out
