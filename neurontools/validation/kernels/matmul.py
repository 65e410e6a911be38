"""Matrix products a_t.T @ b in the four steps of AWS's tutorial: no reuse, hoisted loads, blocks of columns, blocks.

With `software`, GpSimd makes the descriptors of every transfer, as in the published profiles of the first three steps
on trn2: no packet is of a hardware generator, and GpSimd has a word every 0.6 us (v2-dma.png to v4-full.png). Results
are then stored behind the loads of the block that follows: with the Tensor engine active 99.85 % of C-6 no load waits
for a store.
"""

from collections import deque

import neurontools.nki.isa as nisa
import neurontools.nki.language as nl

__all__ = ["blocked", "blocked_free", "hoisted", "resident", "streamed", "tiled"]

M, K, N = 128, 128, 512         # one product of the Tensor engine


def _maker(software):
    return {"dge_mode": nisa.dge_mode.swdge} if software else {}


def _load(source, row, column, width, software=0):
    tile = nl.ndarray((K, width), dtype=source.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=source[row : row + K, column : column + width], **_maker(software))
    return tile


class _Stores:
    """Stores of results; with `software` those of a block, `behind` of them, come in the block that follows."""

    def __init__(self, out, software=0, behind=1):
        self.out, self.software, self.behind, self.late = out, software, behind if software else 0, deque()

    def take(self, row, column, total):
        """Copy a result out of PSUM and store it."""
        done = nl.ndarray((M, N), dtype=self.out.dtype, buffer=nl.sbuf)
        nisa.tensor_copy(dst=done, src=total)
        self.late.append((row, column, done))
        self.finish(self.behind)

    def finish(self, left=0):
        """Store what came first, down to `left`."""
        while len(self.late) > left:
            row, column, done = self.late.popleft()
            nisa.dma_copy(dst=self.out[row : row + M, column : column + N], src=done, **_maker(self.software))


def _out(a_t, b):
    return nl.ndarray((a_t.shape[1], b.shape[1]), dtype=a_t.dtype, buffer=nl.shared_hbm)


def tiled(a_t, b, software=0):
    """Load both operands for every product."""
    (depth, rows), columns, out = a_t.shape, b.shape[1], _out(a_t, b)
    stores = _Stores(out, software)
    for m in range(0, rows, M):
        for n in range(0, columns, N):
            total = nl.ndarray((M, N), dtype=nl.float32, buffer=nl.psum)
            for k in range(0, depth, K):
                left, right = _load(a_t, k, m, M, software), _load(b, k, n, N, software)
                nisa.nc_matmul(dst=total, stationary=left, moving=right)
            stores.take(m, n, total)
    stores.finish()
    return out


def hoisted(a_t, b, software=0):
    """Load a strip of the left operand once for all columns."""
    (depth, rows), columns, out = a_t.shape, b.shape[1], _out(a_t, b)
    stores = _Stores(out, software)
    for m in range(0, rows, M):
        left = [_load(a_t, k, m, M, software) for k in range(0, depth, K)]
        for n in range(0, columns, N):
            right = [_load(b, k, n, N, software) for k in range(0, depth, K)]
            total = nl.ndarray((M, N), dtype=nl.float32, buffer=nl.psum)
            for one, other in zip(left, right, strict=True):
                nisa.nc_matmul(dst=total, stationary=one, moving=other)
            stores.take(m, n, total)
    stores.finish()
    return out


def blocked_free(a_t, b, tiles_m=2, tiles_n=2):
    """Work on blocks of rows and columns, whose strips stay in SBUF."""
    (depth, rows), columns, out = a_t.shape, b.shape[1], _out(a_t, b)
    stores = _Stores(out)
    for m in range(0, rows, tiles_m * M):
        left = [[_load(a_t, k, m + i * M, M) for k in range(0, depth, K)] for i in range(tiles_m)]
        for n in range(0, columns, tiles_n * N):
            right = [[_load(b, k, n + j * N, N) for k in range(0, depth, K)] for j in range(tiles_n)]
            for i in range(tiles_m):
                for j in range(tiles_n):
                    total = nl.ndarray((M, N), dtype=nl.float32, buffer=nl.psum)
                    for one, other in zip(left[i], right[j], strict=True):
                        nisa.nc_matmul(dst=total, stationary=one, moving=other)
                    stores.take(m + i * M, n + j * N, total)
    return out


