"""NKI kernels in graphs: what such a call means is what the kernel does alone, so it is built and run by itself."""

from __future__ import annotations

from typing import Any

import numpy as np

from emulator.runtime import run
from formats.errors import UnsupportedError
from formats.hlo import Instruction, dtype_of
from formats.neff import open_neff
from neurontools.builder import build
from neurontools.builder.native_kernel import KernelResult, config_of, decode
from neurontools.hlo_interpreter.windows import walked

__all__ = ["native_kernel"]


def native_kernel(instruction: Instruction, operands: list[Any]) -> Any:
    """Run a kernel that our front end traced; an UnsupportedError for any other, and for one that faults."""
    config = config_of(instruction.backend_config)
    if config is None or "neurontools" not in config:
        raise UnsupportedError(f"%{instruction.name}: only NKI kernels that neurontools' own nki traced are run")
    kernel = decode(config)
    first = kernel.traces[0]
    given = {
        one.name: np.ascontiguousarray(array.view(np.uint8) if array.dtype == np.bool_ else array).reshape(one.shape)
        for one, array in zip(first.inputs, operands, strict=True)
    }
    built = build(list(kernel.traces), kernel.name)
    result = run(open_neff(built.to_bytes()), given, timing=False)
    problem = result.fault or result.hang
    if problem is not None:
        raise UnsupportedError(f"%{instruction.name}: NKI kernel {kernel.name}: {problem}")
    shapes = [leaf for _, leaf in instruction.shape.leaves()]
    names = [first.allocations[one.allocation].name for one in kernel.results]
    values = [
        _elements(np.asarray(result.outputs[name]), one, dtype_of(shape.element_type)).reshape(shape.dimensions)
        for name, one, shape in zip(names, kernel.results, shapes, strict=True)
    ]
    return tuple(values) if instruction.shape.is_tuple else values[0]


def _elements(array: np.ndarray[Any, Any], one: KernelResult, dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Return the elements of a tensor that a result is."""
    flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8).view(dtype)
    strides = tuple(step * dtype.itemsize for step in one.strides)
    return walked(flat[one.offset :], one.shape, strides).copy()
