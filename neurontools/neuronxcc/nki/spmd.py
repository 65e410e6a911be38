"""Launch grids of the first generation: any number of programs, one after another on one core."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from math import prod
from typing import Any

from neurontools.nki import language as nl
from neurontools.nki.dtype import DType
from neurontools.nki.tensor import NkiTensor
from neurontools.nki.views import complain

__all__ = ["Programs", "num_programs", "program_id", "program_ndim", "running", "shared"]

_local = threading.local()


class Programs:
    """One launch: its grid, the program that runs, and the shared tensors that the first program allocated."""

    def __init__(self, grid: tuple[int, ...]) -> None:
        self.grid = grid
        self.place: tuple[int, ...] = (0,) * len(grid)
        self.first = True
        self.tensors: list[NkiTensor] = []
        self.next = 0

    def begin(self, place: tuple[int, ...], number: int) -> None:
        """Begin the next program."""
        self.place, self.first, self.next = place, number == 0, 0


@contextmanager
def running(programs: Programs) -> Iterator[Programs]:
    """Make a launch the one that `program_id` speaks of."""
    before = getattr(_local, "programs", None)
    _local.programs = programs
    try:
        yield programs
    finally:
        _local.programs = before


def _current() -> Programs:
    return getattr(_local, "programs", None) or Programs(())


def program_id(axis: int = 0) -> int:
    """Return the place of this program on an axis of the grid."""
    # a launch without a grid is one program, at place 0 of every axis
    place = _current().place
    return place[axis] if axis < len(place) else 0


def num_programs(axes: Any = 0) -> int:
    """Return the extent of an axis of the grid, or of several together, of all for None."""
    grid = _current().grid
    if axes is None:
        return prod(grid)
    return prod(grid[axis] for axis in (axes if isinstance(axes, Iterable) else (axes,)) if axis < len(grid))


def program_ndim() -> int:
    """Return the number of axes of the grid."""
    return len(_current().grid)


def shared(shape: tuple[int, ...], dtype: DType, name: str) -> NkiTensor | None:
    """Return the shared tensor of this program, which is the one that the first program allocated in its place."""
    programs = getattr(_local, "programs", None)
    if programs is None:
        return None
    if programs.first:
        programs.tensors.append(nl.ndarray(shape, dtype, nl.shared_hbm, name))
    elif programs.next >= len(programs.tensors) or (
        (programs.tensors[programs.next].shape, programs.tensors[programs.next].dtype) != (shape, dtype)
    ):
        raise complain(f"a program allocates a shared tensor of {dtype} {shape}, the first one did not")
    programs.next += 1
    found: NkiTensor = programs.tensors[programs.next - 1]
    return found
