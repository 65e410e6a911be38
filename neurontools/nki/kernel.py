"""`nki.jit` and `nki.simulate`: callables that launch a kernel on the emulator."""

from __future__ import annotations

import dataclasses
import functools
import operator
from collections.abc import Callable
from types import MethodType
from typing import Any, ClassVar

from neurontools.nki import jax_calls
from neurontools.nki.errors import NkiValidationError
from neurontools.nki.launch import launch
from neurontools.nki.tracer import is_tracing

__all__ = ["Kernel", "cpu_simulate", "jit", "simulate"]


@dataclasses.dataclass(frozen=True, init=False, eq=False, repr=False)
class Kernel:
    """A kernel: call it to launch it, `kernel[2]` to launch it on two cores; inside another kernel a call is inlined.

    `inspect.signature`, `inspect.getsource` and `__name__` see the decorated function.  `options` keeps the keywords
    of the decorator; of these `platform_target` decides the target where the environment does not, and `lenient`
    whether limits of the hardware are only warned of; the others change nothing. Frameworks read the fields and
    replace `__call__` while they trace a graph (compiler.md 5.7).
    """

    func: Callable[..., Any]
    grid: tuple[int, ...] = ()
    options: dict[str, Any] = dataclasses.field(default_factory=dict)
    __name__: ClassVar[str]  # by update_wrapper

    def __init__(self, func: Callable[..., Any], grid: tuple[int, ...] = (), **options: Any) -> None:
        # frozen: frameworks copy the fields into kernels of their own
        object.__setattr__(self, "func", func)
        object.__setattr__(self, "grid", grid)
        object.__setattr__(self, "options", options)
        self.__post_init__()

    def __post_init__(self) -> None:
        """Take over name, documentation and attributes of the function."""
        for name in functools.WRAPPER_ASSIGNMENTS:
            if hasattr(self.func, name):
                object.__setattr__(self, name, getattr(self.func, name))
        self.__dict__.update(getattr(self.func, "__dict__", {}))
        object.__setattr__(self, "__wrapped__", self.func)

    @property
    def function(self) -> Callable[..., Any]:
        """Return the function, by the name that this package had for it before frameworks asked for `func`."""
        return self.func

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
        return Kernel(self.func, extents, **self.options)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the kernel and return its results; arrays in and out are of one framework."""
        if is_tracing():
            return self.func(*args, **kwargs)
        if jax_calls.is_traced(args, kwargs):
            return jax_calls.call(self, args, kwargs)
        return launch(self, args, kwargs)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """Bind as a method, so that kernels may stand in classes."""
        return self if instance is None else type(self)(MethodType(self.func, instance), self.grid, **self.options)

    def __repr__(self) -> str:
        return f"<nki kernel {self.__name__}{list(self.grid) if self.grid else ''}>"


def jit(fn: Any = None, **kwargs: Any) -> Any:
    """Make a function a kernel: @nki.jit, @nki.jit() or @nki.jit(platform_target="trn2", mode=...).

    Launches always run on this toolkit's emulator, with or without NKI_SIMULATOR=1.
    """
    if fn is None:
        return lambda function: jit(function, **kwargs)
    if isinstance(fn, Kernel):
        return Kernel(fn.func, fn.grid, **(fn.options | kwargs))
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
