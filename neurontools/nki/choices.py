"""Parameters of kernels that somebody else chooses: what a kernel declares, and what is chosen for it.

A search gives values by name; every launch of a kernel that has a parameter of that name, and is called without it,
gets the value.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from neurontools.nki.errors import NkiValidationError

__all__ = ["choose", "declared", "tunable", "unused", "with_choices"]

K = TypeVar("K", bound=Callable[..., Any])

_declared: dict[str, tuple[Any, ...]] = {}
_chosen: dict[str, Any] = {}
_used: set[str] = set()


def tunable(**choices: Iterable[Any]) -> Callable[[K], K]:
    """Declare which values parameters of a kernel can have, for `neurontools tune`; the kernel stays as it is.

    The decorator stands above or below `nki.jit`.  Raises NkiValidationError for a name that is no parameter, and for
    one without values.
    """

    def declare(kernel: K) -> K:
        names = inspect.signature(getattr(kernel, "function", kernel)).parameters
        for name, values in choices.items():
            if name not in names:
                what = getattr(kernel, "__name__", "the kernel")
                raise NkiValidationError(f"{what} has no parameter {name!r} to tune; it has {', '.join(names)}")
            _declared[name] = tuple(values)
            if not _declared[name]:
                raise NkiValidationError(f"parameter {name!r} is to be tuned over no values")
        return kernel

    return declare


def declared() -> dict[str, tuple[Any, ...]]:
    """Return the values of every parameter that a kernel of this process declares."""
    return dict(_declared)


def choose(values: Mapping[str, Any]) -> None:
    """Choose values for the launches that follow, instead of those chosen before."""
    _chosen.clear()
    _chosen.update(values)
    _used.clear()


def unused() -> set[str]:
    """Return the names that no launch has had a parameter for since they were chosen."""
    return set(_chosen) - _used


def with_choices(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """Return the keywords of a call with what was chosen and is not given."""
    if not _chosen:
        return kwargs
    names = list(inspect.signature(function).parameters)
    given = {*names[: len(args)], *kwargs}
    mine = {name: value for name, value in _chosen.items() if name in names}
    _used.update(mine)
    return {**{name: value for name, value in mine.items() if name not in given}, **kwargs}
