"""What the first generation allowed and this package refuses, with the kernel's line."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any

from neurontools.nki.errors import UnsupportedError
from neurontools.nki.tracer import kernel_place
from neurontools.nki.unknown import UnknownNameError, meant

__all__ = ["HARMLESS", "refuse_unknown", "unknown", "unsupported"]


def unsupported(what: str, instead: str = "") -> UnsupportedError:
    """Return the error for what the first generation allowed and this package does not, with the kernel line."""
    return UnsupportedError(f"neuronxcc.nki: {what} is not supported{instead}, at {kernel_place()}")


# Keywords that change neither results nor where they go.
HARMLESS = frozenset({"lazy_initialization", "max_free_vec_size", "name"})


def refuse_unknown(space: dict[str, Any]) -> None:
    """Make every function of a module that takes `**unused` refuse keywords that would change what it does."""
    for name, function in list(space.items()):
        if inspect.isfunction(function) and function.__module__ == space["__name__"]:
            parameters = inspect.signature(function).parameters
            if "unused" in parameters:
                space[name] = _strict(function, frozenset(parameters) | HARMLESS)


def unknown(module: str, name: str, known: Iterable[str], present: ModuleType) -> AttributeError:
    """Return the error for a name that a module of this package lacks."""
    if name.startswith("__"):
        return AttributeError(f"module {module!r} has no attribute {name!r}")
    said = meant(name, known)
    if name in vars(present):
        said = f", which is of the present generation ({present.__name__.removeprefix('neurontools.')}){said}"
    return UnknownNameError(f"{module} has no {name} in this toolkit{said}, at {kernel_place()}")


def _strict(function: Callable[..., Any], known: frozenset[str]) -> Callable[..., Any]:
    @functools.wraps(function)
    def strict(*args: Any, **kwargs: Any) -> Any:
        for name in kwargs:
            if name not in known:
                present = " as in the present generation (here calls return a tile)" if name == "dst" else ""
                raise unsupported(
                    f"{function.__name__} with {name}={present}", "" if present else meant(name, known - {"unused"})
                )
        return function(*args, **kwargs)

    return strict
