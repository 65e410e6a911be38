"""Time a 2048 x 2048 x 2048 fp32 tiled matmul through the full path: kernel, NEFF, emulator, with checks on.

    python benchmarks/matmul.py [SIZE] [REPEATS]

The file is built once and run several times; the best run counts, and NumPy's best of the same number of runs in the
same process is the measure. One BLAS thread for both.
"""

import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # before NumPy is imported: spinning threads would measure themselves

import sys
import time
from pathlib import Path

import numpy as np

import neurontools

TARGET = "trn2"
GOAL_US, GOAL_RATIO = 54.0, 2.5


def best(function, repeats):
    """Return the shortest of several runs in seconds, and the last result."""
    shortest, result = float("inf"), None
    for _ in range(repeats):
        started = time.perf_counter()
        result = function()
        shortest = min(shortest, time.perf_counter() - started)
    return shortest, result


def main():
    """Print the figures; return 1 when the product is wrong."""
    size = int(sys.argv[1]) if len(sys.argv) > 1 else 2048
    repeats = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples"))
    neurontools.nki.install()
    from tiled_matmul import tiled_matmul

    random = np.random.default_rng(0)
    a_t, b = (random.standard_normal((size, size), np.float32) for _ in range(2))
    started = time.perf_counter()
    neff = neurontools.build(tiled_matmul, a_t, b, target=TARGET)
    built = time.perf_counter() - started
    words = sum(len(stream) for graph in neff.subgraphs for stream in graph.streams.values())
    inputs = dict(zip((tensor.name for tensor in neff.inputs), (a_t, b), strict=True))

    emulated, result = best(lambda: neurontools.run(neff, inputs), repeats)
    plain, want = best(lambda: a_t.T @ b, repeats)
    got = next(iter(result.outputs.values()))
    error = float(np.abs(got - want).max() / np.abs(want).max())

    per_word, ratio = emulated / words * 1e6, emulated / plain
    print(f"matmul {size}^3 fp32 on {TARGET}: {words:,} instructions, built in {built:.2f} s")
    print(
        f"emulated {emulated:.3f} s = {per_word:.1f} us per instruction (goal {GOAL_US}); "
        f"{ratio:.2f} x NumPy's {plain:.3f} s (goal {GOAL_RATIO})"
    )
    print(f"device time {result.time_ps / 1e6:.1f} us, largest relative error {error:.1e}")
    return 0 if error < 1e-4 else 1


if __name__ == "__main__":
    sys.exit(main())
