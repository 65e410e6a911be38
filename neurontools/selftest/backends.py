"""What evaluates a module in a self-test: the reference interpreter, or the compiler and the emulator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np

from formats.errors import NotFoundError, UnsupportedError
from formats.hlo import Module, dtype_of

__all__ = ["BACKENDS", "Backend", "backend_of"]

Backend = Callable[[Module, Sequence[Any]], Any]
BACKENDS = ("interpreter", "compiler")
_PIPELINE = "neurontools.compiler.pipeline"


def backend_of(name: str) -> Backend:
    """Return what evaluates modules.  Raises NotFoundError for other names, UnsupportedError without a compiler."""
    if name == "interpreter":
        from neurontools.hlo_interpreter import evaluate  # deferred: start-up

        return evaluate
    if name != "compiler":
        raise NotFoundError(f"there is no backend {name!r}; there are {', '.join(BACKENDS)}")
    if find_spec("neurontools.compiler") is None or find_spec(_PIPELINE) is None:
        raise UnsupportedError("this version has no graph compiler")
    return _compiled


def _compiled(module: Module, arguments: Sequence[Any]) -> Any:
    """Compile a module, run it on the emulator, and return its results."""
    import neurontools  # deferred: start-up

    pipeline, options = import_module(_PIPELINE), import_module("neurontools.compiler.options")
    made = pipeline.compile_module(module, options.CompileOptions(limits="ours", lnc=1))
    given = {}
    for name, value in zip(made.names.inputs, arguments, strict=True):
        array = np.ascontiguousarray(value).reshape(np.shape(value) or (1,))
        if array.dtype == np.complex64:
            array = array.view(np.float32).reshape(*np.shape(value), 2)
        if array.size:
            given[name] = array.view(np.uint8) if array.dtype == np.bool_ else array
    result = neurontools.run(neurontools.open_neff(made.neff), given, timing=False)
    problem = result.fault or result.hang
    if problem is not None:
        raise RuntimeError(f"the compiled module did not end: {problem.brief}")
    root = module.entry.root.shape
    shapes = [shape for _, shape in root.leaves()]
    found = []
    for name, shape in zip(made.names.outputs, shapes, strict=True):
        kind = dtype_of(shape.element_type)
        array = np.asarray(result.outputs[name]) if shape.size else np.empty(0, kind)
        if kind == np.complex64 and shape.size:
            array = np.ascontiguousarray(array).reshape(-1).view(kind)
        same_width = array.dtype != kind and array.dtype.itemsize == kind.itemsize
        found.append((array.view(kind) if same_width else array.astype(kind)).reshape(shape.dimensions))
    return tuple(found) if root.is_tuple else found[0]
