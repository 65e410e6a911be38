"""`neurontools hlo stats`."""

from __future__ import annotations

from pathlib import Path

from tests.cli.check import checked_json, refuses_bad_files
from tests.cli.conftest import Cli
from tests.cli.hlo_modules import model


def test_stats(cli: Cli, tmp_path: Path) -> None:
    file = model(tmp_path)
    assert "10 instructions in 2 computations, 1 with a line of the model" in cli("hlo", "stats", file).out
    result = checked_json(cli("hlo", "stats", file, "--json"), "hlo stats")
    assert result["opcodes"][0] == {"opcode": "parameter", "instructions": 4, "types": ["f32"], "largest": 80}
    assert result["parameters"] == ["f32[3,5]", "f32[5,4]"] and result["result_bytes"] == 36


def test_bad_files(cli: Cli, tmp_path: Path) -> None:
    refuses_bad_files(cli, "hlo stats", tmp_path)
