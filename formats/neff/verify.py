"""Every consistency rule of a NEFF that needs no execution: the file, its graph, and what follows per subgraph."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from formats.errors import FormatError
from formats.neff.archive import unsafe_names
from formats.neff.hashing import HASH_VARIANTS, matching_variant
from formats.neff.header import HEADER_SIZE
from formats.neff.problem import Problem, collect, error, remark
from formats.neff.verify_subgraph import SUBGRAPH_CHECKS

if TYPE_CHECKING:
    from formats.neff.graph import TensorInfo
    from formats.neff.reader import Neff

__all__ = ["Problem", "graph_problems", "verify"]


def verify(neff: Neff) -> list[Problem]:
    """Return what is wrong with a file, errors and remarks in the order of the file; empty for a sound one."""
    problems = [*collect("header", _header(neff)), *collect("hash", _hash(neff)), *collect("archive", _archive(neff))]
    try:
        subgraphs = neff.subgraphs
    except FormatError as damage:
        # Nothing behind a broken archive or a missing kelf can be looked at; the archive's own damage is said already.
        found = error("kelf", str(damage))
        return problems if any(problem.message == found.message for problem in problems) else [*problems, found]
    problems += [*collect("neff.json", graph_problems(neff)), *collect("kelf", _nodes(neff))]
    for subgraph in subgraphs:
        for name, check in SUBGRAPH_CHECKS.items():
            problems += collect(f"{subgraph.name} {name}", check(subgraph))
    return problems


def _header(neff: Neff) -> Iterator[Problem]:
    header = neff.header
    missing = header.header_size + header.data_size - neff.size
    if missing > 0:
        yield error("header", f"file is {missing} bytes shorter than its header says")
    elif missing < 0:
        yield remark("header", f"file has {-missing} bytes behind its data")
    if header.header_size != HEADER_SIZE:
        yield remark("header", f"header_size is {header.header_size}, {HEADER_SIZE} in every known file")
    if header.pad:
        yield remark("header", "the last 468 bytes are not zero")
    if header.lnc_size not in (1, 2):
        yield remark("header", f"lnc_size is {header.lnc_size}, 1 or 2 in every known file")


def _hash(neff: Neff) -> Iterator[Problem]:
    variant = matching_variant(neff.header.hash, neff.archive.data())
    if variant is None:
        yield error("hash", f"hash fits the data in none of the ways {', '.join(HASH_VARIANTS[:3])}")
    elif variant == "none":
        yield remark("hash", "the header holds no hash")
    elif variant != HASH_VARIANTS[0]:
        yield remark("hash", f"hash is a {variant}, {HASH_VARIANTS[0]} in every known file")


def _archive(neff: Neff) -> Iterator[Problem]:
    for name, reason in unsafe_names(neff.members):
        yield error("archive", f"member {name!r} is {reason}")
    if not neff.archive.index.closed:
        yield remark("archive", "tar has no end block")
    tail = neff.archive.stream_length
    if tail and any(neff.archive.data()[tail:]):
        yield remark("archive", "bytes behind the gzip stream are not zero")


def graph_problems(neff: Neff) -> Iterator[Problem]:
    """Yield where the graph's inputs and outputs do not fit the subgraphs' variables."""
    for tensor in neff.inputs:
        yield from _tensor(neff, tensor)
    for tensor in neff.outputs:
        yield from _tensor(neff, tensor)
    if not neff.outputs:
        yield remark("neff.json", "the graph has no output")


def _tensor(neff: Neff, tensor: TensorInfo) -> Iterator[Problem]:
    """An input or output is a variable of that kind and size in at least one subgraph, and of no other kind in any.

    An output named like an input is that input updated in place: its variable is of type `input`.
    """
    found = False
    updated = {one.name for one in neff.inputs}
    for subgraph in neff.subgraphs:
        variable = subgraph.variables.get(tensor.name)
        if variable is None:
            continue
        found = True
        if variable.kind != tensor.kind and not (variable.kind == "input" and tensor.name in updated):
            yield error(
                "neff.json", f"{tensor.kind} {tensor.name} is a variable of type {variable.kind} in {subgraph.name}"
            )
        elif variable.size != tensor.nbytes:
            yield error(
                "neff.json",
                f"{tensor.kind} {tensor.name} takes {tensor.nbytes} bytes, its variable in "
                f"{subgraph.name} {variable.size}",
            )
    if not found:
        yield error("neff.json", f"{tensor.kind} {tensor.name} is no variable of any subgraph")


def _nodes(neff: Neff) -> Iterator[Problem]:
    if not neff.target.emulated:  # an unknown code raises here
        yield remark("kelf", f"target {neff.target} is described, not emulated")
    if not neff.subgraphs:
        yield error("kelf", "no subgraph")
    elif len(neff.subgraphs) != neff.lnc:
        yield remark("kelf", f"{len(neff.subgraphs)} subgraphs, lnc_size {neff.header.lnc_size}")
