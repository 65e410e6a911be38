"""Every rule of `Neff.verify`: the fixture is sound, and breaking one rule gives the finding that names it."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formats.isa import OpcodeCC, PseudoDmaDirect2d, PseudoDmaTrigger, SetOrderingMode
from formats.neff import NeffWriter, Problem, open_neff
from formats.neff.definition import Queue
from formats.neff.problem import collect, error
from formats.neff.verify_subgraph import SUBGRAPH_CHECKS

from .support import SMALL, bare, changed, contents, fixture, plain_tar, wrapped

STREAM = contents(fixture())["sg00/SP.bin"]


def text(data: bytes) -> list[str]:
    return [f"{p.severity}: {p.where}: {p.message}" for p in open_neff(data).verify()]


def var(name: str, **fields: object) -> Any:
    return {"sg00__def_DOT_json": lambda d: d["var"][name].update(fields)}


def queue(name: str, **fields: object) -> Any:
    return {"sg00__def_DOT_json": lambda d: d["dma_queue"][name].update(fields)}


def block(number: int, **fields: object) -> Any:
    return {"sg00__SP_DOT_json": lambda d: d["dma"][number].update(fields)}


def descriptor(number: int, **fields: object) -> Any:
    return {"sg00__SP_DOT_json": lambda d: d["dma"][number]["desc"][0].update(fields)}


def sp(*words: object) -> Any:
    """Put words over the stream's last ones."""
    tail = b"".join(word.encode() for word in words)  # type: ignore[attr-defined]
    return {"sg00__SP_DOT_bin": STREAM[: len(STREAM) - len(tail)] + tail}


def word(changes: dict[int, int]) -> Any:
    """Change bytes of the last word."""
    stream = bytearray(STREAM)
    for offset, value in changes.items():
        stream[64 * 4 + offset] = value
    return {"sg00__SP_DOT_bin": bytes(stream)}


BROKEN: dict[str, tuple[Any, str]] = {
    "block without descriptors": (block(0, desc=[]), "error: sg00/SP dma qSPIO0 0: block has no descriptors"),
    "stream length": ({"sg00__SP_DOT_bin": STREAM + b"x"}, "error: sg00/SP: stream of 321 bytes is not a whole number"),
    "empty stream": ({"sg00__PE_DOT_bin": b""}, "warning: sg00/PE: stream is empty"),
    "debug entries": ({"sg00__SP_DOT_bin": STREAM + STREAM[:64]}, "debug_info_asm_SP.dbg: 5 debug entries for 6 words"),
    "debug parent": ({"sg00__debug_info_backend_SP_DOT_dbg": b""}, "entry 1 names a parent that"),
    "variable type": (var("a", type="secret"), "warning: sg00 var a: unknown type 'secret'"),
    "input type": (var("a", type="output"), "error: neff.json: input a is a variable of type output"),
    "input size": (var("a", size=4), "error: neff.json: input a takes 2048 bytes, its variable in sg00 4"),
    "input missing": ({"sg00__def_DOT_json": lambda d: d["var"].pop("b")}, "input b is not a variable of any subgraph"),
    "no size": (var("spill", size=None), "error: sg00 var spill: no size"),
    "negative size": (var("spill", size=-1), "error: sg00 var spill: size -1"),
    "alignment": (var("spill", alignment=48), "alignment 48 is not a power of two"),
    "no backing": (var("spill", backing_variable_off=None), "virtual variable has no place"),
    "table entry": (var("tables", list=[1, 77]), "table entry 77 is not a variable"),
    "pointer": (var("spill", type="pointer"), "points to no variable"),
    "constant size": (var("table", size=12), "constant holds 16 bytes, its variable 12"),
    "constant file": (var("raw", file_name="gone.bin"), "sg00 var raw: sg00/gone.bin: member is missing"),
    "constant nameless": (var("raw", file_name=None), "constant names no file"),
    "queue type": (queue("qSPIO0", type="magic"), "unknown type 'magic'"),
    "queue owner": (queue("qSPIO0", owner="cpu"), "owner 'cpu' is not an engine"),
    "queue of another engine": (queue("qSPIO0", owner="act"), "queue qSPIO0 belongs to Activation"),
    "rings": (queue("qSPIO0", num_queues=17), "17 rings, 1 to 16 exist"),
    "ring semaphores": (queue("qSPIO0", num_queues=4), "16 semaphores for 4 rings"),
    "semaphore range": (queue("qSPIO0", semaphore=256), "semaphore 256 does not exist"),
    "semaphore of the runtime": (queue("qSPIO0", semaphore=2), "semaphore 2 belongs to the runtime"),
    "semaphore of two queues": (queue("qSPIO0", semaphore=24), "semaphore 24 belongs to queue"),
    "table load": (
        {"sg00__Activation_DOT_json": lambda d: d.update(activation_function_sets=[])},
        "table 0 of 0 is loaded",
    ),
    "word on a queue's semaphore": (word({6: 0x13, 7: 24}), "word updates semaphore 24 of queue qSPOut0"),
    "block of a ring set": (block(0, queue=None, instance_name="other"), "queue other does not exist"),
    "block queue": (block(0, queue="qNone"), "queue qNone does not exist"),
    "block semaphore": (block(0, semaphore=30), "semaphore 30 does not belong to queue qSPIO0"),
    "block never triggered": (block(0, id=5), "error: sg00/SP dma qSPIO0 5: block is never triggered"),
    "trigger without block": (block(0, id=5), "error: sg00/SP pc 1: DMA block qSPIO0 0 does not exist"),
    "block triggered twice": (
        sp(PseudoDmaTrigger(queue="qSPIO0", block_id=0)),
        "dma qSPIO0 0: block is triggered 2 times",
    ),
    "trigger of no queue": (sp(PseudoDmaTrigger(queue="qNone", block_id=0)), "pc 4: queue 'qNone' does not exist"),
    "descriptor operation": (descriptor(0, op="xor"), "unknown operation 'xor'"),
    "descriptor variable": (descriptor(0, **{"from": "z"}), "variable z does not exist"),
    "descriptor extent": (descriptor(0, from_off=1), "bytes 1..2049 of a, which has 2048"),
    "descriptor before its variable": (descriptor(2, to_off=-4), "bytes -4..2044 of out"),
    "descriptor beyond SBUF": (descriptor(0, to_off=262144), "of SB, which has 33554432"),
    "descriptor dimensions": (descriptor(0, from_sizes=[1] * 5, from_steps=[1] * 5), "5 dimensions, 4 exist"),
    "word on a runtime semaphore": (word({6: 0x13}), "warning: sg00/SP pc 4: word uses semaphore 0 of the runtime"),
}


