"""`neurontools core ls`."""

from __future__ import annotations

from pathlib import Path
from shutil import copy

from tests.cli.check import checked_json
from tests.cli.conftest import Cli
from tests.cli.dumps import refuses_bad_dumps


def test_parts(cli: Cli, fault_core: Path) -> None:
    result = checked_json(cli("core", "ls", fault_core, "--json"), "core ls")
    assert {"dump", "fault", "log", "journal"} <= {note["name"] for note in result["notes"]} and result["missing"] == []
    words = {m["engine"]: m["bytes"] for m in result["memories"] if m["space"] == "instructions"}
    assert words["DVE"] == 3 * 64
    text = cli("core", "ls", fault_core).out.splitlines()
    assert text[-1] == f"out_of_bounds.core: {len(result['notes'])} notes, 5 segments, {result['bytes']:,} bytes"


def test_folder(cli: Cli, hang_core: Path, fault_core: Path, tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    copy(hang_core, tmp_path / "deep" / "a")
    copy(fault_core, tmp_path / "b")
    (tmp_path / "c.log").write_text("log")
    (tmp_path / "d").write_bytes(b"\x7fELF")
    result = checked_json(cli("core", "ls", tmp_path, "--json"), "core ls")
    assert [(d["path"], d["status"]) for d in result["dumps"]] == [("b", "NRT_EXEC_OOB"), ("deep/a", "NRT_TIMEOUT")]
    assert result["others"] == 2
    assert cli("core", "ls", tmp_path).out.splitlines()[-1] == "2 core dumps, 2 other files"


def test_bad_files(cli: Cli, tmp_path: Path) -> None:
    refuses_bad_dumps(cli, "core ls", tmp_path)


def test_a_pipe_in_the_folder_is_not_waited_for(cli: Cli, tmp_path: Path) -> None:
    import os

    os.mkfifo(tmp_path / "pipe")
    result = checked_json(cli("core", "ls", tmp_path, "--json"), "core ls")
    assert result["dumps"] == [] and result["others"] == 1
