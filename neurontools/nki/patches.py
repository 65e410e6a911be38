"""What others have put in place of the front end's own functions: a kernel that reaches it builds another file."""

from __future__ import annotations

import sys
from collections.abc import ValuesView
from types import FunctionType, ModuleType
from typing import Any

from formats.errors import NeuronError
from formats.named_tuple import NamedTuple

__all__ = ["is_replaced", "replaced_names"]

# Everything between a kernel and its file. Not the module that carries out launches, which no kernel calls: tools and
# tests hook in there.
_PARTS = ("neurontools.builder", "neurontools.neuronxcc", "neurontools.nki", "neurontools.builder.trace")
_CALLERS = frozenset({"neurontools.nki.launch"})
_OWN = frozenset({"formats", "neurontools", "neuronxcc", "nki", "numpy", "ml_dtypes"})
_STAND_INS = "unittest"  # mocks; the rest of the standard library is what modules import


class _Known(NamedTuple):
    """What the names of a module and of its classes stood for, and what was found among them.

    `spaces` are views of their dictionaries, which have what they hold now.
    """

    spaces: list[ValuesView[Any]]
    held: list[list[Any]]
    found: list[tuple[str, Any]]


class _Last(NamedTuple):
    """The names of all modules that there were the last time, those that count, and what was known of these."""

    names: list[Any]
    counting: list[str]
    modules: list[Any]
    known: _Known


_known: dict[str, _Known] = {}
_last: list[_Last] = []  # one at most; a list, since a variable of this module that changed would be looked at again


def is_replaced(value: object) -> bool:
    """Return whether a function or class that stands in a package of ours or in NumPy comes from somewhere else."""
    if not callable(value):
        return False
    home = getattr(value, "__module__", None) if isinstance(value, (FunctionType, type)) else type(value).__module__
    package = home.partition(".")[0] if isinstance(home, str) else ""
    return package not in _OWN and (package == _STAND_INS or package not in sys.stdlib_module_names)


def replaced_names() -> list[tuple[str, Any]]:
    """Return (name, value) of each function, class or method of the front end that is not its own; usually none."""
    # Most launches change nothing, and this runs before each of them, over thousands of names.
    names = list(sys.modules)
    for last in _last:
        now: list[list[Any]] = [names, [*map(sys.modules.get, last.counting)], *map(list, last.known.spaces)]
        if _are(now, [last.names, last.modules, *last.known.held]):
            return last.known.found
    every = _Known([], [], [])
    counting = [one for one in names if one.startswith(_PARTS) and one not in _CALLERS]
    modules = [*map(sys.modules.get, counting)]
    for name, module in zip(counting, modules, strict=True):
        if isinstance(module, ModuleType):
            its = _of_module(name, vars(module))
            every.spaces.extend(its.spaces)
            every.held.extend(its.held)
            every.found.extend(its.found)
    every.found.sort(key=lambda one: one[0])
    _last[:] = [_Last(names, counting, modules, every)]
    return every.found


def _of_module(name: str, names: dict[str, Any]) -> _Known:
    """Look at a module again only where one of its names stands for another object than the last time."""
    known = _known.get(name)
    if known is not None and _are([list(names.values()), *map(list, known.spaces[1:])], known.held):
        return known
    classes = {one: vars(value) for one, value in names.items() if isinstance(value, type) and value.__module__ == name}
    found = [(f"{name}.{one}", value) for one, value in names.items() if is_replaced(value)]
    for owner, its in classes.items():
        found += [(f"{name}.{owner}.{one}", value) for one, value in its.items() if is_replaced(value)]
    spaces = [names.values(), *(its.values() for its in classes.values())]
    _known[name] = _Known(spaces, [*map(list, spaces)], found)
    return _known[name]


def _are(found: list[list[Any]], held: list[list[Any]]) -> bool:
    """Return whether two lists of lists have the same objects.

    Lists compare by identity first, so that nothing of ours is asked; something new that refuses to be compared is
    something else.
    """
    try:
        return found == held
    except (NeuronError, TypeError, ValueError):
        return False
