"""Operators of Python and of NumPy's numbers on tiles of the first generation: each is a call of `nl`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from neurontools.nki import language as nl
from neurontools.nki.unanswered import of_numpy, refuse

__all__ = ["INSTEAD", "give_operators"]

# What tensors of NumPy and of frameworks have, and tiles of this generation lack.
INSTEAD = {"T": "nl.transpose(tile)", "copy": "nl.copy(tile)", "flatten": "reshape(shape)", "fill": "tile[...] = value",
            "item": "nl.device_print(prefix, tile): values exist once the device runs", "max": "nl.max(tile, axis)",
            "mean": "nl.mean(tile, axis)", "min": "nl.min(tile, axis)", "permute": "index expressions of another order",
            "sum": "nl.sum(tile, axis)", "to": "tile.astype(dtype)", "transpose": "nl.transpose(tile)",
            "squeeze": "reshape(shape)", "unsqueeze": "expand_dims(axis)", "size": "the product of its shape",
            "ap": "index expressions: nl.arange, nl.mgrid"}  # fmt: skip

_UNARY = {"neg": "negative", "abs": "abs", "invert": "invert"}
_BINARY = {
    "add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide", "pow": "power", "mod": "mod",
    "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor", "lshift": "left_shift", "rshift": "right_shift",
}  # fmt: skip
_COMPARED = {"lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal", "eq": "equal", "ne": "not_equal"}


def give_operators(tiles: Any, apply: Callable[..., Any]) -> None:
    """Give a class of tiles its operators; `apply(function, mask, *operands)` makes a new tile of some."""

    def binary(name: str, swapped: bool = False) -> Callable[[Any, Any], Any]:
        def method(self: Any, other: Any) -> Any:
            operands: tuple[Any, ...] = (other, self) if swapped else (self, other)
            if name == "divide" and all(one.dtype.is_int for one in operands if isinstance(one, tiles)):
                # True division, as NumPy has it; `nl.divide` rounds to the operands' type.
                operands = tuple(one.astype(nl.float32) if isinstance(one, tiles) else one for one in operands)
            return apply(getattr(nl, name), None, *operands)

        return method

    def compared(name: str) -> Callable[[Any, Any], Any]:
        def method(self: Any, other: Any) -> Any:
            if isinstance(other, (int, float, np.number, tiles)):
                return apply(getattr(nl, name), None, self, other)
            return NotImplemented

        return method

    def unary(name: str) -> Callable[[Any], Any]:
        return lambda self: apply(getattr(nl, name), None, self)

    for operation, name in _BINARY.items():
        setattr(tiles, f"__{operation}__", binary(name))
        setattr(tiles, f"__r{operation}__", binary(name, swapped=True))
    for operation, name in _COMPARED.items():
        setattr(tiles, f"__{operation}__", compared(name))
    for operation, name in _UNARY.items():
        setattr(tiles, f"__{operation}__", unary(name))
    tiles.__array_ufunc__ = lambda self, ufunc, method, *inputs, **keywords: of_numpy(
        tiles, ufunc, method, inputs, keywords
    )
    refuse(tiles)
