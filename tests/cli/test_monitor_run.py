"""`neurontools monitor run`: reports of sessions fit the documented shape; configuration; metrics for Prometheus."""

from __future__ import annotations

import json
import re
import socket
import urllib.request
from pathlib import Path

import pytest

from emulator.machine.instances import instance_of
from emulator.runtime.activity import CoreActivity
from emulator.runtime.ledger_state import FOLDER_VARIABLE, dump_state, read_state
from formats.errors import FormatError
from formats.nrt.monitor import problems
from neurontools.monitor.config import DEFAULT, read_config
from neurontools.monitor.prometheus import METRICS, MissingClientError, Served, values
from neurontools.monitor.report import Sample, make_report, sample
from tests.cli.check import checked_json
from tests.cli.conftest import Cli
from tests.cli.test_mem_watch import saved
from tests.corpus.files import find
from tests.nrt.monitor_sample import CONFIG, documented_report


def two_samples(root: Path, folder: Path) -> tuple[Sample, Sample]:
    """Return a session at two moments, two seconds and three executions apart."""
    before = read_state(saved(root, folder))
    after = before._replace(
        counters={(0, "status/success"): 2, (0, "status/timeout"): 1, (0, "hardware/mem_ecc_uncorrected"): 1},
        activity={
            0: CoreActivity(3, 1_000_000_000, 5_000, ((300_000_000, 1000), (200_000_000, 2000), (500_000_000, 2000)))
        },
    )
    return sample([before], 10.0), sample([after], 12.0)


def test_a_session_between_two_moments(root: Path, tmp_path: Path) -> None:
    before, after = two_samples(root, tmp_path)
    report = make_report(after, before, DEFAULT, instance_of("trn2.48xlarge"), 2)
    assert problems(report) == []
    groups = report["neuron_runtime_data"][0]["report"]
    core = groups["neuroncore_counters"]["neuroncores_in_use"]["0"]
    assert core["neuroncore_utilization"] == 50.0 and set(core["v3d"]) == {"nc_v3.0", "nc_v3.1"}
    later = after._replace(time=14.0, states=(after.states[0]._replace(
        activity={0: CoreActivity(4, 1_500_000_000, 6_000, ((1_000_000_000, 1000),))}),))  # fmt: skip
    second = make_report(later, after, DEFAULT, instance_of("trn2.48xlarge"), 2)
    counters = second["neuron_runtime_data"][0]["report"]["neuroncore_counters"]["neuroncores_in_use"]
    assert counters["0"]["neuroncore_utilization"] == 25.0
    stats = groups["execution_stats"]
    assert (stats["execution_summary"]["completed"], stats["execution_summary"]["timed_out"]) == (2, 1)
    assert stats["latency_stats"]["total_latency"]["p50"] == 0.3
    assert stats["latency_stats"]["device_latency"]["p100"] == 2e-6
    devices = report["system_data"]["neuron_hw_counters"]["neuron_devices"]
    assert [one["mem_ecc_uncorrected"] for one in devices] == [1] + [0] * 15
    used = groups["memory_used"]["neuron_runtime_used_bytes"]
    assert used["neuron_device"] == after.states[0].ledger.used(
        next(iter(after.states[0].ledger.models.values())).stacks[0]
    )


def test_a_program_that_makes_another_session_counts_from_zero(root: Path, tmp_path: Path) -> None:
    _, first = two_samples(root, tmp_path)
    again = first.states[0]._replace(
        counters={(0, "status/success"): 1}, activity={0: CoreActivity(1, 500_000_000, 9_000, ((5_000, 4_000),))}
    )
    report = make_report(sample([again], 14.0), first, DEFAULT, instance_of("trn2.48xlarge"), 2)
    assert problems(report) == []
    groups = report["neuron_runtime_data"][0]["report"]
    stats = groups["execution_stats"]
    assert (stats["execution_summary"]["completed"], stats["execution_summary"]["timed_out"]) == (1, 0)
    assert stats["latency_stats"]["device_latency"]["p50"] == 4e-6
    core = groups["neuroncore_counters"]["neuroncores_in_use"]["0"]
    assert core["neuroncore_utilization"] == 25.0 and core["flops"] == 0


