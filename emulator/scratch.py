"""Intermediate arrays of executors, shared by all words of a core.

A word's effect runs from start to end before another begins, so what it needs in between can lie in the same buffers as
what every other word needs: memory stays small however long the program is, and the buffers stay in the cache.
"""

from __future__ import annotations

import threading
from math import prod
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

__all__ = ["Arena", "arena_of", "lend", "scratch", "scratch_apart", "taking_from"]

_LINE = 64  # bytes of a cache line
_SMALLEST = 1 << 12  # bytes of a new buffer, at least
# Buffers that begin at the same offset of a page disturb each other in the first-level cache: each starts lines later.
_STAGGER = 5 * _LINE
_STAGGERED = 11


class Arena:
    """Numbered buffers; the n-th array a word asks for lies in the n-th buffer.

    A buffer that is too small is replaced; words bound earlier keep the one they have.
    """

    def __init__(self) -> None:
        self._buffers: list[npt.NDArray[np.uint8]] = []
        self._next = 0

    def restart(self) -> None:
        """Begin the arrays of another word."""
        self._next = 0

    def take(self, shape: tuple[int, ...], dtype: Any) -> npt.NDArray[Any]:
        """Return an array with contents that other words may change whenever the word does not run."""
        nbytes = prod(shape) * np.dtype(dtype).itemsize
        number = self._next
        self._next = number + 1
        array: npt.NDArray[Any] = self.buffer(number, nbytes)[:nbytes].view(dtype).reshape(shape)
        return array

    def buffer(self, number: int, nbytes: int) -> npt.NDArray[np.uint8]:
        """Return a buffer of at least so many bytes, by its number."""
        while number >= len(self._buffers):
            self._buffers.append(_buffer(max(nbytes, _SMALLEST), len(self._buffers)))
        if self._buffers[number].size < nbytes:
            self._buffers[number] = _buffer(max(nbytes, 2 * self._buffers[number].size), number)
        return self._buffers[number]

    @property
    def buffers(self) -> tuple[npt.NDArray[np.uint8], ...]:
        """Return all buffers that are there."""
        return tuple(self._buffers)


def _buffer(nbytes: int, number: int) -> npt.NDArray[np.uint8]:
    shift = number % _STAGGERED * _STAGGER
    whole = np.empty(nbytes + shift + _LINE, np.uint8)
    start = -whole.ctypes.data % _LINE + shift
    return whole[start : start + nbytes]


_ARENAS: WeakKeyDictionary[Any, Arena] = WeakKeyDictionary()
_local = threading.local()


def arena_of(owner: Any) -> Arena:
    """Return the arena of a core."""
    found = _ARENAS.get(owner)
    if found is None:
        found = _ARENAS[owner] = Arena()
    return found


def lend(owner: Any, arena: Arena) -> None:
    """Let an arena be that of a core."""
    _ARENAS[owner] = arena


class taking_from:  # noqa: N801  used as a function: `with taking_from(arena)`
    """Let `scratch` take from an arena, from its first buffer on."""

    __slots__ = ("_arena", "_before")

    def __init__(self, arena: Arena) -> None:
        self._arena = arena

    def __enter__(self) -> None:
        self._before = getattr(_local, "arena", None)
        self._arena.restart()
        _local.arena = self._arena

    def __exit__(self, *error: object) -> None:
        _local.arena = self._before


def scratch(shape: tuple[int, ...], dtype: Any) -> npt.NDArray[Any]:
    """Return an intermediate array of the word being bound; outside of binding, an array of its own."""
    arena: Arena | None = getattr(_local, "arena", None)
    return np.empty(shape, dtype) if arena is None else arena.take(shape, dtype)


def scratch_apart(rows: int, columns: int, dtype: Any) -> npt.NDArray[Any]:
    """Return an intermediate matrix to go through by columns as well.

    Its rows begin an odd number of cache lines apart: those of a column then lie in different sets of the cache, where
    rows of a power of two of bytes would push each other out.
    """
    size = np.dtype(dtype).itemsize
    lines = -(-columns * size // _LINE)
    apart = columns if lines < 2 else (lines | 1) * _LINE // size
    return scratch((rows, apart), dtype)[:, :columns]
