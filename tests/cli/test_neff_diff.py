"""`neurontools neff diff`."""

from __future__ import annotations

from pathlib import Path

from formats import isa
from formats.neff import open_neff
from tests.cli.check import checked_json, refuses_bad_files
from tests.cli.conftest import Cli


def test_a_file_is_the_same_as_itself(cli: Cli, program_file: Path) -> None:
    same = cli("neff", "diff", program_file, program_file)
    assert same.status == 0 and same.out.endswith("the same content\n")


def test_one_changed_word_is_shown(cli: Cli, root: Path, tmp_path: Path) -> None:
    """A file whose Scalar stream has one constant changed differs in that member, and in one place."""
    from formats.neff import pack, unpack

    path = root / "fixtures" / "neff" / "add_exp.neff"
    folder, changed = tmp_path / "parts", tmp_path / "changed.neff"
    unpack(open_neff(path), folder)
    stream = next(folder.rglob("Activation.bin"))
    data = bytearray(stream.read_bytes())
    at = next(i for i in range(0, len(data), 64) if data[i] == isa.Activate.OPCODE)
    data[at + isa.Activate.FIELDS["scale"].offset + 3] ^= 0x01
    stream.write_bytes(data)
    pack(folder, changed)
    found = cli("neff", "diff", path, changed, "--json", "--error-exitcode", "9")
    assert found.status == 9
    result = checked_json(found, "neff diff")
    assert [m for m in result["members"]["changed"] if m.endswith(".bin")] == ["sg00/Activation.bin"]
    (engine,) = result["subgraphs"][0]["engines"].values()
    (run,) = engine["runs"]
    assert run["kind"] == "replace" and run["lengths"] == [1, 1] and run["first"] != run["second"]
    text = cli("neff", "diff", path, changed)
    assert text.status == 1 and f"  - {run['first'][0]}" in text.out and f"  + {run['second'][0]}" in text.out
    assert cli("neff", "diff", path, changed, "--quiet").out == ""


def test_bad_files(cli: Cli, tmp_path: Path, program_file: Path) -> None:
    refuses_bad_files(cli, "neff diff", tmp_path, program_file)
