"""No key or value of a file is passed over in silence: it is read, stands on the list, or is refused by name."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from emulator.device import Device
from formats import isa
from formats.errors import FormatError, UnsupportedError
from formats.neff import Descriptor, Neff, open_neff
from formats.neff.ignored import IGNORED, IGNORED_MEMBERS
from formats.neff.understood import READ_KEYS, unknown_in_file, unknown_in_subgraph, unknown_in_words
from tests.emulator.dma_programs import PARTITION, gen2, trigger, wait
from tests.formats.neff.support import contents, plain_tar, wrapped

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


VALUES: list[tuple[str, Callable[[Any], Any], str]] = [
    ("sg00/def.json", lambda d: d["neff_features"].append("surprise"), "neff_features has 'surprise'"),
    ("sg00/def.json", lambda d: d["dma_queue"]["qSPIO0"].update(type="embedding_update"), "type 'embedding_update'"),
    ("sg00/def.json", lambda d: d["dma_queue"]["qSPIO0"].update(owner="nobody"), "owner 'nobody' is not an engine"),
    ("neff.json", lambda d: d["nodes"][-1].update(op="cpu_op"), "operation 'cpu_op' is no compiled part"),
    ("sg00/SP.json", lambda d: block(d).update(instance_name="q2"), "instance_name 'q2' is not its queue"),
    ("sg00/SP.json", lambda d: block(d)["desc"][0].update(transpose_shape=[1, 1, 64, 64]), "transpose_shape means"),
    ("sg00/SP.json", lambda d: block(d)["desc"][0].update(scale=2.0), "scale means nothing to operation 'copy'"),
    ("sg00/SP.json", lambda d: block(d)["desc"][0].update(scale_dtype="float32"), "scale_dtype means nothing"),
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
