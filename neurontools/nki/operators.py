"""Operators as kernels use them: tokens of ISA calls (`op=nl.add`) that are also callable (`nl.add(a, b)`)."""

from __future__ import annotations

from typing import Any

from formats.isa import ActivationFunction, AluOp
from neurontools.nki.operations import OPERATIONS

__all__ = ["OPERATORS", "BinaryOperator", "Operator", "UnaryOperator", "operator_of"]

OPERATORS: dict[str, Operator] = {}


class Operator:
    """An operator by its `nl` name.

    `alu` is its ALU code or None, `function` the name of its activation function or None, `kind` one of arithmetic,
    comparison, logical and bitvec, `since` the first generation that has it.
    """

    __slots__ = ("alu", "function", "kind", "name", "since")

    def __init__(
        self, name: str, alu: str | None = None, function: str | None = None, kind: str = "arithmetic", since: int = 2
    ) -> None:
        self.name = name
        self.alu = AluOp[alu] if alu else None
        self.function = ActivationFunction[function.upper()].name.lower() if function else None
        self.kind = kind
        self.since = since
        OPERATORS[name] = self

    def __repr__(self) -> str:
        return f"nl.{self.name}"

    @property
    def __name__(self) -> str:
        return self.name


class UnaryOperator(Operator):
    """An operator of one tile."""

    __slots__ = ()

    def __call__(self, x: Any, dtype: Any = None) -> Any:
        """Return a new SBUF tile with the operator applied to each element."""
        return OPERATIONS["unary"](self, x, dtype)


class BinaryOperator(Operator):
    """An operator of two tiles, or a tile and a number."""

    __slots__ = ()

    def __call__(self, x: Any, y: Any, dtype: Any = None) -> Any:
        """Return a new SBUF tile with the operator applied to each pair of elements."""
        return OPERATIONS["binary"](self, x, y, dtype)


for _name, _alu in {
    "add": "ADD",
    "subtract": "SUBTRACT",
    "multiply": "MULTIPLY",
    "divide": "DIVIDE",
    "maximum": "MAX",
    "minimum": "MIN",
    "power": "POWER",
    "mod": "MOD",
    "fmod": "FMOD",
}.items():
    BinaryOperator(_name, _alu)
BinaryOperator("abs_max", "ABS_MAX", since=4)
BinaryOperator("abs_min", "ABS_MIN", since=4)
for _name in ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal"):
    BinaryOperator(_name, _name.upper(), kind="comparison")
for _name in ("logical_and", "logical_or", "logical_xor"):
    BinaryOperator(_name, _name.upper(), kind="logical")
for _name in ("bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift"):
    BinaryOperator(_name, _name.upper(), kind="bitvec")
UnaryOperator("invert", "INVERT", kind="bitvec")
UnaryOperator("logical_not", "LOGICAL_NOT", kind="logical")
UnaryOperator("negative", "NEGATIVE")
for _name in ("abs", "square", "relu", "sign", "reciprocal", "rsqrt"):
    UnaryOperator(_name, _name.upper(), _name)
for _name in (
    "exp",
    "log",
    "sqrt",
    "tanh",
    "sigmoid",
    "gelu",
    "gelu_dx",
    "gelu_apprx_tanh",
    "gelu_apprx_sigmoid",
    "gelu_apprx_sigmoid_dx",
    "silu",
    "silu_dx",
    "softplus",
    "mish",
    "erf",
    "erf_dx",
    "sin",
    "cos",
    "tan",
    "arctan",
    "floor",
    "ceil",
    "trunc",
    "copy",
):
    UnaryOperator(_name, function=_name)
Operator("bypass", "BYPASS")
# tokens that name no function of their own: `activation` and `tensor_partition_reduce` know what they mean
Operator("prelu")
Operator("average")

# Names that NumPy ufuncs and the reductions of `nl` go by, where a kernel passes one as `op=`.
_ALIASES = {
    "max": "maximum",
    "amax": "maximum",
    "min": "minimum",
    "amin": "minimum",
    "sum": "add",
    "prod": "multiply",
    "true_divide": "divide",
    "remainder": "mod",
    "absolute": "abs",
    "all": "logical_and",
    "any": "logical_or",
}


def operator_of(value: Any) -> Operator | None:
    """Return the operator that a token, a NumPy function or an `nl` reduction stands for, or None."""
    if isinstance(value, Operator):
        return value
    name = getattr(value, "__name__", None)
    if not isinstance(name, str) or not callable(value):
        return None
    return OPERATORS.get(_ALIASES.get(name, name))
