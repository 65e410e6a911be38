"""What Python and NumPy ask of a tensor that a kernel cannot answer while it is traced: what to write instead."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from neurontools.nki.errors import NkiValidationError
from neurontools.nki.tracer import kernel_place
from neurontools.nki.unknown import no_values

__all__ = ["INSTEAD", "UnansweredError", "elements", "of_numpy", "refuse"]

INSTEAD: Mapping[str, tuple[str, str]] = {
    "lt": ("<", "nl.less(a, b)"),
    "le": ("<=", "nl.less_equal(a, b)"),
    "gt": (">", "nl.greater(a, b)"),
    "ge": (">=", "nl.greater_equal(a, b)"),
    "mod": ("%", "nl.mod(a, b)"),
    "rmod": ("%", "nl.mod(a, b)"),
    "floordiv": ("//", "nl.floor(nl.divide(a, b))"),
    "rfloordiv": ("//", "nl.floor(nl.divide(a, b))"),
    "divmod": ("divmod", "nl.mod(a, b) and nl.floor(nl.divide(a, b))"),
    "matmul": ("@", "nl.matmul(a, b)"),
    "rmatmul": ("@", "nl.matmul(a, b)"),
    "invert": ("~", "nl.invert(a)"),
    "contains": ("in", "nl.equal(a, b)"),
    "iter": ("iteration or unpacking", "x[i] for each i of nl.affine_range(x.shape[0])"),
    "abs": ("abs()", "nl.abs(a)"),
    "round": ("round()", "nl.floor, nl.ceil or nl.trunc"),
}
_NUMBERS = {"float": "float()", "int": "int()", "index": "integer", "complex": "complex()"}
_UFUNCS = {
    "add": "add", "subtract": "sub", "multiply": "mul", "divide": "truediv", "true_divide": "truediv", "power": "pow",
    "bitwise_and": "and", "bitwise_or": "or", "bitwise_xor": "xor", "left_shift": "lshift", "right_shift": "rshift",
    "less": "lt", "less_equal": "le", "greater": "gt", "greater_equal": "ge", "equal": "eq", "not_equal": "ne",
}  # fmt: skip
# how NumPy writes a comparison whose sides it has changed over
_TURNED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "eq": "eq", "ne": "ne"}


class UnansweredError(NkiValidationError, TypeError):
    """Say that a tensor does not answer an operator, a conversion or a function of NumPy, and what does."""


def _name(tensor: Any) -> str:
    return str(getattr(tensor, "name", None) or "tile")


def _refused(operator: str, instead: str) -> Callable[..., Any]:
    def method(self: Any, *others: Any) -> Any:
        raise UnansweredError(f"{_name(self)}: an NKI tensor does not take {operator}; write {instead}, "
                              f"at {kernel_place()}")  # fmt: skip

    return method


def _no_number(what: str) -> Callable[..., Any]:
    def method(self: Any) -> Any:
        raise UnansweredError(f"{no_values(_name(self))}; there is no {what} of it, at {kernel_place()}")

    return method


def _formatted(self: Any, spec: str) -> str:
    """Refuse a format of numbers."""
    if spec:
        raise UnansweredError(f"{no_values(_name(self))}; there is no {spec!r} of it, at {kernel_place()}")
    return str(self)


def refuse(tensors: type) -> None:
    """Make a class of tensors answer each operator and conversion that it lacks with what to write instead."""
    for name, (operator, instead) in INSTEAD.items():
        if name not in ("lt", "le", "gt", "ge") and hasattr(tensors, f"__{name}__"):
            continue
        if f"__{name}__" not in vars(tensors):
            setattr(tensors, f"__{name}__", _refused(operator, instead))
    for name, what in _NUMBERS.items():
        setattr(tensors, f"__{name}__", _no_number(what))
    setattr(tensors, "__format__", _formatted)  # noqa: B010  set like its sisters above


def elements(tensor: Any, other: Any, operator: str, instead: str) -> Any:
    """Refuse to compare elements, which `is` would answer with one False; what is no operand is just another thing."""
    if isinstance(other, (int, float)) or hasattr(other, "dtype"):
        raise UnansweredError(f"{_name(tensor)}: {operator} compares no elements of an NKI tensor; write {instead}, or "
                              f"`is` for the same tensor, at {kernel_place()}")  # fmt: skip
    return NotImplemented


def of_numpy(tensors: type, ufunc: Any, method: str, inputs: tuple[Any, ...], keywords: Mapping[str, Any]) -> Any:
    """Return what an operator of NumPy's numbers gives with a tensor; its other functions are refused by name."""
    name = _UFUNCS.get(ufunc.__name__)
    if name is not None and method == "__call__" and len(inputs) == 2 and not keywords:
        first, second = inputs
        if isinstance(first, tensors) and not getattr(second, "shape", ()):
            return getattr(first, f"__{name}__")(second)
        if isinstance(first, tensors) and isinstance(second, tensors):
            return getattr(first, f"__{name}__")(second)
        if not getattr(first, "shape", ()):
            return getattr(second, f"__{_TURNED[name]}__" if name in _TURNED else f"__r{name}__")(first)
    found = next(one for one in inputs if isinstance(one, tensors))
    raise UnansweredError(f"{no_values(_name(found))}; np.{ufunc.__name__} takes none, at {kernel_place()}")
