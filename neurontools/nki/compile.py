"""`nki.compile`: kernels by the name that frameworks knew them under before `nki.framework` (compiler.md 5.7)."""

from __future__ import annotations

import dataclasses
import inspect
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Self

from neurontools.nki.graph_calls import TracedCall, graph_call
from neurontools.nki.kernel import Kernel

__all__ = ["FrameworkMethods", "GenericKernel", "KernelOptions", "TraceResult"]


@dataclasses.dataclass(frozen=True)
class KernelOptions:
    """Switches of AWS's tracer, which this one has no use for."""

    enable_const_rewrite: bool = False


class TraceResult(TracedCall):
    """A kernel traced for one set of shapes, by the names that frameworks read."""

    @property
    def dumped_config(self) -> str:
        """Return the configuration of the custom call."""
        return self._call.config

    @property
    def return_types(self) -> list[tuple[Any, tuple[int, ...]]]:
        """Return type and shape of each result."""
        return [(one.dtype, one.shape) for one in self._call.results]

    @property
    def result_is_sequence(self) -> bool:
        """Return whether the kernel returns a tuple or list."""
        return self._call.is_sequence


class FrameworkMethods(ABC):
    """What a framework calls on a kernel to put it into a graph; it may set attributes of its own, too."""

    func: Any
    opts = KernelOptions()

    @abstractmethod
    def as_launched(self) -> Kernel:
        """Return the kernel that a launch would trace."""

    @contextmanager
    def bind_arguments(self, **arguments: Any) -> Iterator[dict[str, Any]]:
        """Yield arguments by name, for `dump_config_with_boundargs`."""
        yield arguments

    def dump_config_with_boundargs(self, arguments: dict[str, Any]) -> TraceResult:
        """Trace the kernel for arguments by name; arrays only say their shapes and types."""
        return TraceResult(graph_call(self.as_launched(), (), arguments))

    def dump_config(self, *arguments: Any) -> TraceResult:
        """Trace the kernel for arguments in the order of its signature."""
        bound = inspect.signature(self.func).bind(*arguments)
        bound.apply_defaults()
        return self.dump_config_with_boundargs(dict(bound.arguments))

    @classmethod
    def trace(cls, kernel: Any, grid: tuple[int, ...] = (), platform_target: str | None = None, **unused: Any) -> Self:
        """Make one of a function or kernel; other switches of AWS's tracer change nothing."""
        options = dict(getattr(kernel, "options", {}))
        if platform_target is not None:
            options["platform_target"] = platform_target
        make: Any = cls
        made: Self = make(getattr(kernel, "func", kernel), getattr(kernel, "grid", ()) or tuple(grid), **options)
        return made


class GenericKernel(FrameworkMethods, Kernel):
    """A kernel that a framework of the second beta traces."""

    def as_launched(self) -> Kernel:
        """Return the kernel without what frameworks ask of it."""
        return Kernel(self.func, self.grid, **self.options)
