"""`neurontools monitor diff`."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.check import checked_json
from tests.cli.conftest import Cli
from tests.nrt.monitor_sample import documented_report


def test_equal_and_different_streams(cli: Cli, tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.write_text(json.dumps(documented_report()))
    second.write_text(json.dumps(documented_report()))
    ended = cli("monitor", "diff", first, second)
    assert ended.status == 0 and ended.out == "no differences\n"
    slower = documented_report()
    slower["neuron_runtime_data"][0]["pid"] = 99
    slower["neuron_runtime_data"][0]["report"]["execution_stats"]["execution_summary"]["completed"] = 100
    second.write_text(json.dumps(slower))
    ended = cli("monitor", "diff", first, second, "--json")
    assert ended.status == 1
    assert checked_json(ended, "monitor diff")["changes"] == [
        {"tag": "my_app_1", "what": "executions completed", "before": 123, "after": 100}]  # fmt: skip
    assert "0.813" in cli("monitor", "diff", first, second).out


def test_programs_of_one_tag_are_told_apart(cli: Cli, tmp_path: Path) -> None:
    """All ranks of a job may have one tag; a number of the first one differs."""
    both = documented_report()
    both["neuron_runtime_data"].append(documented_report()["neuron_runtime_data"][0] | {"pid": 99})
    (tmp_path / "first").write_text(json.dumps(both))
    both["neuron_runtime_data"][0]["report"]["execution_stats"]["execution_summary"]["completed"] = 100
    (tmp_path / "second").write_text(json.dumps(both))
    ended = cli("monitor", "diff", tmp_path / "first", tmp_path / "second", "--json")
    (change,) = checked_json(ended, "monitor diff")["changes"]
    assert (ended.status, change["tag"], change["what"], change["after"]) == (
        1,
        "my_app_1",
        "executions completed",
        100,
    )


def test_bad_files(cli: Cli, tmp_path: Path) -> None:
    good = tmp_path / "good"
    good.write_text(json.dumps(documented_report()))
    (tmp_path / "bad").write_text("{}")
    assert cli("monitor", "diff", good, tmp_path / "bad").status == 3
    assert cli("monitor", "diff", good, tmp_path / "missing").status == 4
