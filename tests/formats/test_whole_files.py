"""Files that are written whole: what is replaced keeps its mode and owner, and nothing of killed runs stays."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from formats.errors import FormatError
from formats.whole_files import clean_beside, mark_of, umask, write_beside, write_whole
from neurontools.command.output import folder_whole


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o755, 0o444])
def test_a_replaced_file_keeps_its_mode(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"old")
    path.chmod(mode)
    write_beside(path, b"new")
    assert (path.read_bytes(), path.stat().st_mode & 0o7777) == (b"new", mode)
    write_beside(tmp_path / "y", b"new")
    assert (tmp_path / "y").stat().st_mode & 0o777 == 0o666 & ~umask()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
def test_a_replaced_file_keeps_its_owner(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"old")
    os.chown(path, 12345, 23456)
    path.chmod(0o640)
    write_beside(path, b"new")
    found = path.stat()
    assert (found.st_uid, found.st_gid, found.st_mode & 0o777) == (12345, 23456, 0o640)


def test_what_may_not_be_given_away_is_written_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    path = tmp_path / "x"
    path.write_bytes(b"old")
    if os.geteuid() == 0:
        os.chown(path, 12345, 23456)
    monkeypatch.setattr(os, "chown", refused)
    write_beside(path, b"new")
    assert path.read_bytes() == b"new"


KILLED = """
import os, sys
from pathlib import Path
from formats.whole_files import write_whole
from neurontools.command.output import folder_whole
with write_whole(sys.argv[1]) as one, folder_whole(Path(sys.argv[2])) as two:
    one.write_bytes(b"half")
    (two / "half").write_bytes(b"half")
    os.kill(os.getpid(), 9)
"""


def test_what_killed_runs_left_goes_at_the_next_write(tmp_path: Path, root: Path) -> None:
    (tmp_path / ".mine.nt-notes").write_text("a person's own")
    for number in range(2):
        words = [sys.executable, "-c", KILLED, str(tmp_path / "x.npz"), str(tmp_path / "folder")]
        assert subprocess.run(words, cwd=root, check=False, timeout=60).returncode == -9
        assert len(list(tmp_path.iterdir())) == 3, number
    with write_whole(tmp_path / "other") as mine:
        mine.write_bytes(b"whole")
        with write_whole(tmp_path / "another") as second:  # what lives is left alone
            assert mine.exists() and second.exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == [".mine.nt-notes", "another", "other"]


def test_of_other_machines_only_what_is_old_goes(tmp_path: Path) -> None:
    other = tmp_path / ".x.nt-00000000-1-abcdefgh.npz"
    mine = tmp_path / f"{mark_of('x')}abcdefgh"
    other.write_bytes(b"")
    mine.write_bytes(b"")
    clean_beside(tmp_path)
    assert other.exists() and mine.exists()
    past = time.time() - 2 * 24 * 3600
    os.utime(other, (past, past))
    clean_beside(tmp_path)
    assert not other.exists() and mine.exists()


def test_errors_of_a_folder_name_the_file_asked_for(tmp_path: Path) -> None:
    target = tmp_path / "out"
    with pytest.raises(OSError, match="space") as full, folder_whole(target) as beside:
        raise OSError(28, "No space left on device", str(beside / "sg00" / "PE.bin"))
    assert full.value.filename == str(target / "sg00" / "PE.bin")
    with pytest.raises(OSError, match="space") as full, folder_whole(target):
        raise OSError(28, "No space left on device")
    assert full.value.filename == str(target)
    with pytest.raises(FormatError) as damaged, folder_whole(target) as beside:
        raise FormatError("cannot be written (No space left on device)", path=str(beside / "PE.bin"))
    assert str(damaged.value) == f"{target}/PE.bin: cannot be written (No space left on device)"
    with pytest.raises(FileNotFoundError) as nowhere, folder_whole(tmp_path / "gone" / "out"):
        raise AssertionError("there is nothing to fill")
    assert nowhere.value.filename == str(tmp_path / "gone" / "out")
    assert list(tmp_path.iterdir()) == []


PASSING = """
import os, sys
from formats.whole_files import passing_folder
with passing_folder("core") as folder:
    (folder / "half").write_bytes(b"half")
    os.kill(os.getpid(), int(sys.argv[1]))
"""


def test_what_killed_runs_left_of_temporary_folders_goes_with_the_next(tmp_path: Path, root: Path) -> None:
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    for signal, left in ((9, 1), (9, 1), (0, 0)):
        words = [sys.executable, "-c", PASSING, str(signal)]
        subprocess.run(words, cwd=root, env=environment, check=False, timeout=60)
        assert len(list(tmp_path.iterdir())) == left
