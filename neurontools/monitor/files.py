"""Streams of reports from a file or from standard input, and what they amount to."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated, Any

import typer

from formats.errors import FormatError
from formats.named_tuple import NamedTuple
from formats.nrt.monitor import EXECUTION_STATUS, LARGEST, problems, read_reports
from neurontools.command.files import read_text_or_input

__all__ = ["CoreSummary", "MonitorFile", "ProcessSummary", "StreamSummary", "reports_of", "summary_of"]

MonitorFile = Annotated[Path, typer.Argument(metavar="FILE", help="Output of neuron-monitor, or - for standard input.")]


class CoreSummary(NamedTuple):
    """One core: its mean and its highest utilisation in percent, the most device memory it had."""

    core: str
    mean: float
    most: float
    memory: int


class ProcessSummary(NamedTuple):
    """One program over all its reports."""

    tag: str
    pid: int
    reports: int
    seconds: float
    host_memory: int
    device_memory: int
    executions: dict[str, int]
    errors: dict[str, int]
    p50_seconds: float | None
    p99_seconds: float | None
    cores: list[CoreSummary]


class StreamSummary(NamedTuple):
    """All programs of a stream, and errors that devices counted."""

    instance_type: str
    reports: int
    processes: list[ProcessSummary]
    hardware_errors: dict[str, int]


def reports_of(path: Path) -> list[Any]:
    """Return the reports in a file; FormatError where there is none, or where there is something else."""
    found = list(read_reports(read_text_or_input(path, LARGEST), str(path)))
    if not found:
        raise FormatError("no report of neuron-monitor", path=str(path))
    return found


def sound_reports_of(path: Path) -> list[Any]:
    """Return the reports in a file whose shape is the documented one; FormatError names the first thing that is not."""
    found = reports_of(path)
    for number, one in enumerate(found, 1):
        wrong = [text for text in problems(one) if "not documented" not in text and "parts are" not in text]
        if wrong:
            raise FormatError(f"report {number}: {wrong[0]}", path=str(path))
    return found


def summary_of(path: Path) -> StreamSummary:
    """Return what the reports in a file amount to."""
    found = sound_reports_of(path)
    pairs: dict[tuple[str, int], list[Any]] = {}
    # A device counts errors from when its driver was loaded: every report of a stream has those of the ones before.
    counted: dict[tuple[int, str], int] = {}
    for report in found:
        for process in report["neuron_runtime_data"]:
            pairs.setdefault((process["neuron_runtime_tag"], process["pid"]), []).append(process["report"])
        for device in report["system_data"].get("neuron_hw_counters", {}).get("neuron_devices", []):
            for name, count in device.items():
                if name != "neuron_device_index":
                    place = device["neuron_device_index"], name
                    counted[place] = max(counted.get(place, 0), count)
    hardware: Counter[str] = Counter()
    for (_, name), count in counted.items():
        hardware[name] += count
    processes = [_process(tag, pid, groups) for (tag, pid), groups in pairs.items()]
    return StreamSummary(found[-1]["instance_info"]["instance_type"], len(found), processes, dict(hardware))


def _process(tag: str, pid: int, groups: list[Any]) -> ProcessSummary:
    used = [one["memory_used"]["neuron_runtime_used_bytes"] for one in groups if "memory_used" in one]
    stats = [one["execution_stats"] for one in groups if "execution_stats" in one]
    latencies = [one["latency_stats"]["total_latency"] for one in stats if one["latency_stats"]["total_latency"]]
    counters = [one["neuroncore_counters"]["neuroncores_in_use"] for one in groups if "neuroncore_counters" in one]
    shares: dict[str, list[float]] = {}
    for one in counters:
        for core, row in one.items():
            shares.setdefault(core, []).append(row["neuroncore_utilization"])
    memory: dict[str, int] = {}
    for total in used:
        for core, row in total["usage_breakdown"]["neuroncore_memory_usage"].items():
            memory[core] = max(memory.get(core, 0), sum(row.values()))
    cores = [
        CoreSummary(core, sum(shares.get(core, [0])) / max(1, len(shares.get(core, []))), max(shares.get(core, [0])),
                    memory.get(core, 0))
        for core in sorted({*shares, *memory}, key=lambda text: (len(text), text))
    ]  # fmt: skip
    errors: dict[str, int] = {}
    for one in stats:
        for name, count in one["error_summary"].items():
            errors[name] = errors.get(name, 0) + count
    periods = [next(iter(one.values()))["period"] for one in groups if one]
    return ProcessSummary(
        tag, pid, len(groups), sum(periods), max((one["host"] for one in used), default=0),
        max((one["neuron_device"] for one in used), default=0),
        {name: sum(one["execution_summary"][name] for one in stats) for name in EXECUTION_STATUS}, errors,
        sum(one["p50"] for one in latencies) / len(latencies) if latencies else None,
        max((one["p99"] for one in latencies), default=None), cores,
    )  # fmt: skip
