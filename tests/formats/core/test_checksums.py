"""Checksums: any byte that is not what was written is found by `core verify`, in old dumps as far as they tell."""

from __future__ import annotations

import random
from pathlib import Path
from zlib import crc32

import pytest

from formats.core import Core, elf, open_core
from formats.core import records as r
from formats.errors import FormatError
from neurontools.core.verify import verified
from tests.formats.core import maker


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return maker.write(tmp_path_factory.mktemp("core") / "small.core").read_bytes()


def problems(core: Core) -> list[str]:
    """Return what `core verify` says about the parts that have checksums."""
    return [each for each in verified(core, None).problems if "written" in each]


def flipped(data: bytes, at: int, bit: int = 0) -> bytes:
    """Return data with one bit of a byte changed."""
    return data[:at] + bytes([data[at] ^ 1 << bit]) + data[at + 1 :]


def test_a_whole_dump_is_as_it_was_written(data: bytes) -> None:
    core = open_core(data)
    assert not problems(core)
    sums = core.note(r.ChecksumsNote)
    assert sums is not None and len(sums.segments) == 5  # four segments, one plane of written bits
    assert set(sums.notes) == set(core.notes) - {"checksums"}


def test_a_flipped_byte_of_memory_is_found(data: bytes) -> None:
    for segment in open_core(data).segments:
        for at in (segment.offset, segment.offset + segment.size - 1):
            (found,) = problems(open_core(flipped(data, at)))
            assert f"{segment.address:#x}" in found and segment.space in found


def test_a_flipped_written_bit_is_found(data: bytes) -> None:
    (header,) = [s.written for s in open_core(data).segments if s.written is not None]
    (found,) = problems(open_core(flipped(data, header.offset)))
    assert found.startswith("the written bits from 0x2000000040")


def test_a_changed_digit_of_a_note_is_found(data: bytes) -> None:
    core = open_core(data.replace(b'"time_ps":1000', b'"time_ps":1001', 1))
    assert core.dump.time_ps == 1001 and problems(core) == ["note 'dump' is not what was written"]


def test_any_flipped_byte_behind_the_headers_is_told(data: bytes) -> None:
    """Only the padding between parts holds nothing."""
    source, first = random.Random(3), elf.EHDR_SIZE + 6 * elf.PHDR_SIZE
    held = [(s.offset, s.offset + s.size) for s in open_core(data).segments]
    held += [(s.written.offset, s.written.offset + s.written.size) for s in open_core(data).segments if s.written]
    notes = min(low for low, _ in held)
    places = [source.randrange(first, notes) for _ in range(300)]
    for at in (*places, *(at for low, high in held for at in range(low, high, 5))):
        changed = flipped(data, at, source.randrange(8))
        try:
            core = open_core(changed)
        except FormatError:
            continue
        padding = data[at] == 0 and core.note(r.ChecksumsNote) == open_core(data).note(r.ChecksumsNote)
        assert verified(core, None).problems or padding, f"byte {at:#x}"


def test_checksums_are_not_read_when_a_dump_is_opened(data: bytes) -> None:
    core = open_core(flipped(data, open_core(data).segments[0].offset))
    assert core.segments and core.warnings == ()


def test_lost_checksums_are_told(data: bytes) -> None:
    number = (0x4E540000 + 18).to_bytes(4, "little")
    core = open_core(data.replace(number, (0x4E5400FF).to_bytes(4, "little")))
    assert core.missing == ("checksums",) and "no 'checksums' note" in core.warnings


def test_dumps_without_checksums_open_and_verify(data: bytes) -> None:
    number = (0x4E540000 + 18).to_bytes(4, "little")
    flags = elf.FLAGS.to_bytes(4, "little")
    old = data.replace(number, (0x4E5400FF).to_bytes(4, "little")).replace(flags, (0x4E540001).to_bytes(4, "little"))
    core = open_core(old)
    assert core.warnings == () and core.missing == ()
    assert not problems(core) and not problems(open_core(flipped(old, core.segments[0].offset)))


def test_the_checksum_is_that_of_zlib(data: bytes, tmp_path: Path) -> None:
    core = open_core(data)
    sums = core.note(r.ChecksumsNote)
    assert sums is not None and {crc32(core.segments.data(s)) for s in core.segments} <= set(sums.segments)
