"""Reports of neuron-monitor: their shape, streams of them, and what is wrong with one. Source: runtime.md 13.3.

The documentation shows a sample of each group and says which fields may be missing; a shape here is a nested dictionary
of them: a type, "?" behind a key that may be missing, "*" for keys that are numbers or names.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from formats.errors import FormatError
from formats.nrt.memory import MONITOR_KEYS

__all__ = ["EXECUTION_STATUS", "GROUPS", "LARGEST", "PERCENTILES", "REPORT", "RUNTIME_GROUPS", "SYSTEM_GROUPS",
           "problems", "read_reports"]  # fmt: skip

LARGEST = 1 << 30  # bytes of a stream that is read
_MOST_PROBLEMS = 200
PERCENTILES = ("p0", "p1", "p25", "p50", "p75", "p99", "p100")
EXECUTION_STATUS = (
    "completed", "completed_with_err", "completed_with_num_err", "timed_out", "incorrect_input", "failed_to_queue",
)  # fmt: skip
_ERRORS = ("generic", "numerical", "transient", "model", "runtime", "hardware")
_HOST = ("application_memory", "constants", "dma_buffers", "tensors")
_CPU = ("user", "nice", "system", "idle", "io_wait", "irq", "soft_irq")

Shape = Any  # a type, None where null is allowed too: (type, None), a list of one shape, or a dictionary
_NUMBER = (int, float)
_LATENCY = (dict.fromkeys(PERCENTILES, _NUMBER), None)
_GROUP: dict[str, Shape] = {"period": _NUMBER, "error": str}
_USAGE = dict.fromkeys(_CPU, _NUMBER)
_USED = {"host": int, "neuron_device": int}
_SUBGRAPH = {
    "memory_used_bytes": {**_USED, "usage_breakdown": {
        "host": dict.fromkeys(_HOST, int),
        "neuron_device": {key + ("?" if "scratchpad" in key else ""): int for key in MONITOR_KEYS}}},
    "neuroncore_index": int, "neuron_device_index": int,
}  # fmt: skip
RUNTIME_GROUPS: dict[str, Shape] = {
    "neuroncore_counters": {**_GROUP, "neuroncores_in_use": {"*": {
        "neuroncore_utilization": _NUMBER, "flops?": _NUMBER, "v3d?": {"*": {"neuroncore_utilization": _NUMBER}}}}},
    "execution_stats": {**_GROUP, "error_summary": dict.fromkeys(_ERRORS, int),
                        "execution_summary": dict.fromkeys(EXECUTION_STATUS, int),
                        "latency_stats": {"total_latency": _LATENCY, "device_latency": _LATENCY}},
    "memory_used": {**_GROUP, "neuron_runtime_used_bytes": {**_USED, "usage_breakdown": {
        "host": dict.fromkeys(_HOST, int), "neuroncore_memory_usage": {"*": dict.fromkeys(MONITOR_KEYS, int)}}},
        "loaded_models": [{"name": str, "uuid": str, "model_id": int, "is_running": bool,
                           "subgraphs": {"*": _SUBGRAPH}}]},
    "neuron_runtime_vcpu_usage": {**_GROUP, "vcpu_usage": {"user": _NUMBER, "system": _NUMBER}},
}  # fmt: skip
SYSTEM_GROUPS: dict[str, Shape] = {
    "neuron_hw_counters": {**_GROUP, "neuron_devices": [{
        "neuron_device_index": int, "mem_ecc_corrected": int, "mem_ecc_uncorrected": int, "sram_ecc_uncorrected": int,
        "sram_ecc_corrected?": int}]},
    "vcpu_usage": {**_GROUP, "average_usage": _USAGE, "usage_data": {"*": _USAGE}, "context_switch_count": int},
    "memory_info": {**_GROUP, "memory_total_bytes": int, "memory_used_bytes": int, "swap_total_bytes": int,
                    "swap_used_bytes": int},
}  # fmt: skip
GROUPS = (*RUNTIME_GROUPS, *SYSTEM_GROUPS)
_POD = {"pod_name": str, "namespace": str, "container_name": list}
REPORT: Shape = {
    "neuron_runtime_data": [{"pid": int, "address?": str, "neuron_runtime_tag": str, "error": str,
                             "report": {f"{name}?": shape for name, shape in RUNTIME_GROUPS.items()}}],
    "system_data": {f"{name}?": shape for name, shape in SYSTEM_GROUPS.items()},
    "instance_info": {"instance_name?": str, "instance_id": str, "instance_type": str,
                      "instance_availability_zone": str, "instance_availability_zone_id?": str,
                      "instance_region?": str, "ami_id": str, "subnet_id": str, "error": str},
    "neuron_hardware_info": {"neuron_device_type?": str, "neuron_device_version?": str, "neuroncore_version?": str,
                             "neuron_device_count": int, "neuron_device_memory_size?": int,
                             "neuroncore_per_device_count": int, "logical_neuroncore_config?": int, "error": str},
    "neuron_k8s_info?": {"period": _NUMBER, "neuroncores_k8s_info": {"*": _POD}, "neurondevices_k8s_info": {"*": _POD},
                         "error": str},
}  # fmt: skip


def read_reports(text: str, path: str | None = None) -> Iterator[Mapping[str, Any]]:
    """Yield the reports of a stream, one behind another with or without line ends; FormatError for what is no JSON."""
    decoder = json.JSONDecoder()
    at = 0
    while True:
        while at < len(text) and text[at].isspace():
            at += 1
        if at >= len(text):
            return
        try:
            found, at = decoder.raw_decode(text, at)
        except (ValueError, RecursionError) as error:
            raise FormatError(f"not JSON: {error}", path=path, offset=at) from None
        if not isinstance(found, dict):
            raise FormatError("not a report of neuron-monitor", path=path, offset=at, expected="an object")
        yield found


def problems(report: Mapping[str, Any]) -> list[str]:
    """Return what a report has that the documentation does not, lacks, or counts wrongly."""
    found: list[str] = []
    _fits(report, REPORT, "", found)
    if not found:
        found += _sums(report)
    return found if len(found) <= _MOST_PROBLEMS else [*found[:_MOST_PROBLEMS], "and more, which are not counted"]


def _fits(value: Any, shape: Shape, where: str, found: list[str]) -> None:
    if len(found) > _MOST_PROBLEMS:
        return
    if isinstance(shape, tuple) and None in shape and value is None:
        return
    if isinstance(shape, tuple) and isinstance(shape[0], dict):
        shape = shape[0]
    if isinstance(shape, dict):
        _object(value, shape, where, found)
    elif isinstance(shape, list):
        if not isinstance(value, list):
            found.append(f"{where}: an array is expected, not {_kind(value)}")
            return
        for number, item in enumerate(value):
            _fits(item, shape[0], f"{where}[{number}]", found)
    elif not isinstance(value, shape) or (isinstance(value, bool) and shape is not bool):
        wanted = "a number" if shape == _NUMBER else {int: "an integer", str: "a string", bool: "true or false"}.get(
            shape, "another value")  # fmt: skip
        found.append(f"{where}: {wanted} is expected, not {_kind(value)}")
    elif isinstance(value, int | float) and not isinstance(value, bool) and value < 0:
        found.append(f"{where}: {value} is less than zero")


def _object(value: Any, shape: Mapping[str, Shape], where: str, found: list[str]) -> None:
    if not isinstance(value, dict):
        found.append(f"{where or 'report'}: an object is expected, not {_kind(value)}")
        return
    if "*" in shape:
        for key, item in value.items():
            _fits(item, shape["*"], f"{where}.{key}", found)
        return
    names = {key.rstrip("?"): key for key in shape}
    for key in value:
        if key not in names:
            found.append(f"{where}.{key}".lstrip(".") + ": not documented")
    for name, key in names.items():
        inside = f"{where}.{name}".lstrip(".")
        if name in value:
            _fits(value[name], shape[key], inside, found)
        elif not key.endswith("?"):
            found.append(f"{inside}: missing")


def _kind(value: Any) -> str:
    return {dict: "an object", list: "an array", str: "a string", bool: "true or false", type(None): "null",
            int: "an integer", float: "a number"}.get(type(value), type(value).__name__)  # fmt: skip


def _sums(report: Mapping[str, Any]) -> Iterator[str]:
    for process in report["neuron_runtime_data"]:
        used = process["report"].get("memory_used")
        if used is None or used["error"]:
            continue
        who = f"pid {process['pid']}"
        total = used["neuron_runtime_used_bytes"]
        breakdown = total["usage_breakdown"]
        host = sum(breakdown["host"].values())
        device = sum(sum(core.values()) for core in breakdown["neuroncore_memory_usage"].values())
        for what, stated, added in (("host", total["host"], host), ("neuron_device", total["neuron_device"], device)):
            if stated != added:
                yield f"{who}: memory_used.{what} is {stated:,}, its parts are {added:,}"
        for model in used["loaded_models"]:
            for name, graph in model["subgraphs"].items():
                memory = graph["memory_used_bytes"]
                for what in ("host", "neuron_device"):
                    added = sum(memory["usage_breakdown"][what].values())
                    if memory[what] != added:
                        where = f"{who}: model {model['model_id']} {name}"
                        yield f"{where} {what} is {memory[what]:,}, its parts are {added:,}"
        stats = process["report"].get("execution_stats")
        for latency in () if stats is None else stats["latency_stats"].values():
            if latency is not None and [latency[p] for p in PERCENTILES] != sorted(latency[p] for p in PERCENTILES):
                yield f"{who}: latency percentiles do not ascend"
