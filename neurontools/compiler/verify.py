"""Pass `verify`: what the documented rules of the compiler refuse, each with its code.

Rules that AWS's compiler has and this one does not need hold only with `limits` of `documented`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from formats.errors import NeuronError
from neurontools.compiler.complex_numbers import COMPLEX, DOCUMENTED_COMPLEX
from neurontools.compiler.element_types import ELEMENT_TYPES, is_float, is_integer
from neurontools.compiler.errors import UnsupportedGraphError, failed
from neurontools.compiler.expand_collectives import check_groups
from neurontools.compiler.expand_linear import LARGEST, LINEAR
from neurontools.compiler.expand_random import is_expanded
from neurontools.compiler.fourier import LONGEST
from neurontools.compiler.graph import Graph, Node, Value
from neurontools.compiler.options import CompileOptions
from neurontools.compiler.tile_folds import fold_of
from neurontools.compiler.verify_calls import check_call

__all__ = ["verify"]

_WIDE = ("s32", "u32", "s64", "u64")
_UNKNOWN = frozenset(
    {"infeed", "outfeed", "send", "recv", "domain", "set-dimension-size",
     "get-dimension-size", "stochastic-convert", "ragged-dot", "rng",
     "rng-get-and-update-state", "add-dependency", "dynamic-reshape"}
)  # fmt: skip


def verify(graph: Graph, options: CompileOptions) -> Graph:
    """Return the graph as it is, or raise the error of the first node that a rule refuses."""
    for node in graph.nodes:
        if node.opcode == "fft" and (options.limits == "documented" or max(node.attrs["lengths"]) > LONGEST):
            most = "" if options.limits == "documented" else f" of more than {LONGEST} elements along a dimension"
            raise UnsupportedGraphError("EVRF001", f"fft{most} is not supported", node.origin)
        if node.opcode in LINEAR:
            _check_linear(node, options)
        _check_types(node, options)
        if node.opcode in _UNKNOWN:
            raise UnsupportedGraphError("EVRF001", f"{node.opcode} is not supported", node.origin)
        check = _CHECKS.get(node.opcode)
        if check is not None:
            check(node, options)
        for body in _bodies(node):
            verify(body, options)
    return graph


def _check_linear(node: Node, options: CompileOptions) -> None:
    """Refuse systems and factors that the compiler whose limits hold has no operator for."""
    kind, rows = node.result.dtype, node.operands[0].shape[-1]
    why = ""
    if kind != "f32" and options.limits == "ours":
        why = f" of {kind}"
    elif rows > LARGEST and options.limits == "ours":
        why = f" of more than {LARGEST} rows"
    if why or options.limits == "documented":
        raise UnsupportedGraphError("EVRF001", f"{node.opcode}{why} is not supported", node.origin)


def _bodies(node: Node) -> Iterator[Graph]:
    for value in node.attrs.values():
        for one in value if isinstance(value, list) else (value,):
            if isinstance(one, Graph):
                yield one


def _check_types(node: Node, options: CompileOptions) -> None:
    for value in (*node.results, *node.operands):
        dtype = value.dtype
        if dtype in ("c64", "c128"):
            _check_complex(node, dtype, options)
            continue
        if dtype in ("f8e4m3fnuz", "f8e4m3b11fnuz", "f8e5m2fnuz"):
            raise failed("EVRF005", f"8-bit float {dtype} is not supported", node.origin)
        if dtype == "f8e4m3fn" and options.chip.generation in ("gen2", "gen3") and not options.fp8_as_e4m3:
            raise failed("EVRF051", f"{dtype} on {options.target}; trn3 has it", node.origin)
        if dtype == "f8e8m0fnu":
            raise failed("ESPP047", f"8-bit float {dtype} is not supported", node.origin)
        if dtype not in ELEMENT_TYPES:
            allowed = ", ".join(ELEMENT_TYPES)
            raise failed("ESPP004", f"no code is made for element type {dtype}; allowed are {allowed}", node.origin)


def _check_complex(node: Node, dtype: str, options: CompileOptions) -> None:
    """Refuse complex types but complex64 of the operations that have it: compiler.md 5.2."""
    if dtype == "c128":
        raise failed("EVRF004", f"complex type {dtype} is not supported", node.origin)
    types = {one.dtype for one in (*node.operands, *node.results)}
    if node.opcode not in (DOCUMENTED_COMPLEX if options.limits == "documented" else COMPLEX) or (
        node.opcode == "bitcast-convert" and len(types) > 1
    ):
        raise failed("EVRF004", f"{node.opcode} of complex type {dtype} is not supported", node.origin)


Check = Callable[[Node, CompileOptions], None]


def _constant(node: Node, options: CompileOptions) -> None:
    if node.result.dtype == "u64" and node.result.size:
        most = int(np.max(node.attrs["data"]))
        if most >= 1 << 32:
            raise failed("ESFH002", f"u64 constant {most} does not fit into 32 bits", node.origin)


def _dot(node: Node, options: CompileOptions) -> None:
    kinds = {one.dtype for one in node.operands}
    wide = kinds & ({"s64", "u64"} if options.chip.generation == "gen2" else set(_WIDE))
    if wide and "dot" not in options.downcasts:
        raise failed("EVRF035", f"dot of {' and '.join(sorted(wide))} on {options.target}; allowed with "
                     "--implicit-integer-downcast=dot", node.origin)  # fmt: skip


def _convolution(node: Node, options: CompileOptions) -> None:
    if options.limits != "documented":
        return
    window = node.attrs["window"]
    dilated = any(one.base_dilation > 1 for one in window)
    if dilated and any(one.window_dilation > 1 for one in window):
        raise failed("EVRF010", "convolution dilates input and kernel; one of them may be", node.origin)
    if dilated and any(one.stride > 1 for one in window):
        raise failed("EVRF011", "convolution with strides dilates its input; one of both may be", node.origin)


def _reduce_window(node: Node, options: CompileOptions) -> None:
    if options.limits != "documented":
        return
    window = node.attrs["window"]
    if len(node.operands) != 2:
        raise failed("EVRF019", f"reduce-window of {len(node.operands)} operands, must be 2", node.origin)
    if any(one.base_dilation > 1 for one in window):
        raise failed("EVRF017", "reduce-window dilates its base; base dilation must be 1", node.origin)
    if any(one.window_dilation > 1 for one in window):
        raise failed("EVRF018", "reduce-window dilates its window; window dilation must be 1", node.origin)


def _scatter(node: Node, options: CompileOptions) -> None:
    dtype = node.results[0].dtype
    body: Graph = node.attrs["body"]
    assigns = body.roots[0] is body.parameters[-1] or fold_of(body) is None
    if not assigns and dtype in _WIDE and "scatter" not in options.downcasts:
        raise failed("EVRF060", f"scatter computes {dtype}; allowed with --implicit-integer-downcast=scatter",
                     node.origin)  # fmt: skip
    if options.limits == "documented" and not assigns and not is_float(dtype):
        raise failed("EVRF016", f"scatter reduces {dtype}; floats are allowed", node.origin)
    numbers = node.attrs["numbers"]
    many = len(node.results)
    _check_iota(node, node.operands[many], numbers.scatter_dims_to_operand_dims, numbers.index_vector_dim, "EVRF031")


def _gather(node: Node, options: CompileOptions) -> None:
    numbers = node.attrs["numbers"]
    _check_iota(node, node.operands[1], numbers.start_index_map, numbers.index_vector_dim, "EVRF056")


def _check_iota(node: Node, indices: Value, axes: tuple[int, ...], vector: int, code: str) -> None:
    """Refuse indices that an iota counts beyond the operand."""
    source = indices.node
    while source.opcode in ("reshape", "convert", "broadcast", "bitcast") and source.operands:
        source = source.operands[0].node
    if source.opcode != "iota" or len(axes) != 1:
        return
    count = source.result.shape[source.attrs["dimension"]]
    extent = node.operands[0].shape[axes[0]]
    if count > extent:
        what = f"{node.opcode} with an iota of [0, {count}), the operand has [0, {extent}) in dimension {axes[0]}"
        raise failed(code, what, node.origin)


def _shift(node: Node, options: CompileOptions) -> None:
    dtype = node.operands[0].dtype
    if options.limits == "documented" and dtype not in ("s32", "u32", "f32"):
        raise failed("EVRF022", f"shift-right-arithmetic of {dtype}; s32 and u32 are allowed", node.origin)


def _power(node: Node, options: CompileOptions) -> None:
    dtype = node.operands[0].dtype
    if dtype in ("s64", "u64") and "pow" not in options.downcasts:
        raise failed("EVRF062", f"power of {dtype}; allowed with --implicit-integer-downcast=pow", node.origin)


def _ranks(node: Node, options: CompileOptions) -> None:
    check_groups(node)


def _collective(code: str, name: str) -> Check:
    def check(node: Node, options: CompileOptions) -> None:
        check_groups(node)
        wide = {one.dtype for one in node.operands} & set(_WIDE)
        if wide and name not in options.downcasts:
            raise failed(code, f"{node.opcode} of {' and '.join(sorted(wide))}; allowed with "
                         f"--implicit-integer-downcast={name}", node.origin)  # fmt: skip

    return check


def _topk(node: Node, options: CompileOptions) -> None:
    dtype = node.operands[0].dtype
    if options.limits == "documented" and is_integer(dtype) and dtype in ("s32", "s64"):
        raise failed("EVRF013", f"top-k of {dtype}; floats are allowed", node.origin)


def _random(node: Node, options: CompileOptions) -> None:
    algorithm = node.attrs["algorithm"]
    if algorithm not in ("", "rng_default") and (options.limits == "documented" or not is_expanded(node)):
        raise failed("EVRF006", f"random bits by {algorithm}; rng_default is allowed", node.origin)


def _custom_call(node: Node, options: CompileOptions) -> None:
    if node.attrs["target"] in ("AwsNeuronTopK", "TopK", "mhlo.topk"):
        _topk(node, options)
    error: NeuronError | None = check_call(node, options)
    if error is not None:
        raise error


_CHECKS: dict[str, Check] = {
    "all-gather": _ranks,
    "all-reduce": _collective("EVRF061", "all_reduce"),
    "all-to-all": _ranks,
    "collective-broadcast": _ranks,
    "collective-permute": _ranks,
    "constant": _constant,
    "convolution": _convolution,
    "custom-call": _custom_call,
    "dot": _dot,
    "gather": _gather,
    "power": _power,
    "reduce-scatter": _collective("EVRF063", "reduce_scatter"),
    "reduce-window": _reduce_window,
    "rng-bit-generator": _random,
    "scatter": _scatter,
    "shift-right-arithmetic": _shift,
    "topk": _topk,
}
