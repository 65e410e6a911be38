"""Traces made by hand, and what they compute by NumPy: the builder's tests start here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np

from formats import isa
from formats.dtypes import Dtype
from formats.targets import resolve_target
from neurontools.builder.trace import Allocation, BarrierOp, ComputeOp, DmaOp, MatmulOp, SendRecvOp, Space, Trace, View

__all__ = ["Maker", "interpret", "numpy_type"]

F32, BF16, F16, I32 = Dtype.FLOAT32, Dtype.BFLOAT16, Dtype.FLOAT16, Dtype.INT32


def numpy_type(dtype: Dtype) -> np.dtype[Any]:
    """Return the NumPy type of an element type."""
    return np.dtype(getattr(ml_dtypes, dtype.numpy_name, None) or dtype.numpy_name)


class Maker:
    """Write a trace call by call; `view` slices an allocation like an array."""

    def __init__(self, target: str = "trn2", program: int = 0, programs: int = 1) -> None:
        self.trace = Trace(resolve_target(target), program, programs)

    def _allocate(
        self, space: Space, name: str, shape: Sequence[int], dtype: Dtype, kind: str, **facts: Any
    ) -> Allocation:
        allocations = self.trace.allocations
        one = Allocation(len(allocations), space, name, dtype, tuple(shape), kind, born=len(self.trace.ops), **facts)
        allocations.append(one)
        return one

    def input(self, name: str, shape: Sequence[int], dtype: Dtype = F32) -> Allocation:
        one = self._allocate(Space.HBM, name, shape, dtype, "input")
        self.trace.inputs.append(one)
        return one

    def output(self, name: str, shape: Sequence[int], dtype: Dtype = F32) -> Allocation:
        one = self._allocate(Space.HBM, name, shape, dtype, "output")
        self.trace.outputs.append(one)
        return one

    def hbm(self, name: str, shape: Sequence[int], dtype: Dtype = F32, kind: str = "private") -> Allocation:
        return self._allocate(Space.HBM, name, shape, dtype, kind)

    def constant(self, name: str, data: np.ndarray[Any, Any], dtype: Dtype = F32) -> Allocation:
        return self._allocate(Space.HBM, name, data.shape, dtype, "constant", data=data)

    def sbuf(self, shape: Sequence[int], dtype: Dtype = F32, address: tuple[int, int] | None = None) -> Allocation:
        name = f"t{len(self.trace.allocations)}"
        return self._allocate(Space.SBUF, name, shape, dtype, "tile", address=address)

    def psum(self, shape: Sequence[int], dtype: Dtype = F32, address: tuple[int, int] | None = None) -> Allocation:
        name = f"p{len(self.trace.allocations)}"
        return self._allocate(Space.PSUM, name, shape, dtype, "tile", address=address)

    def view(self, one: Allocation | View, *keys: slice | int) -> View:
        """Return a view; slices as in NumPy, integers drop a dimension (not the partitions)."""
        if isinstance(one, View):
            return one
        chip = one.space is not Space.HBM
        full = [*keys, *([slice(None)] * (len(one.shape) - len(keys)))]
        strides = np.cumprod([1, *one.shape[:0:-1]])[::-1]
        if chip:
            strides = np.cumprod([1, *one.shape[:1:-1]])[::-1]
            strides = np.concatenate([[0], strides]) if len(one.shape) > 1 else np.array([0])
        offset, dims = 0, []
        partition, partitions = 0, 1
        for axis, (key, extent) in enumerate(zip(full, one.shape, strict=True)):
            if chip and axis == 0:
                start, stop, step = key.indices(extent)
                assert step == 1
                partition, partitions = start, stop - start
                continue
            stride = int(strides[axis])
            if isinstance(key, int):
                offset += key * stride
                continue
            start, stop, step = key.indices(extent)
            offset += start * stride
            dims.append((stride * step, len(range(start, stop, step))))
        return View(one, one.dtype, partition, partitions, offset * one.dtype.size, tuple(dims) or ((1, 1),))

    @property
    def _source(self) -> tuple[str, int]:
        return "kernel.py", len(self.trace.ops) + 1

    def compute(self, cls: type[Any], engine: str, operands: dict[str, Allocation | View], **fields: Any) -> None:
        views = {name: self.view(one) for name, one in operands.items()}
        self.trace.ops.append(ComputeOp(cls, engine, views, fields, self._source))

    def dma(
        self, dst: Allocation | View, src: Allocation | View, engine: str | None = None, transpose: bool = False
    ) -> None:
        self.trace.ops.append(DmaOp(self.view(dst), self.view(src), engine, transpose, self._source))

    def matmul(
        self,
        dst: Allocation | View,
        stationary: Allocation | View,
        moving: Allocation | View,
        accumulate: bool | None = None,
        transpose: bool = False,
    ) -> None:
        self.trace.ops.append(
            MatmulOp(self.view(dst), self.view(stationary), self.view(moving), accumulate, transpose, self._source)
        )

    def barrier(self) -> None:
        self.trace.ops.append(BarrierOp(self._source))

    def exchange(self, src: Allocation | View, dst: Allocation | View) -> None:
        self.trace.ops.append(SendRecvOp(self.view(src), self.view(dst), 1 - self.trace.program_id, self._source))

    def copy(self, dst: Allocation | View, src: Allocation | View, engine: str = "DVE") -> None:
        a, b = self.view(dst), self.view(src)
        self.compute(isa.Copy if a.dtype is b.dtype else isa.Cast, engine, {"src": b, "dst": a})

    def add(self, dst: Allocation | View, a: Allocation | View, b: Allocation | View, engine: str = "DVE") -> None:
        self.compute(isa.TensorTensor, engine, {"src0": a, "src1": b, "dst": dst}, op=isa.AluOp.ADD)

    def memset(self, dst: Allocation | View, value: float = 0.0, engine: str = "DVE") -> None:
        self.compute(isa.Memset, engine, {"dst": dst}, value=value)


def interpret(trace: Trace, inputs: dict[str, np.ndarray[Any, Any]]) -> dict[str, np.ndarray[Any, Any]]:
    """Run a trace op by op with NumPy (copies, adds, memsets, scaling, multiplications, DMA); return its outputs."""
    memory: dict[int, np.ndarray[Any, Any]] = {}
    for one in trace.allocations:
        # Uninitialised memory is NaN in every float type, as on the emulator.
        memory[one.id] = np.full((one.partitions, one.partition_bytes), 0xFF, np.uint8)
        if one.kind == "input":
            memory[one.id][...] = np.frombuffer(inputs[one.name].tobytes(), np.uint8).reshape(memory[one.id].shape)
        elif one.data is not None:
            memory[one.id][...] = np.frombuffer(one.data.tobytes(), np.uint8).reshape(memory[one.id].shape)
    fresh = {
        one.id: np.ones((one.partitions, one.partition_bytes), bool)
        for one in trace.allocations
        if one.space is Space.PSUM
    }

    def array(view: View) -> np.ndarray[Any, Any]:
        raw, kind = memory[view.allocation.id], numpy_type(view.dtype)
        shape = [count for _, count in view.dims]
        strides = [step * kind.itemsize for step, _ in view.dims]
        if view.allocation.space is not Space.HBM:
            shape, strides = [view.partitions, *shape], [raw.shape[1], *strides]
        return np.ndarray(shape, kind, raw, view.partition * raw.shape[1] + view.offset, strides)

    def planes(view: View) -> np.ndarray[Any, Any]:
        raw, size = fresh[view.allocation.id], view.dtype.size
        return np.ndarray(
            [view.partitions, *(count for _, count in view.dims)],
            bool,
            raw,
            view.partition * raw.shape[1] + view.offset,
            [raw.shape[1], *(s * size for s, _ in view.dims)],
        )

    def store(view: View, values: np.ndarray[Any, Any]) -> None:
        target = array(view)
        target[...] = values.reshape(target.shape).astype(target.dtype)
        if view.allocation.id in fresh:
            planes(view)[...] = False

    for op in trace.ops:
        if isinstance(op, DmaOp):
            source = array(op.src)
            if op.transpose:
                source = np.moveaxis(source, 0, -1) if source.ndim == 2 else source
            store(op.dst, np.ascontiguousarray(source))
        elif isinstance(op, MatmulOp):
            left, right = array(op.stationary).astype(np.float32), array(op.moving).astype(np.float32)
            product = left.reshape(left.shape[0], -1).T @ right.reshape(right.shape[0], -1)
            keep = op.accumulate if op.accumulate is not None else None
            old = array(op.dst).astype(np.float32).reshape(product.shape)
            if keep is None:
                old = np.where(planes(op.dst).reshape(product.shape), np.float32(0), old)
                store(op.dst, product + old)
            else:
                store(op.dst, product + old if keep else product)
        elif isinstance(op, ComputeOp):
            v = op.operands
            if op.instruction in (isa.Copy, isa.Cast):
                store(v["dst"], array(v["src"]).copy())
            elif op.instruction is isa.Memset:
                store(v["dst"], np.full(array(v["dst"]).shape, op.fields["value"]))
            elif op.instruction is isa.TensorTensor:
                shape = array(v["dst"]).shape
                store(
                    v["dst"],
                    array(v["src0"]).astype(np.float32).reshape(shape)
                    + array(v["src1"]).astype(np.float32).reshape(shape),
                )
            elif op.instruction is isa.Activate:
                store(v["dst"], array(v["src"]).astype(np.float32) * np.float32(op.fields.get("scale", 1.0)))
            else:
                raise AssertionError(op)
    return {
        one.name: np.frombuffer(memory[one.id].tobytes(), numpy_type(one.dtype)).reshape(one.shape)
        for one in trace.outputs
    }
