"""`neurontools monitor summarize`."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.check import checked_json
from tests.cli.conftest import Cli
from tests.nrt.monitor_sample import documented_report


def test_a_stream(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "capture.json"
    busier = documented_report()
    groups = busier["neuron_runtime_data"][0]["report"]
    groups["neuroncore_counters"]["neuroncores_in_use"]["0"]["neuroncore_utilization"] = 62.01
    groups["execution_stats"]["error_summary"]["hardware"] = 2
    busier["system_data"]["neuron_hw_counters"]["neuron_devices"][0]["mem_ecc_uncorrected"] = 3
    path.write_text(json.dumps(documented_report()) + json.dumps(busier) + json.dumps(busier))  # it stays counted
    result = checked_json(cli("monitor", "summarize", path, "--json"), "monitor summarize")
    (process,) = result["processes"]
    assert process["executions"]["completed"] == 369 and process["device_memory"] == 782486784
    assert [(core["core"], round(core["mean"], 2), core["most"]) for core in process["cores"]] == [
        ("0", 55.34, 62.01), ("1", 42.02, 42.02)]  # fmt: skip
    text = cli("monitor", "summarize", path).out
    assert "errors: 4 hardware" in text and "hardware: 3 mem_ecc_uncorrected" in text and "11.000 ms at p50" in text


def test_bad_files(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "capture.json"
    bad = documented_report()
    del bad["instance_info"]["instance_type"]
    path.write_text(json.dumps(bad))
    ended = cli("monitor", "summarize", path)
    assert ended.status == 3 and "instance_info.instance_type: missing" in ended.error_line
    assert cli("monitor", "summarize", tmp_path / "missing").status == 4
