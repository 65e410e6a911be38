"""Where parts of a file that say the same do not agree, or say what no part of a chip can be, as (where, what).

The compiler writes some things twice: an engine's instruction file, the wiring of the graph, how many cores there are.
Where the two differ it is not known which one the runtime follows, so such a file is not executed. All 54 readable
public files agree in all of this (formats.md 2.1, 3.3, 3.5).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container as Holding
from collections.abc import Iterator
from itertools import accumulate
from typing import TYPE_CHECKING

from formats.neff.fields import Fields
from formats.neff.header import FEATURE_BITS, HEADER_SIZE
from formats.neff_versions import NEFF_VERSIONS
from formats.neuron_core import PARTITIONS, SBUF_BYTES, SYNC_COUNT

if TYPE_CHECKING:
    from formats.neff.container import Container
    from formats.neff.subgraph import Subgraph

__all__ = ["RESERVATION_KINDS", "in_file", "in_subgraph"]

Found = Iterator[tuple[str, str]]

_MOST_BYTES = max(SBUF_BYTES.values())  # of a partition
RESERVATION_KINDS = ("evtaccel",)  # formats.md 3.5
_SHOWN = 60
_TAGS = {"shape": "list_shape", "dltype": "list_str"}
_PACKAGES = (1, 2)  # versions that are documented, and say how the hash is made (formats.md 2.1)
_FEATURES = sum(1 << feature.bit for feature in FEATURE_BITS)
# What means something to one kind of variable alone (formats.md 3.5): its key, how it is called here, the kind.
_OWN = (
    ("file_name", "file_name", "file"),
    ("backing_variable_off", "backing_offset", "virtual"),
    ("list", "entries", "dge-table"),
    ("referenced_var_id", "referenced_var_id", "pointer"),
)


def in_file(neff: Container) -> Found:
    """Yield what does not agree in the members, the header, the node graph and what the file says of its cores."""
    members = Counter(member.name for member in neff.members if member.kind == "file")
    yield from ((name, "is the name of two members") for name, count in members.items() if count > 1)
    yield from _header(neff)
    if "neff.json" in neff.archive:
        yield from _graph(neff.json_fields("neff.json"))
        yield from _parts(neff, neff.json_fields("neff.json"))
    said = {"header": neff.header.num_tpb, "header requested_tpb_count": neff.header.requested_tpb_count}
    if "info.json" in neff.archive:
        info = neff.json_fields("info.json")
        said |= {f"info.json {key}": info.integer(key, 1) for key in ("num_tpb", "num_tpb_requested")}
        further = info.integers("num_tpb_per_node")[1:]
        if any(further):
            yield "info.json num_tpb_per_node", "asks for cores of further nodes"
    for where, number in said.items():
        if number not in (0, 1):  # cores of one logical core count as one (formats.md 2.1)
            yield where, f"asks for {number} logical cores; programs of one are known"


def _header(neff: Container) -> Found:
    """Yield what the header asks for and nobody knows: its feature bits are those that no reader may pass over."""
    header = neff.header
    if header.header_size != HEADER_SIZE:
        yield "header", f"header_size is {header.header_size}; what a longer header says is not known"
    if header.pkg_version not in _PACKAGES:
        yield "header", f"pkg_version {header.pkg_version} is not known"
    if header.neff_version not in NEFF_VERSIONS:
        yield "header", f"NEFF version {header.neff_version_major}.{header.neff_version_minor} is not known"
    unknown = header.feature_bits & ~_FEATURES
    yield from (("header", f"feature bit {bit} is not known") for bit in range(64) if unknown >> bit & 1)
    if header.pad:
        yield "header", "the last 468 bytes are not zero"
    if any(header.tpb_per_node[1:]):
        yield "header tpb_per_node", "asks for cores of further nodes"
    cores = sum(len(kelf.graphs) for kelf in neff.kelfs)
    if cores != neff.lnc:
        yield "header", f"lnc_size is {header.lnc_size}, there are {cores} subgraphs"


def _graph(graph: Fields) -> Found:
    where, attrs = graph.where, graph.object("attrs")
    nodes = list(graph.objects("nodes"))
    outputs = [len(node.texts("output_names")) for node in nodes]
    rows = [0, *accumulate(outputs)]
    if list(graph.integers("node_row_ptr")) != rows:
        yield where, f"node_row_ptr is not {_short(rows)}, as the outputs of its nodes have it"
    for key, tag in _TAGS.items():
        pair = attrs.array(key)
        if pair[:1] != [tag]:
            yield f"{where} attrs", f"{key} is tagged {_short(pair[:1])}, not {tag!r}"
        if len(pair) == 2 and isinstance(pair[1], list) and len(pair[1]) != rows[-1]:
            yield f"{where} attrs", f"{key} has {len(pair[1])} entries for {rows[-1]} outputs of nodes"
    names = Counter(node.text("name", "") for node in nodes)
    yield from ((where, f"{count} nodes are called {name!r}") for name, count in names.items() if count > 1)
    inputs = [number for number, node in enumerate(nodes) if node.text("op") == "null"]
    if sorted(graph.integers("arg_nodes")) != inputs:
        yield where, f"arg_nodes are not its input nodes {_short(inputs)}"
    given = frozenset(inputs)
    parts = [number for number in range(len(nodes)) if number not in given]
    yield from _references(graph, "heads", frozenset(parts), outputs, where)
    for number in parts:
        node, place = nodes[number], f"{where} node {nodes[number].text('name', '')}"
        yield from _references(node, "inputs", given if len(parts) == 1 else range(len(nodes)), outputs, place)
        for key, count in (("num_inputs", len(node.array("inputs"))), ("num_outputs", outputs[number])):
            text = node.object("attrs").text(key, str(count))
            if text != str(count):
                yield place, f"{key} is {_short(text)}, there are {count}"


def _parts(neff: Container, graph: Fields) -> Found:
    """Yield what a compiled node and the subgraphs it is made of do not agree in: each core gives its outputs once."""
    for node in graph.objects("nodes"):
        kelf = node.object("attrs").text("kelf", "")
        if kelf not in neff.archive:
            continue
        definitions = [item.text("definition", "") for item in neff.json_fields(kelf).objects("graphs")]
        twice = [name for name, count in Counter(definitions).items() if count > 1]
        yield from ((kelf, f"graphs has {_short(name)} twice") for name in twice)
        for name, count in Counter(node.texts("output_names")).items():
            if count > max(len(definitions), 1):
                yield (f"{graph.where} node {node.text('name', '')}",
                       f"{_short(name)} is an output of {count} cores, {kelf} has {len(definitions)}")  # fmt: skip


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."


def _references(fields: Fields, key: str, allowed: Holding[int], outputs: list[int], where: str) -> Found:
    """Yield the references to outputs of nodes that are not [node, output, 0], or stand there twice."""
    seen: set[tuple[int, int]] = set()
    for item in fields.array(key):
        if not isinstance(item, list) or len(item) != 3 or any(type(part) is not int for part in item) or item[2]:
            yield where, f"{key} has {_short(item)}; known is [node, output, 0]"
            continue
        node, output = item[:2]
        if node not in allowed or not 0 <= output < outputs[node]:
            yield where, f"{key} has {_short(item)}, which is no tensor that can stand there"
        elif (node, output) in seen:
            yield where, f"{key} has {_short(item)} twice"
        seen.add((node, output))


def in_subgraph(subgraph: Subgraph) -> Found:
    """Yield what does not agree in the definition of a subgraph, its engines' files and its DMA blocks."""
    definition, where = subgraph.definition, subgraph.definition_member
    for key, count, most in (("runtime_event_count", definition.runtime_event_count, SYNC_COUNT),
                             ("runtime_semaphore_count", definition.runtime_semaphore_count, SYNC_COUNT)):  # fmt: skip
        if not 0 <= count <= most:
            yield where, f"{key} is {count}; a core has {most}"
    for name, variable in definition.variables.items():
        if not 0 <= variable.var_id < 1 << 32:
            yield f"{where} var {name}", f"var_id {variable.var_id} is no number that a word can hold"
        for key, attribute, kind in _OWN:
            if getattr(variable, attribute) not in (None, ()) and variable.kind != kind:
                yield f"{where} var {name}", f"{key} means nothing to a variable of type {variable.kind!r}"
        if (begin := variable.backing_offset or 0) < 0:
            yield f"{where} var {name}", f"begins {-begin} bytes before the scratchpad"
    tables = [name for name, variable in definition.variables.items() if variable.kind == "dge-table"]
    if len(tables) > 1:
        yield where, f"which of the tables {_short(tables)} words index is not known"
    for name, queue in definition.queues.items():
        place, taken = f"{where} dma_queue {name}", Counter(queue.all_semaphores)
        yield from ((place, f"semaphore {index} stands there twice") for index, count in taken.items() if count > 1)
        for index in taken:
            if not definition.runtime_semaphore_count <= index < SYNC_COUNT:
                own = 0 <= index < definition.runtime_semaphore_count
                yield place, f"semaphore {index} is the runtime's own" if own else f"there is no semaphore {index}"
        offset, size = queue.scratch_offset or 0, queue.scratch_size or 0
        if min(offset, size) < 0 or offset + size > _MOST_BYTES:
            yield place, f"scratch memory of {size} bytes at {offset} lies in no partition"
    for number, one in enumerate(definition.reservations):
        place = f"{where} runtime_statebuffer_reservation[{number}]"
        if one.kind not in RESERVATION_KINDS:
            yield place, f"what a reservation of type {one.kind!r} is for is not known"
        numbers = one.base_partition, one.partitions, one.offset, one.size
        if min(numbers) < 0 or one.base_partition + one.partitions > PARTITIONS or (
            one.offset + one.size > _MOST_BYTES
        ):  # fmt: skip
            yield place, "lies outside of the state buffer"
    for engine, file in subgraph.engine_files.items():
        place = subgraph.member(definition.engines[engine].json or engine)
        named = definition.engines[engine].instructions
        if file.instructions is not None and file.instructions != named:
            yield place, f"instr is {file.instructions!r}, the definition has {named!r}"
        for block in file.dma:
            owner = subgraph.queue_of(block.queue)
            if owner is not None and owner.engine not in (None, engine):
                yield f"{place} dma {block.queue} {block.block_id}", f"its queue is one of {owner.engine}"
            if owner is None or block.semaphore is None or not owner.all_semaphores:
                continue
            if block.semaphore not in owner.all_semaphores:
                yield (f"{place} dma {block.queue} {block.block_id}",
                       f"semaphore {block.semaphore} is none of the queue's")  # fmt: skip
