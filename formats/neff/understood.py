"""What of a file is not understood and could matter: keys without a reader, values without a meaning, bytes of words.

`formats.neff.ignored` and `formats.isa.understood` list what may be ignored, with the reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from formats.engines import ENGINES
from formats.named_tuple import NamedTuple
from formats.neff.agreement import in_file, in_subgraph
from formats.neff.definition import ENGINE_KEYS, EXTENDED_FEATURE, QUEUE_KINDS
from formats.neff.ignored import may_be_ignored
from formats.neff.transfers import MAX_DIMENSIONS

if TYPE_CHECKING:
    from formats.neff.container import Container
    from formats.neff.subgraph import Subgraph
    from formats.neff.transfers import Descriptor, DmaBlock

__all__ = ["READ_KEYS", "UnknownPart", "unknown_in_file", "unknown_in_subgraph", "unknown_in_words"]


class UnknownPart(NamedTuple):
    """Something that is not understood: where it stands, and what it is."""

    where: str
    message: str

    def __str__(self) -> str:
        return f"{self.where}: {self.message}"


# The keys of each kind of object that this toolkit reads and acts on, or checks. Descriptors, blocks and engine files
# keep theirs apart as they are parsed.
READ_KEYS: Mapping[str, frozenset[str]] = {
    kind: frozenset(keys.split())
    for kind, keys in {
        "graph": "nodes arg_nodes heads attrs node_row_ptr",
        "graph attrs": "shape dltype",
        "node": "op name inputs output_names attrs",
        "node attrs": "kelf",
        "kelf": "graphs target",
        "kelf graph": "name definition",
        "definition": " ".join(f"{key} {key}_instr {key}_asm_dbg {key}_dbg" for key in ENGINE_KEYS.values())
        + " name dma_dbg dma_queue var neff_features runtime_event_count runtime_semaphore_count"
        " runtime_statebuffer_reservation",
        "variable": "type var_id size alignment file_name backing_variable_off list referenced_var_id",
        "queue": "type owner num_queues semaphore_set semaphore queue_instances dynamic_dma",
        "dynamic_dma": "SB_scratch_partition_offset SB_scratch_partition_size",
        "reservation": "type base_partition partitions offset size",
        "engine": "",
        "dve table": "",
        "block": "",
        "descriptor": "",
        "transpose": "",
        "source": "",
        "activation set": "bkt_bin ctl_bin bkt_entry_cnt ctl_entry_cnt profile_meta_data func_to_bkt_start_idx",
        # What `emulator.activation_tables` computes with, or refuses where it is not 0.
        "activation profile": "func_name func_id exp_offset symmetry_opt_en symmetry_opt_use_neg_region"
        " sym_invert_sign_point symmetry_point fma_const_0 fma_const_1 fma_indirection_src_sel use_multipass"
        " fnan_result fpinf_result fninf_result fzero_result "
        + " ".join(
            f"pwl_control_base_{sign} small_{sign}_signal_exp_threshold large_{sign}_signal_exp_threshold"
            f" large_{sign}_signal_mantissa_threshold {sign}_small_signal_pwl_control {sign}_large_signal_pwl_control"
            for sign in ("pos", "neg")
        ),
    }.items()
}
_FEATURES = ("neff_feature_vnc", EXTENDED_FEATURE)
_OPS = ("null", "tvm_op")


def unknown_in_file(neff: Container) -> Iterator[UnknownPart]:
    """Yield what is not understood in the node graph and in the descriptions of compiled parts."""
    yield from (UnknownPart(*found) for found in in_file(neff))
    if "neff.json" in neff.archive:
        graph = neff.json_fields("neff.json")
        yield from _keys("graph", "neff.json", graph.raw)
        yield from _keys("graph attrs", "neff.json attrs", graph.object("attrs").raw)
        for node in graph.objects("nodes"):
            where = f"neff.json node {node.text('name', '')}"
            yield from _keys("node", where, node.raw)
            attrs = node.object("attrs")
            yield from _keys("node attrs", f"{where} attrs", attrs.raw)
            if node.text("op") not in _OPS or (node.text("op") != "null" and "kelf" not in attrs):
                yield UnknownPart(where, f"operation {node.text('op')!r} is no compiled part")
    for name in neff.kelf_members:
        kelf = neff.json_fields(name)
        yield from _keys("kelf", name, kelf.raw)
        for item in kelf.objects("graphs"):
            yield from _keys("kelf graph", f"{name} graph {item.text('name', '')}", item.raw)


def unknown_in_subgraph(subgraph: Subgraph) -> Iterator[UnknownPart]:
    """Yield what is not understood in the definition, variables, queues, tables and DMA blocks of a subgraph."""
    yield from _definition(subgraph)
    yield from (UnknownPart(*found) for found in in_subgraph(subgraph))
    for engine, file in subgraph.engine_files.items():
        where = subgraph.member(subgraph.definition.engines[engine].json or engine)
        yield from _keys("engine", where, file.extra)
        if file.act_semaphore is not None:
            yield from _keys("engine", where, {"act_semaphore": file.act_semaphore})
        for number, table in enumerate(file.dve_tables):
            yield from _keys("dve table", f"{where} dve_tables[{number}]", table)
        for block in file.dma:
            yield from _block(f"{where} dma {block.queue} {block.block_id}", block)
    for one in subgraph.activation_sets:
        yield from _keys("activation set", one.member, one.raw)
        for row, function in zip(one.raw.get("profile_meta_data", ()), one.functions, strict=True):
            yield from _keys("activation profile", f"{one.member} {function.name}", row)
        for entries in (one.buckets, one.controls):
            if (entry := entries.unknown_entry()) is not None:
                yield UnknownPart(entries.where, f"entry {entry} is not zero where nothing is known")


def unknown_in_words(subgraph: Subgraph) -> Iterator[UnknownPart]:
    """Yield the bytes that are not understood in the instruction words of a subgraph."""
    from formats.isa.understood import is_understood, unknown_bytes  # deferred: start-up
    from formats.isa.unknown import Unknown  # deferred: start-up

    for engine in ENGINES:
        if subgraph.definition.engines[engine].instructions is None:
            continue
        for pc, word in enumerate(subgraph.streams[engine]):
            if not is_understood(word) or isinstance(word, Unknown):
                where = f"{subgraph.name}/{engine} pc {pc}"
                yield from (UnknownPart(where, f"{word.name} {each}") for each in unknown_bytes(word))


def _definition(subgraph: Subgraph) -> Iterator[UnknownPart]:
    definition, where = subgraph.definition, subgraph.definition_member
    raw = subgraph.neff.json_fields(where)
    yield from _keys("definition", where, definition.raw)
    for feature in definition.features:
        if feature not in _FEATURES:
            yield UnknownPart(where, f"neff_features has {feature!r}, which is not known")
    for name, item in raw.named_objects("var"):
        yield from _keys("variable", f"{where} var {name}", item.raw)
    for name, item in raw.named_objects("dma_queue"):
        place, queue = f"{where} dma_queue {name}", definition.queues[name]
        yield from _keys("queue", place, item.raw)
        yield from _keys("dynamic_dma", f"{place} dynamic_dma", item.object("dynamic_dma").raw)
        if queue.kind not in QUEUE_KINDS or queue.kind == "embedding_update":
            yield UnknownPart(place, f"what a queue of type {queue.kind!r} does is not known")
        if queue.owner is not None and queue.engine is None:
            yield UnknownPart(place, f"owner {queue.owner!r} is not an engine")
    for number, item in enumerate(raw.objects("runtime_statebuffer_reservation")):
        yield from _keys("reservation", f"{where} runtime_statebuffer_reservation[{number}]", item.raw)


def _block(where: str, block: DmaBlock) -> Iterable[UnknownPart]:
    if block.extra:
        yield from _keys("block", where, block.extra)
    if block.instance_name is not None and block.instance_name != block.queue:
        yield UnknownPart(where, f"instance_name {block.instance_name!r} is not its queue")
    for number, one in enumerate(block.descriptors):
        if _is_plain(one):
            continue
        place = f"{where} descriptor {number}"
        most = max(map(len, (one.source_sizes, one.target_sizes, *(source.sizes for source in one.sources))))
        if most > MAX_DIMENSIONS:
            yield UnknownPart(place, f"has {most} dimensions, {MAX_DIMENSIONS} exist")
        kind = "descriptor" if one.transpose_op is None else "transpose"
        found = {**one.extra, "num_tiling_dimensions": one.num_tiling_dimensions}
        yield from _keys(kind, place, found)
        for source in one.sources:
            yield from _keys("source", f"{place} from_arr", source.extra)
        yield from (UnknownPart(place, f"{key} means nothing to operation {one.op!r}") for key in _misplaced(one))


def _is_plain(one: Descriptor) -> bool:
    """Return whether a descriptor is a copy or cast that says nothing else, as nearly all do."""
    return one.op in ("copy", "cast") and one.num_tiling_dimensions == 1 and not (
        one.extra or one.sources or one.transpose_op or one.transpose_shape or one.transpose_element_size is not None
        or one.scale != 1.0 or one.scale_dtype or max(len(one.source_sizes), len(one.target_sizes)) > MAX_DIMENSIONS
    )  # fmt: skip


def _misplaced(one: Descriptor) -> Iterator[str]:
    """Yield the keys that another operation would look at, but not this one."""
    if one.op != "fma":
        yield from (key for key, there in (("scale", one.scale != 1.0), ("scale_dtype", one.scale_dtype)) if there)
    if one.op != "transpose":
        yield from (key for key in ("transpose_shape", "transpose_op", "transpose_element_size")
                    if getattr(one, key) not in ((), None))  # fmt: skip


def _keys(kind: str, where: str, raw: Mapping[str, object]) -> Iterator[UnknownPart]:
    read = READ_KEYS[kind]
    for key, value in raw.items():
        if key not in read and not may_be_ignored(kind, key, value):
            text = repr(value)
            yield UnknownPart(where, f"key {key!r} with {text if len(text) <= 60 else text[:57] + '...'} is not known")
