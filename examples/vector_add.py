"""Add two matrices: load row tiles, add them on the Vector engine, store."""

import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np
from compare import compare


@nki.jit
def vector_add(a, b):
    """Return a + b for two tensors of the same shape [rows, columns]; the last tile may be partial."""
    rows, columns = a.shape
    assert b.shape == a.shape, f"shapes differ: {a.shape} and {b.shape}"
    out = nl.ndarray((rows, columns), dtype=a.dtype, buffer=nl.shared_hbm)
    for start in range(0, rows, nl.tile_size.pmax):
        size = min(nl.tile_size.pmax, rows - start)
        left = nl.ndarray((size, columns), dtype=a.dtype, buffer=nl.sbuf)
        right = nl.ndarray((size, columns), dtype=b.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=left, src=a[start : start + size, 0:columns])
        nisa.dma_copy(dst=right, src=b[start : start + size, 0:columns])
        total = nl.ndarray((size, columns), dtype=a.dtype, buffer=nl.sbuf)
        nisa.tensor_tensor(dst=total, data1=left, data2=right, op=nl.add)
        nisa.dma_copy(dst=out[start : start + size, 0:columns], src=total)
    return out


if __name__ == "__main__":
    random = np.random.default_rng(0)
    a, b = (random.standard_normal((300, 512), np.float32) for _ in range(2))
    compare("vector_add", nki.simulate(vector_add)(a, b), a + b, 0.0)
