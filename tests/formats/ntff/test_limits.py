"""Time and memory are linear in the bytes of a capture, whatever its metadata claims."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from formats.errors import FormatError
from formats.neff.wire import write_bytes, write_varint
from formats.ntff import DmaPacket, Edit, PcMap, open_ntff
from neurontools.ntff.tracks import write
from tests.formats.ntff import made

SECONDS = 15.0  # of processor, on a slow machine; each of these took minutes, or was cut short by the memory


def with_sections(*places: tuple[int, int, int]) -> bytes:
    """Return a capture whose metadata names sections of (kind, offset, bytes) in 32,000 bytes of records."""
    rows = b"".join(write_bytes(16, write_varint(1, kind) + write_varint(5, offset) + write_varint(6, size))
                    for kind, offset, size in places)  # fmt: skip
    core = write_bytes(4, write_bytes(4, write_bytes(1, write_bytes(1, b"sg00"))))
    meta = core + rows
    return b"\6" + len(meta).to_bytes(7, "little") + bytes(120) + meta + bytes(32_000)


def test_sections_that_share_bytes_are_refused() -> None:
    assert len(open_ntff(with_sections((0, 0, 160), (1, 160, 160), (1, 0, 0))).sections) == 3
    for places in ([(1, 0, 32_000)] * 2_000, [(0, 0, 160), (1, 159, 10)], [(0, 100, 60), (1, 0, 31_000)]):
        with pytest.raises(FormatError, match="shares bytes"):
            open_ntff(with_sections(*places))


def test_a_core_that_is_named_twice_is_refused() -> None:
    one = made.CoreSpec("sg00", 4)
    with pytest.raises(FormatError, match="a core is captured twice"):
        open_ntff(made.capture([one, one]))
    with pytest.raises(FormatError, match="too many cores"):
        open_ntff(made.capture(made.CoreSpec("sg00", number) for number in range(2_000)))


def test_a_map_of_many_edits_is_searched() -> None:
    many = PcMap("PE", tuple(Edit(64 * 3 * number, 1, "inserted") for number in range(100_000)))
    began = time.process_time()
    assert [many.compiler_pc(pc) for pc in range(7)] == [None, 0, 1, None, 2, 3, None]
    assert sum(many.compiler_pc(pc) is None for pc in range(300_000)) == 100_000
    assert time.process_time() - began < SECONDS
    assert many.loaded_words(10) == 100_010


def test_ends_find_their_begins_in_a_long_queue() -> None:
    count = 60_000
    rows = [made.packet(1, 2, 64, 0, 5, 9)[:16]] * count + [made.packet(1, 2, 64, 0, 5, 9)[16:32]] * count
    data = made.capture([made.CoreSpec("sg00", 0, records={"trace_dma": b"".join(rows)},
                                       rings=[(65, ring, "q") for ring in range(3, 2_000)])])  # fmt: skip
    began, ntff = time.process_time(), open_ntff(data)
    packets = ntff.packets(0)
    assert {ntff.queue_name(0, one.engine, one.ring) for one in packets} == {"ring 2"}
    assert len(packets) == count and packets[0] == DmaPacket(0, 65, 2, 64, 5, 9, 0)
    assert time.process_time() - began < SECONDS


@pytest.mark.parametrize("form", ["perfetto", "chrome"])
def test_export_of_many_lanes_is_linear(tmp_path: Path, form: str) -> None:
    """Every packet overlaps all others, so each is a lane of its own."""
    begins = range(made.ORIGIN, made.ORIGIN + 8_000)
    rows = [made.packet(1, 2, 64, 0, begin, begin + 10**9)[:32] for begin in begins]
    data = made.capture([made.CoreSpec("sg00", 0, records={"trace_dma": b"".join(rows)})])
    began, path = time.process_time(), tmp_path / "trace"
    assert write(form, open_ntff(data), None, None, path) == 0
    assert path.stat().st_size > 8_000 and time.process_time() - began < SECONDS


@pytest.mark.parametrize("form", ["perfetto", "chrome", "csv"])
def test_times_beyond_64_bits_are_exported(tmp_path: Path, form: str) -> None:
    rows = made.begin(0, "PE", 0, (1 << 64) - 1) + made.end(0, "PE", 0, (1 << 64) - 1)
    rows += made.begin(0, "PE", 1, made.ORIGIN + 9) + made.end(0, "PE", 1, 1)
    edits = [(0, (1 << 63) + 5, True), (0, (1 << 63) + 5, True)]
    data = made.capture([made.CoreSpec("sg00", 0, {"PE": bytes(128)}, {"PE": edits}, records={"trace": rows})])
    write(form, open_ntff(data), None, None, tmp_path / "trace")
