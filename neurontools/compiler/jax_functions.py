"""Functions that JAX traces, as HLO modules."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from formats.errors import UnsupportedError
from formats.hlo import Module, read_hlo
from neurontools.nki.jax_calls import for_a_graph
from neurontools.version import install_with

__all__ = ["lower", "lowered_for_device", "need_jax"]


def need_jax() -> Any:
    """Return the package; UnsupportedError without it."""
    try:
        import jax  # deferred: optional jax
    except ImportError:
        raise UnsupportedError(f"jax is not installed; {install_with('jax')} brings it") from None
    return jax


_PLATFORM = "neuron"  # as the plugin for the device is called


def lowered_for_device(traced: Any) -> Any:
    """Return a traced function lowered by JAX's rules for a device that it has no library for.

    Factors and solvers become operations of HLO, where those for a CPU call LAPACK. What has rules for some platforms
    only is lowered for the CPU: the call of a library is refused by its name.
    """
    try:
        return traced.lower(lowering_platforms=(_PLATFORM,))
    except NotImplementedError:
        return traced.lower()


def lower(
    fn: Callable[..., Any], args: Sequence[Any], keywords: dict[str, Any], target: str | None = None
) -> tuple[Module, Any]:
    """Return the HLO module of a function for these arguments, and the tree of its results.

    NKI kernels that it calls are traced for the target.
    """
    jax = need_jax()

    @functools.wraps(fn)
    def traced(*args: Any, **keywords: Any) -> Any:  # another function: what JAX keeps of `fn` has no custom calls
        return fn(*args, **keywords)

    with for_a_graph(target):
        lowered = lowered_for_device(jax.jit(traced, keep_unused=True).trace(*args, **keywords))
    proto = lowered.compiler_ir("hlo").as_serialized_hlo_module_proto()
    return read_hlo(proto), lowered.out_tree
