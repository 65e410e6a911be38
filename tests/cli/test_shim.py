"""`neurontools shim`: what it writes, and what it says is missing."""

from __future__ import annotations

import errno
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

from neurontools.shim.writers import Writer
from neurontools.version import install_with
from tests.cli.check import checked_json
from tests.cli.conftest import Cli


def _writes(folder: Path) -> list[str]:
    (folder / "part.so").write_text("new")
    return ["as it is"]


@pytest.fixture
def one_part(monkeypatch: pytest.MonkeyPatch) -> None:
    command = importlib.import_module("neurontools.shim.command")
    monkeypatch.setattr(command, "WRITERS", (Writer("part", "part.so", "A part.", _writes),))


@pytest.mark.usefixtures("one_part")
def test_parts_replace_their_own_files_only(cli: Cli, tmp_path: Path) -> None:
    folder = tmp_path / "shim"
    for _ in range(2):
        ended = cli("shim", folder)
        assert ended.status == 0 and f"{folder}/part.so: A part." in ended.out and "note: as it is" in ended.out
        assert f"LD_LIBRARY_PATH={folder}:$LD_LIBRARY_PATH" in ended.out
        (folder / "mine").write_text("stays")
        (folder / "part.so").write_text("old")
    result = checked_json(cli("shim", folder, "--json"), "shim")
    assert [part["name"] for part in result["parts"]] == ["part"]
    assert {each.name: each.read_text() for each in folder.iterdir()} == {"mine": "stays", "part.so": "new"}


@pytest.mark.usefixtures("one_part")
def test_what_cannot_be_written(cli: Cli, tmp_path: Path) -> None:
    assert cli("shim", tmp_path / "no" / "folder").status == 4
    assert cli("shim", tmp_path, "--only", "nonsense").status == 2
    (tmp_path / "file").write_text("")
    assert cli("shim", tmp_path / "file").status in (3, 4)


def test_a_full_disk_names_the_part(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file among the temporary ones that it was copied from was named."""

    def full(folder: Path) -> list[str]:
        raise OSError(errno.ENOSPC, "No space left on device", "/elsewhere/part.so", None, str(folder / "part.so"))

    command = importlib.import_module("neurontools.shim.command")
    monkeypatch.setattr(command, "WRITERS", (Writer("part", "part.so", "A part.", full),))
    ended = cli("shim", tmp_path / "shim")
    assert (ended.status, ended.error_line) == (3, f"{tmp_path}/shim/part.so: no space left on device")


def test_a_missing_compiler_says_what_to_install(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("cffi", reason="without cffi that is what is missing")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    ended = cli("shim", tmp_path / "shim", "--only", "libnrt")
    assert ended.status == 6 and "no C compiler" in ended.error_line and "apt-get install gcc" in ended.error_line
    assert not list((tmp_path / "shim").iterdir())


def test_a_missing_cffi_says_what_to_install(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cffi", None)
    ended = cli("shim", tmp_path / "shim", "--only", "libnrt")
    assert ended.status == 6 and install_with("nrt") in ended.error_line
    assert not list((tmp_path / "shim").iterdir())


@pytest.mark.usefixtures("one_part")
def test_what_to_export_may_be_pasted_into_a_shell(cli: Cli, tmp_path: Path) -> None:
    ended = cli("shim", tmp_path / "a folder; of mine")
    line = next(line for line in ended.out.splitlines() if line.startswith("export "))
    got = subprocess.run(
        ["sh", "-c", f'{line}; printf "%s" "$PATH"'], capture_output=True, text=True, check=True
    ).stdout
    assert got.startswith(f"{tmp_path}/a folder; of mine:")
