"""The kernel that a target names, and what it is called with.

Import the emulator first: it tells OpenBLAS how many threads to start, and NumPy starts them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib import import_module
from typing import cast

import ml_dtypes
import numpy as np
import numpy.typing as npt

import neurontools.nki.language as nl
from formats.errors import UnsupportedError
from formats.named_tuple import NamedTuple
from neurontools.validation.targets import Target

__all__ = ["Array", "Call", "call_of", "load_of"]

Array = npt.NDArray[np.generic]
Kernel = Callable[..., nl.NkiTensor]


class Call(NamedTuple):
    """A kernel, and what it is called with."""

    kernel: Kernel
    arrays: tuple[Array, ...]
    parameters: tuple[object, ...] = ()


def _kernel(target: Target) -> Kernel:
    """Return the kernel of a target."""
    module, name = target.kernel.split(".")
    return cast("Kernel", getattr(import_module(f"neurontools.validation.kernels.{module}"), name))


def call_of(target: Target) -> Call:
    """Return the call of a target's kernel; UnsupportedError for one that nobody can call."""
    # Zeros everywhere: no published kernel's time depends on its data.
    module, name = target.kernel.split(".")
    kernel, size = _kernel(target), target.size
    dtype = np.dtype(ml_dtypes.bfloat16 if target.word("dtype", "") == "bfloat16" else np.float32)
    if module == "matmul":
        # The left side is transposed: both have the depth first, as the documented kernels take them.
        shapes = [(size("depth"), size(side)) for side in ("rows", "columns")]
        more = tuple(size(key) for key in ("banks", "software") if key in target.arguments)
        return Call(kernel, _zeros(shapes, dtype), more)
    if module == "mamba":
        channels, length, states = size("channels"), size("length"), size("states")
        shapes = [(channels, length), (channels, length), (channels, states), (states, length), (states, length)]
        return Call(kernel, _zeros(shapes, dtype))
    if module == "norms":
        return Call(kernel, _zeros([(rows, size("width")) for rows in (size("rows"), 1, 1)], dtype))
    if name == "vector_add":
        return Call(kernel, _zeros([(size("n"),)] * 2, dtype), (size("partitions"), size("width")))
    if name == "transpose":
        return Call(kernel, _zeros([(size("rows"), size("rows"))], dtype))
    return Call(kernel, _zeros([(1, 1)], np.dtype(np.float32)), (size("width"), *_parameters(target, name)))


def load_of(target: Target, width: int, times: int, one_queue: bool = False) -> Call:
    """Return the call of a target's kernel for loads of 128 rows of `width` bytes."""
    return Call(_kernel(target), _zeros([(128, width)], np.dtype(np.uint8)), (width, times, one_queue))


def _parameters(target: Target, name: str) -> tuple[object, ...]:
    """Return what a kernel of single words takes behind an array and a width."""
    size = target.size

    def named(key: str, default: str | None = None) -> object:
        return getattr(nl, target.word(key, default))

    if name == "pair":
        return named("dtype"), size("rows", 128)
    if name == "act":
        return named("dtype"), size("rows", 128), 1, named("op", "exp")
    if name == "scaled":
        return named("source"), named("result")
    if name == "fold":
        return named("dtype"), named("op")
    if name == "scalar_tile":
        return (size("times", 1),)
    if name == "product":
        return size("columns"), named("dtype"), size("times", 1), bool(size("turn", 0))
    raise UnsupportedError(f"no kernel {name!r}")


def _zeros(shapes: Iterable[tuple[int, ...]], dtype: np.dtype[np.generic]) -> tuple[Array, ...]:
    """Return an array for each shape; a kernel takes one array given twice for one tensor."""
    return tuple(np.zeros(shape, dtype) for shape in shapes)