@pytest.mark.parametrize("rule", BROKEN)
def test_broken_rule_is_found(rule: str) -> None:
    members, expected = BROKEN[rule]
    assert any(expected in line for line in text(changed(**members))), text(changed(**members))


def test_fixtures_are_sound() -> None:
    for name in ("add_exp.neff", "idle_pair.neff"):
        assert text(fixture(name)) == []
    assert text(bare()) == []


def test_file_rules() -> None:
    data = fixture()
    assert any("100 bytes shorter" in line for line in text(data[:-100]))
    assert any("hash fits the data in none" in line for line in text(data[:-100]))
    assert text(data + b"x") == ["warning: header: file has 1 bytes after its data"]
    assert text(data[:172] + bytes(32) + data[204:]) == ["warning: hash: the header holds no hash"]
    assert text(data[:1000] + b"x" + data[1001:]) == ["warning: header: the last 468 bytes are not zero"]
    assert any("lnc_size is 7" in line for line in text(data[:552] + b"\7" + data[553:]))
    assert any("gzip stream is damaged" in line for line in text(data[:2000] + b"\0\0\0\0" + data[2004:]))
    assert any("no compiled node" in line for line in text(changed(**{"kelf-0_DOT_json": None, "neff_DOT_json": None})))


def direct(**fields: Any) -> list[str]:
    """Return what is found in a gen3 file whose SP stream is one direct DMA word."""
    writer = NeffWriter("trn2")
    sg = writer.subgraph(0)
    sg.variable("SB", "state-buffer")
    sg.variable("spill", "virtual", 4096, backing_offset=0)
    sg.variable("table", "dge-table", entries=(1,))
    sg.queue("qSPDynamicHW", "dynamic", "SP", 16, range(8, 24))
    sg.queue("qActDynamicHW", "dynamic", "Activation", 16, range(24, 40))
    settings: dict[str, Any] = {
        "src": ("variable", 1, 0),
        "src_pattern": ((64, 1), (64, 1)),
        "src_element_size": 64,
        "dst": ("table", 0, 0),
        "dst_pattern": ((64, 1), (64, 1)),
        "dst_element_size": 64,
        "semaphore": 8,
    }
    word = PseudoDmaDirect2d(**settings | fields)
    sg.stream("SP", SetOrderingMode().encode() + OpcodeCC().encode() + word.encode())
    return [line for line in text(writer.to_bytes()) if "no output" not in line]


