"""`neurontools neff tensors`."""

from __future__ import annotations

from pathlib import Path

from tests.cli.check import checked_json, refuses_bad_files
from tests.cli.conftest import Cli


def test_tensors_come_in_call_order(cli: Cli, program_file: Path) -> None:
    result = checked_json(cli("neff", "tensors", program_file, "--json"), "neff tensors")
    rows = [(t["name"], t["kind"], t["size"]) for t in result["tensors"]]
    assert rows == [("x", "input", 32768), ("y", "output", 32768)]
    lines = cli("neff", "tensors", program_file).out.splitlines()
    assert lines[1].split()[:3] == ["x", "input", "float32"] and lines[-1] == "2 tensors, 64.0 KiB"


def test_bad_files(cli: Cli, tmp_path: Path) -> None:
    refuses_bad_files(cli, "neff tensors", tmp_path)
