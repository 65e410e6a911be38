"""`neurontools sysfs read`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.check import checked_json
from tests.cli.conftest import Cli
from tests.cli.test_mem_watch import saved


@pytest.fixture
def tree(cli: Cli, root: Path, tmp_path: Path) -> Path:
    """Return a tree with one session."""
    sessions = tmp_path / "sessions"
    sessions.mkdir()
    saved(root, sessions)
    assert cli("sysfs", "mount", tmp_path / "sys", "--sessions", sessions, "--once").status == 0
    return tmp_path / "sys"


def test_patterns(cli: Cli, tree: Path) -> None:
    result = checked_json(
        cli("sysfs", "read", "neuron0/*/device_mem/tensors", "--root", tree, "--set", "--json"), "sysfs read"
    )
    found = result["attributes"]
    assert set(found) == {f"neuron0/neuron_core{core}/stats/memory_usage/device_mem/tensors/{name}"
                          for core, names in ((0, ("total", "present", "peak")), (1, ("total", "present", "peak")))
                          for name in names}  # fmt: skip
    assert int(found["neuron0/neuron_core0/stats/memory_usage/device_mem/tensors/total"]) == (3 << 30) + 8
    ended = cli("sysfs", "read", "neuron15/core_count", "--root", tree)
    assert ended.status == 0 and ended.out.splitlines()[1].split() == ["neuron15/core_count", "8"]
    everything = checked_json(cli("sysfs", "read", "--root", tree, "--json"), "sysfs read")["attributes"]
    assert len(everything) > 128 * (14 * 2 + 11 * 3)


def test_what_is_not_there(cli: Cli, tree: Path, tmp_path: Path) -> None:
    assert cli("sysfs", "read", "neuron99", "--root", tree).status == 4
    assert cli("sysfs", "read", "--root", tmp_path / "missing").status == 4
    assert cli("sysfs", "read", "--root", tmp_path).status == 4
