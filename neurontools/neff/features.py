"""`neurontools neff features`: what a NEFF asks of the runtime that loads it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from formats.named_tuple import NamedTuple
from neurontools.command.files import open_neff_file
from neurontools.command.lazy import command_app
from neurontools.command.options import Json, NeffFile
from neurontools.command.output import report
from neurontools.text.table import table

if TYPE_CHECKING:
    from formats.neff import Neff


class BitRow(NamedTuple):
    """One set bit of the header, and how its name is known."""

    bit: int
    name: str
    provenance: str
    cite: str | None


class Features(NamedTuple):
    """The result of `neff features`: the header's bits, and the names in the definition of each subgraph."""

    feature_bits: int
    bits: list[BitRow]
    subgraphs: dict[str, tuple[str, ...]]


def asked_of_the_runtime(neff: Neff) -> Features:
    """Return the set bits of the header with how their names are known, and the names by subgraph."""
    from formats.neff.header import FEATURE_BITS, feature_names  # deferred: start-up

    known = {feature.bit: feature for feature in FEATURE_BITS}
    bits = neff.header.feature_bits
    rows = []
    for bit in (bit for bit in range(64) if bits >> bit & 1):
        source = (known[bit].provenance, known[bit].cite) if bit in known else ("unknown", None)
        rows.append(BitRow(bit, feature_names(1 << bit)[0], *source))
    return Features(bits, rows, {graph.name: graph.definition.features for graph in neff.subgraphs})


def view(found: Features) -> list[str]:
    """Return the features for people."""
    lines = [f"header: 0x{found.feature_bits:x}"]
    if found.bits:
        lines += ["", *table(["bit", "name", "known by", "source"], found.bits), ""]
    return lines + [f"{name}: {', '.join(names) or 'none'}" for name, names in found.subgraphs.items()]


def features(file: NeffFile, json: Json = False) -> None:
    """List what a NEFF asks of the runtime.

    Bits of the header, and names in its definitions.  How the name of a bit is known stands beside it; a bit without a
    known name is unknown-N.
    """
    with report("neff features", json, file=file) as out:
        found = asked_of_the_runtime(open_neff_file(file))
        out.result = found
        out.lines = lambda: view(found)


app = command_app(features, result=Features)
