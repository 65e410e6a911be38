"""What the time model costs: a 2048 x 2048 x 2048 fp32 matmul with timing on and with timing off.

    python benchmarks/timing.py [SIZE] [REPEATS]

Runs alternate, so that both see the same machine; the best of each counts.  One BLAS thread.
"""

import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # before NumPy is imported: spinning threads would measure themselves

import sys
import time
from pathlib import Path

import numpy as np

import neurontools
from emulator import runtime

TARGET = "trn2"
GOAL = 0.15


def main():
    """Print both times and their ratio; return 1 when timing costs more than the goal."""
    size = int(sys.argv[1]) if len(sys.argv) > 1 else 2048
    repeats = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples"))
    neurontools.nki.install()
    from tiled_matmul import tiled_matmul

    random = np.random.default_rng(0)
    a_t, b = (random.standard_normal((size, size), np.float32) for _ in range(2))
    neff = neurontools.build(tiled_matmul, a_t, b, target=TARGET)
    inputs = dict(zip((tensor.name for tensor in neff.inputs), (a_t, b), strict=True))
    best = {True: float("inf"), False: float("inf")}
    for _ in range(repeats):
        for timing in best:
            started = time.perf_counter()
            runtime.run(neff, inputs, timing=timing)
            best[timing] = min(best[timing], time.perf_counter() - started)
    more = best[True] / best[False] - 1
    print(
        f"matmul {size}^3 fp32 on {TARGET}: timing off {best[False]:.3f} s, on {best[True]:.3f} s, {more:+.1%} "
        f"(goal at most {GOAL:+.0%})"
    )
    return 0 if more <= GOAL else 1


if __name__ == "__main__":
    sys.exit(main())
