"""The second activation of the Scalar engine, gen4 only."""

from __future__ import annotations

from typing import Any

from formats import isa as words
from neurontools.builder.trace import View
from neurontools.nki.isa.activations import function_of
from neurontools.nki.isa.checks import alike, alu, column, flag, scalar_or_column
from neurontools.nki.isa.constants import reduce_cmd as commands
from neurontools.nki.isa.instruction import NkiInstruction
from neurontools.nki.isa.refusals import reject, since
from neurontools.nki.tensor import NkiTensor
from neurontools.nki.tracer import Tracer, tracer

__all__ = ["activate2"]

# Source: the activate2 docstring.
_PAIRS = {
    ("multiply", "add"),
    ("multiply", "subtract"),
    ("multiply", "bypass"),
    ("add", "bypass"),
    ("subtract", "bypass"),
    ("bypass", "bypass"),
}
_FOLDS = ("add", "maximum", "minimum", "abs_max", "abs_min")
_COMMANDS = (commands.idle, commands.reset, commands.reduce, commands.reset_reduce)


def activate2(
    dst: NkiTensor,
    op: Any,
    data: NkiTensor,
    imm0: Any,
    imm1: Any,
    op0: Any,
    op1: Any,
    relu_param: Any = 0.0,
    reverse0: bool = False,
    reverse1: bool = False,
    reduce_op: Any = None,
    reduce_res: NkiTensor | None = None,
    reduce_cmd: Any = commands.idle,
    name: str | None = None,
) -> NkiInstruction:
    """Compute op((data op0 imm0) op1 imm1) with numbers or columns, and fold it on request; Scalar engine of gen4."""
    t = tracer()
    instruction = "activate2"
    since(t, instruction, 4)
    out, src = alike(t, instruction, dst=dst, data=data)
    function = function_of(t, instruction, op)
    first, second = _operator(t, "op0", op0), _operator(t, "op1", op1)
    if (first, second) not in _PAIRS:
        raise reject(t, instruction, "op0 and op1", f"nl.{first} and nl.{second}", "are no documented pair")
    for argument, value, chosen in (("reverse0", reverse0, first), ("reverse1", reverse1, second)):
        if value and chosen == "bypass":
            raise reject(t, instruction, argument, value, "needs an operator other than bypass")
    operands: dict[str, View] = {"src": src, "dst": out}
    fields: dict[str, object] = {
        "function": function,
        "op0": words.AluOp.BYPASS if op0 is None else alu(t, instruction, "op0", op0).alu,
        "op1": words.AluOp.BYPASS if op1 is None else alu(t, instruction, "op1", op1).alu,
        "reverse0": flag(t, instruction, "reverse0", reverse0),
        "reverse1": flag(t, instruction, "reverse1", reverse1),
    }
    for argument, field, value, chosen in (
        ("imm0", "immediate0", imm0, first),
        ("imm1", "immediate1", imm1, second),
        ("relu_param", "parameter", relu_param, ""),
    ):
        if chosen != "bypass":
            _place(t, argument, field, value, out.partitions, operands, fields)
    pointers = [operands[one].dtype for one in ("immediate0_pointer", "immediate1_pointer") if one in operands]
    if len(set(pointers)) > 1:
        raise reject(t, instruction, "imm0 and imm1", "of two types", "must have the same type when both are tensors")
    _fold(t, reduce_op, reduce_cmd, fields)
    handle = NkiInstruction(t.compute(words.Activate2, "Activation", operands, fields, name))
    if reduce_res is not None:
        result = column(t, instruction, "reduce_res", reduce_res, out.partitions)
        t.compute(words.ActivationReadAccumulator, "Activation", {"dst": result}, {}, name)
    return handle


def _operator(t: Tracer, argument: str, op: Any) -> str:
    return "bypass" if op is None else alu(t, "activate2", argument, op).name


def _place(
    t: Tracer, argument: str, field: str, value: Any, partitions: int, operands: dict[str, View],
    fields: dict[str, object],
) -> None:  # fmt: skip
    dtypes = ("float32",) if field == "parameter" else None
    found = scalar_or_column(t, "activate2", argument, value, partitions, dtypes)
    if isinstance(found, View):
        operands[f"{field}_pointer"] = found
    else:
        fields[field] = float(found)


def _fold(t: Tracer, reduce_op: Any, reduce_cmd: Any, fields: dict[str, object]) -> None:
    if reduce_cmd not in _COMMANDS:
        raise reject(t, "activate2", "reduce_cmd", reduce_cmd, "must be idle, reset, reduce or reset_reduce")
    fields["reduce_command"] = words.ReduceCommand(reduce_cmd.value)
    if reduce_op is not None:
        fold = alu(t, "activate2", "reduce_op", reduce_op)
        if fold.name not in _FOLDS:
            raise reject(t, "activate2", "reduce_op", f"nl.{fold.name}", f"must be nl.{', nl.'.join(_FOLDS)}")
        fields["reduce_op"] = fold.alu
    elif reduce_cmd is not commands.idle:
        raise reject(t, "activate2", "reduce_op", None, "must be given with a reduce_cmd")
