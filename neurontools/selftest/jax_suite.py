"""JAX's primitive harnesses as cases: each is lowered to HLO and compared with XLA on a CPU (compiler.md 4.1)."""

from __future__ import annotations

import os
from functools import cache
from typing import Any

import numpy as np

from formats.errors import UnsupportedError
from formats.hlo import dtype_of, read_hlo
from neurontools.compiler.jax_functions import lowered_for_device
from neurontools.selftest.backends import backend_of
from neurontools.selftest.judged import judged
from neurontools.selftest.rows import CaseRow
from neurontools.version import install_with

__all__ = ["count", "name_of", "run", "version"]

# JAX's tolerances between devices' results on a CPU, by element type: compiler.md 4.1.
_TOLERANCES = {"float16": 1e-3, "bfloat16": 1e-2, "float32": 1e-6, "float64": 1e-15, "complex64": 1e-6,
               "complex128": 1e-15} | dict.fromkeys(("float8_e4m3fn", "float8_e5m2", "float8_e4m3b11fnuz",
                                                     "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e3m4",
                                                     "float8_e4m3"), 1e-1)  # fmt: skip
_LIBRARIES = ("lapack_", "Qr", "ProductOfElementaryHouseholderReflectors")  # targets of custom calls
_WIDE = ("float64", "int64", "uint64", "complex128")


@cache
def _harnesses() -> list[Any]:
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    try:
        from jax._src.internal_test_util import test_harnesses  # deferred: optional jax
    except ImportError as error:
        raise UnsupportedError(f"selftest jax needs the extra jax: {install_with('jax')} ({error})") from None
    return list(test_harnesses.all_harnesses)


def version() -> str:
    """Return the version of jax."""
    _harnesses()
    import jax  # deferred: optional jax

    return str(jax.__version__)


def count() -> int:
    """Return the number of harnesses."""
    return len(_harnesses())


def run(number: int, backend: str) -> CaseRow:
    """Lower a harness, evaluate it, and compare."""
    harness = _harnesses()[number]
    name, group = str(harness.fullname), str(harness.group_name)
    if not harness.filter("cpu"):
        return CaseRow(name, group, "left-out", "JAX does not implement it on a CPU")
    if harness.dtype is not None and np.dtype(harness.dtype).name in _WIDE:
        return CaseRow(name, group, "left-out", "64-bit types are switched off in JAX")
    traced, arguments = _traced(harness)
    if isinstance(traced, str):
        return CaseRow(name, group, "left-out", traced)
    lowered = lowered_for_device(traced)
    module = read_hlo(lowered.compiler_ir("hlo").as_serialized_hlo_module_proto())
    if any(each.custom_call_target.startswith(_LIBRARIES) for each in module.instructions()):
        return CaseRow(name, group, "left-out", "it calls a library of linear algebra by name")
    parameters = module.entry.parameters
    given = [
        np.asarray(value).astype(dtype_of(each.shape.element_type))
        for value, each in zip(arguments, parameters, strict=True)
    ]
    expected = _expected(traced.lower(), arguments)
    evaluate = backend_of(backend)
    if group == "cholesky":  # what stands above the diagonal is the implementation's: XLA, operation semantics
        expected = [np.tril(each) for each in expected]
        return CaseRow(name, group, *judged(lambda: np.tril(evaluate(module, given)), expected, _TOLERANCES))
    return CaseRow(name, group, *judged(lambda: evaluate(module, given), expected, _TOLERANCES))


def _traced(harness: Any) -> tuple[Any, list[Any]]:
    """Return the traced function and its arguments, or why it cannot be lowered."""
    import jax  # deferred: optional jax

    try:
        arguments = jax.tree.map(np.asarray, harness.dyn_args_maker(np.random.RandomState(0)))
        traced = jax.jit(harness.dyn_fun, keep_unused=True).trace(*arguments)
        traced.lower()
    except (NotImplementedError, TypeError, ValueError) as error:
        return f"JAX does not lower it: {type(error).__name__}", []
    return traced, jax.tree.leaves(arguments)


def _expected(lowered: Any, arguments: list[Any]) -> list[Any]:
    """Return what XLA gives on a CPU; None for a result that is a key."""
    import jax  # deferred: optional jax

    results = jax.tree.leaves(lowered.compile()(*arguments))
    return [None if jax.dtypes.issubdtype(each.dtype, jax.dtypes.prng_key) else np.asarray(each) for each in results]


def name_of(number: int) -> str:
    """Return the name of a harness."""
    return str(_harnesses()[number].fullname)
