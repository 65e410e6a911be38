"""Which results may be written to their outputs at once, and which only when everything has read the inputs.

A caller may pass one tensor as input and as output, but only where type and shape are the same. So an output is written
by the step that makes it if no later step reads an input of its kind, and this one reads such an input before it
writes anything, or only element by element, at the very place that it writes.
"""

from __future__ import annotations

from collections.abc import Sequence

from neurontools.compiler.dots import loads_first
from neurontools.compiler.elementwise import ELEMENTWISE
from neurontools.compiler.epilogues import Finished, Step
from neurontools.compiler.fusion import Group, squeezed
from neurontools.compiler.graph import Graph, Node, Value

__all__ = ["VIEWS", "direct_outputs"]

VIEWS = frozenset({"reshape", "bitcast", "transpose", "broadcast", "slice", "reverse", "bitcast-convert"})
_WIDE = ("s64", "u64")


def direct_outputs(graph: Graph, steps: Sequence[Step], names: Sequence[str], cores: int = 1) -> dict[Value, str]:
    """Return the results that are written to their outputs by the steps that make them, with the outputs' names."""
    sources: dict[Value, set[Value]] = {one: {one} for one in graph.parameters}
    plain = set(graph.parameters)  # whose elements lie as the input has them
    last: dict[Value, int] = {}
    made: dict[Value, int] = {}
    for number, step in enumerate(steps):
        results = step.results if isinstance(step, Node) else _kernel(step).outputs
        for value in results:
            made[value] = number
        read = step.inputs if isinstance(step, Group) else step.operands
        if isinstance(step, Node) and step.opcode in VIEWS:
            # It may be a copy, too, and then it reads here.
            sources[step.result] = sources.get(step.operands[0], set())
            if step.opcode == "reshape" and step.operands[0] in plain:
                plain.add(step.result)
        for value in read:
            for source in sources.get(value, ()):
                last[source] = number
    for value in graph.roots:
        for source in sources.get(value, ()):
            last[source] = len(steps)  # copied at the end
    found: dict[Value, str] = {}
    for value, name in zip(graph.roots, names, strict=True):
        number = made.get(value, -1)
        if number < 0 or value in found or value.dtype in _WIDE or not value.size:
            continue
        step = steps[number]
        if isinstance(step, Node) and step.opcode in (*VIEWS, "constant", "iota", "parameter", "gather"):
            continue
        rivals = [one for one in graph.parameters if (one.dtype, one.shape) == (value.dtype, value.shape)]
        if all(_apart(one, last.get(one, -1), number, step, sources, plain, cores) for one in rivals):
            found[value] = name
    return found


def _kernel(step: Group | Finished) -> Group:
    return step if isinstance(step, Group) else step.group


def _apart(
    rival: Value,
    last: int,
    number: int,
    step: Step,
    sources: dict[Value, set[Value]],
    plain: set[Value],
    cores: int,
) -> bool:
    """Return whether an input that may be the output's own memory is not hurt when the step writes that."""
    if last < number:
        return True
    if last > number:
        return False
    if isinstance(step, Finished):
        return False
    if isinstance(step, Node):
        return step.opcode == "dot" and cores == 1 and loads_first(step)  # one core may write while another loads
    reading = [one for one in step.inputs if rival in sources.get(one, ())]
    whole = all(one in plain and squeezed(one.shape) == step.shape for one in reading)
    return (
        whole
        and len(step.outputs) == 1
        and all(one.opcode in ELEMENTWISE or one.opcode in ("reduce", "broadcast", "reshape") for one in step.nodes)
    )
