"""`neurontools memh map`: ranges of a partition, who wrote them, what was never read."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

from tests.cli.check import checked_json
from tests.cli.conftest import Cli


def test_ranges_of_softmax(cli: Cli, root: Path) -> None:
    found = checked_json(cli("memh", "map", root / "examples/softmax.py", "--json"), "memh map")
    ranges = found["ranges"]
    assert ranges and all(a["byte"] + a["bytes"] <= b["byte"] for a, b in pairwise(ranges))
    assert any("EXP" in row["writer"] for row in ranges) and all(row["read_ns"] >= row["written_ns"] for row in ranges)
    assert "bytes written" in cli("memh", "map", root / "examples/tiled_matmul.py", "--space", "psum").out


def test_what_makes_no_sense(cli: Cli, root: Path) -> None:
    example = root / "examples/softmax.py"
    assert cli("memh", "map", example, "--space", "HBM").status == 2
    assert cli("memh", "map", example, "--partition", 128).status == 2
    assert cli("memh", "map", example, "--core", 7).status == 4
