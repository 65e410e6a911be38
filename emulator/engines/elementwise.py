"""Elementwise words of DVE, Pool and ACT: two tiles, a tile and scalars, both, and the reciprocal.

Arithmetic runs in fp32; on Pool 32-bit integers are exact and wrap; bit-pattern operators take the bits as they are.
Source: isa.md 11, hardware.md 3.4, 3.8.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from emulator import alu
from emulator.dtypes import NARROWING, Array, Step, chain, element_type, numpy_dtype
from emulator.engines.operands import (
    bind_once,
    float_input,
    float_output,
    immediate_float,
    immediate_integer,
    per_partition,
    raw_input,
    raw_view,
    squeezed,
)
from emulator.engines.registry import executes
from emulator.port import Port
from emulator.scratch import scratch
from formats import isa
from formats.dtypes import Dtype
from formats.errors import UnsupportedError
from formats.isa import AluOp

__all__: list[str] = []

_NATIVE = frozenset((Dtype.INT32, Dtype.UINT32))
_SHIFTS = frozenset((AluOp.LEFT_SHIFT, AluOp.RIGHT_SHIFT))


def _apply(op: AluOp, function: alu.Binary, a: Array, b: Any, out: Array, reverse: bool) -> Step:
    """Return one operator as a step; `reverse` swaps the operands of a binary one."""
    if reverse and op not in alu.UNARY:
        a, b = b, a
    return partial(function, a, b, out)


def _require_integers(word: isa.Instruction, codes: Sequence[int]) -> None:
    for code in codes:
        if element_type(code).is_float:
            raise UnsupportedError(
                f"{word.NAME}: bit-pattern operators need integer element types, not {element_type(code).spelling}"
            )


class _Wide:
    """Integer operands widened to 64 bits, so that widths and signs may differ."""

    def __init__(self, word: isa.Instruction, shape: tuple[int, ...], signed: bool) -> None:
        self.word, self.shape = word, shape
        self.dtype: Any = np.int64 if signed else np.uint64
        self.steps: list[Step | None] = []
        self.out = scratch(shape, self.dtype)

    def tile(self, view: Array, code: int, name: str, zero_extend: bool = False) -> Array:
        """Return the tile's integers, sign-extended as their type says unless `zero_extend`."""
        bits, step = raw_input(self.word, view, self.shape, name)
        typed = bits if zero_extend else bits.view(numpy_dtype(code))
        target = scratch(self.shape, self.dtype)
        self.steps += [step, partial(np.copyto, target, typed, casting="unsafe")]
        return target

    def store(self, dst: Array) -> Step:
        """Return the step that writes the low bits of the result; unsigned numbers are meant to go round."""
        write = partial(np.copyto, raw_view(dst), self.out, casting="unsafe")
        if self.dtype is np.uint64 or dst.dtype.kind != "i":
            return write
        limits = np.iinfo(dst.dtype)
        return chain(partial(_count_lost, self.out, int(limits.min), int(limits.max)), write)


def _count_lost(values: Array, low: int, high: int) -> None:
    if NARROWING.counting:
        NARROWING.count(values, low, high)


@executes(isa.TensorTensor, movable=True)
def tensor_tensor(word: isa.TensorTensor, port: Port) -> Step:
    """Return dst = src0 op src1."""
    op = alu.alu_op(word.op)
    dst = squeezed(port.write("dst"))
    src0, src1 = port.read("src0"), port.read("src1")
    codes = (word.src0_dtype, word.src1_dtype, word.dst_dtype)
    if op in alu.BITWISE:
        _require_integers(word, codes)
        function = alu.bitwise(op)
        if len({view.dtype.itemsize for view in (src0, src1, dst)}) == 1:
            a, load_a = raw_input(word, src0, dst.shape, "src0")
            b, load_b = raw_input(word, src1, dst.shape, "src1")
            return chain(load_a, load_b, partial(function, a, b, raw_view(dst)))
        wide = _Wide(word, dst.shape, signed=False)
        a = wide.tile(src0, codes[0], "src0", zero_extend=op is AluOp.RIGHT_SHIFT)
        b = wide.tile(src1, codes[1], "src1")
        return chain(*wide.steps, partial(function, a, b, wide.out), wide.store(dst))
    native = alu.int64(op) if port.engine == "Pool" and _NATIVE.issuperset(codes) else None
    if native is not None:
        wide = _Wide(word, dst.shape, signed=True)
        a, b = wide.tile(src0, codes[0], "src0"), wide.tile(src1, codes[1], "src1")
        return chain(*wide.steps, partial(native, a, b, wide.out), wide.store(dst))
    a, load_a = float_input(word, src0, codes[0], dst.shape, "src0")
    b, load_b = float_input(word, src1, codes[1], dst.shape, "src1")
    out, store = float_output(dst, codes[2])
    return chain(load_a, load_b, partial(alu.float32(op), a, b, out), store)


