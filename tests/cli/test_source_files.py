"""A file chooses no local file: source lines come only from below folders that a person has chosen."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from formats import source_files
from formats.errors import NotFoundError
from formats.neff import open_neff
from formats.source_files import RefusedSourceError, is_trusted, read_source
from neurontools.assembly.assemble_neff import to_neff
from neurontools.assembly.assembler import parse_program
from neurontools.debugger.opening import open_session
from neurontools.program.recording import open_recording
from tests.cli.conftest import Cli
from tests.conftest import PROGRAM

SECRET = "PASSWORD=hunter2"


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with a working folder, a folder of the NEFF, and secrets elsewhere."""
    for name in ("here", "neffs", "else", "safe"):
        (tmp_path / name).mkdir()
    (tmp_path / "else" / "secret.py").write_text(f"{SECRET}\n" * 40)
    (tmp_path / "neffs" / "link.py").symlink_to(tmp_path / "else" / "secret.py")
    (tmp_path / "neffs" / "own.py").write_text(f"{SECRET}\n" * 40)
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setenv("HOME_SECRET", SECRET)
    return tmp_path


def neff_that_names(places: Path, file: str) -> Path:
    path = places / "neffs" / "x.neff"
    path.write_bytes(to_neff(parse_program(PROGRAM, file)))
    return path


def hostile(places: Path) -> list[str]:
    return ["/proc/self/environ", str(places / "else" / "secret.py"), "../else/secret.py",
            str(places / "neffs/link.py"), "../neffs/../else/secret.py", "/dev/stdin", "/etc/passwd"]  # fmt: skip


@pytest.mark.parametrize("which", range(7))
def test_a_neff_does_not_choose_what_is_shown(cli: Cli, places: Path, which: int) -> None:
    file = hostile(places)[which]
    neff = neff_that_names(places, file)
    for words in (
        ("disasm", neff, "--source"),
        ("debug", neff, "-c", "step; list; list 1"),
        ("run", neff, "--record", "r.nrec"),
        ("debug", "r.nrec", "-c", "list 1"),
        ("debug", neff, "-c", "save-core x.core"),
        ("debug", "x.core", "-c", "list 1"),
        ("check", neff),
    ):
        ended = cli(*words)
        assert SECRET not in ended.out + ended.err and "root:" not in ended.out + ended.err, (words, ended)
    assert SECRET.encode() not in Path("x.core").read_bytes()


def test_what_is_refused_is_said_once(cli: Cli, places: Path) -> None:
    neff = neff_that_names(places, str(places / "else" / "secret.py"))
    ended = cli("disasm", neff, "--source")
    assert ended.err.count("is outside the folders that may be read; --source-path DIR adds one") == 1
    assert "is outside the folders" in cli("debug", neff, "-c", "list 1").err


def test_what_a_person_chose_is_shown(cli: Cli, places: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    neff = neff_that_names(places, str(places / "else" / "secret.py"))
    for command in (("disasm", neff, "--source"), ("debug", neff, "-c", "list 1")):
        assert SECRET in cli(*command, "--source-path", places / "else").out
        monkeypatch.setenv("NEURONTOOLS_SAFE_PATH", f"{places / 'safe'}{os.pathsep}{places / 'else'}")
        assert SECRET in cli(*command).out
        monkeypatch.delenv("NEURONTOOLS_SAFE_PATH")
        assert SECRET in cli(*command[:1], neff_that_names(places, str(places / "neffs/own.py")), *command[2:]).out
        neff_that_names(places, str(places / "else" / "secret.py"))
        monkeypatch.chdir(places / "else")
        assert SECRET in cli(*command).out
        monkeypatch.chdir(places / "here")


def test_a_recording_and_a_dump_choose_no_folder(cli: Cli, places: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (places / "else" / "p.s").write_text(PROGRAM)
    monkeypatch.chdir(places / "else")
    assert cli("run", "p.s", "--record", "../here/r.nrec").status == 0
    assert cli("debug", "p.s", "-c", "save-core ../here/x.core").status == 0
    (places / "else" / "p.s").write_text(f"{SECRET}\n" * 40)
    monkeypatch.chdir(places / "here")
    assert places / "else" in [folder.resolve() for folder in open_recording(Path("r.nrec")).folders]
    session = open_session(Path("r.nrec"))
    with pytest.raises(NotFoundError, match="outside the folders"):
        session.list_source(1)
    monkeypatch.setenv("NEURONTOOLS_SAFE_PATH", str(places / "else"))
    assert session.list_source(1).rows[0].text == SECRET
    monkeypatch.delenv("NEURONTOOLS_SAFE_PATH")
    assert SECRET not in str(open_session(Path("x.core")).list_source(1))


def test_only_regular_files_of_a_sensible_size(places: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo("pipe.py")
    for name, why in (("pipe.py", "not a regular file"), (".", "is a directory")):
        with pytest.raises(RefusedSourceError, match=why):
            read_source(name, [])
    monkeypatch.setattr(source_files, "_MOST_BYTES", 3)
    Path("large.py").write_text("1234")
    with pytest.raises(RefusedSourceError, match="too large"):
        read_source("large.py", [])
    for name in ("nul\0.py", "x" * 5000, "", "missing.py"):
        with pytest.raises(NotFoundError):
            read_source(name, [])


def test_the_root_counts_only_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/")
    assert not is_trusted(Path("/etc/passwd"), [Path("/")])
    monkeypatch.setenv("NEURONTOOLS_SAFE_PATH", "/")
    assert is_trusted(Path("/etc/passwd"))
    assert not is_trusted(Path("/proc/self/environ")) and not is_trusted(Path("/dev/stdin"))


def test_opening_a_neff_reads_no_file_that_it_names(places: Path) -> None:
    assert open_neff(neff_that_names(places, "/proc/self/environ")).subgraphs
