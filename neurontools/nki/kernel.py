"""`nki.jit` and `nki.simulate`: callables that launch a kernel on the emulator."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from types import MethodType
from typing import Any

from neurontools.nki.errors import NkiValidationError
from neurontools.nki.launch import launch
from neurontools.nki.tracer import is_tracing

__all__ = ["Kernel", "cpu_simulate", "jit", "simulate"]


class Kernel:
    """A kernel: call it to launch it, `kernel[2]` to launch it on two cores; inside another kernel a call is inlined.

    `inspect.signature`, `inspect.getsource` and `__name__` see the decorated function.  `options` keeps the keywords
    of the decorator; of these `platform_target` decides the target where the environment does not, and `lenient`
    whether limits of the hardware are only warned of; the others change nothing.
    """

    __name__: str  # by update_wrapper

    def __init__(self, function: Callable[..., Any], grid: tuple[int, ...] = (), **options: Any) -> None:
        self.function = function
        self.grid = grid
        self.options = options
        functools.update_wrapper(self, function)

    @property
    def platform_target(self) -> str | None:
        """Return the target that the decorator names."""
        return self.options.get("platform_target")

    def __getitem__(self, grid: Any) -> Kernel:
        """Return the kernel with a launch grid: a number of cores, or a tuple of dimensions."""
        dims = grid if isinstance(grid, (tuple, list)) else (grid,)
        try:
            extents = tuple(operator.index(one) for one in dims)
        except TypeError:
            extents = ()
        if not extents or min(extents) < 1:
            raise NkiValidationError(f"launch grid {grid!r} of {self.__name__} must be positive integers")
        return Kernel(self.function, extents, **self.options)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the kernel and return its results; arrays in and out are of one framework."""
        if is_tracing():
            return self.function(*args, **kwargs)
        return launch(self, args, kwargs)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """Bind as a method, so that kernels may stand in classes."""
        return self if instance is None else type(self)(MethodType(self.function, instance), self.grid, **self.options)

    def __repr__(self) -> str:
        return f"<nki kernel {self.__name__}{list(self.grid) if self.grid else ''}>"


def jit(fn: Any = None, **kwargs: Any) -> Any:
    """Make a function a kernel: @nki.jit, @nki.jit() or @nki.jit(platform_target="trn2", mode=...).

    Launches always run on this toolkit's emulator, with or without NKI_SIMULATOR=1.
    """
    if fn is None:
        return lambda function: jit(function, **kwargs)
    if isinstance(fn, Kernel):
        return Kernel(fn.function, fn.grid, **(fn.options | kwargs))
    if not callable(fn):
        raise NkiValidationError(f"nki.jit takes a function, not {fn!r}")
    return Kernel(fn, **kwargs)


def simulate(kernel: Any, lenient: bool | None = None) -> Kernel:
    """Return a callable that runs a kernel, or a plain function as one, on the emulator; `[lnc]` sets the cores.

    A `lenient` one only warns of limits of partitions and capacity; None leaves it to NEURONTOOLS_LENIENT.
    """
    result: Kernel = jit(kernel) if lenient is None else jit(kernel, lenient=lenient)
    return result


cpu_simulate = simulate
