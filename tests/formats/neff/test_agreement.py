"""Parts of a file that say the same thing and do not agree are refused by name; the file as it was is not."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from emulator.device import Device
from emulator.errors import LoadError
from emulator.runtime import check_inputs, new_device
from emulator.settings import USUAL
from formats.errors import FormatError, NeuronError, UnsupportedError
from formats.neff import open_neff
from tests.formats.neff.support import contents, plain_tar, wrapped
from tests.formats.neff.test_understood import descriptor, edited, program, unknown

BASE = program(descriptor())


def queue(document: Any) -> Any:
    return document["dma_queue"]["qSPIO0"]


def kelf_node(document: Any) -> Any:
    return document["nodes"][-1]


RESERVED = {"type": "evtaccel", "base_partition": 0, "partitions": 128, "offset": 229368, "size": 8}
CONTRADICTIONS: list[tuple[str, Callable[[Any], Any], str]] = [
    ("neff.json", lambda d: d["node_row_ptr"].append(9), "node_row_ptr is not"),
    ("neff.json", lambda d: d["attrs"]["shape"].__setitem__(0, "list_int"), "shape is tagged ['list_int']"),
    ("neff.json", lambda d: d["attrs"]["dltype"][1].append("float32"), "dltype has 3 entries for 2 outputs"),
    ("neff.json", lambda d: d["nodes"].insert(0, d["nodes"][0]), "2 nodes are called 'x'"),
    ("neff.json", lambda d: d["arg_nodes"].append(0), "arg_nodes are not its input nodes [0]"),
    ("neff.json", lambda d: d["heads"].append(d["heads"][0]), "heads has [1, 0, 0] twice"),
    ("neff.json", lambda d: d["heads"][0].append(1), "known is [node, output, 0]"),
    ("neff.json", lambda d: d["heads"][0].__setitem__(2, 1), "known is [node, output, 0]"),
    ("neff.json", lambda d: kelf_node(d)["inputs"][0].__setitem__(1, 1), "no tensor that can stand there"),
    ("neff.json", lambda d: kelf_node(d)["inputs"][0].__setitem__(0, 1), "no tensor that can stand there"),
    ("neff.json", lambda d: kelf_node(d)["attrs"].update(num_inputs="2"), "num_inputs is '2', there are 1"),
    ("neff.json", lambda d: kelf_node(d)["output_names"].append("y"), "'y' is an output of 2 cores, kelf-0.json has 1"),
    ("kelf-0.json", lambda d: d["graphs"].append(d["graphs"][0]), "graphs has 'sg00/def.json' twice"),
    ("info.json", lambda d: d.update(num_tpb=2), "asks for 2 logical cores"),
    ("info.json", lambda d: d["num_tpb_per_node"].__setitem__(1, 1), "cores of further nodes"),
    ("sg00/def.json", lambda d: d.update(runtime_event_count=257), "runtime_event_count is 257"),
    ("sg00/def.json", lambda d: d.update(runtime_semaphore_count=-1), "runtime_semaphore_count is -1"),
    ("sg00/def.json", lambda d: d.update(runtime_semaphore_count=9), "semaphore 8 is the runtime's own"),
    ("sg00/def.json", lambda d: d["var"]["x"].update(var_id=1 << 32), "var_id 4294967296"),
    ("sg00/def.json", lambda d: queue(d).update(semaphore_set=[8, 9, 8]), "semaphore 8 stands there twice"),
    ("sg00/def.json", lambda d: queue(d).update(semaphore_set=[8, 9, 256]), "there is no semaphore 256"),
    ("sg00/def.json", lambda d: queue(d).update(semaphore_set=[10, 11]), "semaphore 8 is none of the queue's"),
    ("sg00/def.json", lambda d: queue(d).update(dynamic_dma={"SB_scratch_partition_offset": 1 << 18,
     "SB_scratch_partition_size": 1}), "lies in no partition"),
    ("sg00/def.json", lambda d: d.update(runtime_statebuffer_reservation=[{**RESERVED, "type": "else"}]),
     "what a reservation of type 'else' is for"),
    ("sg00/def.json", lambda d: d.update(runtime_statebuffer_reservation=[{**RESERVED, "partitions": 129}]),
     "lies outside of the state buffer"),
    ("sg00/def.json", lambda d: d["var"]["x"].update(file_name="def.json"), "file_name means nothing to a variable"),
    ("sg00/def.json", lambda d: d["var"]["x"].update(list=[1]), "list means nothing to a variable of type 'input'"),
    ("sg00/def.json", lambda d: d["var"]["x"].update(referenced_var_id=1), "referenced_var_id means nothing"),
    ("sg00/def.json", lambda d: d["var"]["x"].update(backing_variable_off=8), "backing_variable_off means nothing"),
    ("sg00/def.json", lambda d: d["var"].update(v={"type": "virtual", "var_id": 70, "size": 8,
     "backing_variable_off": -64}), "begins 64 bytes before the scratchpad"),
    ("sg00/def.json", lambda d: d["var"].update({f"t{n}": {"type": "dge-table", "var_id": 70 + n, "list": []}
     for n in range(2)}), "which of the tables ['t0', 't1'] words index"),
    ("sg00/def.json", lambda d: queue(d).update(owner="act"), "its queue is one of Activation"),
    ("sg00/SP.json", lambda d: d.update(instr="PE.bin"), "instr is 'PE.bin', the definition has 'SP.bin'"),
]  # fmt: skip


@pytest.mark.parametrize(("member", "change", "said"), CONTRADICTIONS, ids=[row[2][:40] for row in CONTRADICTIONS])
def test_a_contradiction_is_refused_by_name(member: str, change: Callable[[Any], Any], said: str) -> None:
    neff = edited(BASE, member, change)
    (found, *_) = [text for text in unknown(neff) if said in text]
    assert found
    with pytest.raises((UnsupportedError, LoadError)):  # trn1 has no second core at all
        Device(neff.target, cores=len(neff.subgraphs)).load(neff)
    assert [one for one in neff.verify() if said in one.message]


def test_a_file_that_agrees_is_not_refused() -> None:
    assert unknown(open_neff(BASE)) == []
    assert unknown(edited(BASE, "sg00/def.json", lambda d: d.update(runtime_statebuffer_reservation=[RESERVED]))) == []


@pytest.mark.parametrize("member", ["neff.json", "sg00/def.json", "sg00/SP.json"])
def test_a_key_that_stands_twice_is_malformed(member: str) -> None:
    files = contents(BASE)
    files[member] = files[member].replace(b"{", b'{"twice": 1, "twice": 2, ', 1)
    with pytest.raises(FormatError, match="key stands twice") as caught:
        unknown(open_neff(wrapped(plain_tar(files), BASE)))
    assert member in str(caught.value) and "twice" in str(caught.value)


def planted(document: Any) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Yield documents with one object that has a key more, one list that has a text more, one text that is another."""

    def walk(value: Any, path: tuple[Any, ...]) -> Iterator[tuple[tuple[Any, ...], Any]]:
        yield path, value
        rows = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        for key, item in rows:
            yield from walk(item, (*path, key))

    for path, value in walk(document, ()):
        changed = copy.deepcopy(document)
        new = {**value, "zz": 1} if isinstance(value, dict) else [*value, "zz"] if isinstance(value, list) else None
        if isinstance(value, str):
            new = "zz" + value
        if new is None or (not path and isinstance(value, list)):
            continue
        if path:
            place = changed
            for part in path[:-1]:
                place = place[part]
            place[path[-1]] = new
        else:
            changed = new
        yield path, changed


