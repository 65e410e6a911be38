"""Any bytes are a capture or a FormatError, in bounded memory."""

from __future__ import annotations

import random
import resource
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formats.ntff import open_ntff
from tests.formats.ntff import made
from tests.formats.ntff.exercise import read_everything

SEED = 20_261_121


def fixture(root: Path) -> bytes:
    return (root / "fixtures" / "ntff" / "double.ntff").read_bytes()


def test_every_truncation(root: Path) -> None:
    data = fixture(root)
    assert read_everything(data) == "read"
    assert {read_everything(data[:length]) for length in range(0, len(data), 7)} == {"FormatError"}


def test_ten_thousand_mutations(root: Path) -> None:
    whole, chance = fixture(root), random.Random(SEED)
    area = 128 + int.from_bytes(whole[1:8], "little")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    ends: Counter[str] = Counter()
    for number in range(10_000):
        data = bytearray(whole)
        for _ in range(chance.choice((1, 1, 2, 5))):
            at = chance.randrange(128, area) if number % 4 else chance.randrange(len(data))
            kind = chance.randrange(4)
            if kind == 0:
                data[at] ^= 1 << chance.randrange(8)
            elif kind == 1:
                data[at] = chance.choice(b"\x00\xff\x7f\x80\x08\x12")
            elif kind == 2:
                del data[at : at + chance.randrange(1, 9)]
            else:
                data[at:at] = chance.randbytes(chance.randrange(1, 9))
        ends[read_everything(bytes(data))] += 1
    assert ends["read"] > 1000 and ends["FormatError"] > 1000, ends
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 << 10


@pytest.mark.parametrize("version", [4, 5])
def test_a_thousand_mutations_of_earlier_versions(version: int) -> None:
    core = made.CoreSpec(
        "sg00", 0, {"PE": b"\x21" * 128, "SP": b"\xa5" * 64}, {"PE": [(0, 1, False)]}, [(0, 0, "qIn")], {"pe": 128},
        {"trace": made.begin(0, "PE", 1, 900) + made.end(0, "PE", 1, 950), "notify": made.signal(1, 1, 1, 700),
         "trace_dma": made.packet(0, 0, 64, 1, 10, 20)},
        {**{field: [(5, 731_428, 731_408)] for field in range(1, 7)}, 8: [(5, 1024, 1_204_672)]},
    )  # fmt: skip
    whole, chance = made.capture([core], version=version), random.Random(SEED)
    assert read_everything(whole) == "read"
    ends: Counter[str] = Counter()
    for _ in range(1000):
        data = bytearray(whole)
        at = chance.choice((chance.randrange(128, len(data)), chance.randrange(len(data))))
        data[at] = chance.choice((data[at] ^ 1 << chance.randrange(8), 0, 0xFF, 0x7F))
        ends[read_everything(bytes(data))] += 1
    assert ends["read"] > 100 and ends["FormatError"] > 100 and ends["UnsupportedError"] > 0, ends


@given(st.binary(max_size=600))
def test_anything_behind_a_header(body: bytes) -> None:
    read_everything(b"\6" + len(body).to_bytes(7, "little") + bytes(120) + body)


@given(st.binary(max_size=300))
def test_anything(data: bytes) -> None:
    read_everything(data)


def test_huge_counts_cost_nothing(root: Path) -> None:
    """A map may claim any number of words: nothing is made for them."""
    from formats.ntff import Edit, PcMap

    huge = PcMap("PE", (Edit(0, 1 << 62, "inserted"), Edit(64, 1 << 62, "deleted")))
    assert huge.compiler_pc(5) is None and huge.loaded_words(3) == 3
    assert open_ntff(fixture(root)).buffer(0, "PE").compiler_pc(1 << 60) is not None
