"""`neurontools core semaphores`."""

from __future__ import annotations

from pathlib import Path

from tests.cli.check import checked_json
from tests.cli.conftest import Cli
from tests.cli.dumps import refuses_bad_dumps


def test_those_that_matter_and_all(cli: Cli, hang_core: Path) -> None:
    result = checked_json(cli("core", "semaphores", hang_core, "--json"), "core semaphores")
    assert {c["number"]: c["value"] for c in result["counters"]} == {4: 0, 6: 0, 8: 16}
    assert result["counters"][0]["waiters"] == ["nc0 Pool pc 1 S[4]>=1", "nc0 DVE pc 2 S[4]>=1"]
    assert len(cli("core", "semaphores", hang_core).out.splitlines()) == 4
    every = checked_json(cli("core", "semaphores", hang_core, "--all", "--json"), "core semaphores")
    assert len(every["counters"]) == 512


def test_bad_files(cli: Cli, tmp_path: Path) -> None:
    refuses_bad_dumps(cli, "core semaphores", tmp_path)
