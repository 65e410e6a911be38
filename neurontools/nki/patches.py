"""What others have put in place of the front end's own functions: a kernel that reaches it builds another file."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from types import FunctionType, ModuleType
from typing import Any

__all__ = ["is_replaced", "replaced_names"]

# Everything between a kernel and its file. Not the module that carries out launches, which no kernel calls: tools and
# tests hook in there.
_PARTS = ("neurontools.builder", "neurontools.neuronxcc", "neurontools.nki", "neurontools.builder.trace")
_CALLERS = frozenset({"neurontools.nki.launch"})
_OWN = frozenset({"formats", "neurontools", "neuronxcc", "nki", "numpy", "ml_dtypes"})
_STAND_INS = "unittest"  # mocks; the rest of the standard library is what modules import

Ids = tuple[int, ...]
# By module: the objects that its names and the names of its classes stood for, and what was found among them.
_known: dict[str, tuple[Ids, list[Ids], list[Mapping[str, Any]], list[tuple[str, Any]]]] = {}


def is_replaced(value: object) -> bool:
    """Return whether a function or class that stands in a package of ours or in NumPy comes from somewhere else."""
    if not callable(value):
        return False
    home = getattr(value, "__module__", None) if isinstance(value, (FunctionType, type)) else type(value).__module__
    package = home.partition(".")[0] if isinstance(home, str) else ""
    return package not in _OWN and (package == _STAND_INS or package not in sys.stdlib_module_names)


def replaced_names() -> list[tuple[str, Any]]:
    """Return (name, value) of each function, class or method of the front end that is not its own; usually none."""
    found = []
    for name, module in sys.modules.copy().items():
        if name.startswith(_PARTS) and name not in _CALLERS and isinstance(module, ModuleType):
            found += _of_module(name, vars(module))
    return sorted(found, key=lambda one: one[0])


def _of_module(name: str, names: dict[str, Any]) -> list[tuple[str, Any]]:
    """Look at a module again only where one of its names stands for another object than the last time."""
    # Identities and not values: most launches change nothing, and this runs before each of them.
    ids = tuple(map(id, names.values()))
    known = _known.get(name)
    if known is not None and known[0] == ids and known[1] == [tuple(map(id, one.values())) for one in known[2]]:
        return known[3]
    classes = {one: vars(value) for one, value in names.items() if isinstance(value, type) and value.__module__ == name}
    found = [(f"{name}.{one}", value) for one, value in names.items() if is_replaced(value)]
    for owner, its in classes.items():
        found += [(f"{name}.{owner}.{one}", value) for one, value in its.items() if is_replaced(value)]
    spaces: list[Mapping[str, Any]] = list(classes.values())
    _known[name] = ids, [tuple(map(id, one.values())) for one in spaces], spaces, found
    return found
