"""Files appear whole or not at all; the envelope carries plain data."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import numpy as np
import pytest
import typer

from neurontools.command.exits import ExitStatus
from neurontools.command.output import folder_whole, report, write_whole


def test_a_file_appears_when_written(tmp_path: Path) -> None:
    target = tmp_path / "x.bin"
    with write_whole(target) as beside:
        beside.write_bytes(b"new")
        assert not target.exists()
    assert target.read_bytes() == b"new"
    mask = os.umask(0)
    os.umask(mask)
    assert target.stat().st_mode & 0o777 == 0o666 & ~mask
    assert list(tmp_path.iterdir()) == [target]


def test_a_failure_leaves_the_old_file_alone(tmp_path: Path) -> None:
    target = tmp_path / "x.bin"
    target.write_bytes(b"old")
    with pytest.raises(ZeroDivisionError), write_whole(target) as beside:
        beside.write_bytes(b"half")
        raise ZeroDivisionError
    assert target.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [target]


def test_a_folder_appears_whole(tmp_path: Path) -> None:
    target = tmp_path / "out"
    with pytest.raises(ZeroDivisionError), folder_whole(target) as beside:
        (beside / "a").write_text("half")
        raise ZeroDivisionError
    assert list(tmp_path.iterdir()) == []
    target.mkdir()
    with folder_whole(target) as beside:
        (beside / "a").write_text("whole")
    assert (target / "a").read_text() == "whole"
    with pytest.raises(typer.BadParameter, match="not an empty folder"), folder_whole(target):
        pass
    with pytest.raises(typer.BadParameter, match="not an empty folder"), folder_whole(tmp_path / "new") as beside:
        (beside / "a").write_text("second")
        (tmp_path / "new").mkdir()
        (tmp_path / "new" / "a").write_text("another process was first")
    assert (tmp_path / "new" / "a").read_text() == "another process was first"
    assert sorted(each.name for each in tmp_path.iterdir()) == ["new", "out"]


def test_an_error_without_number_has_a_reason(tmp_path: Path) -> None:
    """NumPy says `512 requested and 0 written` where a disk is full, and gives no number."""
    for place, writing in ((tmp_path / "f", write_whole), (tmp_path / "d", folder_whole)):
        with pytest.raises(OSError, match="nput/output error") as raised, writing(place):
            raise OSError("512 requested and 0 written")
        assert (raised.value.errno, raised.value.filename) == (errno.EIO, str(place))


def test_the_envelope_is_one_document(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit) as ended, report("neff verify", True, file=Path("a/b"), seed=None) as out:
        out.result = {"array": np.arange(3), "status": ExitStatus.FINDING, "raw": b"\x01\xff", "path": Path("c")}
        out.warn("odd")
        out.status = ExitStatus.FINDING
        out.lines = lambda: ["text"]
    assert ended.value.exit_code == 1
    document = json.loads(capsys.readouterr().out)
    assert document["inputs"] == {"file": "a/b"}
    assert document["result"] == {"array": [0, 1, 2], "status": 1, "raw": "01ff", "path": "c"}
    assert document["warnings"] == ["odd"] and document["exit"] == 1
    assert document["schema"] == "neurontools.neff.verify/1" and document["tool"]["name"] == "neurontools"


def test_quiet_reports_print_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with report("run", quiet=True) as out:
        out.lines = lambda: ["text"]
    assert capsys.readouterr().out == ""
