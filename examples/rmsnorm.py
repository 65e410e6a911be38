"""Root-mean-square normalisation of rows, scaled by a weight that one DMA spreads over all partitions."""

import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np
from compare import compare

EPSILON = 1e-5


@nki.jit
def rmsnorm(x, weight):
    """Return x / sqrt(mean(x * x) + EPSILON) * weight for x [128 * n, columns] and weight [columns]."""
    rows, columns = x.shape
    height = nl.tile_size.pmax
    out = nl.ndarray((rows, columns), dtype=x.dtype, buffer=nl.shared_hbm)
    # A step of zero over the partitions reads the same row 128 times.
    spread = nl.ndarray((height, columns), dtype=weight.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=spread, src=weight.ap(pattern=[[0, height], [1, columns]], offset=0))
    epsilon = nl.ndarray((height, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.memset(dst=epsilon, value=EPSILON)
    for start in range(0, rows, height):
        tile = nl.ndarray((height, columns), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=x[start : start + height, 0:columns])
        squares = nl.ndarray((height, columns), dtype=nl.float32, buffer=nl.sbuf)
        nisa.activation(dst=squares, op=nl.square, data=tile)
        total = nl.ndarray((height, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_reduce(dst=total, op=nl.add, data=squares, axis=1, keepdims=True)
        inverse = nl.ndarray((height, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.activation(dst=inverse, op=nl.rsqrt, data=total, scale=1.0 / columns, bias=epsilon)
        scaled = nl.ndarray((height, columns), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_scalar(dst=scaled, data=tile, op0=nl.multiply, operand0=inverse)
        result = nl.ndarray((height, columns), dtype=x.dtype, buffer=nl.sbuf)
        nisa.tensor_tensor(dst=result, data1=scaled, data2=spread, op=nl.multiply)
        nisa.dma_copy(dst=out[start : start + height, 0:columns], src=result)
    return out


def reference(x, weight):
    """Return the same in NumPy, in double precision."""
    x = x.astype(np.float64)
    return x / np.sqrt((x * x).mean(axis=1, keepdims=True) + EPSILON) * weight


if __name__ == "__main__":
    random = np.random.default_rng(0)
    x, weight = random.standard_normal((256, 384), np.float32), random.standard_normal(384, np.float32)
    compare("rmsnorm", nki.simulate(rmsnorm)(x, weight), reference(x, weight), 1e-5)
