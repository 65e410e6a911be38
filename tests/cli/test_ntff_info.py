"""`neurontools ntff info`."""

from __future__ import annotations

from pathlib import Path

from tests.cli.captures import capture, refuses_bad_captures
from tests.cli.check import checked_json
from tests.cli.conftest import Cli


def test_what_a_capture_holds(cli: Cli, root: Path) -> None:
    result = checked_json(cli("ntff", "info", capture(root), "--json"), "ntff info")
    assert (result["version"], result["name"], result["target"]) == (6, "double", "trn2")
    (core,) = result["cores"]
    dve = next(one for one in core["engines"] if one["engine"] == "DVE")
    assert (dve["words"], dve["compiler_words"], dve["inserted"]) == (8, 3, 5)
    assert {"kind": "trace", "core": 0, "instance": 0, "records": 20} in result["sections"]
    text = cli("ntff", "info", capture(root)).out
    assert text.startswith("double.ntff: profile capture, version 6\n")
    assert "64-79" in text and "runtime   2.30.51 (0123abcd)" in text


def test_how_fields_are_known(cli: Cli, root: Path) -> None:
    ended = cli("ntff", "info", capture(root), "--layout")
    assert ended.status == 0 and "observed" in ended.out and "time in picoseconds" in ended.out


def test_bad_files(cli: Cli, root: Path, tmp_path: Path) -> None:
    refuses_bad_captures(cli, "ntff info", root, tmp_path)
