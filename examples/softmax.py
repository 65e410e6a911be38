"""Softmax over rows: the Vector engine reduces, the Scalar engine exponentiates with the row's maximum as bias."""

import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np
from compare import compare


@nki.jit
def softmax(x):
    """Return the softmax of x [rows, columns] over its columns; rows are a multiple of 128."""
    rows, columns = x.shape
    out = nl.ndarray((rows, columns), dtype=x.dtype, buffer=nl.shared_hbm)
    height = nl.tile_size.pmax
    for start in range(0, rows, height):
        tile = nl.ndarray((height, columns), dtype=nl.float32, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=x[start : start + height, 0:columns])
        largest = nl.ndarray((height, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_reduce(dst=largest, op=nl.maximum, data=tile, axis=1, negate=True, keepdims=True)
        powers = nl.ndarray((height, columns), dtype=nl.float32, buffer=nl.sbuf)
        nisa.activation(dst=powers, op=nl.exp, data=tile, bias=largest)
        total = nl.ndarray((height, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_reduce(dst=total, op=nl.add, data=powers, axis=1, keepdims=True)
        inverse = nl.ndarray((height, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.reciprocal(dst=inverse, data=total)
        result = nl.ndarray((height, columns), dtype=x.dtype, buffer=nl.sbuf)
        nisa.tensor_scalar(dst=result, data=powers, op0=nl.multiply, operand0=inverse)
        nisa.dma_copy(dst=out[start : start + height, 0:columns], src=result)
    return out


def reference(x):
    """Return the same in NumPy, in double precision."""
    powers = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


if __name__ == "__main__":
    x = 4 * np.random.default_rng(0).standard_normal((256, 320), np.float32)
    compare("softmax", nki.simulate(softmax)(x), reference(x), 1e-5)
