"""A kernel whose loop calls a function of two words, for tests that step over it or into it."""

from __future__ import annotations

import numpy as np

from neurontools import nki
from neurontools.nki import isa as nisa
from neurontools.nki import language as nl

X = np.arange(128 * 32, dtype=np.float32).reshape(128, 32)


def scaled(tile):
    nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=2.0)
    nisa.tensor_scalar(dst=tile, data=tile, op0=nl.add, operand0=1.0)


@nki.jit
def calls(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for k in range(4):
        part = nl.ds(8 * k, 8)
        tile = nl.ndarray((128, 8), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=x[:, part])
        scaled(tile)  # CALL
        nisa.dma_copy(dst=out[:, part], src=tile)
    return out
