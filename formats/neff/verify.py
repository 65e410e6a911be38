"""Every consistency rule of a NEFF that needs no execution: the file, its graph, and what follows per subgraph."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from formats.errors import FormatError
from formats.neff.archive import unsafe_names
from formats.neff.hashing import HASH_VARIANTS, SEEN_VARIANTS, matching_variant
from formats.neff.ignored import IGNORED_MEMBERS, OWN_MEMBERS
from formats.neff.problem import Problem, collect, error, remark
from formats.neff.understood import unknown_in_file
from formats.neff.verify_subgraph import SUBGRAPH_CHECKS

if TYPE_CHECKING:
    from formats.neff.container import Container
    from formats.neff.graph import TensorInfo
    from formats.neff.subgraph import Subgraph

__all__ = ["Problem", "graph_problems", "verify"]


def verify(neff: Container, read_subgraphs: Callable[[], Sequence[Subgraph]]) -> list[Problem]:
    """Return what is wrong with a file, errors and remarks in the order of the file; empty for a sound one.

    `read_subgraphs` raises FormatError where the file does not say which subgraphs it has.
    """
    problems = [*collect("header", _header(neff)), *collect("hash", _hash(neff)), *collect("archive", _archive(neff)),
                *collect("json", _json(neff))]  # fmt: skip
    try:
        subgraphs = read_subgraphs()
    except FormatError as damage:
        # Nothing inside a broken archive or beyond a missing kelf can be looked at; damage to the archive itself is
        # reported already.
        found = error("kelf", str(damage))
        return problems if any(problem.message == found.message for problem in problems) else [*problems, found]
    problems += [*collect("neff.json", graph_problems(neff, subgraphs)), *collect("kelf", _nodes(neff, subgraphs))]
    problems += collect("keys", (remark(*part) for part in unknown_in_file(neff)))
    problems += collect("members", _unnamed(neff, subgraphs))
    for subgraph in subgraphs:
        for name, check in SUBGRAPH_CHECKS.items():
            problems += collect(f"{subgraph.name} {name}", check(subgraph))
    return problems


def _header(neff: Container) -> Iterator[Problem]:
    header = neff.header
    missing = header.header_size + header.data_size - neff.size
    if missing > 0:
        yield error("header", f"file is {missing} bytes shorter than its header says")
    elif missing < 0:
        yield remark("header", f"file has {-missing} bytes after its data")
    if header.lnc_size not in (1, 2):
        yield remark("header", f"lnc_size is {header.lnc_size}, 1 or 2 in every known file")


def _hash(neff: Container) -> Iterator[Problem]:
    variant = matching_variant(neff.header.hash, neff.archive.data())
    if variant is None:
        yield error("hash", f"hash fits the data in none of the ways {', '.join(HASH_VARIANTS[:3])}")
    elif variant == "none":
        yield remark("hash", "the header holds no hash")
    elif variant not in SEEN_VARIANTS:
        yield remark("hash", f"hash is a {variant}, {' or '.join(SEEN_VARIANTS)} in every known file")


def _archive(neff: Container) -> Iterator[Problem]:
    for name, reason in unsafe_names(neff.members):
        yield error("archive", f"member {name!r} is {reason}")
    if not neff.archive.index.closed:
        yield remark("archive", "tar has no end block")
    tail = neff.archive.stream_length
    if tail and any(neff.archive.data()[tail:]):
        yield remark("archive", "bytes after the gzip stream are not zero")


def _unnamed(neff: Container, subgraphs: Sequence[Subgraph]) -> Iterator[Problem]:
    """Yield the files of subgraphs' folders that nothing names and no list explains: who wrote them means something."""
    named: set[str] = set()
    for subgraph in subgraphs:
        named.add(subgraph.definition_member)
        texts = set(_texts(dict(subgraph.definition.raw)))
        for file in subgraph.engine_files.values():
            texts |= {file.act_info or "", *_texts(list(file.dve_tables))}
        for one in subgraph.activation_sets:
            named |= {one.member, one.buckets.where, one.controls.where}
        named |= set(map(subgraph.member, (*texts, *OWN_MEMBERS)))
    folders = tuple(f"{subgraph.folder}/" for subgraph in subgraphs if subgraph.folder)
    for member in neff.members:
        ignored = member.name.endswith(tuple(IGNORED_MEMBERS))
        if member.kind == "file" and member.name.startswith(folders) and not ignored and member.name not in named:
            yield remark(member.name, "nothing in the file names this member, and what it means is not known")


def _texts(value: object, depth: int = 5) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, (dict, list)) and depth:
        for each in value.values() if isinstance(value, dict) else value:
            yield from _texts(each, depth - 1)


def _json(neff: Container) -> Iterator[Problem]:
    """Yield what readers of JSON understand differently: a key that stands twice, numbers that JSON does not have."""
    for member in neff.members:
        if member.kind != "file" or not member.name.endswith(".json"):
            continue
        found = _Ambiguous()
        try:
            json.loads(neff.parsed_bytes(member.name), object_pairs_hook=found.pairs, parse_constant=found.constant)
        except FormatError as damage:
            yield remark(member.name, f"not looked at: {damage.what}")
            continue
        except (ValueError, RecursionError):
            continue  # who needs the member says so
        yield from (error(member.name, f"key {key!r} stands twice in an object") for key in found.twice)
        yield from (error(member.name, f"{name} is not JSON") for name in found.constants)


class _Ambiguous:
    """Collect the keys that stand twice and the constants that are not JSON, and nothing else of a document."""

    def __init__(self) -> None:
        self.twice: dict[str, None] = {}
        self.constants: dict[str, None] = {}

    def pairs(self, found: list[tuple[str, object]]) -> None:
        """Note the keys of an object."""
        if len(found) > 1:
            self.twice |= {key: None for key, times in Counter(key for key, _ in found).items() if times > 1}

    def constant(self, name: str) -> None:
        """Note NaN, Infinity or -Infinity."""
        self.constants[name] = None


def graph_problems(neff: Container, subgraphs: Sequence[Subgraph]) -> Iterator[Problem]:
    """Yield where the graph's inputs and outputs do not fit the subgraphs' variables."""
    updated = {one.name for one in neff.inputs}
    outputs = neff.outputs
    for tensor in (*neff.inputs, *outputs):
        yield from _tensor(tensor, subgraphs, updated)
    if not outputs:
        yield remark("neff.json", "the graph has no output")


def _tensor(tensor: TensorInfo, subgraphs: Sequence[Subgraph], updated: set[str]) -> Iterator[Problem]:
    """Require of an input or output a variable of that kind and size in a subgraph, and of no other kind in any.

    An output named like an input (`updated`) is that input updated in place: its variable is of type `input`.
    """
    found = False
    for subgraph in subgraphs:
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
        yield error("neff.json", f"{tensor.kind} {tensor.name} is not a variable of any subgraph")


def _nodes(neff: Container, subgraphs: Sequence[Subgraph]) -> Iterator[Problem]:
    if not neff.target.emulated:  # an unknown code raises here
        yield remark("kelf", f"target {neff.target} is described, not emulated")
    if not subgraphs:
        yield error("kelf", "no subgraph")
    elif len(subgraphs) != neff.lnc:
        yield remark("kelf", f"{len(subgraphs)} subgraphs, lnc_size {neff.header.lnc_size}")
