"""What a walk over objects read of them, so that the next one can tell whether it would read the same.

Everything is compared by identity, in lists that C goes through: equal is not the same, as 2 and 2.0 are not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sized
from itertools import chain, repeat
from operator import attrgetter, is_
from types import CellType, FunctionType
from typing import Any

import numpy as np

__all__ = ["Watch"]

_ABSENT = object()
_LARGEST_ARRAY = 10_000  # bytes
_OF_FUNCTION = attrgetter("__code__", "__defaults__", "__kwdefaults__", "__qualname__", "__module__", "__dict__")
_OF_CLASS = attrgetter("__bases__", "__qualname__", "__class__")
_CONTENTS = attrgetter("cell_contents")


class Watch:
    """Notes of what was read, each made before it is read; `is_same` tells whether all of it is as it was.

    `is_repeatable` turns False where something was read that cannot be compared.
    """

    def __init__(self) -> None:
        self.is_repeatable = True
        self._functions: list[FunctionType] = []
        self._parts: list[Any] = []
        self._classes: list[type] = []
        self._class_parts: list[Any] = []
        self._cells: list[CellType] = []
        self._cell_contents: list[Any] = []
        self._objects: list[Any] = []  # with a dictionary each
        self._kinds: list[type] = []
        self._dictionaries: list[Any] = []
        self._rows: list[Any] = []  # lists, sets, and views of keys and values of dictionaries
        self._lengths: list[int] = []
        self._items: list[Any] = []
        self._spaces: dict[int, tuple[Mapping[str, Any], dict[str, Any]]] = {}
        self._answers: list[tuple[Callable[[], Any], Any]] = []

    def function(self, function: FunctionType) -> None:
        """Note a function: its code, defaults and names, the cells of its closure, and which attributes it has."""
        self._functions.append(function)
        self._parts.extend(_OF_FUNCTION(function))
        try:
            for cell in function.__closure__ or ():
                self._cell_contents.append(cell.cell_contents)
                self._cells.append(cell)
        except ValueError:  # nothing yet
            self.is_repeatable = False

    def class_(self, cls: type) -> None:
        """Note a class: its bases, its own class, its name and what it defines."""
        self._classes.append(cls)
        self._class_parts.extend(_OF_CLASS(cls))
        self.dictionary(vars(cls))

    def instance(self, value: Any) -> None:
        """Note the class of an object and the attributes in its dictionary."""
        if hasattr(value, "__dict__"):
            self._objects.append(value)
            self._kinds.append(type(value))
            self._dictionaries.append(value.__dict__)
            self.dictionary(value.__dict__)
        else:
            self.answer(lambda: type(value), type(value))

    def dictionary(self, value: Mapping[Any, Any]) -> None:
        """Note the keys and the values of a dictionary, in order."""
        self.row(value.keys())
        self.row(value.values())

    def row(self, value: Iterable[Any]) -> None:
        """Note the items of a list, of a set, or of a view of a dictionary."""
        items = [*value]
        self._rows.append(value)
        self._lengths.append(len(items))
        self._items.extend(items)

    def array(self, value: np.ndarray[Any, Any] | np.generic) -> None:
        """Note the elements of an array, if they are few enough to be compared each time."""
        if isinstance(value, np.ndarray) and value.nbytes > _LARGEST_ARRAY:
            self.is_repeatable = False
        elif isinstance(value, np.ndarray):
            self.answer(lambda: _of_array(value), _of_array(value))

    def names(self, space: Mapping[str, Any], names: Iterable[str]) -> None:
        """Note what some names stand for among the variables of a module, if for anything."""
        _, held = self._spaces.setdefault(id(space), (space, {}))
        for name in names:
            if name not in held:
                held[name] = space.get(name, _ABSENT)

    def answer(self, ask: Callable[[], Any], answer: Any) -> None:
        """Note what a function returns; equal is enough there."""
        self._answers.append((ask, answer))

    def is_same(self) -> bool:
        """Return whether everything that was noted is what it was."""
        try:
            return self.is_repeatable and self._is_same()
        except (AttributeError, RuntimeError, ValueError):  # gone, or changed while it is looked at
            return False

    def _is_same(self) -> bool:
        rows: list[Sized] = self._rows
        return (
            _are(chain.from_iterable(map(_OF_FUNCTION, self._functions)), self._parts)
            and _are(map(_CONTENTS, self._cells), self._cell_contents)
            and _are(map(type, self._objects), self._kinds)
            and _are(map(_DICTIONARY, self._objects), self._dictionaries)
            and _are(chain.from_iterable(map(_OF_CLASS, self._classes)), self._class_parts)
            and [*map(len, rows)] == self._lengths
            and _are(chain.from_iterable(self._rows), self._items)
            and all(_are(map(space.get, held, repeat(_ABSENT)), held.values()) for space, held in self._spaces.values())
            and all(ask() == answer for ask, answer in self._answers)
        )


_DICTIONARY = attrgetter("__dict__")


def _of_array(value: np.ndarray[Any, Any]) -> tuple[object, ...]:
    return value.dtype.str, value.dtype.type, value.shape, value.tobytes()


def _are(found: Iterable[Any], held: Iterable[Any]) -> bool:
    """Return whether things are the very ones that are held, of which there are as many."""
    return all(map(is_, found, held))
