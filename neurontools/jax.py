"""JAX functions on the emulator: `neurontools.jax.jit(fn)` lowers, compiles and runs; arrays in, arrays out.

Gradients and batches are JAX's own: `jit(jax.grad(f))`, `jit(jax.vmap(f))`. Under another transformation of JAX's the
function is traced as it is.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from emulator.runtime import run
from formats.hlo import PrimitiveType, dtype_of
from formats.neff import open_neff
from neurontools.compiler.errors import KernelError
from neurontools.compiler.jax_functions import lower, need_jax
from neurontools.compiler.options import CompileOptions, check_options
from neurontools.compiler.pipeline import Compiled, compile_module

__all__ = ["Jitted", "jit"]


class Jitted:
    """A function that runs on the emulator; one compilation for each kind of arguments.

    `result` is what the last run gave besides arrays: time, counts, findings.
    """

    def __init__(self, fn: Callable[..., Any], options: CompileOptions, checks: str | Sequence[str]) -> None:
        self.fn, self.options, self.checks = fn, options, checks
        self.result: Any = None
        self._known: dict[Any, tuple[Compiled, Any, Any]] = {}
        functools.update_wrapper(self, fn)

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        """Return the function's results as JAX arrays; a fault of the run is a KernelError."""
        jax = need_jax()
        leaves, tree = jax.tree.flatten((args, keywords))
        if any(isinstance(leaf, jax.core.Tracer) for leaf in leaves):
            return self.fn(*args, **keywords)
        values = [np.asarray(jax.numpy.asarray(leaf)) for leaf in leaves]
        compiled, neff, out_tree = self._compiled(values, tree, args, keywords)
        given = {name: _given(one) for name, one in zip(compiled.names.inputs, values, strict=True) if one.size}
        self.result = result = run(neff, given, checks=self.checks)
        for problem in (result.fault, result.hang):
            if problem is not None:
                raise KernelError(f"{getattr(self.fn, '__name__', 'function')}: {problem}")
        results = [
            _restored(result.outputs.get(name), kind)
            for name, kind in zip(compiled.names.outputs, compiled.results, strict=True)
        ]
        return jax.tree.unflatten(out_tree, [jax.numpy.asarray(one) for one in results])

    def _compiled(
        self, values: list[np.ndarray[Any, Any]], tree: Any, args: tuple[Any, ...], keywords: dict[str, Any]
    ) -> tuple[Compiled, Any, Any]:
        key = (tree, tuple((one.shape, one.dtype.name) for one in values))
        found = self._known.get(key)
        if found is None:
            module, out_tree = lower(self.fn, args, keywords, self.options.chip.name)
            compiled = compile_module(module, self.options)
            found = self._known[key] = compiled, open_neff(compiled.neff), out_tree
        return found


def _given(one: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return an argument as the file's tensor has it."""
    if one.dtype == np.complex64:
        return np.ascontiguousarray(one).reshape(-1).view(np.float32).reshape(*one.shape, 2)
    return (one.view(np.uint8) if one.dtype == np.bool_ else one).reshape(one.shape or (1,))


def _restored(array: Any, kind: tuple[str, tuple[int, ...]]) -> np.ndarray[Any, Any]:
    """Return a result as JAX has it; the file has no tensor for one without elements."""
    dtype, shape = kind
    if 0 in shape:
        return np.empty(shape, dtype_of(PrimitiveType[dtype.upper()]))
    if dtype == "c64":
        return np.ascontiguousarray(array).reshape(-1).view(np.complex64).reshape(shape)
    held = np.asarray(array).reshape(shape)
    return held != 0 if dtype == "pred" else held


def jit(
    fn: Callable[..., Any] | None = None,
    *,
    target: str = "trn2",
    checks: str | Sequence[str] = (),
    **options: Any,
) -> Any:
    """Return a function that JAX traces, this compiler compiles and the emulator runs.

    Options are those of `CompileOptions`, for one core unless `lnc` says otherwise; limits that this compiler does not
    have are left out unless `limits="documented"`. `checks` are those of `neurontools.run`.
    """
    if fn is None:
        return functools.partial(jit, target=target, checks=checks, **options)
    chosen = CompileOptions(**{"target": target, "lnc": 1, "limits": "ours", **options})
    check_options(chosen)
    return Jitted(fn, chosen, checks)
