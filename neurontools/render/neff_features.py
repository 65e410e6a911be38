"""The features of a NEFF: bits of the header, names in the definitions of its subgraphs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from neurontools.render.table import table

if TYPE_CHECKING:
    from formats.neff import Neff

__all__ = ["feature_lines", "features"]


def features(neff: Neff) -> dict[str, Any]:
    """Return the set bits of the header with how their names are known, and the names by subgraph."""
    from formats.neff.header import FEATURE_BITS, feature_names

    known = {feature.bit: feature for feature in FEATURE_BITS}
    bits = [bit for bit in range(64) if neff.header.feature_bits >> bit & 1]
    return {
        "feature_bits": neff.header.feature_bits,
        "bits": [
            {
                "bit": bit,
                "name": feature_names(1 << bit)[0],
                "provenance": known[bit].provenance if bit in known else "unknown",
                "cite": known[bit].cite if bit in known else None,
            }
            for bit in bits
        ],
        "subgraphs": {graph.name: list(graph.definition.features) for graph in neff.subgraphs},
    }


def feature_lines(found: dict[str, Any]) -> list[str]:
    """Return `neff features` for people."""
    rows = [[one["bit"], one["name"], one["provenance"], one["cite"]] for one in found["bits"]]
    lines = [f"header: 0x{found['feature_bits']:x}"]
    if rows:
        lines += ["", *table(["bit", "name", "known by", "source"], rows), ""]
    return lines + [f"{name}: {', '.join(names) or 'none'}" for name, names in found["subgraphs"].items()]
