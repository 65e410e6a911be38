"""What the tracer makes without a constructor, as one is made for each operation, has all that the constructor sets."""

from __future__ import annotations

from typing import Any

import numpy as np

import neurontools.nki.isa as nisa
import neurontools.nki.language as nl
from neurontools.builder.trace import Allocation, ComputeOp, DmaOp, MatmulOp, Space
from neurontools.nki.launch import trace_kernel
from neurontools.nki.tensor import NkiTensor

SEEN: list[NkiTensor] = []


def kernel(a: Any) -> Any:
    out = nl.ndarray((128, 128), dtype=nl.float32, buffer=nl.shared_hbm)
    tile, copy = (nl.ndarray((128, 128), dtype=nl.float32, buffer=nl.sbuf) for _ in range(2))
    total = nl.ndarray((128, 128), dtype=nl.float32, buffer=nl.psum)
    nisa.dma_copy(dst=tile, src=a)
    nisa.nc_matmul(total, tile, tile)
    nisa.tensor_copy(dst=copy, src=total)
    nisa.dma_copy(dst=out, src=copy)
    SEEN.extend([tile, tile[:, 3:9], tile[:, 3:9]])
    return out


def set_in(one: object) -> set[str]:
    slots = {name for cls in type(one).__mro__ for name in getattr(cls, "__slots__", ())}
    return {name for name in (*slots, *getattr(one, "__dict__", ())) if hasattr(one, name)} - {"__weakref__"}


def test_all_is_set() -> None:
    SEEN.clear()
    (traced,) = trace_kernel(kernel, (np.zeros((128, 128), np.float32),), target="trn2")
    found = {type(op): op for op in traced.trace.ops}
    copy, product, move = found[ComputeOp], found[MatmulOp], found[DmaOp]
    view = move.dst
    plain: dict[type, Any] = {
        ComputeOp: ComputeOp(copy.instruction, copy.engine, copy.operands, copy.fields, copy.source),
        MatmulOp: MatmulOp(product.dst, product.stationary, product.moving, None, False, product.source),
        DmaOp: DmaOp(view, move.src, None, False, move.source),
    }
    for kind, one in plain.items():
        assert set_in(found[kind]) == set_in(one), kind
    made = Allocation(0, Space.SBUF, "a", view.dtype, (128, 128), "tile")
    for allocation in traced.trace.allocations:
        assert set_in(allocation) == set_in(made)
    tile = SEEN[0]
    whole = NkiTensor(tile.shape, tile.dtype, tile.allocation, tile.buffer, tile.name)
    for each in SEEN:
        assert set_in(each) == set_in(whole)
