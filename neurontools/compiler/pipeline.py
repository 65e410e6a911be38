"""The passes in order, from a module to a NEFF."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from emulator.arch import arch_of
from formats.errors import FormatError, NotFoundError
from formats.hlo import Module, module_bytes
from formats.hlo.verify import need_valid
from formats.named_tuple import NamedTuple
from formats.neff.operations import FLAGS, GRAPH
from neurontools.builder import build
from neurontools.builder.built import BuiltNeff
from neurontools.builder.garbage_collection import without_collection
from neurontools.builder.report import Report
from neurontools.builder.trace import Trace
from neurontools.compiler import (  # noqa: F401  they register lowerings
    attention_kernel,
    collectives,
    control,
    dots,
    indexing,
    inlining,
    random_bits,
    reductions,
)
from neurontools.compiler.attention import fuse_attention
from neurontools.compiler.canonicalise import canonicalise
from neurontools.compiler.choosing import Told, chosen
from neurontools.compiler.collective_order import call_early
from neurontools.compiler.complex_numbers import without_complex
from neurontools.compiler.element_types import element_type
from neurontools.compiler.errors import failed
from neurontools.compiler.expand import expand
from neurontools.compiler.graph import Graph
from neurontools.compiler.held import operation_tables, operations_of
from neurontools.compiler.importing import import_module
from neurontools.compiler.listing import listing_of
from neurontools.compiler.lowering import Lowering
from neurontools.compiler.options import CompileOptions, check_options
from neurontools.compiler.precision import Cast, cast_products
from neurontools.compiler.rounding import round_in_products
from neurontools.compiler.shifting import assign_streams, gathers_of, scatters_of
from neurontools.compiler.signature import Names, names_of
from neurontools.compiler.verify import verify

__all__ = ["PASSES", "Compiled", "Told", "compile_graph", "compile_module"]

_IDLE = ("distribution_strategy", "fast_context_switch")  # options that change nothing, so no file tells them
_MOST_GRAPH = 64 << 20  # bytes of a module that the file carries; larger ones are mostly constants


class _State(NamedTuple):
    """What passes share besides the graph: the options, the ledger of casts, collectives that can be shifted."""

    options: CompileOptions
    casts: list[Cast]
    movable: list[str]


Pass = Callable[[Graph, _State], Graph]


def _silent(what: str) -> None:
    """Tell nobody."""


def _verify(graph: Graph, state: _State) -> Graph:
    return verify(graph, state.options)


def _complex(graph: Graph, state: _State) -> Graph:
    return without_complex(graph)


def _expand(graph: Graph, state: _State) -> Graph:
    return expand(graph)


def _canonicalise(graph: Graph, state: _State) -> Graph:
    return canonicalise(graph)


def _attention(graph: Graph, state: _State) -> Graph:
    return fuse_attention(graph)


def _rounding(graph: Graph, state: _State) -> Graph:
    return round_in_products(graph)


def _collectives(graph: Graph, state: _State) -> Graph:
    state.movable.extend(["all-gather"] * len(gathers_of(graph)) + ["reduce-scatter"] * len(scatters_of(graph)))
    if state.options.cc_streams:
        assign_streams(graph, state.options.cc_streams)
    return call_early(graph, state.options.early_ag_shift, state.options.late_rs_shift)


def _precision(graph: Graph, state: _State) -> Graph:
    return cast_products(graph, state.options, state.casts)


# A module as it was read is the graph after `import`.
_STEPS: tuple[tuple[str, Pass], ...] = (
    ("verify", _verify),
    ("complex", _complex),
    ("expand", _expand),
    ("precision", _precision),
    ("canonicalise", _canonicalise),
    ("attention", _attention),
    ("rounding", _rounding),
    ("collectives", _collectives),
)
PASSES = ("import", *(name for name, _ in _STEPS))


class Compiled(NamedTuple):
    """A compiled module: the file's bytes, names of tensors, types and shapes of results, the builder's report, casts.

    A complex64 tensor of the module is one of fp32 in the file, with real and imaginary parts as its last dimension.

    `dumps` has the graph after the passes that were asked for; `listing` is the graph behind the last pass, as a Python
    function; `movable` are the gathers of weights and the scatters of gradients, by opcode.
    """

    neff: bytes
    names: Names
    results: tuple[tuple[str, tuple[int, ...]], ...]
    report: Report
    casts: tuple[Cast, ...]
    dumps: dict[str, str]
    listing: str
    movable: tuple[str, ...] = ()


@without_collection()  # graphs and traces live to the end
def compile_module(
    module: Module,
    options: CompileOptions = CompileOptions(),  # noqa: B008  an immutable value
    *,
    path: str = "",
    dump_after: Sequence[str] = (),
    told: Told = _silent,
) -> Compiled:
    """Compile a module; `path` stands for the source of operations that name none, `told` hears what is being done.

    Raises CompileError with the documented code for what a rule refuses, UnsupportedGraphError for what this compiler
    does not do, NotFoundError for a pass that does not exist.
    """
    check_options(options)
    try:
        need_valid(module)
    except FormatError as error:
        raise failed("EVRF064", str(error)) from None
    graph = import_module(module, path)
    names = names_of(module, graph)
    # JAX counts its modules; the number says nothing about the graph.
    whole = module_bytes(replace(module, id=0))
    defaults = CompileOptions._field_defaults
    flags = {name: value for name, value in options._asdict().items() if value != defaults[name] and name not in _IDLE}
    members = {GRAPH: whole, FLAGS: json.dumps(flags).encode()} if len(whole) <= _MOST_GRAPH else {}
    return compile_graph(graph, names, options, name=module.name or "module", dump_after=dump_after, members=members,
                         told=told)  # fmt: skip


@without_collection()
def compile_graph(
    graph: Graph,
    names: Names,
    options: CompileOptions,
    *,
    name: str = "module",
    dump_after: Sequence[str] = (),
    members: Mapping[str, bytes] = MappingProxyType({}),
    told: Told = _silent,
) -> Compiled:
    """Compile a graph, as `compile_module` does a module; `members` are put into the file as they are."""
    unknown = [each for each in dump_after if each not in PASSES]
    if unknown:
        raise NotFoundError(f"no pass {unknown[0]!r}; there are {', '.join(PASSES)}")
    state = _State(options, [], [])
    kinds = tuple((one.dtype, one.shape) for one in graph.roots)
    dumps = {"import": graph.text()} if "import" in dump_after else {}
    for step_name, change in _STEPS:
        told(f"pass {step_name}")
        graph = change(graph, state)
        if step_name in dump_after:
            dumps[step_name] = graph.text()
    _check_memory(graph, options)

    def built(lowering: Lowering, traces: list[Trace]) -> BuiltNeff:
        tables = operation_tables(operations_of(graph, lowering, state.casts), options.cores)
        told(f"building {sum(len(one.ops) for one in traces):,} operations")
        return build(traces, name,
                     compression="none" if options.fast_loading else "gzip",
                     members={**tables, **members})  # fmt: skip

    found = chosen(graph, names, options, built, told)
    return Compiled(found.to_bytes(), names, kinds, found.report, tuple(state.casts), dumps, listing_of(graph),
                    tuple(state.movable))  # fmt: skip


def _check_memory(graph: Graph, options: CompileOptions) -> None:
    """Refuse a graph whose inputs and outputs alone are larger than device memory."""
    # A core has one HBM stack, or a logical core of two shares one (hardware.md 1.1).
    most = int(arch_of(options.chip).hbm_bytes.value)
    total = 0
    for value in (*graph.parameters, *graph.roots):
        total += value.size * element_type(value.dtype).given
        if total > most:
            raise failed("EOOM001", f"inputs and outputs take more than the {most} bytes of a core's device memory",
                         value.node.origin)  # fmt: skip
