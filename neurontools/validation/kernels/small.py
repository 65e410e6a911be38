"""Small programs: sums of vectors cut up in different ways, transposes, single instructions, single transfers."""

import neurontools.nki.isa as nisa
import neurontools.nki.language as nl

__all__ = ["act", "fold", "load_and_use", "loads", "pair", "product", "scalar_tile", "scaled", "transpose",
           "vector_add"]

_P = 128


def _tile(rows, width, dtype, buffer=nl.sbuf):
    return nl.ndarray((rows, width), dtype=dtype, buffer=buffer)


def _zeros(rows, width, dtype):
    tile = _tile(rows, width, dtype)
    nisa.memset(dst=tile, value=0.0)
    return tile


def vector_add(a, b, partitions, width):
    """Add two vectors in tiles of `partitions` rows of `width` elements."""
    (n,) = a.shape
    out = nl.ndarray((n,), dtype=a.dtype, buffer=nl.shared_hbm)
    for start in range(0, n, partitions * width):
        part = slice(start, start + partitions * width)
        left, right, done = (_tile(partitions, width, a.dtype) for _ in range(3))
        nisa.dma_copy(dst=left, src=a[part].reshape((partitions, width)))
        nisa.dma_copy(dst=right, src=b[part].reshape((partitions, width)))
        nisa.tensor_tensor(dst=done, data1=left, data2=right, op=nl.add)
        nisa.dma_copy(dst=out[part].reshape((partitions, width)), src=done)
    return out


def transpose(x):
    """Transpose a matrix through the Tensor engine, in tiles of 128 x 128."""
    rows, columns = x.shape
    out = nl.ndarray((columns, rows), dtype=x.dtype, buffer=nl.shared_hbm)
    for r in range(0, rows, _P):
        for c in range(0, columns, _P):
            tile, done = _tile(_P, _P, x.dtype), _tile(_P, _P, x.dtype)
            turned = _tile(_P, _P, x.dtype, nl.psum)
            nisa.dma_copy(dst=tile, src=x[r : r + _P, c : c + _P])
            nisa.nc_transpose(dst=turned, data=tile)
            nisa.tensor_copy(dst=done, src=turned)
            nisa.dma_copy(dst=out[c : c + _P, r : r + _P], src=done)
    return out


def pair(x, width, dtype, rows=_P):
    """Multiply two tiles on the Vector engine."""
    done = _tile(rows, width, dtype)
    nisa.tensor_tensor(dst=done, data1=_zeros(rows, width, dtype), data2=_zeros(rows, width, dtype), op=nl.multiply)
    return x


def act(x, width, dtype, rows=_P, times=1, op=nl.exp):
    """Apply a function on the Scalar engine, `times` in a chain."""
    tile = _zeros(rows, width, dtype)
    for _ in range(times):
        done = _tile(rows, width, dtype)
        nisa.activation(dst=done, op=op, data=tile)
        tile = done
    return x


def scaled(x, width, source, result):
    """Multiply a tile by a number."""
    done = _tile(_P, width, result)
    nisa.tensor_scalar(dst=done, data=_zeros(_P, width, source), op0=nl.multiply, operand0=2.0)
    return x


def fold(x, width, dtype, op):
    """Reduce a tile along its rows."""
    done = _tile(_P, 1, dtype)
    nisa.tensor_reduce(dst=done, op=op, data=_zeros(_P, width, dtype), axis=1, keepdims=True)
    return x


def scalar_tile(x, width, times=1):
    """Scale a tile by a column and multiply it by one that comes from PSUM."""
    column, left = _zeros(_P, 1, nl.float32), _zeros(_P, width, nl.bfloat16)
    right = _tile(_P, width, nl.float32, nl.psum)
    nisa.memset(dst=right, value=0.0)
    for _ in range(times):
        done = _tile(_P, width, nl.float32)
        nisa.scalar_tensor_tensor(
            dst=done, data=left, op0=nl.multiply, operand0=column, op1=nl.multiply, operand1=right)
    return x


def product(x, width, columns, dtype, times=1, turn=False):
    """Multiply, or transpose, on the Tensor engine."""
    left, right = _zeros(_P, columns, dtype), _zeros(_P, width, dtype)
    for _ in range(times):
        if turn:
            nisa.nc_transpose(dst=_tile(_P, _P, dtype, nl.psum), data=left)
        else:
            nisa.nc_matmul(dst=_tile(columns, width, nl.float32, nl.psum), stationary=left, moving=right)
    return x


def loads(x, width, times, one_queue=False):
    """Load the same rows `times` into different tiles, on the Sync engine's queue alone if `one_queue`."""
    options = {"engine": nisa.engine.sync, "dge_mode": nisa.dge_mode.hwdge} if one_queue else {}
    for _ in range(times):
        nisa.dma_copy(dst=_tile(x.shape[0], width, x.dtype), src=x[:, 0:width], **options)
    return x


def load_and_use(x):
    """Load a tile, use it, store it."""
    rows, width = x.shape
    out = nl.ndarray((rows, width), dtype=x.dtype, buffer=nl.shared_hbm)
    tile, done = _tile(rows, width, x.dtype), _tile(rows, width, x.dtype)
    nisa.dma_copy(dst=tile, src=x)
    nisa.activation(dst=done, op=nl.exp, data=tile)
    nisa.dma_copy(dst=out, src=done)
    return out
