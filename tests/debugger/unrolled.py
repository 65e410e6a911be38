"""A kernel with loops and functions, for tests that stop in one turn of them; comments name its lines."""

from __future__ import annotations

import numpy as np

from neurontools import nki
from neurontools.nki import isa as nisa
from neurontools.nki import language as nl

ROWS, TURNS = 128, 4
X = np.arange(TURNS * ROWS * 8, dtype=np.float32).reshape(TURNS * ROWS, 8)


def load(x, rows):
    tile: nl.ndarray = nl.ndarray(rows, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)  # LOAD
    return tile


def fresh(shape):
    return nl.ndarray(shape, dtype=nl.float32, buffer=nl.sbuf)


@nki.jit
def unrolled(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for k in nl.affine_range(x.shape[0] // ROWS):
        t = load(x[k * ROWS : (k + 1) * ROWS, :], (ROWS, x.shape[1]))  # CALL
        u, v = fresh(t.shape), fresh(t.shape)
        nisa.tensor_scalar(  # ADD
            dst=u,
            data=t,  # INSIDE
            op0=nl.add,
            operand0=1.0,
        )
        for _ in range(2):
            nisa.tensor_scalar(dst=v, data=u, op0=nl.multiply, operand0=2.0)  # TWICE
        nisa.dma_copy(dst=out[k * ROWS : (k + 1) * ROWS, :], src=v)  # STORE
    row = 0
    while row < 2:
        last = nl.ndarray((1, 8), dtype=x.dtype, buffer=nl.sbuf)
        nisa.memset(dst=last, value=float(row))  # WHILE
        row += 1
    return out
