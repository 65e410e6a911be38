"""What the dashboard shows of a report of neuron-monitor, of all programs or of one. Source: runtime.md 13.2, 13.3."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from formats.named_tuple import NamedTuple
from formats.numerals import parse_decimal

__all__ = ["ALL", "DEVICE_ROWS", "HOST_ROWS", "Branch", "CoreUse", "Figures", "figures", "tabs_of"]

ALL = "all"
# Rows of the summary by the keys that reports have.
HOST_ROWS = {"tensors": "Tensors", "constants": "Constants", "dma_buffers": "DMA Buffers",
             "application_memory": "App. Memory"}  # fmt: skip
DEVICE_ROWS = {"tensors": "Tensors", "constants": "Constants", "model_code": "Model Code",
               "runtime_memory": "Runtime Memory", "model_shared_scratchpad": "Model Scratchpad"}  # fmt: skip


class CoreUse(NamedTuple):
    """One core: percent of the time that it was busy, teraflops where the report has them."""

    core: int
    percent: float
    tflops: float | None


class Branch(NamedTuple):
    """One row of the tree: a core, a model on it, or a category of memory."""

    label: str
    model_id: int | None
    host: int
    device: int
    level: Annotated[int, "0 a core, 1 a model or what no model has, 2 a category"]


class Figures(NamedTuple):
    """One tab of the dashboard."""

    instance_type: str
    instance_id: str
    core_version: str
    tab: str
    tabs: list[str]
    cores: list[CoreUse]
    system_user: float
    system_system: float
    runtime_user: float
    runtime_system: float
    host_total: int
    host: dict[str, int]
    device_total: int
    device: dict[str, int]
    tree: list[Branch]


def tabs_of(report: Mapping[str, Any]) -> list[str]:
    """Return the names of the tabs: all, then the programs' tags; of programs with one tag the pid tells which."""
    tags = [process["neuron_runtime_tag"] for process in report["neuron_runtime_data"]]
    return [ALL, *(tag if tags.count(tag) == 1 else f"{tag} ({process['pid']})"
                   for tag, process in zip(tags, report["neuron_runtime_data"], strict=True))]  # fmt: skip


def figures(report: Mapping[str, Any], tab: str = ALL) -> Figures:
    """Return what a tab shows; one that is not there any more is `all`."""
    tabs = tabs_of(report)
    tab = tab if tab in tabs else ALL
    every = report["neuron_runtime_data"]
    chosen = every if tab == ALL else [every[tabs.index(tab) - 1]]
    groups = [process["report"] for process in chosen]
    used = [one["memory_used"]["neuron_runtime_used_bytes"] for one in groups if "memory_used" in one]
    host = {name: sum(one["usage_breakdown"]["host"][key] for one in used) for key, name in HOST_ROWS.items()}
    on_cores = [core for one in used for core in one["usage_breakdown"]["neuroncore_memory_usage"].values()]
    device = {name: sum(core[key] for core in on_cores) for key, name in DEVICE_ROWS.items()}
    vcpu = [one["neuron_runtime_vcpu_usage"]["vcpu_usage"] for one in groups if "neuron_runtime_vcpu_usage" in one]
    average = report["system_data"].get("vcpu_usage", {}).get("average_usage", {})
    hardware = report["neuron_hardware_info"]
    return Figures(
        report["instance_info"]["instance_type"], report["instance_info"]["instance_id"],
        hardware.get("neuroncore_version", ""), tab, tabs, _cores(groups, hardware),
        average.get("user", 0.0), average.get("system", 0.0), sum(one["user"] for one in vcpu),
        sum(one["system"] for one in vcpu), sum(one["host"] for one in used), host,
        sum(one["neuron_device"] for one in used), device, _tree(groups, hardware),
    )  # fmt: skip


def _cores(groups: list[Any], hardware: Mapping[str, Any]) -> list[CoreUse]:
    """Return every core of the instance; a core of no program is idle."""
    found: dict[int, CoreUse] = {core: CoreUse(core, 0.0, None) for core in range(
        hardware["neuron_device_count"] * hardware["neuroncore_per_device_count"])}  # fmt: skip
    for one in groups:
        for text, row in one.get("neuroncore_counters", {}).get("neuroncores_in_use", {}).items():
            number = parse_decimal(text)
            if number is not None and number in found:
                flops = row.get("flops")
                found[number] = CoreUse(number, row["neuroncore_utilization"], None if flops is None else flops / 1e12)
    return list(found.values())


def _tree(groups: list[Any], hardware: Mapping[str, Any]) -> list[Branch]:
    each = max(1, hardware["neuroncore_per_device_count"])
    rows: list[Branch] = []
    cores: dict[str, dict[str, int]] = {}
    models: dict[str, list[Any]] = {}
    for one in groups:
        memory = one.get("memory_used")
        if memory is None:
            continue
        for core, values in memory["neuron_runtime_used_bytes"]["usage_breakdown"]["neuroncore_memory_usage"].items():
            mine = cores.setdefault(core, dict.fromkeys(DEVICE_ROWS, 0))
            for key in DEVICE_ROWS:
                mine[key] += values[key]
        for model in memory["loaded_models"]:
            for graph in model["subgraphs"].values():
                models.setdefault(str(graph["neuroncore_index"]), []).append((model, graph["memory_used_bytes"]))
    for core in sorted(cores, key=lambda text: (len(text), text)):
        left = dict(cores[core])
        inside: list[Branch] = []
        host = 0
        for model, memory in models.get(core, ()):
            values = memory["usage_breakdown"]["neuron_device"]
            inside.append(Branch(model["name"], model["model_id"], memory["host"], memory["neuron_device"], 1))
            inside += [Branch(DEVICE_ROWS[key], None, 0, value, 2) for key, value in values.items()
                       if value and key in DEVICE_ROWS]  # fmt: skip
            host += memory["host"]
            for key, value in values.items():
                # What another program counted: its models may say more than its core.
                left[key] = max(0, left.get(key, 0) - value)
        rest = sum(left.values())
        inside.append(Branch("of no model", None, 0, rest, 1))
        inside += [Branch(DEVICE_ROWS[key], None, 0, value, 2) for key, value in left.items() if value]
        number = (parse_decimal(core) or 0) // each
        rows.append(Branch(f"ND {number} NC {core}", None, host, sum(cores[core].values()), 0))
        rows += inside
    return rows
