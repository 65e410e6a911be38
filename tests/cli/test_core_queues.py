"""`neurontools core queues`."""

from __future__ import annotations

from pathlib import Path

from tests.cli.check import checked_json
from tests.cli.conftest import Cli
from tests.cli.dumps import dump, refuses_bad_dumps


def test_done_and_pending(cli: Cli, root: Path, tmp_path: Path, hang_core: Path) -> None:
    result = checked_json(cli("core", "queues", hang_core, "--json"), "core queues")
    assert [(q["name"], q["completed"], q["pending"]) for q in result["queues"]] == [("qIn", 1, 0), ("qOut", 0, 0)]
    path = dump(root, "deadlock", tmp_path / "x.core", steps=6)
    result = checked_json(cli("core", "queues", path, "--json"), "core queues")
    (transfer,) = result["queues"][0]["transfers"]
    assert transfer["nbytes"] == 32768 and transfer["semaphore"] == 8 and transfer["increment"] == 16
    text = cli("core", "queues", path).out
    assert "nc0 qIn#0" in text and "copy 32768 bytes x[0x0] -> SBUF[0x4000], then S[8] += 16" in text


def test_bad_files(cli: Cli, tmp_path: Path) -> None:
    refuses_bad_dumps(cli, "core queues", tmp_path)
