"""Which of several programs for one graph is taken: by a guess of what two cores gain, or, at -O3, by the clock.

-O1 lowers every product and every kernel by itself. -O2 finishes products in their tiles (`epilogues`) and looks for
the best share of two cores. -O3 builds what -O2 does and variants of it, runs each on the emulator with inputs of zero,
and keeps the one that takes the least time. All give the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import inf

import numpy as np

from formats.errors import NeuronError
from formats.neff import open_neff
from neurontools.builder.built import BuiltNeff
from neurontools.builder.errors import AllocationError
from neurontools.builder.trace import Trace
from neurontools.compiler.element_types import element_type
from neurontools.compiler.fusion import REACH
from neurontools.compiler.graph import Graph
from neurontools.compiler.lowering import Lowering
from neurontools.compiler.options import CompileOptions
from neurontools.compiler.placing import direct_outputs
from neurontools.compiler.schedule import hoist_loads
from neurontools.compiler.signature import Names, declare_inputs, write_outputs

__all__ = ["Build", "Told", "chosen"]

# Work of two cores, in ns: pieces below the first figure are not shared, then the second; what a barrier costs.
_WORTH = (1_000.0, 10_000.0, 40_000.0)
_BARRIER = 8_000.0
_MOST_STEPS = 200_000  # instructions of a run that is only for its time

Build = Callable[[Lowering, list[Trace]], BuiltNeff]
Told = Callable[[str], None]
"""What is told, often, what the compiler is doing: for a line that a waiting person sees."""


def chosen(graph: Graph, names: Names, options: CompileOptions, build: Build, told: Told) -> BuiltNeff:
    """Return the program for a graph that the optimisation level asks for."""
    first = _guessed(graph, names, options, told)
    made = build(first, first.emitter.finish())
    if options.optlevel < 3:
        return made
    best, least = made, _time_of(made)
    for other in _variants(graph, names, options, first, build):
        time = _time_of(other)
        if time < least:
            best, least = other, time
    return best


def _variants(
    graph: Graph, names: Names, options: CompileOptions, first: Lowering, build: Build
) -> Iterator[BuiltNeff]:
    """Yield other programs of the same bits: loads hoisted, other shares for two cores."""
    known = {(first.saved, first.emitter.barriers)}
    for lowering in (first, *(_lower(graph, names, options, worth) for worth in (*_WORTH, inf) if options.cores > 1)):
        traces = lowering.emitter.finish()
        if lowering is not first:
            key = lowering.saved, lowering.emitter.barriers
            if key in known:
                continue
            known.add(key)
            yield build(lowering, traces)
        if sum(hoist_loads(trace) for trace in traces):
            try:
                yield build(lowering, traces)
            except AllocationError:
                continue  # it fits only as it was


def _time_of(made: BuiltNeff) -> float:
    """Return the emulated time of a program, infinity where it does not come to its end soon."""
    from emulator.runtime import run  # deferred: start-up
    from neurontools.program.arrays import array_type  # deferred: start-up

    try:
        neff = open_neff(made.to_bytes())
        zeros = {one.name: np.zeros(one.shape, array_type(one.dtype)) for one in neff.inputs}
        result = run(neff, zeros, max_steps=_MOST_STEPS)
    except NeuronError:
        return inf  # what zeros cannot show
    return float(result.time_ps) if result.ok else inf


def _guessed(graph: Graph, names: Names, options: CompileOptions, told: Told) -> Lowering:
    """Lower a graph; of two cores, the second takes as much as pays for the barriers between them."""
    if options.cores == 1:
        return _lower(graph, names, options, 0.0, told)
    best, most = None, 0.0
    for worth in _WORTH if options.optlevel > 1 else _WORTH[1:2]:
        lowering = _lower(graph, names, options, worth, told)
        gained = lowering.saved - lowering.emitter.barriers * _BARRIER
        if gained > most:
            best, most = lowering, gained
        if not lowering.saved or gained > lowering.saved / 2:
            break
    return best or _lower(graph, names, options, inf, told)


def _lower(graph: Graph, names: Names, options: CompileOptions, worth: float, told: Told | None = None) -> Lowering:
    lowering = Lowering(options.chip, options.cores, worth)
    lowering.epilogues = options.optlevel > 1
    lowering.reach = REACH[options.model_type]
    emitter = lowering.emitter
    emitter.saturate = options.saturate_infinity and options.chip.generation == "gen2"
    emitter.wide_sums = options.mixed_precision_accumulation
    emitter.reserve((*names.inputs, *names.outputs))
    emitter.output_kinds = frozenset((element_type(one.dtype).storage, one.shape or (1,)) for one in graph.roots)
    declare_inputs(lowering, graph.parameters, names.inputs)
    steps = lowering.steps(graph)
    lowering.direct = direct_outputs(graph, steps, names.outputs, options.cores)
    for number, step in enumerate(steps):
        if told is not None:
            told(f"lowering {number:,} of {len(steps):,}")
        lowering.step(step)
    write_outputs(lowering, graph.roots, [lowering.array(one) for one in graph.roots], names.outputs)
    return lowering
