"""What a word does, apart from where its operands lie: the steps of one binding, to be bound again to other places.

Most words of a program differ from one that came before in addresses only.  An executor is called once for all of them,
with stand-ins for the operands; the arrays that its steps work on are then found again as parts of the stand-ins, and
put together anew for each word.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from operator import itemgetter
from types import BuiltinMethodType, FunctionType, MethodWrapperType
from typing import Any

import numpy as np
import numpy.typing as npt

from emulator.dtypes import Array, Chain, Step, chain, nothing
from formats.named_tuple import NamedTuple

__all__ = ["ACCUMULATORS", "Cut", "Place", "Recipe", "address_of", "items_of", "recipe_of"]

ACCUMULATORS = "accumulators"


class Place(NamedTuple):
    """Memory of an `owner`: `reach` bytes from address `low` on, and again every `stride` bytes, up to `span`.

    `origin` is the address that cuts count from: of an operand, that of its first element.
    """

    owner: Any
    origin: int
    low: int
    reach: int
    stride: int
    span: int

    def holds(self, address: int) -> bool:
        """Return whether an address lies in it."""
        inside = address - self.low
        return 0 <= inside < self.span and inside % self.stride < self.reach


class Cut(NamedTuple):
    """An array as part of what `owner` stands for: an operand's number, a scratch buffer's ("scratch", number, ...)."""

    owner: Any
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: np.dtype[Any]

    def of(self, memory: npt.NDArray[Any], start: int) -> Array:
        """Return the array in a memory, where what it is part of begins at a byte."""
        return np.ndarray(self.shape, self.dtype, memory, start + self.offset, self.strides)


class _Call(NamedTuple):
    """One step: a function, or the name of a method of the first argument; the last arguments go by name."""

    function: Any
    arguments: Callable[[Sequence[Any]], Sequence[Any]]
    names: tuple[str, ...]
    is_method: bool


class _NotMovable(Exception):  # noqa: N818  no error: the word is bound in full each time
    """A step that depends on more than the arrays that can be seen in it."""


def address_of(array: npt.NDArray[Any]) -> int:
    """Return where an array begins in this process."""
    return int(array.__array_interface__["data"][0])


class Recipe:
    """Calls over values: constants first, then arrays to be cut from operands, scratch buffers and accumulators."""

    __slots__ = ("calls", "constants", "cuts")

    def __init__(self, constants: list[Any], cuts: list[Cut], calls: list[_Call]) -> None:
        self.constants, self.cuts, self.calls = constants, cuts, calls

    def bind(self, values: Sequence[Any]) -> Step:
        """Return the effect over the constants and the arrays that were cut, in this order."""
        steps = []
        for function, arguments, names, is_method in self.calls:
            given = arguments(values)
            if names:
                count = len(names)
                steps.append(partial(function, *given[:-count], **dict(zip(names, given[-count:], strict=True))))
            elif is_method:
                steps.append(partial(getattr(given[0], function), *given[1:]))
            else:
                steps.append(partial(function, *given))
        return chain(*steps)


def recipe_of(step: Step, places: Sequence[Place]) -> Recipe | None:
    """Return the recipe of a bound effect; None where its steps do not say all that they depend on."""
    try:
        return _Reader(places).read(step)
    except _NotMovable:
        return None


class _Reader:
    def __init__(self, places: Sequence[Place]) -> None:
        self.places = places
        self.constants: list[Any] = []
        self.cuts: list[Cut] = []
        self.numbers: dict[int, int] = {}  # of arrays by identity: constants from 0 up, cuts from -1 down
        self.alive: list[Any] = []

    def read(self, step: Step) -> Recipe:
        found = [self._call(each) for each in _flat(step)]
        first = len(self.constants)
        calls = [
            _Call(
                function, items_of([number if number >= 0 else first - 1 - number for number in given]), names, method
            )
            for function, given, names, method in found
        ]
        return Recipe(self.constants, self.cuts, calls)

    def _call(self, step: Step) -> tuple[Any, list[int], tuple[str, ...], bool]:
        function: Any = step
        given: tuple[Any, ...] = ()
        named: Mapping[str, Any] = {}
        if isinstance(step, partial):
            function, given, named = step.func, step.args, step.keywords
        owner = getattr(function, "__self__", None)
        if isinstance(owner, np.ndarray):
            if named or not isinstance(function, BuiltinMethodType | MethodWrapperType):
                raise _NotMovable
            return function.__name__, [self._value(each) for each in (owner, *given)], (), True
        if not _stands_alone(function):
            raise _NotMovable
        values = [self._value(each) for each in (*given, *named.values())]
        return function, values, tuple(named), False

    def _value(self, value: Any) -> int:
        known = self.numbers.get(id(value))
        if known is not None:
            return known
        self.alive.append(value)  # so that no other gets its identity
        if isinstance(value, np.ndarray) and (cut := self._cut(value)) is not None:
            self.cuts.append(cut)
            number = -len(self.cuts)
        elif isinstance(value, np.ndarray | np.generic | np.dtype) or _is_plain(value) or _stands_alone(value):
            self.constants.append(value)
            number = len(self.constants) - 1
        else:
            raise _NotMovable
        self.numbers[id(value)] = number
        return number

    def _cut(self, array: Array) -> Cut | None:
        if not array.size:
            raise _NotMovable
        address = address_of(array)
        for place in self.places:
            if place.holds(address):
                return Cut(place.owner, address - place.origin, array.shape, array.strides, array.dtype)
        return None


def items_of(numbers: list[int]) -> Callable[[Any], Any]:
    """Return a function that gives the items of a tuple at these numbers as one."""
    if len(numbers) > 1:
        return itemgetter(*numbers)
    first = numbers[0] if numbers else 0
    return itemgetter(slice(first, first + len(numbers)))


def _flat(step: Step) -> list[Step]:
    if step is nothing:
        return []
    if isinstance(step, Chain):
        return [part for each in step.steps for part in _flat(each)]
    return [step]


def _is_plain(value: Any) -> bool:
    """Return whether a value holds no array."""
    if isinstance(value, tuple):
        return all(_is_plain(each) for each in value)
    return value is None or value is Ellipsis or isinstance(value, int | float | str | bytes | slice | type)


def _stands_alone(function: Any) -> bool:
    """Return whether a function works on nothing but its arguments."""
    if isinstance(function, np.ufunc | type(np.copyto)):
        return True
    if isinstance(function, BuiltinMethodType):
        return not isinstance(function.__self__, np.ndarray)
    if not isinstance(function, FunctionType):
        return False
    cells = [cell.cell_contents for cell in function.__closure__ or ()]
    return all(_is_plain(each) or isinstance(each, np.generic) or _stands_alone(each) for each in cells)