@executes(isa.TensorScalar, movable=True)
def tensor_scalar(word: isa.TensorScalar, port: Port) -> Step:
    """Return dst = (src op0 immediate0) op1 immediate1."""
    ops = [
        (alu.alu_op(word.op0), "immediate0", bool(word.reverse0)),
        (alu.alu_op(word.op1), "immediate1", bool(word.reverse1)),
    ]
    ops = [entry for entry in ops if entry[0] is not AluOp.BYPASS] or ops[:1]
    codes = (word.src_dtype, word.dst_dtype)
    dst, src = squeezed(port.write("dst")), port.read("src")
    if any(op in alu.BITWISE for op, _, _ in ops):
        _require_integers(word, codes)
        return _scalar_bits(word, port, ops, src, dst)
    if (
        port.engine == "Pool"
        and _NATIVE.issuperset(codes)
        and all(alu.int64(op) and (op in alu.UNARY or _is_integer(word, name)) for op, name, _ in ops)
    ):
        return _scalar_integers(word, ops, src, dst)
    values, load = float_input(word, src, word.src_dtype, dst.shape, "src")
    out, store = float_output(dst, word.dst_dtype)
    signed = word.src_dtype != Dtype.UINT32
    # The intermediate stays out of the output, which may hold a pointer operand.
    middle = scratch(dst.shape, np.float32) if len(ops) > 1 else out
    steps: list[Step | None] = [load]
    for number, (op, name, reverse) in enumerate(ops):
        operand, refresh = _scalar_operand(word, port, name, dst.ndim, signed)
        target = out if number == len(ops) - 1 else middle
        steps += [refresh, _apply(op, alu.float32(op), values, operand, target, reverse)]
        values = target
    return chain(*steps, store)


def _is_integer(word: isa.Instruction, name: str) -> bool:
    return bool(getattr(word, f"{name}_is_integer")) and not getattr(word, f"{name}_is_pointer")


def _scalar_operand(word: isa.Instruction, port: Port, name: str, ndim: int, signed: bool) -> tuple[Any, Step | None]:
    """Return an immediate, or the pointer in its place, as an fp32 operand and the step that refreshes it."""
    pointer = port.pointer(f"{name}_pointer")
    if pointer is None:
        return immediate_float(word, name, signed), None
    return per_partition(word, f"{name}_pointer", pointer, ndim)


