"""`neuronxcc.nki.compiler`: placement by hand and switches of the compiler, which the builder has no use for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from neurontools.nki import language as nl

__all__ = [
    "enable_stack_allocator", "force_auto_alloc", "no_reorder", "psum", "sbuf", "skip_middle_end_transformations",
]  # fmt: skip


class _Allocator:
    """Stands for an address that a kernel computes; tiles go where the builder finds room."""

    def __init__(self, region: Any) -> None:
        self.region = region

    def __call__(self, *unused: Any, **also: Any) -> _Allocator:
        return self


class _Allocators:
    def __init__(self, region: Any) -> None:
        self.alloc = self.mod_alloc = self.auto_alloc = _Allocator(region)


sbuf, psum = _Allocators(nl.sbuf), _Allocators(nl.psum)


def _switch(function: Any = None, **unused: Any) -> Any:
    """Return a decorated function as it is."""
    same: Callable[[Any], Any] = lambda one: one  # noqa: E731
    return same if function is None else function


no_reorder = nl.no_reorder
enable_stack_allocator = force_auto_alloc = skip_middle_end_transformations = _switch
