"""Multiply matrices in tiles: the Tensor engine accumulates the products of one output tile in PSUM."""

import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np
from compare import compare


@nki.jit
def tiled_matmul(a_t, b, block=1024):
    """Return a_t.T @ b for a_t [depth, rows] and b [depth, columns].

    Rows and depth are multiples of 128, columns of 512.  The stationary matrix stays in SBUF, the moving one passes by
    in blocks of columns, so that every DMA moves long rows.
    """
    depth, rows = a_t.shape
    columns = b.shape[1]
    tile_m, tile_k, tile_n = nl.tile_size.gemm_stationary_fmax, nl.tile_size.pmax, nl.tile_size.gemm_moving_fmax
    assert b.shape[0] == depth, f"depths differ: {depth} and {b.shape[0]}"
    assert rows % tile_m == depth % tile_k == columns % tile_n == 0, "sizes must be multiples of the tile sizes"
    out = nl.ndarray((rows, columns), dtype=a_t.dtype, buffer=nl.shared_hbm)
    stationary = []
    for k in nl.affine_range(depth // tile_k):
        strip = nl.ndarray((tile_k, rows), dtype=a_t.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=strip, src=a_t[k * tile_k : (k + 1) * tile_k, :])
        stationary.append(strip)
    for start in range(0, columns, block):
        width = min(block, columns - start)
        moving = []
        for k in nl.affine_range(depth // tile_k):
            strip = nl.ndarray((tile_k, width), dtype=b.dtype, buffer=nl.sbuf)
            nisa.dma_copy(dst=strip, src=b[k * tile_k : (k + 1) * tile_k, start : start + width])
            moving.append(strip)
        for m in nl.affine_range(rows // tile_m):
            done = nl.ndarray((tile_m, width), dtype=out.dtype, buffer=nl.sbuf)
            for n in nl.affine_range(width // tile_n):
                total = nl.ndarray((tile_m, tile_n), dtype=nl.float32, buffer=nl.psum)
                for k in nl.affine_range(depth // tile_k):
                    nisa.nc_matmul(
                        dst=total,
                        stationary=stationary[k][:, m * tile_m : (m + 1) * tile_m],
                        moving=moving[k][:, n * tile_n : (n + 1) * tile_n],
                    )
                nisa.tensor_copy(dst=done[:, n * tile_n : (n + 1) * tile_n], src=total)
            nisa.dma_copy(dst=out[m * tile_m : (m + 1) * tile_m, start : start + width], src=done)
    return out


if __name__ == "__main__":
    random = np.random.default_rng(0)
    a_t = random.standard_normal((256, 256), np.float32)
    b = random.standard_normal((256, 1024), np.float32)
    compare("tiled_matmul", nki.simulate(tiled_matmul)(a_t, b), a_t.T @ b, 1e-5)
