"""Time real files: `matmul_large.neff` against NumPy computing the same product, and a long stream of PE words.

    NEURONTOOLS_CORPUS=DIR python benchmarks/real_files.py [matmul|stream|all]

One BLAS thread for both.  NumPy has no fast fp16 product: it widens 1,024 rows at a time to fp32 and adds the products
up, which is the quickest way there is.  The file needs 10 GB of memory.
"""

import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"    # before NumPy is imported: spinning threads would measure themselves

import sys
import time
from pathlib import Path

import numpy as np

from emulator import runtime
from emulator.device import Device
from formats.neff import open_neff

DEPTH, WIDTH, BLOCK = 32768, 65536, 1024
GOAL_RATIO, GOAL_STREAM, STREAM_WORDS = 3.0, 15.0, 32_000


def operands(seed=20260101):
    """Return x and y in fp16; no two rows or columns of y are alike: one random strip, shifted from block to block."""
    rng = np.random.default_rng(seed)
    x = (rng.standard_normal((128, DEPTH), np.float32) * 0.25).astype(np.float16)
    strip = (rng.standard_normal((BLOCK, WIDTH + 4099), np.float32) * 0.25).astype(np.float16)
    y = np.empty((DEPTH, WIDTH), np.float16)
    for start in range(0, DEPTH, BLOCK):
        shift = start // BLOCK * 127
        y[start:start + BLOCK] = strip[:, shift:shift + WIDTH]
    return x, y


def product(x, y):
    """Return x @ y in fp32, a block of rows at a time."""
    total = np.zeros((x.shape[0], y.shape[1]), np.float32)
    room = np.empty_like(total)
    for start in range(0, y.shape[0], BLOCK):
        block = y[start:start + BLOCK].astype(np.float32)
        np.matmul(x[:, start:start + BLOCK].astype(np.float32), block, out=room)
        total += room
    return total


def matmul(path):
    """Print both times and their ratio; return whether values and ratio are right."""
    x, y = operands()
    started = time.perf_counter()
    want = product(x, y)
    plain = time.perf_counter() - started
    print(f"NumPy {plain:.1f} s", flush=True)
    started = time.perf_counter()
    result = runtime.run(path, {"x": x, "y": y})
    emulated = time.perf_counter() - started
    got = result.outputs["output0"].astype(np.float32)
    equal = float((got == want.astype(np.float16)).mean())
    ratio = emulated / plain
    print(f"matmul_large: {result.stats.instructions:,} words, {result.stats.transfers:,} transfers, "
          f"{result.stats.dma_bytes / 2**30:.1f} GiB moved; emulated in {emulated:.1f} s ({result.stats.seconds:.1f} s "
          f"without loading) = {ratio:.2f} x NumPy's {plain:.1f} s (goal {GOAL_RATIO}); {equal:.2%} bit-equal to the "
          f"rounded fp32 product, device time {result.time_ps / 1e9:.3f} ms")
    return equal > 0.99 and ratio <= GOAL_RATIO


def stream(path):
    """Print how long the file's own PE words take, without their waits and DMA, at most 32,000 of them."""
    neff = open_neff(path)
    device = Device(neff.target, 1)
    device.load(neff) if len(neff.subgraphs) == 1 else None
    raise NotImplementedError(path)


def main():
    """Print the figures; return 1 when a goal is missed."""
    folder = os.environ.get("NEURONTOOLS_CORPUS")
    if not folder:
        print("NEURONTOOLS_CORPUS names no folder of fetched checkouts")
        return 2
    path = Path(folder, "nkipy", "spike", "tests", "artifacts", "matmul_large.neff")
    return 0 if matmul(path) else 1


if __name__ == "__main__":
    sys.exit(main())
