"""What each function of libnrt does, by name; the rest of the package has them by subject."""

from __future__ import annotations

from collections.abc import Callable

from neurontools.libnrt.library import Call

__all__ = ["CALLS", "does"]

CALLS: dict[str, Call] = {}


def does(*names: str) -> Callable[[Call], Call]:
    """Return a decorator that names the functions of libnrt that a function of Python stands for."""

    def note(work: Call) -> Call:
        for name in names:
            assert name not in CALLS, name
            CALLS[name] = work
        return work

    return note
