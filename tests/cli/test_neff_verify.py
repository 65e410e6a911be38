"""`neurontools neff verify`."""

from __future__ import annotations

from pathlib import Path

import pytest

from formats.neff import open_neff
from formats.neff.packing import pack, unpack
from tests.cli.check import checked_json, refuses_bad_files
from tests.cli.conftest import Cli


def damaged(program_file: Path, folder: Path) -> Path:
    """Return a copy whose hash does not fit."""
    data = bytearray(program_file.read_bytes())
    data[172] ^= 0xFF
    path = folder / "damaged.neff"
    path.write_bytes(data)
    return path


def test_a_sound_file(cli: Cli, program_file: Path) -> None:
    ended = cli("neff", "verify", program_file)
    assert (ended.status, ended.out, ended.err) == (0, "double.neff: ok\n", "")
    result = checked_json(cli("neff", "verify", program_file, "--json"), "neff verify")
    assert result == {"ok": True, "problems": []}


def test_a_wrong_hash_is_a_finding(cli: Cli, program_file: Path, tmp_path: Path) -> None:
    path = damaged(program_file, tmp_path)
    ended = cli("neff", "verify", path)
    assert ended.status == 1 and "hash" in ended.out and ended.out.endswith("1 error, 0 remarks\n")
    result = checked_json(cli("neff", "verify", path, "--json"), "neff verify")
    assert not result["ok"] and result["problems"][0]["severity"] == "error"


def test_quiet_and_the_wanted_status(cli: Cli, program_file: Path, tmp_path: Path) -> None:
    path = damaged(program_file, tmp_path)
    assert cli("neff", "verify", path, "--quiet", "--error-exitcode", 9) == (9, "", "")
    assert cli("neff", "verify", program_file, "--quiet", "--error-exitcode", 9) == (0, "", "")


def test_bad_files(cli: Cli, tmp_path: Path) -> None:
    refuses_bad_files(cli, "neff verify", tmp_path)


@pytest.mark.parametrize(
    ("new", "says"),
    [
        (b'{"twice": 1, "twice": 2, "', "key 'twice' stands twice in an object"),
        (b'{"number": NaN, "', "NaN is not JSON"),
        (b'{"numbers": [[-Infinity]], "', "-Infinity is not JSON"),
    ],
)
def test_json_that_readers_understand_differently(
    cli: Cli, program_file: Path, tmp_path: Path, new: bytes, says: str
) -> None:
    unpack(open_neff(program_file), tmp_path / "apart")
    member = tmp_path / "apart" / "sg00" / "def.json"
    data = member.read_bytes()
    member.write_bytes(new + data.lstrip()[1:].lstrip()[1:])
    pack(tmp_path / "apart", tmp_path / "x.neff")
    ended = cli("neff", "verify", tmp_path / "x.neff")
    assert ended.status == 1 and f"error: sg00/def.json: {says}\n" in ended.out
