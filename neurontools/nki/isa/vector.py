"""Element-wise instructions of the Vector engine, and those that GpSimd and Scalar share."""

from __future__ import annotations

from typing import Any

from formats import isa as words
from formats.dtypes import Dtype
from neurontools.builder.trace import Space, View
from neurontools.nki.isa.checks import (
    alike,
    alu,
    bitvec_dtypes,
    flag,
    free_one,
    not_both_psum,
    pick_engine,
    same_free,
    same_partitions,
    scalar_or_column,
    tile,
)
from neurontools.nki.isa.constants import engine as engines
from neurontools.nki.isa.instruction import NkiInstruction
from neurontools.nki.isa.moves import no_psum
from neurontools.nki.isa.refusals import reject
from neurontools.nki.operators import Operator, UnaryOperator
from neurontools.nki.tensor import NkiTensor
from neurontools.nki.tracer import Tracer, threads, tracer

__all__ = ["reciprocal", "scalar_tensor_tensor", "tensor_scalar", "tensor_tensor", "tensor_tensor_scan"]

_PSUM = Space.PSUM
_BYPASS = words.AluOp.BYPASS
_FLOAT32 = Dtype.FLOAT32
_WIDE_INTEGERS = ("int32", "uint32")
_WIDE = frozenset(_WIDE_INTEGERS)  # asked for each operand: by hash, which compares no texts


def tensor_tensor(
    dst: NkiTensor, data1: NkiTensor, data2: NkiTensor, op: Any, engine: Any = engines.unknown, name: str | None = None
) -> NkiInstruction:
    """Combine two tiles: dst = data1 op data2.

    Vector engine by default; GpSimd for nl.power, and for all-int32/uint32 operands in SBUF (exact there).
    """
    t = threads.tracer or tracer()
    key: tuple[Any, ...] | None
    try:
        key = ("tensor_tensor", dst._kind or dst._find_kind(), data1._kind or data1._find_kind(),
               data2._kind or data2._find_kind(), op, engine)  # fmt: skip
        known = t.known.get(key)
    except (AttributeError, TypeError):  # something else than a tensor or an operator
        key = known = None
    if known is not None:
        chosen, code = known
        views = {"src0": data1._view or data1.base_view, "src1": data2._view or data2.base_view,
                 "dst": dst._view or dst.base_view}  # fmt: skip
        return NkiInstruction(t.compute(words.TensorTensor, chosen, views, {"op": code}, name))
    first = tile(t, "tensor_tensor", "data1", data1)
    second = tile(t, "tensor_tensor", "data2", data2)
    out = tile(t, "tensor_tensor", "dst", dst)
    if not first.partitions == second.partitions == out.partitions:
        same_partitions(t, "tensor_tensor", "dst, data1 and data2", out, first, second)
    if not data1.shape == data2.shape == dst.shape:
        same_free(t, "tensor_tensor", "dst, data1 and data2", dst, data1, data2)
    operator = alu(t, "tensor_tensor", "op", op)
    if isinstance(operator, UnaryOperator):
        raise reject(t, "tensor_tensor", "op", f"nl.{operator.name}", "must be a binary operator")
    if first.allocation.space is _PSUM:
        not_both_psum(t, "tensor_tensor", "data1 and data2", first, second)
    default = "DVE"
    if operator.kind == "bitvec":
        bitvec_dtypes(t, "tensor_tensor", operator, dst=dst, data1=data1, data2=data2)
        chosen = pick_engine(t, "tensor_tensor", engine, "DVE", ("DVE",))
    else:
        if operator.name == "power" or (
            data1.dtype in _WIDE
            and data2.dtype in _WIDE
            and dst.dtype in _WIDE
            and not any(view.allocation.space is _PSUM for view in (first, second, out))
        ):
            default = "Pool"
        chosen = pick_engine(t, "tensor_tensor", engine, default, ("DVE", "Pool"))
        if operator.name == "power" and chosen != "Pool":
            raise reject(t, "tensor_tensor", "engine", engine, "nl.power runs on GpSimd only")
        if chosen == "Pool":
            no_psum(t, "tensor_tensor", out, first, second)
    if key is not None:
        t.known.note(key, (chosen, operator.alu))
    entry = t.compute(
        words.TensorTensor, chosen, {"src0": first, "src1": second, "dst": out}, {"op": operator.alu}, name
    )
    return NkiInstruction(entry)


# Source: hardware.md 5.2 and the tensor_scalar docstring: what the Scalar engine of gen3 can do.
_SCALAR_ENGINE_PAIRS = {("multiply", "add"), ("multiply", None), ("add", None)}


