"""Conditions of breakpoints: a small language of expressions over counters, registers, time and tensors.

`S[5] >= 3 and time > 2us`, `nc1.E[2]`, `PE.R[3] == 7`, `any(isnan(x[0:128]))`; tensor names that are not identifiers
stand in quotes. Parsed by Python's own grammar, computed here: nothing but these operators and functions exists.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from formats.errors import NotFoundError
from neurontools.debugger.errors import UsageError
from neurontools.debugger.names import engine_name, is_engine, parse_time

if TYPE_CHECKING:
    from emulator.machine_view import MachineView
    from neurontools.debugger.execution import Execution, Owner
    from neurontools.debugger.tensors import Tensors

__all__ = ["Condition", "Situation", "situation_at"]

Value = Any  # a number or a truth, or an array of them
_TIME = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?(?:ps|ns|us|ms|s))\b")
_BINARY: dict[type[ast.operator], Callable[[Value, Value], Value]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.BitAnd: operator.and_, ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
}  # fmt: skip
_COMPARE: dict[type[ast.cmpop], Callable[[Value, Value], Value]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}  # fmt: skip
_UNARY: dict[type[ast.unaryop], Callable[[Value], Value]] = {
    ast.Not: operator.not_, ast.USub: operator.neg, ast.UAdd: operator.pos, ast.Invert: operator.invert,
}  # fmt: skip
_FUNCTIONS: dict[str, Callable[[Value], Value]] = {
    "abs": np.abs, "min": np.min, "max": np.max, "mean": np.mean, "any": np.any, "all": np.all, "isnan": np.isnan,
    "isinf": np.isinf, "isfinite": np.isfinite,
}  # fmt: skip


class Situation(NamedTuple):
    """Where a condition is computed: what completes or has completed, and the device as it is."""

    device: MachineView
    tensors: Tensors
    core: int
    engine: str
    pc: int
    time_ps: int
    events: int


def situation_at(execution: Execution, owner: Owner, time_ps: int, events: int) -> Situation:
    """Return where the conditions of breakpoints on a completion are computed."""
    core, engine, pc, _ = owner
    if not 0 <= core < len(execution.device.cores):
        core = execution.focus[0]
    name = engine if engine in execution.device.cores[core].engines else execution.focus[1]
    return Situation(execution.device, execution.tensors, core, name, pc, time_ps, events)


class Condition:
    """One expression; `text` is what was asked for. Raises UsageError where it is not an expression."""

    def __init__(self, text: str) -> None:
        self.text = text.strip()
        prepared = _TIME.sub(lambda found: str(parse_time(found[1])), self.text)
        prepared = prepared.replace("&&", " and ").replace("||", " or ")
        try:
            self._tree = ast.parse(prepared.strip(), mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            raise UsageError(f"{self.text!r} is not a condition such as S[5] >= 3 and time > 2us") from None

    def __repr__(self) -> str:
        return self.text

    def holds(self, at: Situation) -> bool:
        """Return whether the condition holds; UsageError, NotFoundError or ArithmeticError where it has no answer."""
        value = _value(self._tree, at)
        if np.ndim(value):
            raise UsageError(f"{self.text!r} has {np.size(value)} values; any(…) or all(…) makes one of them")
        return bool(value)


def _value(node: ast.expr, at: Situation) -> Value:
    if isinstance(node, ast.Constant) and isinstance(node.value, bool | int | float):
        return node.value
    if isinstance(node, ast.BoolOp):
        # As Python does: what follows the answer is not computed.
        wanted = isinstance(node.op, ast.Or)
        return next((True for item in node.values if bool(_value(item, at)) == wanted), False) == wanted
    if isinstance(node, ast.UnaryOp):
        return _UNARY[type(node.op)](_value(node.operand, at))
    if isinstance(node, ast.BinOp) and type(node.op) in _BINARY:
        left, right = _value(node.left, at), _value(node.right, at)
        try:
            return _BINARY[type(node.op)](left, right)
        except TypeError:
            raise UsageError(f"{ast.unparse(node)} cannot be computed") from None
    if isinstance(node, ast.Compare):
        return _compared(node, at)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
        function = _FUNCTIONS.get(node.func.id)
        if function is None or len(node.args) != 1:
            raise UsageError(f"no function {ast.unparse(node)}; there are {', '.join(_FUNCTIONS)}, each of one value")
        return function(_value(node.args[0], at))
    if isinstance(node, ast.Name | ast.Subscript | ast.Attribute) or (
        isinstance(node, ast.Constant) and isinstance(node.value, str)
    ):
        return _named(node, at)
    raise UsageError(f"{ast.unparse(node)!r} cannot be part of a condition")


def _compared(node: ast.Compare, at: Situation) -> Value:
    left, answer = _value(node.left, at), True
    for kind, item in zip(node.ops, node.comparators, strict=True):
        if type(kind) not in _COMPARE:
            raise UsageError(f"{ast.unparse(node)!r}: compare with == != < <= > >=")
        right = _value(item, at)
        answer = answer & _COMPARE[type(kind)](left, right)
        left = right
    return answer


def _named(node: ast.expr, at: Situation) -> Value:
    """Return a counter, register or tensor by name."""
    index: str | None = None
    if isinstance(node, ast.Subscript):
        index, node = ast.unparse(node.slice).removeprefix("(").removesuffix(")"), node.value
    names = _path(node)
    core, engine = at.core, at.engine
    quoted = isinstance(node, ast.Constant)
    if not quoted:
        if len(names) > 1 and re.fullmatch(r"nc\d+", names[0], re.IGNORECASE):
            core = int(names.pop(0)[2:])
            if core >= len(at.device.cores):
                raise NotFoundError(f"no core {core}; there are {len(at.device.cores)}")
        if len(names) > 1 and is_engine(names[0]):
            engine = engine_name(names.pop(0))
        plain = {"time": at.time_ps, "events": at.events, "pc": at.pc, "core": at.core}
        if names == ["R"] or names in (["S"], ["E"]):
            return _counter(names[0], core, engine, index, at)
        if len(names) == 1 and names[0] in plain and index is None:
            return plain[names[0]]
    text = ".".join(names) + ("" if index is None else f"[{index}]")
    values = at.tensors.value(text, core).array
    return values if np.asarray(values).dtype.isbuiltin == 1 else np.asarray(values).astype(np.float32)[()]


def _path(node: ast.expr) -> list[str]:
    if isinstance(node, ast.Name):
        return [node.id]
    if isinstance(node, ast.Attribute):
        return [*_path(node.value), node.attr]
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return [node.value]
    raise UsageError(f"{ast.unparse(node)!r} is not a name")


def _counter(name: str, core: int, engine: str, index: str | None, at: Situation) -> int:
    where = at.device.cores[core]
    tables: dict[str, Sequence[int]] = {"S": where.semaphores.values, "E": where.events.values}
    if name == "R":
        found = where.engines.get(engine)
        if found is None:
            raise UsageError("registers of which engine? PE.R[3], Pool.R[0], …")
        tables["R"] = found.registers
    if index is None or not index.isdigit():
        raise UsageError(f"{name}[…] takes one number")
    if int(index) >= len(tables[name]):
        raise NotFoundError(f"no {name}[{index}]; there are 0 to {len(tables[name]) - 1}")
    return int(tables[name][int(index)])
