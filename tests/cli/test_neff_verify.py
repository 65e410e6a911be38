"""`neurontools neff verify`."""

from __future__ import annotations

from pathlib import Path

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
