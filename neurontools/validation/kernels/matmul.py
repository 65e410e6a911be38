"""Matrix products a_t.T @ b in the four steps of AWS's tutorial: no reuse, hoisted loads, blocks of columns, blocks.

With `software`, GpSimd makes the descriptors of every transfer, as in the published profiles of the first three steps
on trn2: no packet is of a hardware generator, and GpSimd has a word every 0.6 us (v2-dma.png to v4-full.png). Results
are then stored behind the loads of the block that follows: with the Tensor engine active 99.85 % of C-6 no load waits
for a store.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import neurontools.nki.isa as nisa
import neurontools.nki.language as nl

__all__ = ["blocked", "blocked_free", "hoisted", "resident", "streamed", "tiled"]

M, K, N = 128, 128, 512  # one product of the Tensor engine
SBUF = 192 * 1024  # bytes of a partition
_SIZES = {nl.bfloat16: 2, nl.float32: 4}


def _maker(software: int) -> nisa.dge_mode:
    return nisa.dge_mode.swdge if software else nisa.dge_mode.unknown


def _load(source: nl.NkiTensor, row: int, column: int, width: int, software: int = 0) -> nl.NkiTensor:
    tile = nl.ndarray((K, width), dtype=source.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=source[row : row + K, column : column + width], dge_mode=_maker(software))
    return tile


def _sum() -> nl.NkiTensor:
    """Return a tile of PSUM for one product."""
    return nl.ndarray((M, N), dtype=nl.float32, buffer=nl.psum)


class _Stores:
    """Stores of results; with `software` those of a block, `behind` of them, come in the block that follows."""

    def __init__(self, out: nl.NkiTensor, software: int = 0, behind: int = 1) -> None:
        self.out, self.software, self.behind = out, software, behind if software else 0
        self.late: deque[tuple[int, int, nl.NkiTensor]] = deque()

    def take(self, row: int, column: int, total: nl.NkiTensor) -> None:
        """Copy a result out of PSUM and store it."""
        done = nl.ndarray((M, N), dtype=self.out.dtype, buffer=nl.sbuf)
        nisa.tensor_copy(dst=done, src=total)
        self.late.append((row, column, done))
        self.finish(self.behind)

    def finish(self, left: int = 0) -> None:
        """Store what came first, down to `left`."""
        while len(self.late) > left:
            row, column, done = self.late.popleft()
            place = self.out[row : row + M, column : column + N]
            nisa.dma_copy(dst=place, src=done, dge_mode=_maker(self.software))


def _out(a_t: nl.NkiTensor, b: nl.NkiTensor) -> nl.NkiTensor:
    return nl.ndarray((a_t.shape[1], b.shape[1]), dtype=a_t.dtype, buffer=nl.shared_hbm)


def tiled(a_t: nl.NkiTensor, b: nl.NkiTensor, software: int = 0) -> nl.NkiTensor:
    """Load both operands for every product."""
    (depth, rows), columns, out = a_t.shape, b.shape[1], _out(a_t, b)
    stores = _Stores(out, software)
    for m in range(0, rows, M):
        for n in range(0, columns, N):
            total = _sum()
            for k in range(0, depth, K):
                left, right = _load(a_t, k, m, M, software), _load(b, k, n, N, software)
                nisa.nc_matmul(dst=total, stationary=left, moving=right)
            stores.take(m, n, total)
    stores.finish()
    return out


def hoisted(a_t: nl.NkiTensor, b: nl.NkiTensor, software: int = 0) -> nl.NkiTensor:
    """Load a strip of the left operand once for all columns."""
    (depth, rows), columns, out = a_t.shape, b.shape[1], _out(a_t, b)
    stores = _Stores(out, software)
    for m in range(0, rows, M):
        left = [_load(a_t, k, m, M, software) for k in range(0, depth, K)]
        for n in range(0, columns, N):
            right = [_load(b, k, n, N, software) for k in range(0, depth, K)]
            total = _sum()
            for one, other in zip(left, right, strict=True):
                nisa.nc_matmul(dst=total, stationary=one, moving=other)
            stores.take(m, n, total)
    stores.finish()
    return out


def blocked_free(a_t: nl.NkiTensor, b: nl.NkiTensor, tiles_m: int = 2, tiles_n: int = 2) -> nl.NkiTensor:
    """Work on blocks of rows and columns, whose strips stay in SBUF."""
    (depth, rows), columns, out = a_t.shape, b.shape[1], _out(a_t, b)
    stores = _Stores(out)
    for m in range(0, rows, tiles_m * M):
        left = [[_load(a_t, k, m + i * M, M) for k in range(0, depth, K)] for i in range(tiles_m)]
        for n in range(0, columns, tiles_n * N):
            right = [[_load(b, k, n + j * N, N) for k in range(0, depth, K)] for j in range(tiles_n)]
            for i in range(tiles_m):
                for j in range(tiles_n):
                    total = _sum()
                    for one, other in zip(left[i], right[j], strict=True):
                        nisa.nc_matmul(dst=total, stationary=one, moving=other)
                    stores.take(m + i * M, n + j * N, total)
    return out


def streamed(a_t: nl.NkiTensor, b: nl.NkiTensor, software: int = 0, tiles_m: int = 2, tiles_n: int = 2) -> nl.NkiTensor:
    """Work on blocks of rows and columns whose right strips do not fit in SBUF: fp32 of a depth of 8192 is 256 KiB.

    Their tiles are loaded again for every row of tiles, as in the program of C-7: it moved 8.65 GB (42.55 % of what 716
    B/ns are in 28.41 ms), that of C-6 8.86, and 4.6 would do where strips stay.
    """
    (depth, rows), columns, out = a_t.shape, b.shape[1], _out(a_t, b)
    stores = _Stores(out, software)
    for m in range(0, rows, tiles_m * M):
        left = [[_load(a_t, k, m + i * M, M, software) for k in range(0, depth, K)] for i in range(tiles_m)]
        for n in range(0, columns, tiles_n * N):
            for i in range(tiles_m):
                for j in range(tiles_n):
                    total = _sum()
                    for one, k in zip(left[i], range(0, depth, K), strict=True):
                        nisa.nc_matmul(dst=total, stationary=one, moving=_load(b, k, n + j * N, N, software))
                    stores.take(m + i * M, n + j * N, total)
    stores.finish()
    return out


def blocked(a_t: nl.NkiTensor, b: nl.NkiTensor, tiles_m: int = 16, tiles_n: int = 2, tiles_k: int = 8) -> nl.NkiTensor:
    """Work on blocks of all three dimensions; sums stay in SBUF, those of one block of rows where not all fit.

    As documented, sums begin as zeros, every product is added, and results are packed for their store.
    """
    (depth, rows), columns, out = a_t.shape, b.shape[1], _out(a_t, b)
    (height, width, deep), size = (tiles_m * M, tiles_n * N, tiles_k * K), _SIZES[a_t.dtype]
    fit = (rows // M * width + tiles_k * (height + width)) * size <= SBUF
    for n in range(0, columns, width):
        for first in range(0, rows, rows if fit else height):
            blocks = range(first, rows if fit else first + height, height)
            sums = {m: [[_zeros(a_t.dtype) for _ in range(tiles_n)] for _ in range(tiles_m)] for m in blocks}
            for k in range(0, depth, deep):
                right = [_load(b, k + x * K, n, width) for x in range(tiles_k)]
                for m in blocks:
                    left = [_load(a_t, k + x * K, m, height) for x in range(tiles_k)]
                    for j in range(tiles_n):
                        for i in range(tiles_m):
                            _block(sums[m][i][j], left, right, i * M, j * N)
            for m in blocks:
                for i in range(tiles_m):
                    _store_row(out, m + i * M, n, sums[m][i])
    return out


def _zeros(dtype: nl.DType) -> nl.NkiTensor:
    tile = nl.ndarray((M, N), dtype=dtype, buffer=nl.sbuf)
    nisa.memset(dst=tile, value=0.0)
    return tile


def _block(
    sum_tile: nl.NkiTensor, left: Sequence[nl.NkiTensor], right: Sequence[nl.NkiTensor], row: int, column: int
) -> None:
    """Add a product to a sum."""
    total = _sum()
    for one, other in zip(left, right, strict=True):
        nisa.nc_matmul(dst=total, stationary=one[:, row : row + M], moving=other[:, column : column + N])
    nisa.tensor_tensor(dst=sum_tile, data1=sum_tile, data2=total, op=nl.add)


def _store_row(out: nl.NkiTensor, row: int, column: int, sums: Sequence[nl.NkiTensor]) -> None:
    packed = nl.ndarray((M, len(sums) * N), dtype=out.dtype, buffer=nl.sbuf)
    for j, tile in enumerate(sums):
        nisa.tensor_copy(dst=packed[:, j * N : (j + 1) * N], src=tile)
    nisa.dma_copy(dst=out[row : row + M, column : column + len(sums) * N], src=packed)


def resident(a_t: nl.NkiTensor, b: nl.NkiTensor, banks: int = 8) -> nl.NkiTensor:
    """Keep the left operand in SBUF and let the right one pass by; `banks` of PSUM hold sums at a time."""
    (depth, rows), columns, out = a_t.shape, b.shape[1], _out(a_t, b)
    stores = _Stores(out)
    left = [_load(a_t, k, 0, rows) for k in range(0, depth, K)]
    held = [_sum() for _ in range(banks)] if banks < 8 else None
    number = 0
    for n in range(0, columns, N):
        right = [_load(b, k, n, N) for k in range(0, depth, K)]
        for m in range(0, rows, M):
            total = held[number % banks] if held else _sum()
            number += 1
            for k, (one, other) in enumerate(zip(left, right, strict=True)):
                accumulate = k > 0 if held else None
                nisa.nc_matmul(dst=total, stationary=one[:, m : m + M], moving=other, accumulate=accumulate)
            stores.take(m, n, total)
    return out
