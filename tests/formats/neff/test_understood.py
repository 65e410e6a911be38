"""No key or value of a file is passed over in silence: it is read, stands on the list, or is refused by name."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from emulator.device import Device
from formats import isa
from formats.errors import FormatError, UnsupportedError
from formats.neff import FEATURE_BITS, Descriptor, Header, Neff, open_neff
from formats.neff.ignored import IGNORED, IGNORED_MEMBERS
from formats.neff.understood import READ_KEYS, unknown_in_file, unknown_in_subgraph, unknown_in_words
from tests.emulator.dma_programs import PARTITION, gen2, trigger, wait
from tests.formats.neff.support import contents, fixture, plain_tar, wrapped

RUN = 512


def descriptor(**changes: Any) -> Descriptor:
    fields: dict[str, Any] = {
        "source": "x", "source_offset": 0, "source_sizes": (RUN, 64), "source_steps": (1, RUN),
        "target": "SB", "target_offset": 0x4000, "target_sizes": (256, 128), "target_steps": (1, PARTITION),
        "source_dtype": "float32", "target_dtype": "float32",
    }  # fmt: skip
    return Descriptor(**{**fields, **changes})


def program(first: Descriptor) -> bytes:
    """Return a file with an object of every kind: two DMA blocks, one of two sources, tables, a reservation."""
    back = descriptor(source="SB", source_offset=0x4000, source_sizes=(256, 128), source_steps=(1, PARTITION),
                      target="y", target_offset=0, target_sizes=(256, 128), target_steps=(1, 256))  # fmt: skip
    words = [trigger(0), trigger(1, **wait(8)), isa.Nop(**wait(9))]
    neff = gen2({0: (8, [first]), 1: (9, [back])}, words,
                inputs={"x": ("float32", (64, 128))}, outputs={"y": ("float32", (128, 64))})  # fmt: skip
    return neff.to_bytes()


TRANSPOSE = {"op": "transpose", "transpose_op": "WZXY", "transpose_shape": (1, 1, 64, 64), "transpose_element_size": 4}


def edited(data: bytes, member: str, change: Callable[[Any], None]) -> Neff:
    files = contents(data)
    document = json.loads(files[member])
    change(document)
    files[member] = json.dumps(document).encode()
    return open_neff(wrapped(plain_tar(files), data))


def unknown(neff: Neff) -> list[str]:
    parts = [*unknown_in_file(neff)]
    for graph in neff.subgraphs:
        parts += [*unknown_in_subgraph(graph), *unknown_in_words(graph)]
    return [str(part) for part in parts]


def refused(neff: Neff) -> str:
    with pytest.raises(UnsupportedError) as caught:
        Device(neff.target, cores=len(neff.subgraphs)).load(neff)
    return str(caught.value)


def block(document: Any) -> Any:
    return document["dma"][0]


OBJECTS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "graph": ("neff.json", lambda d: d),
    "graph attrs": ("neff.json", lambda d: d["attrs"]),
    "node": ("neff.json", lambda d: d["nodes"][0]),
    "node attrs": ("neff.json", lambda d: d["nodes"][-1]["attrs"]),
    "kelf": ("kelf-0.json", lambda d: d),
    "kelf graph": ("kelf-0.json", lambda d: d["graphs"][0]),
    "definition": ("sg00/def.json", lambda d: d),
    "variable": ("sg00/def.json", lambda d: d["var"]["x"]),
    "queue": ("sg00/def.json", lambda d: d["dma_queue"]["qSPIO0"]),
    "dynamic_dma": ("sg00/def.json", lambda d: d["dma_queue"]["qSPIO0"].setdefault("dynamic_dma", {})),
    "reservation": ("sg00/def.json", lambda d: _first(d, "runtime_statebuffer_reservation", type="evtaccel")),
    "engine": ("sg00/SP.json", lambda d: d),
    "dve table": ("sg00/DVE.json", lambda d: _first(d, "dve_tables")),
    "block": ("sg00/SP.json", block),
    "descriptor": ("sg00/SP.json", lambda d: block(d)["desc"][0]),
    "transpose": ("sg00/SP.json", lambda d: block(d)["desc"][0]),
    "source": ("sg00/SP.json", lambda d: _source(block(d)["desc"][0])),
    "activation set": ("sg00/exp_and_more.json", lambda d: d),
    "activation profile": ("sg00/exp_and_more.json", lambda d: d["profile_meta_data"][0]),
}


def _first(document: Any, key: str, **values: Any) -> Any:
    rows = document.setdefault(key, [])
    if not rows:
        rows.append(values)
    return rows[0]


def _source(one: Any) -> Any:
    keys = [key for key in one if key.startswith("from")]
    one["op"], one["from_arr"] = "add", [{key: one.pop(key) for key in keys}]
    return one["from_arr"][0]


def base(kind: str) -> bytes:
    if kind.startswith("activation"):
        return fixture()
    return program(descriptor(**(TRANSPOSE if kind == "transpose" else {})))


def test_every_kind_of_object_is_tried() -> None:
    assert set(OBJECTS) == set(READ_KEYS)
    assert {one.kind for one in IGNORED} <= set(READ_KEYS)
    assert all(one.reason for one in IGNORED) and all(IGNORED_MEMBERS.values())
    assert not [one for one in IGNORED if one.key in READ_KEYS[one.kind]]


@pytest.mark.parametrize("kind", OBJECTS)
def test_an_unknown_key_is_refused_by_name(kind: str) -> None:
    member, find = OBJECTS[kind]
    neff = edited(base(kind), member, lambda document: find(document).update(surprise="x"))
    (found,) = unknown(neff)
    assert member in found and "key 'surprise' with 'x' is not known" in found
    assert found in refused(neff)
    assert [one.message for one in neff.verify() if "surprise" in one.message]


@pytest.mark.parametrize("one", IGNORED, ids=lambda one: f"{one.kind}-{one.key}")
def test_a_key_of_the_list_is_ignored_at_its_values_alone(one: Any) -> None:
    member, find = OBJECTS[one.kind]
    for value in one.values or (0, "x", [1]):
        try:
            found = unknown(edited(base(one.kind), member, lambda d, value=value: find(d).update({one.key: value})))
        except FormatError:  # a value of another kind than the key has
            continue
        assert not [text for text in found if repr(one.key) in text]
    if one.values is not None:
        other = {dict: {"surprise": 1}, list: [1], int: 7, str: "surprise"}[type(one.values[-1])]
        assert one.key in refused(edited(base(one.kind), member, lambda d: find(d).update({one.key: other})))


def _deeper(one: Any, side: str) -> None:
    one[f"{side}_sizes"] += [1] * 3
    one[f"{side}_steps"] += [0] * 3


VALUES: list[tuple[str, Callable[[Any], Any], str]] = [
    ("sg00/def.json", lambda d: d["neff_features"].append("surprise"), "neff_features has 'surprise'"),
    ("sg00/def.json", lambda d: d["dma_queue"]["qSPIO0"].update(type="embedding_update"), "type 'embedding_update'"),
    ("sg00/def.json", lambda d: d["dma_queue"]["qSPIO0"].update(owner="nobody"), "owner 'nobody' is not an engine"),
    ("neff.json", lambda d: d["nodes"][-1].update(op="cpu_op"), "operation 'cpu_op' is no compiled part"),
    ("sg00/SP.json", lambda d: block(d).update(instance_name="q2"), "instance_name 'q2' is not its queue"),
    ("sg00/SP.json", lambda d: block(d)["desc"][0].update(transpose_shape=[1, 1, 64, 64]), "transpose_shape means"),
    ("sg00/SP.json", lambda d: block(d)["desc"][0].update(scale=2.0), "scale means nothing to operation 'copy'"),
    ("sg00/SP.json", lambda d: block(d)["desc"][0].update(scale_dtype="float32"), "scale_dtype means nothing"),
    ("sg00/SP.json", lambda d: _deeper(block(d)["desc"][0], "from"), "has 5 dimensions, 4 exist"),
    ("sg00/SP.json", lambda d: _deeper(block(d)["desc"][0], "to"), "has 5 dimensions, 4 exist"),
]


@pytest.mark.parametrize(("member", "change", "words"), VALUES, ids=[words for _, _, words in VALUES])
def test_a_value_without_a_meaning_is_refused(member: str, change: Callable[[Any], Any], words: str) -> None:
    assert words in refused(edited(base(""), member, change))


def test_a_hidden_byte_of_a_word_is_refused_with_engine_pc_and_byte() -> None:
    data = base("")
    files = contents(data)
    stream = bytearray(files["sg00/SP.bin"])
    at = len(stream) - 64
    stream[at + 50] = 1
    files["sg00/SP.bin"] = bytes(stream)
    neff = open_neff(wrapped(plain_tar(files), data))
    where = f"sg00/SP pc {at // 64}: NOP byte 50 is 0x01"
    assert where in refused(neff)
    assert [one for one in neff.verify() if f"{one.where}: {one.message}".startswith(where)]


def test_what_our_own_writer_makes_is_understood() -> None:
    for changes in ({}, TRANSPOSE):
        assert unknown(open_neff(program(descriptor(**changes)))) == []


@pytest.mark.parametrize("key", ["from_steps", "to_steps", "from_sizes", "from_off"])
@pytest.mark.parametrize("far", [1 << 62, -(1 << 70), 10**30])
def test_steps_that_reach_nothing_are_bounded_too(key: str, far: int) -> None:
    """A dimension of one element has a step that no bound of a memory holds; arrays take 64 bits of it."""
    one = descriptor(source_sizes=(RUN, 64, 1), source_steps=(1, RUN, 1), target_sizes=(256, 128, 1),
                     target_steps=(1, PARTITION, 1), **TRANSPOSE)  # fmt: skip

    def change(document: Any) -> None:
        found = document["dma"][0]["desc"][0]
        found[key] = [*found[key][:-1], far] if isinstance(found[key], list) else far

    with pytest.raises(FormatError, match=f"{key}.*lies beyond every address|lies beyond every address.*{key}"):
        unknown(edited(program(one), "sg00/SP.json", change))


HEADERS: list[tuple[dict[str, Any], str]] = [
    ({"feature_bits": 1 << 40}, "feature bit 40 is not known"),
    ({"pkg_version": 9}, "pkg_version 9 is not known"),
    ({"neff_version_major": 3}, "NEFF version 3.0 is not known"),
    ({"pad": b"\0\1"}, "the last 468 bytes are not zero"),
    ({"requested_tpb_count": 2}, "asks for 2 logical cores"),
    ({"tpb_per_node": (1, 1)}, "asks for cores of further nodes"),
    ({"lnc_size": 2}, "lnc_size is 2, there are 1 subgraphs"),
    ({"header_size": 1536}, "what a longer header says is not known"),
]


@pytest.mark.parametrize(("fields", "said"), HEADERS, ids=[said for _, said in HEADERS])
def test_a_header_that_asks_for_something_unknown_is_refused(fields: dict[str, Any], said: str) -> None:
    data = base("")
    longer = bytes(fields.get("header_size", 1024) - 1024)
    neff = open_neff(Header.parse(data)._replace(**fields).encode() + longer + data[1024:])
    assert said in refused(neff)
    assert [one.message for one in neff.verify() if said in one.message]


def test_every_feature_bit_of_public_files_is_executed() -> None:
    bits = sum(1 << feature.bit for feature in FEATURE_BITS)
    data = base("")
    assert unknown(open_neff(Header.parse(data)._replace(feature_bits=bits).encode() + data[1024:])) == []


@pytest.mark.parametrize(("table", "at"), [("bkt", 20), ("bkt", 31), ("ctrl", 2), ("ctrl", 4), ("ctrl", 31)])
def test_a_hidden_byte_of_an_activation_table_is_refused(table: str, at: int) -> None:
    files = contents(fixture())
    name = f"sg00/exp_and_more_{table}.bin"
    changed = bytearray(files[name])
    changed[at] |= 0x10
    files[name] = bytes(changed)
    neff = open_neff(wrapped(plain_tar(files), fixture()))
    assert f"{name}: entry 0 is not zero where nothing is known" in refused(neff)
    assert [one for one in neff.verify() if one.where == name]


def test_a_member_that_stands_twice_is_refused() -> None:
    data = base("")
    archive = open_neff(data).archive.tar
    whole = archive.read(0, archive.size)
    neff = open_neff(wrapped(whole.rstrip(b"\0") + bytes(-len(whole.rstrip(b"\0")) % 512) + whole, data))
    assert "is the name of two members" in refused(neff)


def test_a_descriptor_that_names_its_source_twice_is_malformed() -> None:
    def change(document: Any) -> None:
        one = block(document)["desc"][0]
        one["from_arr"] = [{key: one[key] for key in one if key.startswith("from")}]

    with pytest.raises(FormatError, match="two ways to name what is read"):
        unknown(edited(base(""), "sg00/SP.json", change))


@pytest.mark.parametrize("number", [float("nan"), float("inf"), 10**400])
def test_a_scale_that_is_no_number_is_malformed(number: float) -> None:
    def change(document: Any) -> None:
        block(document)["desc"][0].update(op="fma", scale=number)

    with pytest.raises(FormatError, match="scale: wrong value, expected a finite number"):
        unknown(edited(base(""), "sg00/SP.json", change))


def test_a_compiled_part_is_looked_at_also_where_no_graph_names_it() -> None:
    files = contents(base(""))
    del files["neff.json"]
    files["kelf-0.json"] = json.dumps({**json.loads(files["kelf-0.json"]), "surprise": 1}).encode()
    assert any("surprise" in one for one in unknown(open_neff(wrapped(plain_tar(files)))))
