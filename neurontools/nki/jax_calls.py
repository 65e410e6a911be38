"""Kernels called while JAX traces: a primitive, which becomes a custom call in graphs that this compiler gets.

`jax.jit` for another backend launches the kernel on the emulator each time, through a callback. `jax.vmap` calls it for
one element of the batch after the other; gradients are the caller's own, by `jax.custom_vjp` (compiler.md 5.7).
"""

from __future__ import annotations

import inspect
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache, partial
from typing import Any

import numpy as np

from formats.named_tuple import NamedTuple
from neurontools.builder.native_kernel import TARGET
from neurontools.nki.arguments import framework_of, map_structure
from neurontools.nki.graph_calls import GraphCall, graph_call, graph_target
from neurontools.nki.launch import launch

__all__ = ["call", "for_a_graph", "is_traced"]

_local = threading.local()


@contextmanager
def for_a_graph(target: str | None = None) -> Iterator[None]:
    """Let kernels become custom calls, for a target, in what this thread lowers meanwhile."""
    before = getattr(_local, "graph", None)
    _local.graph = (target,)
    try:
        yield
    finally:
        _local.graph = before


def is_traced(args: tuple[Any, ...], keywords: dict[str, Any]) -> bool:
    """Return whether any argument has no values yet, as JAX traces; JAX is never imported here."""
    jax = sys.modules.get("jax")
    if jax is None:
        return False
    tracer, found = jax.core.Tracer, False

    def look(value: Any, path: str) -> Any:
        nonlocal found
        found = found or isinstance(value, tracer)
        return value

    map_structure((args, keywords), look)
    return found


class _Called:
    """One call: the kernel, its arguments with places for arrays, and what a graph needs of it; no other is equal."""

    def __init__(self, kernel: Any, args: tuple[Any, ...], keywords: dict[str, Any], made: GraphCall) -> None:
        self.kernel, self.args, self.keywords, self.made = kernel, args, keywords, made


class _Operand(NamedTuple):
    """Stand for an array among the arguments."""

    number: int


def call(kernel: Any, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    """Return the results of a kernel, as JAX traces them."""
    jax = sys.modules["jax"]
    operands: list[Any] = []

    def take(value: Any, path: str) -> Any:
        if framework_of(value) is None:
            return value
        operands.append(jax.numpy.asarray(value))
        return _Operand(len(operands) - 1)

    # The order of the parameters, which is the order of the kernel's inputs.
    bound = inspect.signature(kernel.func).bind(*args, **keywords)
    for name, value in bound.arguments.items():
        bound.arguments[name] = map_structure(value, take)
    made = graph_call(kernel, args, keywords, *(getattr(_local, "graph", None) or (None,)))
    results = _primitive().bind(*operands, called=_Called(kernel, bound.args, bound.kwargs, made))
    return map_structure(made.returned, lambda place, path: results[place])


def _launched(called: _Called, *operands: Any) -> list[np.ndarray[Any, Any]]:
    """Run a call on the emulator; return its results in the order of the graph."""
    arrays = [np.array(one) for one in operands]
    target = graph_target(getattr(called.kernel, "platform_target", None))
    returned = launch(called.kernel, _filled(called.args, arrays), _filled(called.keywords, arrays), target=target)
    found: list[np.ndarray[Any, Any]] = []
    map_structure(returned, lambda one, path: found.append(np.asarray(one)))
    return found


def _filled(value: Any, arrays: list[np.ndarray[Any, Any]]) -> Any:
    """Return arguments with arrays in their places; a place is a tuple itself, so it is looked for first."""
    if isinstance(value, _Operand):
        return arrays[value.number]
    if isinstance(value, (list, tuple)):
        items = [_filled(one, arrays) for one in value]
        return items if isinstance(value, list) else type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    if isinstance(value, dict):
        return {key: _filled(one, arrays) for key, one in value.items()}
    return value


@cache
def _primitive() -> Any:
    """Return the primitive; made once, when JAX traces the first kernel."""
    import jax  # deferred: optional jax
    from jax.extend import core, source_info_util  # deferred: optional jax
    from jax.interpreters import batching, mlir  # deferred: optional jax

    # A custom call stands in the line of the model, not in one of ours.
    source_info_util.register_exclusion(os.path.dirname(os.path.abspath(__file__)))
    primitive = core.Primitive("nki_call")
    primitive.multiple_results = True

    def shapes(called: _Called) -> list[Any]:
        return [jax.ShapeDtypeStruct(one.shape, one.dtype) for one in called.made.results]

    def compute(*operands: Any, called: _Called) -> list[Any]:
        return [jax.numpy.asarray(one) for one in _launched(called, *operands)]

    def abstract(*operands: Any, called: _Called) -> list[Any]:
        return [jax.core.ShapedArray(one.shape, one.dtype) for one in called.made.results]

    def launched(called: _Called, *operands: Any) -> Any:
        return jax.pure_callback(lambda *given: _launched(called, *given), shapes(called), *operands)

    def lowered(context: Any, *operands: Any, called: _Called) -> Any:
        graph = getattr(_local, "graph", None)
        if graph is not None:
            # The graph decides on the target; what JAX kept of a function may have been traced for another.
            arrays = [np.broadcast_to(np.zeros((), one.dtype), one.shape) for one in context.avals_in]
            made = graph_call(called.kernel, _filled(called.args, arrays), _filled(called.keywords, arrays), *graph)
            rule = jax.ffi.ffi_lowering(TARGET, backend_config=made.config, api_version=2,
                                        operand_output_aliases=made.aliases)  # fmt: skip
            return rule(context, *operands)
        return mlir.lower_fun(partial(launched, called), multiple_results=True)(context, *operands)

    def batched(operands: Any, dims: Any, *, called: _Called) -> Any:
        size = next(one.shape[dim] for one, dim in zip(operands, dims, strict=True) if dim is not None)
        rows = [
            jax.numpy.broadcast_to(one, (size, *one.shape)) if dim is None else jax.numpy.moveaxis(one, dim, 0)
            for one, dim in zip(operands, dims, strict=True)
        ]
        results = jax.lax.map(lambda each: primitive.bind(*each, called=called), rows)
        return results, [0] * len(results)

    primitive.def_impl(compute)
    primitive.def_abstract_eval(abstract)
    mlir.register_lowering(primitive, lowered)
    batching.primitive_batchers[primitive] = batched
    return primitive
