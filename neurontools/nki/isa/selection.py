"""Instructions of the Vector engine that choose or scale elements and fold them into its accumulator registers."""

from __future__ import annotations

import operator as integers
from typing import Any

import numpy as np

from formats import isa as words
from neurontools.builder.trace import View
from neurontools.nki.isa.checks import (
    alike,
    alu,
    column,
    flag,
    not_both_psum,
    number,
    same_free,
    same_partitions,
    scalar_or_column,
    tile,
)
from neurontools.nki.isa.constants import reduce_cmd as commands
from neurontools.nki.isa.instruction import NkiInstruction
from neurontools.nki.isa.moves import of_type
from neurontools.nki.isa.refusals import reject, since
from neurontools.nki.operators import OPERATORS, Operator, UnaryOperator
from neurontools.nki.tensor import NkiTensor
from neurontools.nki.tracer import Tracer, tracer

__all__ = [
    "exponential",
    "range_select",
    "select_reduce",
    "tensor_copy_predicated",
    "tensor_scalar_cumulative",
    "tensor_scalar_reduce",
]

_FP32_MIN = float(np.finfo(np.float32).min)
_FP32 = ("float32",)
Fields = dict[str, object]


def _arithmetic(t: Tracer, instruction: str, argument: str, op: Any) -> Operator:
    found = alu(t, instruction, argument, op)
    if found.kind == "bitvec" or found.name == "power":
        raise reject(t, instruction, argument, f"nl.{found.name}", "must be an arithmetic operator")
    return found


def _one_of(t: Tracer, instruction: str, argument: str, op: Any, *names: str) -> Operator:
    found = alu(t, instruction, argument, op)
    if found.name not in names:
        raise reject(t, instruction, argument, f"nl.{found.name}", f"must be nl.{', nl.'.join(names)}")
    return found


def _place(
    t: Tracer,
    instruction: str,
    argument: str,
    value: Any,
    field: str,
    partitions: int,
    operands: dict[str, View],
    fields: Fields,
    dtypes: tuple[str, ...] | None = _FP32,
) -> None:
    """Put a number into its field, or a (partitions, 1) tile into its pointer."""
    found = scalar_or_column(t, instruction, argument, value, partitions, dtypes)
    if isinstance(found, View):
        operands[f"{field}_pointer"] = found
    else:
        fields[field] = float(found)


def _registers(
    t: Tracer,
    instruction: str,
    command: Any,
    allowed: tuple[str, ...],
    reduce_res: Any,
    partitions: int,
    operands: dict[str, View],
    fields: Fields,
) -> None:
    """Put the reduce command and the tile that takes the registers in place."""
    if command.__class__ is not commands or command.name not in allowed:
        raise reject(t, instruction, "reduce_cmd", command, f"must be {', '.join(allowed)}")
    fields["reduce_command"] = words.ReduceCommand(command.value)
    if reduce_res is None:
        return
    view = column(t, instruction, "reduce_res", reduce_res, partitions)
    if not reduce_res.dtype.is_float:
        raise reject(t, instruction, "reduce_res", f"of {reduce_res.dtype}", "must be of a float type")
    if command is commands.idle:
        raise reject(t, instruction, "reduce_res", reduce_res.name, "needs a reduce_cmd other than idle")
    operands["reduce_res"] = view


def _initial(
    t: Tracer, instruction: str, argument: str, command: Any, value: Any, unset: Any, partitions: int,
    operands: dict[str, View], fields: Fields,
) -> None:  # fmt: skip
    """Put the initial value of the registers in place: with load_reduce, and only then."""
    if command is commands.load_reduce:
        if value is None:
            raise reject(t, instruction, argument, None, "must be given with reduce_cmd.load_reduce")
        _place(t, instruction, argument, value, "initial", partitions, operands, fields)
    elif value is not None and (isinstance(value, NkiTensor) or value != unset):
        raise reject(t, instruction, argument, repr(value), "is for reduce_cmd.load_reduce only")


def tensor_copy_predicated(
    dst: NkiTensor, src: Any, predicate: NkiTensor, reverse_pred: bool = False, name: str | None = None
) -> NkiInstruction:
    """Overwrite elements of `dst` where the predicate is true, with those of a tile or with a number; Vector engine."""
    t = tracer()
    instruction = "tensor_copy_predicated"
    out, test = alike(t, instruction, dst=dst, predicate=predicate)
    if predicate.dtype not in ("uint8", "uint16", "uint32", "bool"):
        raise reject(t, instruction, "predicate", f"of {predicate.dtype}", "must be uint8, uint16 or uint32")
    operands: dict[str, View] = {"predicate": test, "dst": out}
    fields: Fields = {"reverse": flag(t, instruction, "reverse_pred", reverse_pred)}
    if isinstance(src, NkiTensor):
        view = tile(t, instruction, "src", src)
        same_partitions(t, instruction, "dst and src", out, view)
        same_free(t, instruction, "dst and src", dst, src)
        not_both_psum(t, instruction, "src and predicate", view, test)
        if src.dtype != dst.dtype:
            raise reject(t, instruction, "src", f"of {src.dtype}", f"must have the type of dst, {dst.dtype}")
        operands["src"] = view
    elif number(src):
        fields["value"] = of_type(t, instruction, "src", src, dst.dtype)
        if not out.dtype.is_float and fields["value"] != src:
            raise reject(t, instruction, "src", src, f"must be a whole number for dst of {dst.dtype}")
    else:
        raise reject(t, instruction, "src", repr(src), "must be a tile or a number")
    return NkiInstruction(t.compute(words.CopyPredicated, "DVE", operands, fields, name))


