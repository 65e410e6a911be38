"""Real files, damaged: reading gives values or a FormatError, executing a result, a fault or a hang that is bounded."""

from __future__ import annotations

import os
import random
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from emulator.runtime import run
from formats import isa
from formats.neff import open_neff
from formats.neff.packing import pack, unpack
from formats.ntff import open_ntff
from tests.corpus import files
from tests.emulator.test_mutated_programs import check, mutate
from tests.formats.neff.support import contents, exercise, plain_tar, wrapped
from tests.formats.neff.test_hostile import mutated
from tests.formats.ntff.exercise import read_everything

LONG = "NEURONTOOLS_LARGE" in os.environ  # all of it takes minutes
READINGS = 10_000 if LONG else 800  # of both files together
EXECUTIONS = 150 if LONG else 40  # of each
DAMAGED = 1500 if LONG else 100  # of each capture


@pytest.mark.parametrize("name", [files.MATMUL_SMALL, files.ATTENTION[1]])
def test_reading_damaged_real_files(corpus: Path, name: str) -> None:
    """A third are damaged as they stand; in the rest, which gzip would hide, single members are."""
    whole = files.find(corpus, name).read_bytes()
    members = {key: data for key, data in contents(whole).items() if data}
    chance = random.Random(files.SEED)
    ends: Counter[str] = Counter()
    for number in range(READINGS // 2):
        if number % 3 == 0:
            data = mutated(whole, chance)
        else:
            key = chance.choice(sorted(members))
            data = wrapped(plain_tar({**members, key: mutated(members[key], chance)}))
        ends[exercise(data)] += 1
    assert ends["read"] > READINGS // 20 and ends["refused"] > READINGS // 20, ends
    assert sum(ends.values()) == READINGS // 2


@pytest.mark.parametrize("name", [files.MATMUL_SMALL, files.ATTENTION[1]])
def test_executing_damaged_real_files(corpus: Path, tmp_path: Path, name: str) -> None:
    check(mutate(files.find(corpus, name).read_bytes(), tmp_path / "unpacked", range(EXECUTIONS)))


@pytest.mark.parametrize("names", files.CAPTURES[:2], ids=lambda names: names[0].split("/")[-2])
def test_reading_damaged_real_captures(corpus: Path, names: tuple[str, str, str]) -> None:
    whole = files.find(corpus, names[0]).read_bytes()
    ends = Counter(read_everything(data) for data in damaged_captures(whole, DAMAGED))
    assert ends["read"] and ends["FormatError"], ends
    assert open_ntff(whole).cores


def damaged_captures(whole: bytes, count: int) -> list[bytes]:
    """Return captures with changed bytes, most of them in the metadata, where the structure is."""
    chance = random.Random(files.SEED)
    area = 128 + int.from_bytes(whole[1:8], "little")
    found = []
    for number in range(count):
        data = bytearray(whole)
        for _ in range(chance.choice((1, 1, 2, 5, 20))):
            data[chance.randrange(area if number % 4 else len(data))] = chance.randrange(256)
        found.append(bytes(data[: chance.randrange(len(data))] if number % 10 == 0 else data))
    return found


@pytest.mark.parametrize("ended", [True, False])
def test_a_group_that_a_compiled_file_does_not_end(corpus: Path, tmp_path: Path, ended: bool) -> None:
    """A file that marks the last product of its groups has one that does not; as it was, nothing is found."""
    neff = open_neff(files.find(corpus, files.MATMUL_SMALL))
    unpack(neff, tmp_path / "unpacked")
    graph = neff.subgraphs[0]
    stream = graph.streams["PE"]
    pc, word = next((pc, w) for pc, w in enumerate(stream) if isinstance(w, isa.MatMul) and w.acc_flags == 2)
    if not ended:
        file = tmp_path / "unpacked" / graph.name / str(graph.engine_files["PE"].instructions)
        raw, at = bytearray(file.read_bytes()), stream.offsets[pc]
        raw[at : at + len(word.raw)] = word.replace(acc_flags=0).raw
        file.write_bytes(raw)
    pack(tmp_path / "unpacked", tmp_path / "packed.neff")
    packed = open_neff(tmp_path / "packed.neff")
    given = {one.name: np.zeros(one.shape, one.dtype) for one in packed.inputs}
    found = run(packed, given, checks=("mem",)).findings
    assert {one.kind for one in found if one.serious} == (set() if ended else {"psum-group"})
