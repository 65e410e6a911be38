"""Kernels called in a graph that a framework traces: traced for the shapes they are given, for a custom call to carry.

The compiler inlines the trace (`neurontools.compiler.inlining`): such a kernel is no program of its own.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from formats.named_tuple import NamedTuple
from formats.targets import TARGETS, Target, resolve_target
from formats.whole_files import write_beside
from neurontools.builder import build
from neurontools.builder.native_kernel import KernelResult, NativeKernel, encode
from neurontools.nki.arguments import framework_of, map_structure
from neurontools.nki.dtype import DType
from neurontools.nki.errors import NkiValidationError
from neurontools.nki.launch import trace_kernel
from neurontools.nki.tensor import NkiTensor
from neurontools.nki.tracer import OVERRIDES, default_target

__all__ = ["GraphCall", "ResultSpec", "TracedCall", "graph_call", "graph_target"]

# where Linux shows the name of an EC2 instance's type, as trn2.48xlarge
_PRODUCT = "/sys/devices/virtual/dmi/id/product_name"
_EMULATED = {one.name for one in TARGETS if one.emulated}


class ResultSpec(NamedTuple):
    """Shape and element type of one result."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]


class GraphCall(NamedTuple):
    """What a graph needs of a kernel: the call's configuration, its results, and which operands they alias.

    `returned` is what the kernel returns with the place of its result for each tensor.
    """

    config: str
    results: tuple[ResultSpec, ...]
    aliases: dict[int, int]
    returned: Any
    has_collectives: bool = False

    @property
    def is_sequence(self) -> bool:
        """Return whether the kernel returns a tuple or list, of one tensor maybe."""
        return isinstance(self.returned, (list, tuple))


class TracedCall:
    """A traced call by the names that all generations of front ends share; each adds its own."""

    constant_values: tuple[Any, ...] = ()

    def __init__(self, call: GraphCall) -> None:
        self._call = call

    @property
    def has_collectives(self) -> bool:
        """Return whether the kernel communicates with other ranks."""
        return self._call.has_collectives

    @property
    def operand_output_aliases(self) -> dict[int, int]:
        """Return, by operands that the kernel returns, the places of these results."""
        return self._call.aliases


def graph_target(platform_target: str | None) -> Target:
    """Return the target of a kernel in a graph: as a launch has it, else the instance's own, else trn2.

    A launch that nothing decides is for trn3; graphs are compiled for trn2 then, as frameworks do (compiler.md 5.7).
    """
    if platform_target or any(os.environ.get(name) for name in OVERRIDES):
        return default_target(platform_target)
    try:
        with open(_PRODUCT) as file:
            product = file.readline().strip().partition(".")[0]
    except OSError:
        product = ""
    return resolve_target(product if product in _EMULATED else "trn2")


def graph_call(
    kernel: Any, args: tuple[Any, ...], keywords: dict[str, Any], target: str | None = None, artifacts: str = ""
) -> GraphCall:
    """Trace a kernel; of arrays only shape and type are looked at, each is an operand of its own.

    `target` is that of the graph, where it is known; else `graph_target` says it.
    Into the folder `artifacts` goes a file of the kernel alone, and the configuration names it.
    """

    def own(value: Any, path: str) -> Any:
        # an array of its own without its bytes: traced values have none, and two operands may be the same array
        return value if framework_of(value) is None else np.broadcast_to(np.zeros((), value.dtype), value.shape)

    args = tuple(map_structure(one, own) for one in args)
    keywords = {name: map_structure(one, own) for name, one in keywords.items()}
    wanted = target or graph_target(getattr(kernel, "platform_target", None))
    programs = trace_kernel(kernel, args, keywords, target=wanted)
    name = getattr(kernel, "__name__", "kernel")
    trace = programs[0].trace
    results: list[KernelResult] = []
    specs: list[ResultSpec] = []

    def place(value: Any, path: str) -> Any:
        if not isinstance(value, NkiTensor):
            raise NkiValidationError(f"kernel {name} returns {value!r}; in a graph its results are tensors")
        dtype: DType = value.dtype
        results.append(KernelResult(value.allocation.id, dtype.code, value.shape, value.strides, value.offset))
        specs.append(ResultSpec(value.shape, dtype.numpy))
        return len(results) - 1

    returned = map_structure(programs[0].results, place)
    given_back = {one.allocation for one in results}
    for one in trace.outputs:
        # A launch updates such an argument in place; a graph has no places, only results.
        if one.kind == "input" and one.id not in given_back:
            raise NkiValidationError(
                f"kernel {name} writes its argument {one.name} and does not return it; a graph gets what is returned"
            )
    made = NativeKernel(name, tuple(getattr(kernel, "grid", ())), tuple(one.trace for one in programs), tuple(results))
    path = ""
    if artifacts:
        path = os.path.join(artifacts, f"{name}.neff")
        write_beside(path, build([one.trace for one in programs], name).to_bytes())
    return GraphCall(encode(made, path), tuple(specs), made.aliases, returned, made.has_collectives)
