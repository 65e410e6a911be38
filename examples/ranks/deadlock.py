"""Three ranks that add up in pairs, each pair in another order: each waits for the next one, and nobody goes on.

neurontools run examples/ranks/deadlock.py --ranks 3
neurontools debug examples/ranks/deadlock.py --ranks 3
"""

import os

import nki
import nki.collectives as ncc
import nki.language as nl
import numpy as np

RANK = int(os.environ.get("RANK", "0"))
ORDER = {0: ([0, 1], [2, 0]), 1: ([1, 2], [0, 1]), 2: ([2, 0], [1, 2])}[RANK % 3]


@nki.jit
def sums(x):
    """Return the sums with both neighbours."""
    first, second = (nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm) for _ in range(2))
    ncc.all_reduce([x], [first], [ORDER[0]], nl.add)
    ncc.all_reduce([x], [second], [ORDER[1]], nl.add)
    return first, second


if __name__ == "__main__":
    sums(np.full((64, 64), RANK, np.float32))
