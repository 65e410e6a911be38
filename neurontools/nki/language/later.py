"""Documented `nl` names that are not modelled yet: they exist, and say so when called."""

from __future__ import annotations

from typing import Any, NoReturn

from neurontools.nki.views import unsupported

LATER = ("dynamic_range", "fori_loop", "while_loop")

__all__ = [*LATER]  # noqa: PLE0604  the names are made below


def _make(name: str) -> Any:
    def later(*args: Any, **kwargs: Any) -> NoReturn:
        raise unsupported(f"nl.{name}")

    later.__name__ = later.__qualname__ = name
    later.__doc__ = f"Refuse: nl.{name} is not modelled yet."
    return later


globals().update({name: _make(name) for name in LATER})