def select_reduce(
    dst: NkiTensor,
    predicate: NkiTensor,
    on_true: NkiTensor,
    on_false: Any,
    reduce_res: NkiTensor | None = None,
    reduce_cmd: Any = commands.idle,
    reduce_op: Any = OPERATORS["maximum"],
    reverse_pred: bool = False,
    name: str | None = None,
) -> NkiInstruction:
    """Choose between a tile and a number (or column) by a predicate, and fold the maximum; Vector engine."""
    t = tracer()
    instruction = "select_reduce"
    out, src, test = alike(t, instruction, dst=dst, on_true=on_true, predicate=predicate)
    not_both_psum(t, instruction, "on_true and predicate", src, test)
    if on_true.dtype in ("tfloat32", "int32", "uint32"):
        raise reject(t, instruction, "on_true", f"of {on_true.dtype}", "cannot be tfloat32, int32 or uint32")
    if predicate.dtype not in ("int8", "uint8", "int16", "uint16", "bool"):
        raise reject(t, instruction, "predicate", f"of {predicate.dtype}", "must be int8, uint8, int16 or uint16")
    _one_of(t, instruction, "reduce_op", reduce_op, "maximum")
    operands: dict[str, View] = {"src": src, "predicate": test, "dst": out}
    fields: Fields = {"reverse": flag(t, instruction, "reverse_pred", reverse_pred), "reduce_op": words.AluOp.MAX}
    _place(t, instruction, "on_false", on_false, "immediate0", out.partitions, operands, fields, None)
    allowed = ("idle", "reduce", "reset_reduce")
    _registers(t, instruction, reduce_cmd, allowed, reduce_res, out.partitions, operands, fields)
    return NkiInstruction(t.compute(words.SelectReduce, "DVE", operands, fields, name))


_BOUNDS = ("equal", "less", "less_equal", "greater", "greater_equal")


def range_select(
    dst: NkiTensor,
    on_true_tile: NkiTensor,
    comp_op0: Any,
    comp_op1: Any,
    bound0: NkiTensor,
    bound1: NkiTensor,
    reduce_cmd: Any = commands.reset_reduce,
    reduce_res: NkiTensor | None = None,
    reduce_op: Any = OPERATORS["maximum"],
    range_start: Any = 0,
    on_false_value: Any = ...,
    name: str | None = None,
) -> NkiInstruction:
    """Keep elements whose place compares with two bounds, write FP32_MIN elsewhere, fold the maximum; gen3 on."""
    t = tracer()
    instruction = "range_select"
    since(t, instruction, 3)
    out, src = alike(t, instruction, dst=dst, on_true_tile=on_true_tile)
    if not on_true_tile.dtype.is_float:
        raise reject(t, instruction, "on_true_tile", f"of {on_true_tile.dtype}", "must be of a float type")
    if on_false_value is not ... and not (number(on_false_value) and np.float32(on_false_value) == _FP32_MIN):
        raise reject(t, instruction, "on_false_value", repr(on_false_value), f"must be FP32_MIN ({_FP32_MIN:.8g})")
    _one_of(t, instruction, "reduce_op", reduce_op, "maximum")
    try:
        start = integers.index(range_start)
    except TypeError:
        raise reject(t, instruction, "range_start", repr(range_start), "must be a compile-time integer") from None
    # the engine counts places in fp32, where whole numbers are exact up to 2**24
    if not -(1 << 24) <= start <= (1 << 24) - dst.free_size:
        raise reject(t, instruction, "range_start", start, "places must stay within 2**24")
    operands: dict[str, View] = {"src": src, "dst": out}
    fields: Fields = {
        "op0": _one_of(t, instruction, "comp_op0", comp_op0, *_BOUNDS).alu,
        "op1": _one_of(t, instruction, "comp_op1", comp_op1, *_BOUNDS).alu,
        "start": start,
        "reduce_op": words.AluOp.MAX,
    }
    for argument, bound in (("bound0", bound0), ("bound1", bound1)):
        found = scalar_or_column(t, instruction, argument, bound, out.partitions, _FP32)
        if not isinstance(found, View):
            raise reject(t, instruction, argument, repr(bound), f"must be a tile of shape ({out.partitions}, 1)")
        operands[f"{argument}_pointer"] = found
    allowed = ("idle", "reset", "reduce", "reset_reduce")
    _registers(t, instruction, reduce_cmd, allowed, reduce_res, out.partitions, operands, fields)
    return NkiInstruction(t.compute(words.RangeSelect, "DVE", operands, fields, name))


