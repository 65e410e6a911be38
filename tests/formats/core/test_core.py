"""The dump format: what is written is read, by us, by pyelftools and by readelf."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

from formats.core import NOTES, CoreWriter, elf, open_core
from formats.core import records as r
from formats.errors import FormatError, NotFoundError
from tests.formats.core import maker


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return maker.write(tmp_path_factory.mktemp("core") / "small.core")


def test_every_note_comes_back_equal(path: Path) -> None:
    core = open_core(path)
    for note in maker.notes():
        assert core.note(type(note)) == note
    assert core.warnings == () and core.missing == ()
    assert set(core.notes) == {kind.name for kind in NOTES.values()}


def test_parts_by_name(path: Path) -> None:
    core = open_core(path)
    assert (core.level, core.outcome, core.status.code, core.error_location) == ("full", "hang", 5, "nrt_execute")
    assert core.fault is not None and core.fault.expected == "less" and core.hang is core.waits
    assert core.semaphores()[2] == 5 and core.events()[0] == 1 and core.semaphores(1) == ()
    assert core.log_tail == ("first", "second")
    assert core.journal_tail.entries[0].changes == ((0, "semaphore", 6, 0, 1),)
    assert core.tensors[1].pcs == {"DVE": (1, 3)} and core.environment.packages == {"numpy": "2.4"}


def test_bytes_of_a_copy_in_memory_are_read_alike(path: Path) -> None:
    core = open_core(path.read_bytes())
    assert core.neff.name == "net" and core.path == "" and len(core.segments) == 4


def test_memory_tells_what_is_here_and_what_was_written(path: Path) -> None:
    core = open_core(path)
    found = core.read("SBUF", 0, 60, 24)
    assert found.data == b"\xff" * 4 + bytes(range(16)) + b"\xff" * 4
    assert found.present == bytes(4) + b"\1" * 16 + bytes(4) and found.missing == 8
    assert found.written == bytes(4) + b"\0\0\0\0\1\1\1\1" + b"\1\1\1\1\0\0\0\0" + bytes(4)
    assert core.read("SBUF", 0, 66, 3, partition=1).data == b"cde"
    assert core.read("HBM", 0, maker.HBM + 15, 2).data == b"\0\1"
    assert core.read("instructions", 0, 192, 64, engine="DVE").data == bytes([3]) * 64


@pytest.mark.parametrize(
    "where",
    [("SBUF", 0, 0x38000, 1), ("SBUF", 1, 0, 1), ("PSUM", 0, 0, 1), ("HBM", 0, 1 << 40, 1), ("SBUF", 0, 0, -1)],
)
def test_places_that_no_memory_has(path: Path, where: tuple[str, int, int, int]) -> None:
    with pytest.raises(NotFoundError):
        open_core(path).read(*where)


def test_segments_know_their_memory(path: Path) -> None:
    placed = [(s.space, s.core, s.engine, s.partition, s.byte, s.size) for s in open_core(path).segments]
    assert placed == [
        ("HBM", 0, "", 0, maker.HBM, 32),
        ("SBUF", 0, "", 0, 64, 16),
        ("SBUF", 0, "", 1, 64, 8),
        ("instructions", 0, "DVE", 0, 128, 128),
    ]


def test_pyelftools_reads_the_same(path: Path) -> None:
    core = open_core(path)
    with path.open("rb") as stream:
        file = ELFFile(stream)
        assert (file["e_type"], file["e_flags"], file.elfclass, file.little_endian) == ("ET_CORE", elf.FLAGS, 64, True)
        loads = [segment for segment in file.iter_segments() if segment["p_type"] == "PT_LOAD"]
        mine = {s.address: bytes(core.segment_data(s)) for s in core.segments}
        assert {s["p_vaddr"]: s.data() for s in loads} == mine
        (found,) = [segment for segment in file.iter_segments() if segment["p_type"] == "PT_NOTE"]
        notes = list(found.iter_notes())
    assert [note["n_name"] for note in notes] == ["NEURONTOOLS"] * len(NOTES)
    assert {note["n_type"] for note in notes} == set(NOTES)
    texts = {note["n_type"]: json.loads(note["n_desc"].encode() if isinstance(note["n_desc"], str) else note["n_desc"])
             for note in notes}  # fmt: skip
    assert texts[0x4E540002] == {"code": 5, "name": "NRT_TIMEOUT", "location": "nrt_execute"}


@pytest.mark.skipif(shutil.which("readelf") is None, reason="readelf is not installed")
def test_readelf_has_nothing_to_complain_about(path: Path) -> None:
    ended = subprocess.run(["readelf", "-lhn", path], capture_output=True, text=True, check=True)
    assert "warning" not in ended.stderr.lower() and "error" not in ended.stderr.lower()
    assert "CORE (Core file)" in ended.stdout and ended.stdout.count("NEURONTOOLS ") == len(NOTES)
    assert ended.stdout.count("LOAD  ") == 4


def test_opening_loads_no_numpy(path: Path) -> None:
    code = f"import sys; from formats.core import open_core; c = open_core({str(path)!r}); c.segments; c.fault; c.waits"
    code += "; print(sorted({'numpy', 'elftools.elf.elffile', 'elftools.dwarf.dwarfinfo', 'rich'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_nothing_is_left_where_writing_fails(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(FormatError, match="cannot be written"), CoreWriter(tmp_path / "folder") as writer:
        writer.note(r.DumpNote())
    with pytest.raises(FormatError, match="no such file"):
        CoreWriter(tmp_path / "none" / "x.core").close()
    with pytest.raises(RuntimeError), CoreWriter(tmp_path / "x.core") as writer:
        raise RuntimeError
    assert [each.name for each in tmp_path.iterdir()] == ["folder"]


def test_a_full_disk_leaves_nothing(tmp_path: Path) -> None:
    import resource
    import signal

    code = (
        "import resource, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN);"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (65536, 65536));"
        "from formats.core import CoreWriter\n"
        "w = CoreWriter(sys.argv[1]); w.segment(0, bytes(1 << 20))\n"
        "try: w.close()\n"
        "except Exception as e: print(type(e).__name__)"
    )
    assert resource.RLIMIT_FSIZE is not None and signal.SIGXFSZ is not None
    ended = subprocess.run(
        [sys.executable, "-c", code, tmp_path / "x.core"], capture_output=True, text=True, check=True
    )
    assert ended.stdout == "FormatError\n" and list(tmp_path.iterdir()) == []


def test_a_replaced_file_is_replaced_whole(tmp_path: Path) -> None:
    path = maker.write(tmp_path / "x.core")
    before = open_core(path)
    with CoreWriter(path) as writer:
        writer.note(r.DumpNote(outcome="finished"))
    assert before.neff.name == "net"  # the old file is still mapped
    assert open_core(path).outcome == "finished" and len(list(tmp_path.iterdir())) == 1


def test_other_elf_files_are_refused(tmp_path: Path) -> None:
    for name, data, message in (
        ("python", Path(sys.executable).read_bytes()[:4096], "not an ELF core"),
        ("text", b"hello" * 100, "not an ELF file"),
        ("empty", b"", "file is empty"),
        ("other", elf.EHDR.pack(elf.IDENT, 4, 62, 1, 0, 64, 0, 0, 64, 56, 0, 0, 0, 0), "none that neurontools wrote"),
    ):
        path = tmp_path / name
        path.write_bytes(data)
        with pytest.raises(FormatError, match=message):
            open_core(path)
    with pytest.raises(FormatError, match="no such file"):
        open_core(tmp_path / "missing")


def test_a_newer_version_is_an_error_not_a_guess(tmp_path: Path) -> None:
    path = tmp_path / "new.core"
    with CoreWriter(path) as writer:
        writer.note(r.DumpNote(version=r.VERSION + 1))
    with pytest.raises(FormatError, match=f"expected 1 to {r.VERSION}, found {r.VERSION + 1}"):
        open_core(path)


def test_notes_of_others_and_new_fields_are_passed_over(tmp_path: Path) -> None:
    from formats.core.declare import decode

    found: list[str] = []
    kind = NOTES[0x4E540002]
    assert decode(kind, b'{"code": 7, "colour": "red"}', found) == r.StatusNote(7) and found == []
    assert decode(kind, b'{"code": "7", "name": "x"}', found) == r.StatusNote(0, "x")
    assert found == ["note 'status': code: expected an integer of 64 bits, found str"]


def test_what_would_take_command_of_a_terminal_is_taken_out() -> None:
    from formats.core.declare import decode

    found: list[str] = []
    note = decode(NOTES[0x4E540002], b'{"name": "a\\u001b[2Jb\\ud800c", "location": "ok\\tok"}', found)
    assert note.name == "a?[2Jb?c" and note.location == "ok\tok"