def test_direct_words() -> None:
    assert direct() == []
    assert direct(semaphore=24) == ["error: sg00/SP pc 2: semaphore 24 belongs to no dynamic queue of SP"]
    assert direct(src=("variable", 9, 0)) == ["error: sg00/SP pc 2: variable 9 does not exist"]
    assert direct(dst=("table", 1, 0)) == ["error: sg00/SP pc 2: table entry 1 does not exist"]
    assert direct(src=("variable", 1, 8)) == ["error: sg00/SP pc 2 src: bytes 8..4104 of spill, which has 4096"]
    assert direct(dst_pattern=((-64, 1), (64, 1)))[0].startswith("error: sg00/SP pc 2 dst: bytes -4032..64 of spill")
    assert direct(src=("absolute", 0, 1 << 40)) == []


def test_direct_word_without_a_dynamic_queue() -> None:
    writer = NeffWriter("trn2")
    writer.subgraph(0).stream("PE", PseudoDmaDirect2d().encode())
    assert any("PE owns no dynamic queue" in line for line in text(writer.to_bytes()))


def test_many_findings_of_one_kind_are_counted() -> None:
    found = list(collect("x", (error("x", str(i)) for i in range(60))))
    assert len(found) == 51 and found[-1] == Problem("error", "x", "and 10 more of this kind")


def test_block_may_name_a_ring_set_of_its_queue() -> None:
    files = contents(fixture())
    definition, engine = json.loads(files["sg00/def.json"]), json.loads(files["sg00/SP.json"])
    definition["dma_queue"]["qSPIO0"]["queue_instances"] = ["ring0"]
    engine["dma"][0] |= {"queue": None, "instance_name": "ring0"}
    files["sg00/def.json"], files["sg00/SP.json"] = json.dumps(definition).encode(), json.dumps(engine).encode()
    first = PseudoDmaTrigger(queue="ring0", block_id=0).encode()
    files["sg00/SP.bin"] = STREAM[:64] + first + STREAM[128:]
    assert text(wrapped(plain_tar(files))) == []


def test_json_over_the_limit_is_not_made_into_values() -> None:
    files = {**contents(fixture()), "metrics.json": b"[" + b"[]," * 3000 + b"[]]"}
    neff = open_neff(wrapped(plain_tar(files)), SMALL._replace(parsed_floor=8000, parsed_ratio=0))
    assert "warning: metrics.json: not looked at: member is over the size limit" in [
        f"{one.severity}: {one.where}: {one.message}" for one in neff.verify()
    ]


def test_a_member_that_nothing_names_is_told() -> None:
    odd = "sg00/cc_streams.bin"
    neff = open_neff(changed(sg00__cc_streams_DOT_bin=b"x", notes_DOT_txt=b"x"))
    assert [(one.where, one.severity) for one in neff.verify() if "names this member" in one.message] == [
        (odd, "warning")
    ]


semaphores = st.lists(st.sampled_from([-1, 0, 2, 3, 7, 8, 9, 255, 256]), max_size=3)


@given(st.lists(st.tuples(semaphores, st.none() | st.integers(5, 10)), max_size=4))
def test_every_semaphore_of_queues_that_is_wrong_is_named(queues: list[tuple[list[int], int | None]]) -> None:
    """As if each were looked at, though none is where they are sound together."""
    named = {f"q{number}": Queue(f"q{number}", "in", "sp", 1, tuple(many), one)
             for number, (many, one) in enumerate(queues)}  # fmt: skip
    wanted: list[str] = []
    owners: dict[int, str] = {}
    for name, each in named.items():
        for semaphore in each.all_semaphores:
            if not 0 <= semaphore < 256:
                wanted.append(f"semaphore {semaphore} does not exist")
            elif semaphore < 3:
                wanted.append(f"semaphore {semaphore} belongs to the runtime")
            elif owners.setdefault(semaphore, name) != name:
                wanted.append(f"semaphore {semaphore} belongs to queue {owners[semaphore]} too")
    subgraph = SimpleNamespace(name="sg00", queues=named, definition=SimpleNamespace(runtime_semaphore_count=3))
    found = SUBGRAPH_CHECKS["queues"](cast(Any, subgraph))
    assert [one.message for one in found if one.severity == "error"] == wanted