def test_one_report(cli: Cli, root: Path, tmp_path: Path) -> None:
    path = saved(root, tmp_path)
    report = checked_json(cli("monitor", "run", path, "--json"), "monitor run")["report"]
    assert problems(report) == [] and len(report["neuron_runtime_data"]) == 1
    ended = cli("monitor", "run", path, "--once")
    assert ended.status == 0 and problems(json.loads(ended.out)) == []


def test_without_sessions(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(FOLDER_VARIABLE, raising=False)
    for instance in ("trn1.32xlarge", "inf2.xlarge", "trn2.48xlarge"):
        report = json.loads(cli("monitor", "--once", "--instance", instance).out)
        assert problems(report) == [] and report["neuron_runtime_data"] == []


def test_the_documented_configuration(cli: Cli, root: Path, tmp_path: Path) -> None:
    path = tmp_path / "monitor.conf"
    path.write_text(json.dumps(CONFIG))
    config = read_config(path)
    assert config.period == 1.0 and config.system["neuron_hw_counters"] == 2.0 and len(config.runtimes[0].groups) == 4
    only = {"neuron_runtimes": [{"tag_filter": "^none$", "metrics": [{"type": "memory_used"}]}]}
    path.write_text(json.dumps(only))
    report = json.loads(cli("monitor", "run", saved(root, tmp_path), "-c", path, "--once").out)
    assert report["neuron_runtime_data"] == [] and report["system_data"] == {} and problems(report) == []


@pytest.mark.parametrize(
    "bad",
    [[], {"x": 1}, {"period": 5}, {"period": "5"}, {"period": "0s"}, {"neuron_runtimes": {}}, {"system_metrics": [5]},
     {"system_metrics": [{"type": "memory_used"}]}, {"neuron_runtimes": [{"tag_filter": "("}]},
     {"neuron_runtimes": [{"metrics": [{"type": "vcpu_usage"}]}]}],
)  # fmt: skip
def test_bad_configurations(cli: Cli, tmp_path: Path, bad: object) -> None:
    path = tmp_path / "monitor.conf"
    path.write_text(json.dumps(bad))
    with pytest.raises(FormatError, match=re.escape(str(path))):
        read_config(path)
    assert cli("monitor", "run", "-c", path, "--once").status == 3


def test_every_metric_of_the_public_board_is_served(corpus: Path) -> None:
    board = find(corpus, "aws-neuron-sdk/src/examples/neuron-monitor/neuron-monitor-grafana.json")
    expressions = " ".join(re.findall(r'"expr": "((?:[^"\\]|\\.)*)"', board.read_text()))
    wanted = set(re.findall(r"\b((?:neuron|system|execution|instance)\w*_\w+)\b", expressions)) - {"instance_id"}
    wanted -= {"memory_location", "execution_status", "usage_type", "neuroncore", "status_type"}
    assert wanted and wanted <= set(METRICS)


def test_values_have_the_labels_that_metrics_declare() -> None:
    found = list(values(documented_report()))
    assert {one.metric for one in found} == set(METRICS)
    assert all(len(one.labels) == len(METRICS[one.metric][1]) for one in found)


def test_metrics_over_http() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    try:
        served = Served(port)
    except MissingClientError:
        pytest.skip("prometheus-client is not installed")
    try:
        served.show(documented_report())
        served.show(documented_report())
        text = urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30).read().decode()
    finally:
        served.close()
    assert set(METRICS) <= set(re.findall(r"^(\w+)\{", text, re.MULTILINE))
    assert (
        'execution_status_total{instance_id="i-0011223344556677a",runtime_tag="my_app_1",status_type="completed"} 246.0'
        in text
    )


def test_prometheus_without_its_client(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "prometheus_client", None)
    ended = cli("monitor", "run", "--prometheus", "9")
    assert ended.status == 6 and "[prometheus]" in ended.error_line


def test_bad_places(cli: Cli, tmp_path: Path) -> None:
    assert cli("monitor", "run", tmp_path / "missing", "--once").status == 4
    (tmp_path / "bad.json").write_text("{}")
    assert cli("monitor", "run", tmp_path / "bad.json", "--once").status == 3
    assert dump_state is not None
