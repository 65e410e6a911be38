"""`neurontools core verify`."""

from __future__ import annotations

from pathlib import Path

from formats.core import NOTES, open_core
from tests.cli.check import checked_json
from tests.cli.conftest import Cli
from tests.cli.dumps import dump, neff_of, refuses_bad_dumps

FIXTURE = Path(__file__).resolve().parents[2] / "fixtures" / "neff" / "add_exp.neff"


def test_the_words_are_those_of_the_neff(cli: Cli, root: Path, tmp_path: Path, hang_core: Path) -> None:
    neff = tmp_path / "deadlock.neff"
    neff.write_bytes(neff_of(root, "deadlock"))
    for core in (hang_core, dump(root, "deadlock", tmp_path / "full.core")):
        result = checked_json(cli("core", "verify", core, "--neff", neff, "--json"), "core verify")
        assert result["ok"] and result["problems"] == [] and sum(e["compared"] for e in result["engines"]) == 11
    assert cli("core", "verify", hang_core).out == "deadlock.core: 15 notes, 389 segments: whole\n"


def test_one_flipped_bit_of_a_word(cli: Cli, root: Path, tmp_path: Path) -> None:
    neff, path = tmp_path / "deadlock.neff", dump(root, "deadlock", tmp_path / "x.core")
    neff.write_bytes(neff_of(root, "deadlock"))
    segment = next(s for s in open_core(str(path)).segments if s.engine == "DVE")
    data = bytearray(path.read_bytes())
    data[segment.offset + 2 * 64 + 17] ^= 4
    path.write_bytes(data)
    ended = cli("core", "verify", path, "--neff", neff, "--json")
    result = checked_json(ended, "core verify")
    assert ended.status == 1 and result["problems"] == [
        f"the bytes from {segment.address:#x} (instructions of core 0) are not what was written",
        "nc0 DVE: 1 of 3 words differ, the first at pc 2",
    ]
    assert cli("core", "verify", path, "--neff", neff, "--error-exitcode", "9").status == 9
    ended = cli("core", "verify", path)
    assert ended.status == 1 and "1 problem\n  the bytes from" in ended.out


def test_one_flipped_bit_of_memory(cli: Cli, root: Path, tmp_path: Path) -> None:
    path = dump(root, "deadlock", tmp_path / "x.core")
    segment = next(s for s in open_core(str(path)).segments if s.space == "SBUF")
    data = bytearray(path.read_bytes())
    data[segment.offset] ^= 1
    path.write_bytes(data)
    ended = cli("core", "verify", path)
    assert ended.status == 1 and f"the bytes from {segment.address:#x} (SBUF of core 0) are not" in ended.out
    assert cli("core", "info", path).status == 0


def test_another_neff(cli: Cli, root: Path, tmp_path: Path, hang_core: Path) -> None:
    neff = tmp_path / "other.neff"
    neff.write_bytes(neff_of(root, "race"))
    ended = cli("core", "verify", hang_core, "--neff", neff)
    assert ended.status == 1 and "uuid in the dump is" in ended.out


def test_a_cut_dump_is_not_whole(cli: Cli, root: Path, tmp_path: Path) -> None:
    path = dump(root, "deadlock", tmp_path / "x.core")
    path.write_bytes(path.read_bytes()[:-100])
    ended = cli("core", "verify", path)
    assert ended.status == 1 and "segments are cut off or missing" in ended.out


def test_bad_files(cli: Cli, tmp_path: Path) -> None:
    refuses_bad_dumps(cli, "core verify", tmp_path)


def test_a_full_dump_without_its_words_is_not_whole(cli: Cli, tmp_path: Path) -> None:
    """A stream that tells of words and stores none was called whole, of 0 words that were compared."""
    from emulator.device import Device
    from emulator.dump import write_core
    from formats.core import CoreWriter
    from formats.core import records as r
    from formats.neff import open_neff

    neff = open_neff(FIXTURE)
    device = Device(neff.target)
    device.load(neff)
    write_core(device, tmp_path / "whole.core", level="full")
    whole = open_core(str(tmp_path / "whole.core"))
    with CoreWriter(tmp_path / "x.core") as writer:
        for kind in NOTES.values():
            note = whole.note(kind.record)
            if isinstance(note, r.ProgramNote):
                note = note._replace(streams=tuple(each._replace(runs=()) for each in note.streams))
            if note is not None and not isinstance(note, r.ChecksumsNote):
                writer.note(note)
    assert cli("core", "verify", tmp_path / "whole.core", "--neff", FIXTURE).status == 0
    ended = cli("core", "verify", tmp_path / "x.core", "--neff", FIXTURE)
    assert ended.status == 1 and "nc0 SP: 0 of" in ended.out and "words are in a full dump" in ended.out
