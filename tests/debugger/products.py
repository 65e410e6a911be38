"""A kernel that adds products in fp32, which the Tensor engine makes in two passes."""

from __future__ import annotations

from neurontools import nki
from neurontools.nki import isa as nisa
from neurontools.nki import language as nl


@nki.jit
def products(a, b):
    out = nl.ndarray((128, 128), dtype=nl.float32, buffer=nl.shared_hbm)
    left = nl.ndarray((128, 128), dtype=nl.float32, buffer=nl.sbuf)
    right = nl.ndarray((128, 128), dtype=nl.float32, buffer=nl.sbuf)
    done = nl.ndarray((128, 128), dtype=nl.float32, buffer=nl.sbuf)
    total = nl.ndarray((128, 128), dtype=nl.float32, buffer=nl.psum)
    nisa.dma_copy(dst=left, src=a)
    nisa.dma_copy(dst=right, src=b)
    for _ in range(3):
        nisa.nc_matmul(dst=total, stationary=left, moving=right)
    nisa.tensor_copy(dst=done, src=total)
    nisa.dma_copy(dst=out, src=done)
    return out
