"""What the first generation allowed and this package refuses, with the kernel's line."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from neurontools.nki.errors import UnsupportedError
from neurontools.nki.tracer import kernel_place

__all__ = ["refuse_unknown", "unsupported"]


def unsupported(what: str) -> UnsupportedError:
    """Return the error for what the first generation allowed and this package does not, with the kernel line."""
    return UnsupportedError(f"neuronxcc.nki: {what} is not supported, at {kernel_place()}")


# Keywords that change neither results nor where they go.
_HARMLESS = frozenset({"lazy_initialization", "max_free_vec_size", "name"})


def refuse_unknown(space: dict[str, Any]) -> None:
    """Make every function of a module that takes `**unused` refuse keywords that would change what it does."""
    for name, function in list(space.items()):
        if inspect.isfunction(function) and function.__module__ == space["__name__"]:
            parameters = inspect.signature(function).parameters
            if "unused" in parameters:
                space[name] = _strict(function, frozenset(parameters) | _HARMLESS)


def _strict(function: Callable[..., Any], known: frozenset[str]) -> Callable[..., Any]:
    @functools.wraps(function)
    def strict(*args: Any, **kwargs: Any) -> Any:
        for name in kwargs:
            if name not in known:
                raise unsupported(f"{function.__name__} with {name}=")
        return function(*args, **kwargs)

    return strict
