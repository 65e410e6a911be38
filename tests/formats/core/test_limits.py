"""Time, memory and what is written are linear in the bytes of a dump, whatever its headers and notes claim."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from emulator.dump.reading import DumpedMachine
from formats.core import Core, CoreWriter, elf, open_core
from formats.core import records as r
from formats.core.elf import ProgramHeader
from formats.errors import FormatError
from neurontools.core import disasm, extract, verify
from tests.formats.core import maker

SECONDS = 15.0  # of processor, on a slow machine; each of these took far longer, or filled the disk


def made(headers: list[ProgramHeader], body: bytes) -> bytes:
    """Return a dump with these headers; their offsets count from the end of the table."""
    start = elf.EHDR_SIZE + len(headers) * elf.PHDR_SIZE
    head = elf.EHDR.pack(elf.IDENT, elf.CORE, 0, 1, 0, elf.EHDR_SIZE, 0, elf.FLAGS & ~elf.CHECKSUMS, elf.EHDR_SIZE,
                         elf.PHDR_SIZE, len(headers), 0, 0, 0)  # fmt: skip
    table = b"".join(elf.PHDR.pack(*each._replace(offset=start + each.offset)) for each in headers)
    return head + table + body


def load(number: int, offset: int, size: int) -> ProgramHeader:
    return ProgramHeader(elf.PT_LOAD, 4, offset, number << 24, 0, size, size, 1)


def with_notes(path: Path, *notes: object) -> Core:
    with CoreWriter(path) as writer:
        for each in notes:
            writer.note(each)
    return open_core(path)


def fast(began: float) -> None:
    assert time.process_time() - began < SECONDS


def test_segments_that_share_bytes_are_left_out(tmp_path: Path) -> None:
    data = made([load(number, 0, 400_000) for number in range(5_000)], bytes(400_000))
    began, core = time.process_time(), open_core(data)
    assert len(core.segments) == 1 and sum(each.size for each in core.segments) == 400_000
    assert core.warnings[0] == "4999 of 5000 parts share bytes of the file with others: left out"
    written = extract.fill(core, tmp_path)
    assert sum(written.values()) < len(data)
    verify.verified(core, None)
    fast(began)


def test_notes_that_share_bytes_are_read_once() -> None:
    note = elf.NHDR.pack(12, 0, 5) + b"SOMEONEELSE\0"
    header = ProgramHeader(elf.PT_NOTE, 4, 0, 0, 0, 2_000 * len(note), 0, 4)
    data = made([header] * 4_000, note * 2_000)
    began, core = time.process_time(), open_core(data)
    assert core.notes == {} and any("share bytes" in each for each in core.warnings)
    fast(began)


def test_notes_are_counted() -> None:
    note = elf.NHDR.pack(0, 0, 5)
    data = made([ProgramHeader(elf.PT_NOTE, 4, 0, 0, 0, 200_000 * len(note), 0, 4)], note * 200_000)
    began, core = time.process_time(), open_core(data)
    assert any("more than 4096 notes" in each for each in core.warnings)
    fast(began)


def test_memories_of_the_map_are_searched(tmp_path: Path) -> None:
    windows = tuple(r.Window("SBUF", 0, "", (1 << 50) + number, 1, 1, 1) for number in range(20_000))
    with CoreWriter(tmp_path / "x.core") as writer:
        writer.note(r.MapNote(windows))
        for number in range(20_000):
            writer.segment(1 + 64 * number, b"x")
    core, began = open_core(tmp_path / "x.core"), time.process_time()
    assert not any(each.space for each in core.segments)
    fast(began)


@pytest.mark.parametrize("run", [(0, 0, 0, 64, 1 << 62), (0, -(1 << 62), 0, 64, 1), (0, 0, -1, 64, 1),
                                 (0, 0, 0, 65, 1), (0, 0, 0, 0, 1)])  # fmt: skip
def test_runs_of_words_beyond_the_file_are_left_out(tmp_path: Path, run: tuple[int, int, int, int, int]) -> None:
    stream = r.Stream(0, "PE", 5, runs=(run,))
    core = with_notes(tmp_path / "x.core", r.ProgramNote((stream,)), r.EnginesNote((r.EngineState(0, "PE"),)))
    began = time.process_time()
    assert core.program.streams[0].runs == () and "make no sense" in core.warnings[0]
    assert disasm.words(core, 0, "PE", None, 1 << 62).engines[0].rows == ()
    fast(began)


def test_many_runs_of_all_words_are_left_out(tmp_path: Path) -> None:
    runs = tuple((0, 0, 0, 64, 3_000) for _ in range(3_000))
    core = with_notes(tmp_path / "x.core", r.ProgramNote((r.Stream(0, "PE", 5, runs=runs),)))
    assert core.program.streams[0].runs == ()


def test_an_allocation_of_a_terabyte_is_not_made_up(tmp_path: Path) -> None:
    items = (r.Allocation("x", 0, 1 << 39, 1, 0), r.Allocation("y", 64, 1 << 39, 1, 0), r.Allocation("z", 1 << 39, 8))
    core = with_notes(tmp_path / "x.core", r.DumpNote(target="trn2", generation="gen3", cores=1),
                      r.TensorsNote((), items))  # fmt: skip
    machine = DumpedMachine(core)
    assert [each.name for each in machine.hbm.allocations.values()] == ["x", "z"]
    for look in ("data", "written"):
        with pytest.raises(FormatError, match="too large to show"):
            getattr(machine.hbm.allocations[0], look)
    assert machine.hbm.allocations[1 << 39].data.size == 8
    machine.release()


CUT = """
import os, sys
from formats.core import NOTES, open_core
from formats.errors import FormatError
core = open_core(sys.argv[1])
segments = list(core.segments)
os.truncate(sys.argv[1], 4096)
for look in (lambda: core.segments.data(segments[-1]), lambda: list(core.altered())):
    try:
        look()
        print("read")
    except FormatError as error:
        print(error)
"""


def test_a_file_that_is_cut_off_while_it_is_open_is_an_error(root: Path, tmp_path: Path) -> None:
    path = tmp_path / "big.core"
    with CoreWriter(path) as writer:
        for each in maker.notes():
            writer.note(each)
        writer.segment(maker.HBM, os.urandom(1 << 20))
    done = subprocess.run([sys.executable, "-c", CUT, str(path)], cwd=root, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert [line.count("was cut off while it was read") for line in done.stdout.splitlines()] == [1, 1]


def test_a_memory_as_large_as_it_claims_is_not_read_at_once(tmp_path: Path) -> None:
    huge = r.Window("HBM", base=0x1000, row_bytes=1 << 50)
    core = with_notes(tmp_path / "core", r.MapNote((huge,)))
    assert len(core.read("HBM", 0, 0x1000, 1 << 20).data) == 1 << 20
    with pytest.raises(FormatError, match="too many to read at once"):
        core.read("HBM", 0, 0x1000, 1 << 45)
