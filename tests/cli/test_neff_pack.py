"""`neurontools neff pack`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.check import checked_json
from tests.cli.conftest import Cli
from tests.corpus.files import MATMUL_SMALL, find


@pytest.fixture
def folder(cli: Cli, program_file: Path, tmp_path: Path) -> Path:
    """Return the program taken apart."""
    assert cli("neff", "unpack", program_file, tmp_path / "parts").status == 0
    return tmp_path / "parts"


def test_unchanged_parts_give_the_same_bytes(cli: Cli, folder: Path, program_file: Path, tmp_path: Path) -> None:
    result = checked_json(cli("neff", "pack", folder, "-o", tmp_path / "again.neff", "--json"), "neff pack")
    assert (tmp_path / "again.neff").read_bytes() == program_file.read_bytes()
    assert result["size"] == program_file.stat().st_size and result["method"].startswith("unchanged")


def test_a_changed_member_gives_a_sound_file(cli: Cli, folder: Path, tmp_path: Path) -> None:
    stream = folder / "sg00" / "SP.bin"
    stream.write_bytes(stream.read_bytes() + b"\xa4\x10" + bytes(62))
    ended = cli("neff", "pack", folder, "-o", tmp_path / "new.neff")
    assert ended.status == 0 and "changed" in ended.out
    listing = cli("disasm", tmp_path / "new.neff", "-e", "sp").out
    assert listing.count("NOP") == 1


def test_what_is_no_unpacked_neff_is_refused(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    ended = cli("neff", "pack", tmp_path / "empty", "-o", tmp_path / "x.neff")
    assert ended.status == 3 and ended.error_line
    assert cli("neff", "pack", tmp_path / "none", "-o", tmp_path / "x.neff").status == 4
    assert cli("neff", "pack", tmp_path / "empty").status == 2
    assert [p.name for p in tmp_path.iterdir()] == ["empty"]


def test_a_real_file_comes_back(cli: Cli, corpus: Path, tmp_path: Path) -> None:
    real = find(corpus, MATMUL_SMALL)
    assert cli("neff", "unpack", real, tmp_path / "parts").status == 0
    assert cli("neff", "pack", tmp_path / "parts", "-o", tmp_path / "x.neff").status == 0
    assert (tmp_path / "x.neff").read_bytes() == real.read_bytes()
