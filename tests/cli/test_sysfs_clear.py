"""`neurontools sysfs clear`."""

from __future__ import annotations

from pathlib import Path

from neurontools.dump.sysfs import PLACE
from tests.cli.check import checked_json
from tests.cli.conftest import Cli


def test_counters_are_cleared_and_nothing_else(cli: Cli, tmp_path: Path) -> None:
    assert cli("sysfs", "mount", tmp_path, "--once", "--instance", "trn1.2xlarge").status == 0
    stats = tmp_path / PLACE / "neuron0" / "neuron_core0" / "stats"
    (stats / "status" / "success" / "total").write_text("5\n")
    (stats / "other_info" / "inference_count").write_text("5\n")
    result = checked_json(cli("sysfs", "clear", "neuron0/neuron_core0", "--root", tmp_path, "--json"), "sysfs clear")
    assert result["before"]["neuron0/neuron_core0/stats/status/success/total"] == "5"
    assert (stats / "status" / "success" / "total").read_text() == "0\n"
    assert (stats / "other_info" / "inference_count").read_text() == "5\n"
    assert "cleared" in cli("sysfs", "clear", "neuron0/*/success", "--root", tmp_path).out


def test_what_is_no_counter(cli: Cli, tmp_path: Path) -> None:
    assert cli("sysfs", "mount", tmp_path, "--once", "--instance", "trn1.2xlarge").status == 0
    assert cli("sysfs", "clear", "neuron0/core_count", "--root", tmp_path).status == 4
    assert cli("sysfs", "clear", "neuron9", "--root", tmp_path).status == 4
    assert cli("sysfs", "clear").status == 2
