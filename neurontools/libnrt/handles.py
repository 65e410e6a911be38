"""Handles: numbers that C programs hold as pointers, never followed, never given out twice."""

from __future__ import annotations

import threading
from itertools import count
from typing import Any, TypeVar

from emulator.runtime.errors import StatusError
from formats.nrt.status import NrtStatus

__all__ = ["Handles"]

Kind = TypeVar("Kind")


class Handles:
    """Objects by handle; one that is unknown, gone or of another kind is NRT_INVALID_HANDLE."""

    def __init__(self) -> None:
        # Small numbers are more likely to be somebody's mistake, and a page that nobody has catches who follows one.
        self._next = count(0x1000, 0x10)
        self._objects: dict[int, Any] = {}
        self._lock = threading.Lock()

    def put(self, value: object) -> int:
        """Return a new handle of an object."""
        with self._lock:
            number = next(self._next)
            self._objects[number] = value
        return number

    def get(self, number: int, kind: type[Kind]) -> Kind:
        """Return the object of a handle."""
        found = self._objects.get(number)
        if not isinstance(found, kind):
            raise StatusError(NrtStatus.NRT_INVALID_HANDLE, f"{number:#x} is no {kind.__name__}")
        return found

    def take(self, number: int, kind: type[Kind]) -> Kind:
        """Return the object of a handle, which is none any more."""
        with self._lock:
            found = self.get(number, kind)
            del self._objects[number]
        return found

    def find(self, value: object) -> int:
        """Return the handle of an object; 0 without one."""
        return next((number for number, each in list(self._objects.items()) if each is value), 0)

    def clear(self) -> None:
        """Forget all; the numbers are not used again."""
        with self._lock:
            self._objects.clear()

    def __len__(self) -> int:
        return len(self._objects)
