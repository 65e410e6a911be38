"""`neurontools neff vars`."""

from __future__ import annotations

from pathlib import Path

from tests.cli.check import checked_json, refuses_bad_files
from tests.cli.conftest import Cli


def test_variables_come_by_id(cli: Cli, program_file: Path) -> None:
    rows = [line.split() for line in cli("neff", "vars", program_file).out.splitlines()[1:]]
    assert [row[:4] for row in rows] == [
        ["0", "SB", "state-buffer", "-"],
        ["1", "x", "input", "32,768"],
        ["2", "y", "output", "32,768"],
        ["3", "two", "file", "512"],
    ]


def test_json(cli: Cli, program_file: Path) -> None:
    result = checked_json(cli("neff", "vars", program_file, "--json"), "neff vars")
    assert result["subgraph"] == "sg00"
    assert {v["name"]: v["kind"] for v in result["variables"]}["two"] == "file"


def test_a_missing_subgraph_is_4(cli: Cli, program_file: Path) -> None:
    ended = cli("neff", "vars", program_file, "--subgraph", 1)
    assert ended.status == 4
    assert ended.error_line == "no subgraph 1: the file has 1 subgraph, numbered from 0"


def test_bad_files(cli: Cli, tmp_path: Path) -> None:
    refuses_bad_files(cli, "neff vars", tmp_path)
