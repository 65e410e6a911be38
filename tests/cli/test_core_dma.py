"""`neurontools core dma`."""

from __future__ import annotations

from pathlib import Path

from tests.cli.check import checked_json
from tests.cli.conftest import Cli
from tests.cli.dumps import dump, refuses_bad_dumps


def test_rings_and_descriptors(cli: Cli, root: Path, tmp_path: Path) -> None:
    path = dump(root, "deadlock", tmp_path / "x.core", steps=6)
    result = checked_json(cli("core", "dma", path, "--json"), "core dma")
    rings = [ring for ring in result["rings"] if ring["queue"] == "qIn"]
    assert len(rings) == 16 and all((r["head"], r["tail"], r["outstanding"]) == (0, 9, 9) for r in rings)
    assert rings[1]["descriptors"][0]["nbytes"] == 256 and rings[1]["descriptors"][-1]["kind"] == "semaphore"
    assert "0-15" in cli("core", "dma", path).out or "#0 256 bytes" in cli("core", "dma", path).out


def test_idle_engines_share_a_line(cli: Cli, hang_core: Path) -> None:
    assert [line.split()[1] for line in cli("core", "dma", hang_core).out.splitlines()[1:]] == ["0-15", "0-15"]


def test_bad_files(cli: Cli, tmp_path: Path) -> None:
    refuses_bad_dumps(cli, "core dma", tmp_path)
