"""What tracing leaves out: objects made without their constructors are the same, what is known is not worked out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from formats.dtypes import Dtype
from formats.errors import NeuronError
from neurontools.builder.trace import Allocation, ComputeOp, DmaOp, MatmulOp, Op, Space, allocation_of
from neurontools.nki import isa as nisa
from neurontools.nki import language as nl
from neurontools.nki.dtype import dtype_of
from neurontools.nki.launch import trace_kernel
from tests.counting import counted

X = np.zeros((128, 64), np.float32)


def nothing(x: Any) -> Any:
    """Hand the input back."""
    return x


def copies(x: Any, count: int) -> Any:
    """Load, double and store the same tile again and again."""
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for _ in range(count):
        tile = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=x[0:128])
        nisa.tensor_tensor(dst=tile, data1=tile, data2=tile, op=nl.add)
        nisa.dma_copy(dst=out[0:128, 0:64], src=tile)
    return out


def product(x: Any) -> Any:
    """Multiply a tile with itself."""
    out = nl.ndarray((64, 64), dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x)
    sums = nl.ndarray((64, 64), dtype=nl.float32, buffer=nl.psum)
    nisa.nc_matmul(sums, tile, tile, name="product")
    nl.store(out, sums)
    return out


def slots(one: object) -> dict[str, Any]:
    """Return what an object holds; a slot without a value is an error."""
    return {name: getattr(one, name) for name in type(one).__slots__}  # type: ignore[attr-defined]


@pytest.mark.parametrize("space", list(Space))
@pytest.mark.parametrize("shape", [(1,), (128, 64), (3, 4, 5)])
def test_allocations_are_what_the_constructor_makes(space: Space, shape: tuple[int, ...]) -> None:
    data = np.zeros(shape, np.float32)
    made = allocation_of(7, space, "x", Dtype.FLOAT32, shape, "constant", (0, 8), data, 3)
    plain = Allocation(7, space, "x", Dtype.FLOAT32, shape, "constant", address=(0, 8), data=data, born=3)
    assert slots(made) == slots(plain)


def again(op: Op) -> Op:
    """Return an operation as its constructor makes it."""
    if isinstance(op, ComputeOp):
        return ComputeOp(op.instruction, op.engine, op.operands, op.fields, op.source, op.name)
    if isinstance(op, DmaOp):
        return DmaOp(op.dst, op.src, op.engine, op.transpose, op.source, op.name)
    assert isinstance(op, MatmulOp)
    return MatmulOp(op.dst, op.stationary, op.moving, op.accumulate, op.is_transpose, op.source, op.name)


def test_operations_are_what_their_constructors_make() -> None:
    ops = [op for kernel, more in ((copies, (2,)), (product, ()))
           for op in trace_kernel(kernel, (X, *more), target="trn2")[0].trace.ops]  # fmt: skip
    assert {type(op) for op in ops} == {ComputeOp, DmaOp, MatmulOp}
    for op in ops:
        assert slots(op) == slots(again(op))


def test_launches_and_operations_take_few_calls() -> None:
    def trace(kernel: Any, *more: Any) -> int:
        trace_kernel(kernel, (X, *more), target="trn2")  # what is kept by process is there then
        return counted(lambda: trace_kernel(kernel, (X, *more), target="trn2"), builtins=True)[0]

    assert trace(nothing) < 150
    assert (trace(copies, 30) - trace(copies, 10)) / 20 < 132  # three operations, a tile and two views


def test_types_of_arrays_are_found_again_and_refused_again() -> None:
    assert dtype_of(np.dtype(np.float32)) is dtype_of(np.dtype("<f4")) is nl.float32
    assert dtype_of(np.dtype("bool")) is dtype_of("bool") is not dtype_of(np.dtype(np.uint8))
    for _ in range(2):
        with pytest.raises(NeuronError, match="float64"):
            dtype_of(np.dtype(np.float64))
