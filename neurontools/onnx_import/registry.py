"""The table of ONNX operators: what each becomes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from formats.errors import FormatError, UnsupportedError
from formats.hlo import PrimitiveType
from neurontools.onnx_import.builder import Builder, Tensor

__all__ = ["OPERATORS", "Lowering", "Node", "element_type", "number_of", "operator"]


class Node:
    """One node of a graph: its attributes, and its inputs as tensors; an input that is left out is None."""

    def __init__(
        self,
        to: Builder,
        op: str,
        version: int,
        inputs: Sequence[Tensor | None],
        attributes: dict[str, Any],
        outputs: int,
        run: Callable[[Any, Sequence[Tensor | None]], list[Tensor]],
    ) -> None:
        self.to, self.op, self.version, self.inputs = to, op, version, list(inputs)
        self.attributes, self.outputs = attributes, outputs
        self.run = run
        """Lower a subgraph with these inputs."""

    def get(self, name: str, default: Any = None) -> Any:
        """Return an attribute."""
        return self.attributes.get(name, default)

    def required(self, name: str) -> Any:
        """Return an attribute that must be there."""
        if name not in self.attributes:
            raise FormatError(f"{self.op}: attribute {name} is missing")
        return self.attributes[name]

    def choice(self, name: str, default: str, *known: str) -> str:
        """Return an attribute that names one of a few ways; a later version of ONNX may add others."""
        found = str(self.attributes.get(name, default))
        if found not in {default, *known}:
            raise UnsupportedError(f"{self.op} with {name} {found!r} is not modelled")
        return found

    def input(self, number: int) -> Tensor:
        """Return an input that must be there."""
        found = self.optional(number)
        if found is None:
            raise FormatError(f"{self.op}: input {number} is missing")
        return found

    def optional(self, number: int) -> Tensor | None:
        """Return an input, None where it was left out."""
        return self.inputs[number] if number < len(self.inputs) else None

    def static(self, number: int) -> np.ndarray[Any, Any] | None:
        """Return the value of an input that decides shapes."""
        found = self.optional(number)
        return None if found is None else self.to.static(found)

    def numbers(self, name: str, number: int) -> list[int] | None:
        """Return whole numbers that are an attribute or, in newer versions, an input."""
        if name in self.attributes:
            return [int(each) for each in self.attributes[name]]
        found = self.static(number)
        return None if found is None else [int(each) for each in found.reshape(-1)]


Lowering = Callable[[Node], "Tensor | tuple[Tensor, ...]"]
OPERATORS: dict[str, Lowering] = {}


def operator(*names: str) -> Callable[[Lowering], Lowering]:
    """Enter a lowering in the table."""

    def enter(function: Lowering) -> Lowering:
        for name in names:
            OPERATORS[name] = function
        return function

    return enter


# Numbers of ONNX's TensorProto.DataType; without 0 (no type) and 8 (texts).
# fmt: off
_TYPES = {
    1: "F32", 2: "U8", 3: "S8", 4: "U16", 5: "S16", 6: "S32", 7: "S64", 9: "PRED", 10: "F16", 11: "F64", 12: "U32",
    13: "U64", 14: "C64", 15: "C128", 16: "BF16", 17: "F8E4M3FN", 18: "F8E4M3FNUZ", 19: "F8E5M2", 20: "F8E5M2FNUZ",
    21: "U4", 22: "S4", 23: "F4E2M1FN", 24: "F8E8M0FNU", 25: "U2", 26: "S2",
}
# fmt: on


def element_type(number: int) -> PrimitiveType:
    """Return the element type of ONNX's number.  Raises UnsupportedError for texts and the like."""
    if number not in _TYPES:
        raise UnsupportedError(f"elements of ONNX's type {number} are not modelled")
    return PrimitiveType[_TYPES[number]]


def number_of(kind: PrimitiveType) -> int:
    """Return ONNX's number of an element type."""
    return next(number for number, name in _TYPES.items() if name == kind.name)