def _scalar_bits(
    word: isa.TensorScalar, port: Port, ops: list[tuple[AluOp, str, bool]], src: Array, dst: Array
) -> Step:
    """Return the bit-pattern form; a pointer operand holds 32 integer bits."""
    narrow = src.dtype.itemsize == dst.dtype.itemsize
    operands: list[tuple[Any, Step | None]] = []
    for op, name, reverse in ops:
        pointer = port.pointer(f"{name}_pointer")
        counts = op in _SHIFTS and not reverse
        if pointer is not None:
            column = pointer.view(np.uint32).reshape((-1,) + (1,) * (dst.ndim - 1), copy=False)
            # A count keeps its meaning where the operand becomes as narrow as the elements.
            limited = scratch(column.shape, np.uint32) if counts else column
            operands.append((limited, partial(np.minimum, column, 64, out=limited) if counts else None))
        elif op in alu.UNARY:
            operands.append((0, None))
        else:
            value = immediate_integer(word, name, signed=True)
            operands.append((min(value & 0xFFFFFFFF, 64) if counts else value, None))
    if narrow:
        values, load = raw_input(word, src, dst.shape, "src")
        out: Array = raw_view(dst)
        middle = scratch(dst.shape, out.dtype)
        steps: list[Step | None] = [load]
        store: Step | None = None
    else:
        wide = _Wide(word, dst.shape, signed=False)
        values = wide.tile(src, word.src_dtype, "src", zero_extend=ops[0][0] is AluOp.RIGHT_SHIFT)
        steps, out, middle, store = wide.steps, wide.out, scratch(dst.shape, np.uint64), wide.store(dst)
    unsigned: Any = out.dtype.type
    mask = (1 << 8 * out.dtype.itemsize) - 1
    for number, ((op, _, reverse), (operand, refresh)) in enumerate(zip(ops, operands, strict=True)):
        if isinstance(operand, int):
            operand = unsigned(operand & mask)
        elif operand.dtype != out.dtype:
            operand, convert = bind_once(operand, out.dtype)
            refresh = chain(refresh, convert)
        target = out if number == len(ops) - 1 else middle
        steps += [refresh, _apply(op, alu.bitwise(op), values, operand, target, reverse)]
        values = target
    return chain(*steps, store)


def _scalar_integers(word: isa.TensorScalar, ops: list[tuple[AluOp, str, bool]], src: Array, dst: Array) -> Step:
    """Return the exact 32-bit integer form of Pool."""
    signed = word.src_dtype == Dtype.INT32
    wide = _Wide(word, dst.shape, signed=True)
    values = wide.tile(src, word.src_dtype, "src")
    for number, (op, name, reverse) in enumerate(ops):
        function = alu.int64(op)
        assert function is not None
        operand = 0 if op in alu.UNARY else immediate_integer(word, name, signed)
        wide.steps.append(_apply(op, function, values, np.int64(operand), wide.out, reverse))
        values = wide.out
        if number < len(ops) - 1:  # the register between the operators is 32 bits wide, too
            wide.steps.append(_wrap(wide.out, np.int32 if signed else np.uint32))
    return chain(*wide.steps, wide.store(dst))


def _wrap(values: Array, dtype: Any) -> Step:
    narrow = scratch(values.shape, dtype)
    return chain(partial(np.copyto, narrow, values, casting="unsafe"), partial(np.copyto, values, narrow))


@executes(isa.ScalarTensorTensor, movable=True)
def scalar_tensor_tensor(word: isa.ScalarTensorTensor, port: Port) -> Step:
    """Return dst = (src op0 immediate0) op1 src1."""
    op0, op1 = alu.alu_op(word.op0), alu.alu_op(word.op1)
    dst = squeezed(port.write("dst"))
    a, load_a = float_input(word, port.read("src"), word.src_dtype, dst.shape, "src")
    b, load_b = float_input(word, port.read("src1"), word.src1_dtype, dst.shape, "src1")
    operand, refresh = _scalar_operand(word, port, "immediate0", dst.ndim, word.src_dtype != Dtype.UINT32)
    out, store = float_output(dst, word.dst_dtype)
    middle = scratch(dst.shape, np.float32)
    return chain(
        load_a,
        load_b,
        refresh,
        _apply(op0, alu.float32(op0), a, operand, middle, bool(word.reverse0)),
        _apply(op1, alu.float32(op1), middle, b, out, bool(word.reverse1)),
        store,
    )


@executes(isa.Reciprocal, movable=True)
def reciprocal(word: isa.Reciprocal, port: Port) -> Step:
    """Return dst = 1 / src."""
    dst = squeezed(port.write("dst"))
    values, load = float_input(word, port.read("src"), word.src_dtype, dst.shape, "src")
    out, store = float_output(dst, word.dst_dtype)
    return chain(load, partial(np.reciprocal, values, out), store)
