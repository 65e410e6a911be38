"""A script that launches a kernel with parameters: `kernels.py [ROWS]` is what `neurontools tune` runs in the tests."""

import sys

import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np

import neurontools

ROWS, COLUMNS = 128, 1024


@neurontools.tunable(width=(256, 128, 512, 1024), engine=("vector", "scalar"), broken=(0, 1))
@nki.jit
def doubled(x, width=128, engine="vector", broken=0):
    """Return 2 x, some columns at a time; a broken variant leaves the last ones out."""
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for start in range(0, x.shape[1], width):
        tile, twice = (nl.ndarray((x.shape[0], width), dtype=x.dtype, buffer=nl.sbuf) for _ in range(2))
        nisa.dma_copy(dst=tile, src=x[:, start : start + width])
        factor = 3.0 if broken and start + width == x.shape[1] else 2.0
        if engine == "scalar":
            nisa.activation(dst=twice, op=nl.copy, data=tile, scale=factor)
        else:
            nisa.tensor_scalar(dst=twice, data=tile, op0=nl.multiply, operand0=factor)
        nisa.dma_copy(dst=out[:, start : start + width], src=twice)
    return out


if __name__ == "__main__":
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else ROWS
    x = np.arange(rows * COLUMNS, dtype=np.float32).reshape(rows, COLUMNS) / 1000
    got = nki.simulate(doubled)(x)
    print("what a script prints is no part of an answer")
    sys.exit(0 if np.allclose(got, 2 * x) else 1)
