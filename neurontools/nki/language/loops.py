"""Loops, slices and the launch grid."""

from __future__ import annotations

import builtins
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import prod
from typing import Any

from neurontools.nki.isa.registers import VirtualRegister
from neurontools.nki.tensor import NkiTensor, ds
from neurontools.nki.tracer import tracer
from neurontools.nki.views import complain

__all__ = [
    "affine_range",
    "ds",
    "nc",
    "no_reorder",
    "num_programs",
    "par_dim",
    "program_id",
    "program_ndim",
    "range",
    "sequential_range",
    "spmd_dim",
    "static_range",
]


def affine_range(start: int, stop: int | None = None, step: int = 1) -> builtins.range:
    """Return the Python range; every loop over it is unrolled into the trace."""
    if any(isinstance(bound, NkiTensor | VirtualRegister) for bound in (start, stop, step)):
        raise complain("the bounds of an unrolled loop are known while tracing; nl.dynamic_range takes a register")
    return builtins.range(start) if stop is None else builtins.range(start, stop, step)


sequential_range = affine_range
static_range = affine_range
range = affine_range


def par_dim(size: int) -> int:
    """Return `size`; marks the partition dimension in older kernels, where it already comes first."""
    return size


@contextmanager
def no_reorder() -> Iterator[None]:
    """Keep the operations inside in program order; traces always are in program order."""
    t = tracer()
    t.ordered += 1
    try:
        yield
    finally:
        t.ordered -= 1


def nc(count: int) -> int:
    """Return the number of cores of a launch dimension."""
    return count


def spmd_dim(*dims: int) -> int:
    """Return the product of launch dimensions."""
    return prod(dims)


def program_id(axis: int = 0) -> int:
    """Return the index of this program along `axis` of the launch grid; 0 without a grid."""
    t = tracer()
    if not t.grid:
        return 0
    _check_axis(axis, t.grid)
    return t.trace.program_id // prod(t.grid[axis + 1 :]) % t.grid[axis]


def num_programs(axes: int | Sequence[int] | None = 0) -> int:
    """Return the number of programs along `axes` of the launch grid, or in all; 1 without a grid."""
    grid = tracer().grid
    if not grid:
        return 1
    chosen: Any = axes
    if chosen is None:
        return prod(grid)
    chosen = [chosen] if isinstance(chosen, int) else list(chosen)
    for axis in chosen:
        _check_axis(axis, grid)
    return prod(grid[axis] for axis in chosen)


def program_ndim() -> int:
    """Return the number of dimensions of the launch grid; 0 without a grid."""
    return len(tracer().grid)


def _check_axis(axis: int, grid: tuple[int, ...]) -> None:
    if not 0 <= axis < len(grid):
        raise complain(f"launch grid {grid} has no axis {axis}")
