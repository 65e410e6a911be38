"""Documented ISA names that are not modelled yet: they exist, and say so when called."""

from __future__ import annotations

from typing import Any, NoReturn

from neurontools.nki.objects import NKIObject
from neurontools.nki.views import unsupported

LATER = (
    "register_alloc",
    "register_load",
    "register_move",
    "register_store",
)

__all__ = [*LATER, "VirtualRegister"]  # noqa: PLE0604  the names are made below


class VirtualRegister(NKIObject):
    """A register whose value only the device knows; not modelled yet."""

    __slots__ = ()

    def __init__(self, state: Any = None, frozen: bool = False) -> None:
        raise unsupported("nisa.VirtualRegister")


def _make(name: str) -> Any:
    def later(*args: Any, **kwargs: Any) -> NoReturn:
        raise unsupported(f"nisa.{name}")

    later.__name__ = later.__qualname__ = name
    later.__doc__ = f"Refuse: nisa.{name} is not modelled yet."
    return later


globals().update({name: _make(name) for name in LATER})
