"""The node graph of a NEFF, as text and as a drawing for Graphviz."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from neurontools.render.table import table

if TYPE_CHECKING:
    from formats.neff import Neff

__all__ = ["dot_lines", "graph", "graph_lines"]


def graph(neff: Neff) -> dict[str, Any]:
    """Return nodes, what they read, and the compiled parts that they name."""
    nodes = neff.graph.nodes
    names = [node.name or f"node {number}" for number, node in enumerate(nodes)]
    kelfs = dict(zip(dict.fromkeys(node.kelf for node in nodes if node.kelf), map(_kelf, neff.kelfs), strict=False))
    return {
        "nodes": [
            {
                "index": number,
                "name": names[number],
                "kind": "input" if node.op == "null" else "compiled" if node.kelf else node.op,
                "reads": [_output_name(nodes, names, item) for item in node.inputs],
                "makes": list(node.output_names),
                "kelf": node.kelf,
            }
            for number, node in enumerate(nodes)
        ],
        "kelfs": kelfs,
        "outputs": [item.name for item in neff.outputs],
    }


def _kelf(kelf: Any) -> dict[str, Any]:
    return {
        "target": kelf.target,
        "version": kelf.version,
        "subgraphs": [{"name": part, "definition": member} for part, member in kelf.graphs],
    }


def _output_name(nodes: Any, names: list[str], reference: tuple[int, ...]) -> str:
    node, output = reference[:2]
    if not 0 <= node < len(nodes):
        return f"node {node}"
    made = nodes[node].output_names
    return made[output] if 0 <= output < len(made) else names[node]


def graph_lines(found: dict[str, Any]) -> list[str]:
    """Return `neff graph` for people."""
    rows = [
        [n["index"], n["name"], n["kind"], ", ".join(n["reads"]) or "-", ", ".join(dict.fromkeys(n["makes"])) or "-"]
        for n in found["nodes"]
    ]
    lines = table(["node", "name", "kind", "reads", "makes"], rows)
    for name, kelf in found["kelfs"].items():
        parts = ", ".join(f"{part['name']} ({part['definition']})" for part in kelf["subgraphs"])
        lines.append(f"{name}: {kelf['target'] or 'no target'}, runs {parts}")
    return [*lines, "outputs: " + (", ".join(found["outputs"]) or "none")]


def dot_lines(found: dict[str, Any]) -> list[str]:
    """Return the graph in the DOT language."""
    makers = {made: node["index"] for node in found["nodes"] for made in node["makes"]}
    lines = ["digraph neff {", "  rankdir=LR;"]
    for node in found["nodes"]:
        shape = "ellipse" if node["kind"] == "input" else "box"
        lines.append(f"  n{node['index']} [shape={shape}, label={_quoted(node['name'])}];")
    for node in found["nodes"]:
        for read in node["reads"]:
            if read in makers:
                lines.append(f"  n{makers[read]} -> n{node['index']} [label={_quoted(read)}];")
    for number, name in enumerate(found["outputs"]):
        lines.append(f"  out{number} [shape=ellipse, label={_quoted(name)}];")
        if name in makers:
            lines.append(f"  n{makers[name]} -> out{number};")
    return [*lines, "}"]


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