def streamed(a_t, b, software=0, tiles_m=2, tiles_n=2):
    """Work on blocks of rows and columns whose right strips do not fit in SBUF: fp32 of a depth of 8192 is 256 KiB."""
    (depth, rows), columns, out = a_t.shape, b.shape[1], _out(a_t, b)
    stores = _Stores(out, software, tiles_m * tiles_n)
    for m in range(0, rows, tiles_m * M):
        left = [[_load(a_t, k, m + i * M, M, software) for k in range(0, depth, K)] for i in range(tiles_m)]
        for n in range(0, columns, tiles_n * N):
            totals = [[nl.ndarray((M, N), dtype=nl.float32, buffer=nl.psum) for _ in range(tiles_n)]
                      for _ in range(tiles_m)]
            for number, k in enumerate(range(0, depth, K)):
                right = [_load(b, k, n + j * N, N, software) for j in range(tiles_n)]
                for i in range(tiles_m):
                    for j in range(tiles_n):
                        nisa.nc_matmul(dst=totals[i][j], stationary=left[i][number], moving=right[j])
            for i in range(tiles_m):
                for j in range(tiles_n):
                    stores.take(m + i * M, n + j * N, totals[i][j])
    stores.finish()
    return out


def blocked(a_t, b, tiles_m=16, tiles_n=2, tiles_k=8):
    """Work on blocks of all three dimensions; sums of a block stay in SBUF."""
    (depth, rows), columns, out = a_t.shape, b.shape[1], _out(a_t, b)
    for n in range(0, columns, tiles_n * N):
        for m in range(0, rows, tiles_m * M):
            sums = [nl.ndarray((M, tiles_n * N), dtype=nl.float32, buffer=nl.sbuf) for _ in range(tiles_m)]
            for k in range(0, depth, tiles_k * K):
                left = [_load(a_t, k + x * K, m, tiles_m * M) for x in range(tiles_k)]
                right = [_load(b, k + x * K, n, tiles_n * N) for x in range(tiles_k)]
                for i in range(tiles_m):
                    for j in range(tiles_n):
                        _block(sums[i][:, j * N : (j + 1) * N], left, right, i * M, j * N, first=k == 0)
            for i in range(tiles_m):
                _store_row(out, m + i * M, n, sums[i])
    return out


def _block(sum_tile, left, right, row, column, first):
    total = nl.ndarray((M, N), dtype=nl.float32, buffer=nl.psum)
    for one, other in zip(left, right, strict=True):
        nisa.nc_matmul(dst=total, stationary=one[:, row : row + M], moving=other[:, column : column + N])
    if first:
        nisa.tensor_copy(dst=sum_tile, src=total)
    else:
        nisa.tensor_tensor(dst=sum_tile, data1=sum_tile, data2=total, op=nl.add)


def _store_row(out, row, column, sums):
    width = sums.shape[1]
    if out.dtype != sums.dtype:
        done = nl.ndarray((M, width), dtype=out.dtype, buffer=nl.sbuf)
        nisa.tensor_copy(dst=done, src=sums)
        sums = done
    nisa.dma_copy(dst=out[row : row + M, column : column + width], src=sums)


def resident(a_t, b, banks=8):
    """Keep the left operand in SBUF and let the right one pass by; `banks` of PSUM hold sums at a time."""
    (depth, rows), columns, out = a_t.shape, b.shape[1], _out(a_t, b)
    stores = _Stores(out)
    left = [_load(a_t, k, 0, rows) for k in range(0, depth, K)]
    held = [nl.ndarray((M, N), dtype=nl.float32, buffer=nl.psum) for _ in range(banks)] if banks < 8 else None
    number = 0
    for n in range(0, columns, N):
        right = [_load(b, k, n, N) for k in range(0, depth, K)]
        for m in range(0, rows, M):
            total = held[number % banks] if held else nl.ndarray((M, N), dtype=nl.float32, buffer=nl.psum)
            number += 1
            for k, (one, other) in enumerate(zip(left, right, strict=True)):
                nisa.nc_matmul(dst=total, stationary=one[:, m : m + M], moving=other,
                               **({"accumulate": k > 0} if held else {}))
            stores.take(m, n, total)
    return out
