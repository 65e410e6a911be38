"""Kernels that `benchmarks/corpus.py` measures besides the examples.

Many small words, loads inside all loops, and a result that is stored column by column, of tiles that are new each time.
"""

import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def small_tiles(x):
    """Return exp(2 x) + x for x [rows, 64], 128 rows at a time: load, three words, store."""
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for start in range(0, x.shape[0], 128):
        tile, twice, power, total = (nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf) for _ in range(4))
        nisa.dma_copy(dst=tile, src=x[start : start + 128, :])
        nisa.tensor_scalar(dst=twice, data=tile, op0=nl.multiply, operand0=2.0)
        nisa.activation(dst=power, op=nl.exp, data=twice)
        nisa.tensor_tensor(dst=total, data1=power, data2=tile, op=nl.add)
        nisa.dma_copy(dst=out[start : start + 128, :], src=total)
    return out


@nki.jit
def windowed_sums(x, weights):
    """Return for x [rows, columns + 2] the sums of three neighbours, weighed by `weights` [128, 3], as [rows, columns].

    128 rows at a time, and of these one column after the other: tiles of all sizes come to lie where others were.
    """
    rows, columns = x.shape[0], x.shape[1] - 2
    out = nl.ndarray((rows, columns), dtype=x.dtype, buffer=nl.shared_hbm)
    weighing = nl.ndarray((128, 3), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=weighing, src=weights)
    for start in range(0, rows, 128):
        block = nl.ndarray((128, columns + 2), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=block, src=x[start : start + 128, :])
        for column in range(columns):
            product, total = (nl.ndarray((128, width), dtype=x.dtype, buffer=nl.sbuf) for width in (3, 1))
            nisa.tensor_tensor(dst=product, data1=block[:, column : column + 3], data2=weighing, op=nl.multiply)
            nisa.tensor_reduce(dst=total, op=nl.add, data=product, axis=1, keepdims=True)
            nisa.dma_copy(dst=out[start : start + 128, column : column + 1], src=total)
    return out


@nki.jit
def loading_matmul(a_t, b):
    """Return a_t.T @ b for a_t [depth, rows] and b [depth, columns]; every product loads both its tiles."""
    depth, rows = a_t.shape
    columns = b.shape[1]
    out = nl.ndarray((rows, columns), dtype=a_t.dtype, buffer=nl.shared_hbm)
    for m in range(0, rows, 128):
        for n in range(0, columns, 512):
            total = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum)
            for k in range(0, depth, 128):
                left = nl.ndarray((128, 128), dtype=a_t.dtype, buffer=nl.sbuf)
                right = nl.ndarray((128, 512), dtype=b.dtype, buffer=nl.sbuf)
                nisa.dma_copy(dst=left, src=a_t[k : k + 128, m : m + 128])
                nisa.dma_copy(dst=right, src=b[k : k + 128, n : n + 512])
                nisa.nc_matmul(dst=total, stationary=left, moving=right)
            done = nl.ndarray((128, 512), dtype=out.dtype, buffer=nl.sbuf)
            nisa.tensor_copy(dst=done, src=total)
            nisa.dma_copy(dst=out[m : m + 128, n : n + 512], src=done)
    return out