def tensor_scalar_reduce(
    dst: NkiTensor,
    data: NkiTensor,
    op0: Any,
    operand0: Any,
    reduce_op: Any,
    reduce_res: NkiTensor | None = None,
    reverse0: bool = False,
    reduce_cmd: Any = commands.reset_reduce,
    reduce_init: Any = None,
    reduce_res_negate: bool = False,
    name: str | None = None,
) -> NkiInstruction:
    """Compute data op0 operand0 and fold it along all free dimensions; Vector engine."""
    t = tracer()
    instruction = "tensor_scalar_reduce"
    out, src = alike(t, instruction, dst=dst, data=data)
    if flag(t, instruction, "reverse0", reverse0):
        raise reject(t, instruction, "reverse0", reverse0, "is documented as not supported")
    first = _arithmetic(t, instruction, "op0", op0)
    operands: dict[str, View] = {"src": src, "dst": out}
    fold = _one_of(t, instruction, "reduce_op", reduce_op, "add", "multiply", "maximum", "minimum")
    fields: Fields = {
        "op0": first.alu,
        "reduce_op": fold.alu,
        "negate": flag(t, instruction, "reduce_res_negate", reduce_res_negate),
    }
    _operand(t, instruction, "operand0", first, operand0, out.partitions, operands, fields)
    allowed = ("reduce", "reset_reduce", "load_reduce")
    _registers(t, instruction, reduce_cmd, allowed, reduce_res, out.partitions, operands, fields)
    _initial(t, instruction, "reduce_init", reduce_cmd, reduce_init, None, out.partitions, operands, fields)
    return NkiInstruction(t.compute(words.TensorScalarReduce, "DVE", operands, fields, name))


def _operand(
    t: Tracer, instruction: str, argument: str, op: Operator, value: Any, partitions: int, operands: dict[str, View],
    fields: Fields,
) -> None:  # fmt: skip
    if isinstance(op, UnaryOperator) or op.name == "bypass":
        if value is not None and (isinstance(value, NkiTensor) or value != 0):
            raise reject(t, instruction, argument, repr(value), f"must be None or 0 for nl.{op.name}")
        return
    _place(t, instruction, argument, value, "immediate0", partitions, operands, fields)


def tensor_scalar_cumulative(
    dst: NkiTensor,
    src: NkiTensor,
    op0: Any,
    op1: Any,
    imm0: Any,
    imm1: Any = None,
    reduce_cmd: Any = commands.reset_reduce,
    name: str | None = None,
) -> NkiInstruction:
    """Write the running fold register = (src op0 imm0) op1 register of each partition; Vector engine."""
    t = tracer()
    instruction = "tensor_scalar_cumulative"
    out, view = alike(t, instruction, dst=dst, src=src)
    for argument, one in (("dst", dst), ("src", src)):
        if one.dtype in ("int32", "uint32"):
            raise reject(t, instruction, argument, f"of {one.dtype}", "cannot be a 32-bit integer")
    first = _arithmetic(t, instruction, "op0", op0)
    fold = _one_of(t, instruction, "op1", op1, "add", "subtract", "multiply", "maximum", "minimum")
    operands: dict[str, View] = {"src": view, "dst": out}
    fields: Fields = {"op0": first.alu, "reduce_op": fold.alu}
    _operand(t, instruction, "imm0", first, imm0, out.partitions, operands, fields)
    allowed = ("reduce", "reset_reduce", "load_reduce")
    _registers(t, instruction, reduce_cmd, allowed, None, out.partitions, operands, fields)
    if reduce_cmd is commands.load_reduce:  # with other commands imm1 is documented to do nothing
        _initial(t, instruction, "imm1", reduce_cmd, imm1, None, out.partitions, operands, fields)
    return NkiInstruction(t.compute(words.TensorScalarCumulative, "DVE", operands, fields, name))


def exponential(
    dst: NkiTensor,
    src: NkiTensor,
    max_value: Any = 0.0,
    reduce_res: NkiTensor | None = None,
    reduce_cmd: Any = commands.idle,
    reduce_init: Any = 0.0,
    name: str | None = None,
) -> NkiInstruction:
    """Compute exp(src - max_value), and the sum of it on request; Vector engine of gen4."""
    t = tracer()
    instruction = "exponential"
    since(t, instruction, 4)
    out, view = alike(t, instruction, dst=dst, src=src)
    operands: dict[str, View] = {"src": view, "dst": out}
    fields: Fields = {"reduce_op": words.AluOp.ADD}
    _place(t, instruction, "max_value", max_value, "immediate0", out.partitions, operands, fields)
    allowed = ("idle", "reduce", "reset_reduce", "load_reduce")
    _registers(t, instruction, reduce_cmd, allowed, reduce_res, out.partitions, operands, fields)
    _initial(t, instruction, "reduce_init", reduce_cmd, reduce_init, 0.0, out.partitions, operands, fields)
    return NkiInstruction(t.compute(words.Exponential, "DVE", operands, fields, name))
