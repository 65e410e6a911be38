"""Small kernels that the builder turns into files, with inputs."""

from __future__ import annotations

from typing import Any

import numpy as np

import neurontools.nki.isa as nisa
import neurontools.nki.language as nl
from formats.neff import Neff
from neurontools.nki.launch import build_neff

__all__ = ["KERNELS", "built"]

ROWS, TILE = 256, 128


def softmax(x: Any) -> Any:
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for start in range(0, ROWS, TILE):
        part = nl.ndarray((TILE, x.shape[1]), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=part, src=x[start : start + TILE, 0 : x.shape[1]])
        largest = nl.ndarray((TILE, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_reduce(dst=largest, op=nl.maximum, data=part, axis=1, negate=True, keepdims=True)
        powers = nl.ndarray(part.shape, dtype=nl.float32, buffer=nl.sbuf)
        nisa.activation(dst=powers, op=nl.exp, data=part, bias=largest, scale=1.0)
        total = nl.ndarray((TILE, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_reduce(dst=total, op=nl.add, data=powers, axis=1, keepdims=True)
        inverse = nl.ndarray((TILE, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.reciprocal(dst=inverse, data=total)
        result = nl.ndarray(part.shape, dtype=x.dtype, buffer=nl.sbuf)
        nisa.tensor_scalar(dst=result, data=powers, op0=nl.multiply, operand0=inverse)
        nisa.dma_copy(dst=out[start : start + TILE, 0 : x.shape[1]], src=result)
    return out


def matmul(a_t: Any, b: Any) -> Any:
    depth, rows = a_t.shape
    columns = b.shape[1]
    out = nl.ndarray((rows, columns), dtype=a_t.dtype, buffer=nl.shared_hbm)
    total = nl.ndarray((rows, columns), dtype=nl.float32, buffer=nl.psum)
    for start in range(0, depth, TILE):
        left = nl.ndarray((TILE, rows), dtype=a_t.dtype, buffer=nl.sbuf)
        right = nl.ndarray((TILE, columns), dtype=b.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=left, src=a_t[start : start + TILE, 0:rows])
        nisa.dma_copy(dst=right, src=b[start : start + TILE, 0:columns])
        nisa.nc_matmul(dst=total, stationary=left, moving=right)
    result = nl.ndarray((rows, columns), dtype=a_t.dtype, buffer=nl.sbuf)
    nisa.tensor_copy(dst=result, src=total)
    nisa.dma_copy(dst=out, src=result)
    return out


def pipeline(x: Any) -> Any:
    """Pass through HBM: a tile is stored, loaded again and changed in place."""
    between = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.private_hbm)
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    first = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    second = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=first, src=x)
    nisa.tensor_scalar(dst=first, data=first, op0=nl.multiply, operand0=2.0)
    nisa.dma_copy(dst=between, src=first)
    nisa.dma_copy(dst=second, src=between)
    nisa.activation(dst=first, op=nl.tanh, data=second)
    nisa.tensor_tensor(dst=second, data1=second, data2=first, op=nl.add)
    nisa.dma_copy(dst=out, src=second)
    return out


def _rows(x: Any, stored: int) -> Any:
    live = 44
    out = nl.ndarray((stored, x.shape[1]), dtype=x.dtype, buffer=nl.shared_hbm)
    part = nl.ndarray((TILE, x.shape[1]), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=part[0:live, 0 : x.shape[1]], src=x[0:live, 0 : x.shape[1]])
    result = nl.ndarray(part.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.activation(dst=result, op=nl.tanh, data=part)
    nisa.dma_copy(dst=out, src=result[0:stored, 0 : x.shape[1]])
    return out


def dead_rows(x: Any) -> Any:
    return _rows(x, 44)


def stored_rows(x: Any) -> Any:
    return _rows(x, TILE)


KERNELS: dict[str, tuple[Any, tuple[tuple[int, ...], ...]]] = {
    "softmax": (softmax, ((ROWS, 64),)),
    "matmul": (matmul, ((ROWS, 128), (ROWS, 256))),
    "pipeline": (pipeline, ((TILE, 32),)),
}
_OTHERS = {"dead_rows": (dead_rows, ((TILE, 16),)), "stored_rows": (stored_rows, ((TILE, 16),))}


def built(name: str, target: str = "trn2") -> tuple[Neff, dict[str, np.ndarray[Any, Any]]]:
    """Return a kernel's file and inputs for it."""
    kernel, shapes = {**KERNELS, **_OTHERS}[name]
    random = np.random.default_rng(0)
    arrays = [random.standard_normal(shape).astype(np.float32) for shape in shapes]
    neff: Neff = build_neff(kernel, tuple(arrays), {}, target=target)
    return neff, dict(zip((tensor.name for tensor in neff.inputs), arrays, strict=True))
