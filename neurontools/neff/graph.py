"""`neurontools neff graph`: the node graph, as text, JSON or DOT."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from formats.named_tuple import NamedTuple
from neurontools.command.files import open_neff_file
from neurontools.command.lazy import command_app
from neurontools.command.options import Json, NeffFile
from neurontools.command.output import report
from neurontools.text.table import table

if TYPE_CHECKING:
    from formats.neff import Neff
    from formats.neff.graph import Node


@dataclass(frozen=True)
class NodeRow:
    """One node: what it reads and makes, by name."""

    index: int
    name: str
    kind: Annotated[str, "input, compiled, or the file's own word for another operation"]
    reads: list[str]
    makes: tuple[str, ...]
    kelf: Annotated[str | None, "the member that describes a compiled node"]


class PartRow(NamedTuple):
    """One subgraph of a compiled node."""

    name: str
    definition: str


class KelfRow(NamedTuple):
    """One compiled node."""

    target: str
    version: str
    subgraphs: list[PartRow]


class NodeGraph(NamedTuple):
    """The result of `neff graph`."""

    nodes: list[NodeRow]
    kelfs: dict[str, KelfRow]
    outputs: list[str]


def node_graph(neff: Neff) -> NodeGraph:
    """Return nodes, what they read, and the compiled parts that they name."""
    nodes = neff.graph.nodes
    names = [node.name or f"node {number}" for number, node in enumerate(nodes)]
    kelfs = [
        KelfRow(kelf.target, kelf.version, [PartRow(part, member) for part, member in kelf.graphs])
        for kelf in neff.kelfs
    ]
    return NodeGraph(
        [
            NodeRow(
                number,
                names[number],
                "input" if node.op == "null" else "compiled" if node.kelf else node.op,
                [_output_name(nodes, names, *item[:2]) for item in node.inputs],
                node.output_names,
                node.kelf,
            )
            for number, node in enumerate(nodes)
        ],
        # The file's compiled nodes are read in the order in which the graph names them; without a name there is no row.
        dict(zip(dict.fromkeys(node.kelf for node in nodes if node.kelf), kelfs, strict=False)),
        [item.name for item in neff.outputs],
    )


def _output_name(nodes: Sequence[Node], names: list[str], node: int, output: int) -> str:
    if not 0 <= node < len(nodes):
        return f"node {node}"
    made = nodes[node].output_names
    return made[output] if 0 <= output < len(made) else names[node]


def view(found: NodeGraph) -> list[str]:
    """Return the graph for people."""
    rows = [
        [one.index, one.name, one.kind, ", ".join(one.reads) or "-", ", ".join(dict.fromkeys(one.makes)) or "-"]
        for one in found.nodes
    ]
    lines = table(["node", "name", "kind", "reads", "makes"], rows)
    for name, kelf in found.kelfs.items():
        parts = ", ".join(f"{part.name} ({part.definition})" for part in kelf.subgraphs)
        lines.append(f"{name}: {kelf.target or 'no target'}, runs {parts}")
    return [*lines, "outputs: " + (", ".join(found.outputs) or "none")]


def dot_view(found: NodeGraph) -> list[str]:
    """Return the graph in the DOT language."""
    makers = {made: node.index for node in found.nodes for made in node.makes}
    lines = ["digraph neff {", "  rankdir=LR;"]
    for node in found.nodes:
        shape = "ellipse" if node.kind == "input" else "box"
        lines.append(f"  n{node.index} [shape={shape}, label={_quoted(node.name)}];")
    for node in found.nodes:
        for read in node.reads:
            if read in makers:
                lines.append(f"  n{makers[read]} -> n{node.index} [label={_quoted(read)}];")
    for number, name in enumerate(found.outputs):
        lines.append(f"  out{number} [shape=ellipse, label={_quoted(name)}];")
        if name in makers:
            lines.append(f"  n{makers[name]} -> out{number};")
    return [*lines, "}"]


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def graph(
    file: NeffFile,
    dot: Annotated[bool, typer.Option("--dot", help="Print the graph in the DOT language of Graphviz.")] = False,
    json: Json = False,
) -> None:
    """Show the node graph of a NEFF.

    Inputs, compiled parts with their subgraphs, outputs.
    """
    if dot and json:
        raise typer.BadParameter("give --dot or --json, not both", param_hint="--dot")
    with report("neff graph", json, file=file) as out:
        found = node_graph(open_neff_file(file))
        out.result = found
        out.lines = lambda: dot_view(found) if dot else view(found)


app = command_app(graph, result=NodeGraph)
