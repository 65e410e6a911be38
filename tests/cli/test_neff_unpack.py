"""`neurontools neff unpack`."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest

from tests.cli.check import checked_json, refuses_bad_files
from tests.cli.conftest import Cli


def test_it_makes_the_folder(cli: Cli, program_file: Path, tmp_path: Path) -> None:
    target = tmp_path / "out"
    ended = cli("neff", "unpack", program_file, target)
    assert ended.status == 0 and ended.out.startswith(f"{target}: ")
    assert len((target / "sg00" / "DVE.bin").read_bytes()) == 3 * 64
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out"]


def test_the_file_names_the_folder_and_json(cli: Cli, program_file: Path, tmp_path: Path) -> None:
    copy = tmp_path / "model.neff"
    copy.write_bytes(program_file.read_bytes())
    result = checked_json(cli("neff", "unpack", copy, "--json"), "neff unpack")
    assert result["folder"] == str(tmp_path / "model") and (tmp_path / "model" / "neff.json").exists()


def test_a_folder_that_holds_something_is_never_touched(cli: Cli, program_file: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine").write_text("keep")
    ended = cli("neff", "unpack", program_file, tmp_path / "out")
    assert ended.status == 2 and "not an empty folder" in ended.error_line
    assert [p.name for p in (tmp_path / "out").iterdir()] == ["mine"]


def test_a_missing_parent_is_4(cli: Cli, program_file: Path, tmp_path: Path) -> None:
    assert cli("neff", "unpack", program_file, tmp_path / "no" / "out").status == 4


@pytest.mark.parametrize("name", ["../evil", "/evil", "a/../../evil"])
def test_hostile_names_leave_nothing_behind(cli: Cli, program_file: Path, tmp_path: Path, name: str) -> None:
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        member = tarfile.TarInfo(name)
        member.size = 4
        tar.addfile(member, io.BytesIO(b"evil"))
    header = bytearray(program_file.read_bytes()[:1024])
    header[16:24] = len(archive.getvalue()).to_bytes(8, "little")
    path = tmp_path / "hostile.neff"
    path.write_bytes(bytes(header) + archive.getvalue())
    ended = cli("neff", "unpack", path, tmp_path / "out")
    assert ended.status == 3 and ended.error_line
    assert [p.name for p in tmp_path.iterdir()] == ["hostile.neff"]


def test_bad_files(cli: Cli, tmp_path: Path) -> None:
    refuses_bad_files(cli, "neff unpack", tmp_path, tmp_path / "target")
    assert not (tmp_path / "target").exists()


def with_members(program_file: Path, path: Path, *members: tuple[str, bytes]) -> Path:
    """Write a NEFF with these members; its hash does not fit."""
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name, data in members:
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    header = bytearray(program_file.read_bytes()[:1024])
    header[16:24] = len(archive.getvalue()).to_bytes(8, "little")
    path.write_bytes(bytes(header) + archive.getvalue())
    return path


@pytest.mark.parametrize(
    "names", [("a/PE.bin", "a/pe.bin"), ("A/x", "a/y"), ("straße", "STRASSE"), ("é", "e\u0301"), ("a", "A/x")]
)
def test_names_that_some_disks_take_for_one_are_refused(
    cli: Cli, program_file: Path, tmp_path: Path, names: tuple[str, str]
) -> None:
    path = with_members(program_file, tmp_path / "x.neff", *((name, b"data") for name in names))
    ended = cli("neff", "unpack", path, tmp_path / "out")
    assert ended.status == 3 and "differs from another one only in case" in ended.error_line
    assert [p.name for p in tmp_path.iterdir()] == ["x.neff"]