def tensor_scalar(
    dst: NkiTensor,
    data: NkiTensor,
    op0: Any,
    operand0: Any,
    reverse0: bool = False,
    op1: Any = None,
    operand1: Any = None,
    reverse1: bool = False,
    engine: Any = engines.unknown,
    name: str | None = None,
) -> NkiInstruction:
    """Compute dst = (data op0 operand0) op1 operand1, with numbers or (partitions, 1) tiles; op1 is optional."""
    t = threads.tracer or tracer()
    instruction = "tensor_scalar"
    key: tuple[Any, ...] | None = None
    if reverse0.__class__ is bool and reverse1.__class__ is bool:
        try:
            kind0 = operand0._kind or operand0._find_kind() if operand0.__class__ is NkiTensor else operand0.__class__
            kind1 = operand1._kind or operand1._find_kind() if operand1.__class__ is NkiTensor else operand1.__class__
            key = (instruction, dst._kind or dst._find_kind(), data._kind or data._find_kind(), op0, kind0, op1, kind1,
                   reverse0, reverse1, engine)  # fmt: skip
            known = t.known.get(key)
        except (AttributeError, TypeError):  # something else than a tensor or an operator
            key = known = None
        if known is not None:
            chosen, pairs = known
            views = {"src": data._view or data.base_view, "dst": dst._view or dst.base_view}
            given = dict(pairs)
            for index, operand in enumerate((operand0, operand1)):
                if operand.__class__ is NkiTensor:
                    view = free_one(operand._view or operand.base_view)
                    views[f"immediate{index}_pointer"] = view._replace(dtype=_FLOAT32)
                elif operand is not None:
                    given[f"immediate{index}"] = float(operand)
            return NkiInstruction(t.compute(words.TensorScalar, chosen, views, given, name))
    src, out = tile(t, instruction, "data", data), tile(t, instruction, "dst", dst)
    if out.partitions != src.partitions:
        same_partitions(t, instruction, "dst and data", out, src)
    if dst.shape != data.shape:
        same_free(t, instruction, "dst and data", dst, data)
    first = alu(t, instruction, "op0", op0)
    second = None if op1 is None else alu(t, instruction, "op1", op1)
    if second is None and operand1 is not None:
        raise reject(t, instruction, "operand1", repr(operand1), "must be None without op1")
    bits = first.kind == "bitvec"
    if second is not None and (second.kind == "bitvec") != bits and "bypass" not in (first.name, second.name):
        raise reject(t, instruction, "op0 and op1", f"nl.{first.name} and nl.{second.name}",
                     "must both be bit operators or both arithmetic")  # fmt: skip
    for operator in (first, second):
        if operator is not None and operator.name == "power":
            raise reject(t, instruction, "op", "nl.power", "runs in tensor_tensor only")
    if bits:
        bitvec_dtypes(t, instruction, first, dst=dst, data=data)
    operands = {"src": src, "dst": out}
    fields: dict[str, object] = {
        "op0": first.alu,
        "op1": _BYPASS if second is None else second.alu,
        "reverse0": flag(t, instruction, "reverse0", reverse0),
        "reverse1": flag(t, instruction, "reverse1", reverse1),
    }
    common = (*fields.items(),)
    _immediate(t, instruction, 0, first, operand0, src.partitions, operands, fields)
    if second is not None:
        _immediate(t, instruction, 1, second, operand1, src.partitions, operands, fields)
    chosen = _tensor_scalar_engine(t, first, second, bits, engine, (src, out))
    if key is not None and _is_taken(first, operand0) and (second is None or _is_taken(second, operand1)):
        t.known.note(key, (chosen, common))
    return NkiInstruction(t.compute(words.TensorScalar, chosen, operands, fields, name))


def _is_taken(operator: Operator, operand: Any) -> bool:
    """Return whether any other number or column would be taken as this one is: not where the value counts."""
    if isinstance(operator, UnaryOperator) or operator.name == "bypass" or operator.kind == "bitvec":
        return False
    return operand.__class__ in (NkiTensor, int, float)


def _tensor_scalar_engine(
    t: Tracer, first: Operator, second: Operator | None, bits: bool, engine: Any, views: tuple[View, View]
) -> str:
    """Return the engine of a tensor_scalar. Source: hardware.md 5.2, 7.5 (rsqrt: GpSimd and Scalar, not Vector)."""
    instruction = "tensor_scalar"
    rsqrt = "rsqrt" in (first.name, second.name if second else None)
    allowed = ("DVE",) if bits else ("DVE", "Activation", "Pool")
    chosen = pick_engine(t, instruction, engine, "Pool" if rsqrt else "DVE", allowed)
    if chosen == "Pool":
        if not rsqrt:
            raise reject(t, instruction, "engine", "gpsimd", "GpSimd runs nl.rsqrt only")
        no_psum(t, instruction, *views)
    elif chosen == "DVE" and rsqrt:
        raise reject(t, instruction, "engine", "vector", "nl.rsqrt runs on GpSimd or Scalar")
    elif chosen == "Activation":
        if t.generation < 3:
            raise reject(t, instruction, "engine", "scalar", "needs gen3")
        pair = (first.name, second.name if second else None)
        if t.generation == 3 and pair not in _SCALAR_ENGINE_PAIRS:
            raise reject(t, instruction, "op0 and op1", pair,
                         "the Scalar engine of gen3 does multiply-add, multiply and add only")  # fmt: skip
    return chosen


