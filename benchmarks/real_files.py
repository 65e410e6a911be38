"""Time real files: `matmul_large.neff` against NumPy computing the same product, and a long stream of PE words.

    NEURONTOOLS_CORPUS=DIR python benchmarks/real_files.py [matmul|stream|all]

One BLAS thread for both.  NumPy has no fast fp16 product: it widens 1,024 rows at a time to fp32 and adds the products
up, which is the quickest way there is.  The file needs 10 GB of memory.
"""

import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # before NumPy is imported: spinning threads would measure themselves

import sys
import time
from pathlib import Path

import numpy as np

from emulator import runtime
from emulator.device import Device
from emulator.loaded import LoadedWord
from formats import isa
from formats.dtypes import Dtype
from formats.isa import AccessPattern, Fp32Pass
from formats.neuron_core import PSUM_BASE

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
        y[start : start + BLOCK] = strip[:, shift : shift + WIDTH]
    return x, y


def product(x, y):
    """Return x @ y in fp32, a block of rows at a time."""
    total = np.zeros((x.shape[0], y.shape[1]), np.float32)
    room = np.empty_like(total)
    for start in range(0, y.shape[0], BLOCK):
        block = y[start : start + BLOCK].astype(np.float32)
        np.matmul(x[:, start : start + BLOCK].astype(np.float32), block, out=room)
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
    print(
        f"matmul_large: {result.stats.instructions:,} words, {result.stats.transfers:,} transfers, "
        f"{result.stats.dma_bytes / 2**30:.1f} GiB moved; emulated in {emulated:.1f} s ({result.stats.seconds:.1f} s "
        f"without loading) = {ratio:.2f} x NumPy's {plain:.1f} s (goal {GOAL_RATIO}); {equal:.2%} bit-equal to the "
        f"rounded fp32 product, device time {result.time_ps / 1e9:.3f} ms"
    )
    return equal > 0.99 and ratio <= GOAL_RATIO


def pe_words():
    """Return 32,000 words: fp32 products in two passes, each tile of weights used once, as convolutions have them."""
    words = []
    for number in range(STREAM_WORDS // 4):
        weights = 0x4000 + number % 64 * 512
        moving = 0xC000 + number % 16 * 2048
        bank = PSUM_BASE + number % 8 * 2048
        for half, (mode, flags) in enumerate(((Fp32Pass.LOW, 1), (Fp32Pass.HIGH, 2))):
            words.append(
                isa.LoadWeights(
                    src=AccessPattern(weights + 508, (-1, 0, 0), (128, 1, 1)),
                    dtype=Dtype.FLOAT32,
                    fp32_mode=mode,
                    rows=128,
                    cols=128,
                )
            )
            words.append(
                isa.MatMul(
                    src=AccessPattern(moving, (1, 0, 0), (512, 1, 1)),
                    dtype=Dtype.FLOAT32,
                    dst=AccessPattern(bank, (1, 0, 0), (512, 1, 1)),
                    fp32_mode=Fp32Pass.LOW_HIGH,
                    rows=128,
                    cols=128,
                    acc_flags=flags,
                    update_mode=0x13 if half else 0,
                    update_index=5 if half else 0,
                )
            )
    return words


def stream():
    """Print how long a long stream of the Tensor engine takes; return whether it is fast enough and ends well."""
    device = Device("trn1")
    core = device.cores[0]
    core.memory.sbuf.view(np.float32)[:] = np.float32(0.5)
    core.memory.sbuf_written[:] = True
    words = [isa.decode(word.raw, "gen2", "neuron") for word in pe_words()]
    core.load_words({"PE": [LoadedWord(word, pc, pc) for pc, word in enumerate(words)]})
    started, worked = time.perf_counter(), time.process_time()
    outcome = device.run()
    spent, worked = time.perf_counter() - started, time.process_time() - worked
    right = outcome == "finished" and bool((core.psum.view(np.float32) == 32.0).all())
    each = spent / len(words) * 1e6
    print(
        f"{len(words):,} PE words of 128 x 128 x 512 fp32: {spent:.1f} s ({worked:.1f} s of CPU), {each:.0f} us each "
        f"(goal {GOAL_STREAM} s), {outcome}{'' if right else ', WRONG'}"
    )
    return right and spent <= GOAL_STREAM


def main():
    """Print the figures; return 1 when a goal is missed, 2 when the file is not there."""
    which = sys.argv[1] if len(sys.argv) > 1 else "all"
    good = stream() if which in ("stream", "all") else True
    if which in ("matmul", "all"):
        folder = os.environ.get("NEURONTOOLS_CORPUS")
        if not folder:
            print("NEURONTOOLS_CORPUS names no folder of fetched checkouts")
            return 2
        good = matmul(Path(folder, "nkipy", "spike", "tests", "artifacts", "matmul_large.neff")) and good
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
