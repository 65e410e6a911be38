"""Keep the garbage collector out of work that makes millions of objects and no cycles."""

from __future__ import annotations

import gc
from contextlib import ContextDecorator

__all__ = ["without_collection"]


def without_collection() -> _Paused:
    """Do not look for cycles in the block: each look would go through everything made so far."""
    return _Paused()


class _Paused(ContextDecorator):
    """A block without collections, or the calls of a function."""

    def _recreate_cm(self) -> _Paused:
        return _Paused()  # a function that it decorates may be called by several threads

    def __enter__(self) -> None:
        self._is_on = gc.isenabled()
        gc.disable()

    def __exit__(self, *raised: object) -> None:
        if self._is_on:
            gc.enable()
