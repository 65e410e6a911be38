"""Real files, damaged: reading gives values or a FormatError, executing a result, a fault or a hang that is bounded."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest

from formats.errors import FormatError
from formats.ntff import open_ntff
from tests.corpus import files
from tests.emulator.test_mutated_programs import check, mutate
from tests.formats.neff.test_hostile import exercise, mutated
from tests.formats.ntff.exercise import read_everything

READINGS = 10_000
EXECUTIONS = 150


@pytest.mark.parametrize("name", [files.MATMUL_SMALL, files.ATTENTION[1]])
def test_reading_damaged_real_files(corpus: Path, name: str) -> None:
    whole = files.find(corpus, name).read_bytes()
    chance = random.Random(files.SEED)
    ends: Counter[str] = Counter()
    for number in range(READINGS // 2):
        data = mutated(whole, chance, 1024 if number % 2 else 0)
        try:
            exercise(data)
            ends["read"] += 1
        except FormatError:
            ends["FormatError"] += 1
    assert sum(ends.values()) == READINGS // 2


@pytest.mark.parametrize("name", [files.MATMUL_SMALL, files.ATTENTION[1]])
def test_executing_damaged_real_files(corpus: Path, tmp_path: Path, name: str) -> None:
    check(mutate(files.find(corpus, name).read_bytes(), tmp_path / "unpacked", range(EXECUTIONS)))


@pytest.mark.parametrize("names", files.CAPTURES[:2], ids=lambda names: names[0].split("/")[-2])
def test_reading_damaged_real_captures(corpus: Path, names: tuple[str, str, str]) -> None:
    whole = files.find(corpus, names[0]).read_bytes()
    ends = Counter(read_everything(data) for data in damaged_captures(whole, 1500))
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
        found.append(bytes(data[:chance.randrange(len(data))] if number % 10 == 0 else data))
    return found