def _immediate(
    t: Tracer,
    instruction: str,
    index: int,
    operator: Operator,
    operand: Any,
    partitions: int,
    operands: dict[str, View],
    fields: dict[str, object],
) -> None:
    """Put operand `index` into `fields` (number) or `operands` (pointer)."""
    argument = f"operand{index}"
    if isinstance(operator, UnaryOperator) or operator.name == "bypass":
        if not (operand is None or (not isinstance(operand, NkiTensor) and operand == 0)):
            raise reject(t, instruction, argument, repr(operand), f"must be None or 0 for nl.{operator.name}")
        fields[f"immediate{index}"] = 0.0
        return
    bits = operator.kind == "bitvec"
    found = scalar_or_column(t, instruction, argument, operand, partitions, _WIDE_INTEGERS if bits else ("float32",))
    if isinstance(found, View):
        # The word has one type for its columns; bit operators take the 32 bits as they are.
        operands[f"immediate{index}_pointer"] = found._replace(dtype=_FLOAT32)
    elif bits:
        if not isinstance(found, int):
            raise reject(t, instruction, argument, found, f"nl.{operator.name} takes an integer")
        fields[f"immediate{index}"] = int(found)
    else:
        fields[f"immediate{index}"] = float(found)


def scalar_tensor_tensor(
    dst: NkiTensor,
    data: NkiTensor,
    op0: Any,
    operand0: Any,
    op1: Any,
    operand1: NkiTensor,
    reverse0: bool = False,
    reverse1: bool = False,
    name: str | None = None,
) -> NkiInstruction:
    """Compute dst = (data op0 operand0) op1 operand1 with a number or column, then a tile; Vector engine."""
    t = tracer()
    instruction = "scalar_tensor_tensor"
    out, src, other = alike(t, instruction, dst=dst, data=data, operand1=operand1)
    not_both_psum(t, instruction, "data and operand1", src, other)
    first, second = _arithmetic(t, instruction, op0=op0, op1=op1)
    operands = {"src": src, "src1": other, "dst": out}
    fields: dict[str, object] = {
        "op0": first.alu,
        "op1": second.alu,
        "reverse0": flag(t, instruction, "reverse0", reverse0),
        "reverse1": flag(t, instruction, "reverse1", reverse1),
    }
    found = scalar_or_column(t, instruction, "operand0", operand0, src.partitions)
    if isinstance(found, View):
        operands["immediate0_pointer"] = found
    else:
        fields["immediate0"] = float(found)
    return NkiInstruction(t.compute(words.ScalarTensorTensor, "DVE", operands, fields, name))


def tensor_tensor_scan(
    dst: NkiTensor,
    data0: NkiTensor,
    data1: NkiTensor,
    initial: Any,
    op0: Any,
    op1: Any,
    reverse0: bool = False,
    reverse1: bool = False,
    name: str | None = None,
) -> NkiInstruction:
    """Compute dst[i] = (data0[i] op0 dst[i-1]) op1 data1[i] along each partition, in fp32, from `initial`."""
    t = tracer()
    instruction = "tensor_tensor_scan"
    out, first_data, second_data = alike(t, instruction, dst=dst, data0=data0, data1=data1)
    not_both_psum(t, instruction, "data0 and data1", first_data, second_data)
    first, second = _arithmetic(t, instruction, op0=op0, op1=op1)
    operands = {"src": first_data, "src1": second_data, "dst": out}
    fields: dict[str, object] = {
        "op0": first.alu,
        "op1": second.alu,
        "reverse0": flag(t, instruction, "reverse0", reverse0),
        "reverse1": flag(t, instruction, "reverse1", reverse1),
    }
    found = scalar_or_column(t, instruction, "initial", initial, out.partitions)
    if isinstance(found, View):
        operands["initial_pointer"] = found
    else:
        fields["initial"] = float(found)
    return NkiInstruction(t.compute(words.TensorTensorScan, "DVE", operands, fields, name))


def _arithmetic(t: Tracer, instruction: str, **ops: Any) -> list[Operator]:
    """Return binary arithmetic operators; bit operators are refused."""
    found = []
    for argument, value in ops.items():
        operator = alu(t, instruction, argument, value)
        if operator.kind == "bitvec" or isinstance(operator, UnaryOperator) or operator.name == "power":
            raise reject(t, instruction, argument, f"nl.{operator.name}", "must be a binary arithmetic operator")
        found.append(operator)
    return found


def reciprocal(dst: NkiTensor, data: NkiTensor, name: str | None = None) -> NkiInstruction:
    """Compute dst = 1 / data in fp32; Vector engine."""
    t = tracer()
    out, src = alike(t, "reciprocal", dst=dst, data=data)
    return NkiInstruction(t.compute(words.Reciprocal, "DVE", {"src": src, "dst": out}, {}, name))
