"""The tensors of a NEFF: what goes in and out, and what the compiler's tensor map names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from neurontools.render.neff import tensor
from neurontools.render.table import bytes_text, count, table

if TYPE_CHECKING:
    from formats.neff import Neff, Subgraph

__all__ = ["tensor_lines", "tensors"]


def tensors(neff: Neff, graph: Subgraph) -> list[dict[str, Any]]:
    """Return inputs and outputs in call order, then what else the tensor map has, each with the variable behind it."""
    found: dict[str, dict[str, Any]] = {}
    for kind, items in (("input", neff.inputs), ("output", neff.outputs)):
        for item in items:
            found[item.name] = {**tensor(item), "kind": kind}
    for item in graph.tensors.values():
        found.setdefault(item.name, {**tensor(item), "kind": item.kind})
    for name, row in found.items():
        variable = graph.variables.get(name)
        row["var_id"] = None if variable is None else variable.var_id
        row["variable_bytes"] = None if variable is None else variable.size
    return list(found.values())


def tensor_lines(rows: list[dict[str, Any]]) -> list[str]:
    """Return `neff tensors` for people."""
    shown = [
        [
            row["name"], row["kind"] or "-", row["dtype"], "[" + ", ".join(map(str, row["shape"])) + "]", row["size"],
            row["var_id"],
        ]
        for row in rows
    ]  # fmt: skip
    total = sum(row["size"] or 0 for row in rows)
    return [
        *table(["tensor", "kind", "type", "shape", "bytes", "variable"], shown),
        f"{count(len(rows), 'tensor')}, {bytes_text(total)}",
    ]