MAY_CHANGE = ("name", "version", "storage_id", "#comment", "metadata")


@pytest.mark.parametrize("member", ["neff.json", "kelf-0.json", "sg00/def.json", "sg00/SP.json", "sg00/PE.json"])
def test_what_is_planted_is_refused_or_a_name(member: str) -> None:
    """Every object, list and text of the small file in turn: no change but of names and debug files loads."""
    files = contents(BASE)
    loaded = []
    for path, changed in planted(json.loads(files[member])):
        data = wrapped(plain_tar({**files, member: json.dumps(changed).encode()}), BASE)
        try:
            neff = open_neff(data)
            device = new_device(neff, USUAL)
            device.load(neff)
            check_inputs(neff, {"x": _zeros(neff)})
        except (UnsupportedError, NeuronError):
            continue
        if not any(str(part) in MAY_CHANGE or str(part).endswith("_dbg") for part in path):
            loaded.append(path)
    assert loaded == []


def _zeros(neff: Any) -> Any:
    import numpy as np

    return np.zeros((64, 128), np.float32)


def test_public_files_agree(corpus: Path) -> None:
    names = ("CS149-asst4/part1/stream_256k_fd1k.neff", "nkipy/spike/tests/artifacts/matmul_small.neff",
             "asst4-trainium2/part2/conv2d_1_float16_smaller.neff")  # fmt: skip
    there = [corpus / name for name in names if (corpus / name).is_file()]
    if not there:
        pytest.skip("corpus has none of the files")
    assert [text for path in there for text in unknown(open_neff(path))] == []
