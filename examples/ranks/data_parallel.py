"""One layer's gradient on every rank, added up over all of them while the next matmuls run; rank 1 has more to do.

neurontools profile examples/ranks/data_parallel.py --ranks 4
neurontools debug examples/ranks/data_parallel.py --ranks 4
"""

import os

import nki
import nki.collectives as ncc
import nki.isa as nisa
import nki.language as nl
import numpy as np

RANK, WORLD = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
EXTRA = 6 if RANK == 1 else 0


@nki.jit
def step(activations, errors):
    """Return the sum of all ranks' gradients, and this rank's projection."""
    gradient, total, projected = (nl.ndarray((128, 512), nl.float32, buffer=nl.shared_hbm) for _ in range(3))
    a, e = nl.load(activations), nl.load(errors)
    for _ in range(EXTRA):
        e = nl.multiply(e, 1.0)
    product = nl.ndarray((128, 512), nl.float32, buffer=nl.psum)
    nisa.nc_matmul(product, a, e)
    nl.store(gradient, nl.copy(product))
    ncc.all_reduce([gradient], [total], [list(range(WORLD))], nl.add)
    for _ in range(8):
        nisa.nc_matmul(product, a, e)
    nl.store(projected, nl.copy(product))
    return total, projected


if __name__ == "__main__":
    rng = np.random.default_rng(RANK)  # of whole numbers: their sums are the same in whatever order they are added
    step(*(rng.integers(-8, 9, shape).astype(np.float32) for shape in ((128, 128), (128, 512))))
