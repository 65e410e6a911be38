"""The shape of neuron-monitor's reports: the documented sample fits, every single change of it is noticed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from formats.errors import FormatError
from formats.nrt.monitor import problems, read_reports
from tests.nrt.monitor_sample import documented_report


def places(value: Any, way: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the way to everything inside a report."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inside in items:
        yield (*way, key)
        yield from places(inside, (*way, key))


def test_the_documented_report_fits() -> None:
    assert problems(documented_report()) == []
    silent = documented_report()
    stats = silent["neuron_runtime_data"][0]["report"]["execution_stats"]["latency_stats"]
    stats["total_latency"] = stats["device_latency"] = None
    assert problems(silent) == []


def test_every_change_of_kind_is_noticed() -> None:
    missed = []
    for way in places(documented_report()):
        changed = documented_report()
        holder = changed
        for key in way[:-1]:
            holder = holder[key]
        if isinstance(holder[way[-1]], str) and isinstance(holder, list):
            continue  # names of containers are free
        holder[way[-1]] = ["strange"] if not isinstance(holder[way[-1]], list) else 5
        if not problems(changed):
            missed.append(way)
    assert missed == []


def test_missing_fields_are_noticed_but_those_that_may_be_missing() -> None:
    free = {"flops", "v3d", "address", "instance_name", "instance_availability_zone_id", "instance_region",
            "neuron_k8s_info", "neuron_device_type", "neuron_device_version", "neuroncore_version",
            "neuron_device_memory_size", "logical_neuroncore_config", "sram_ecc_corrected"}  # fmt: skip
    groups = {"neuroncore_counters", "execution_stats", "memory_used", "neuron_runtime_vcpu_usage", "vcpu_usage",
              "memory_info", "neuron_hw_counters"}  # fmt: skip
    for way in places(documented_report()):
        changed = documented_report()
        holder = changed
        for key in way[:-1]:
            holder = holder[key]
        named = isinstance(way[-1], int) or way[-1][0].isdigit() or way[-1].startswith(("nc_v3", "sg_"))
        del holder[way[-1]]
        if named or way[-1] in free or (way[-1] in groups and way[-2] in ("report", "system_data")):
            assert not [one for one in problems(changed) if "missing" in one], way
        else:
            assert problems(changed), way


@pytest.mark.parametrize("key", ["host", "neuron_device"])
def test_sums(key: str) -> None:
    changed = documented_report()
    used = changed["neuron_runtime_data"][0]["report"]["memory_used"]
    used["neuron_runtime_used_bytes"][key] += 1
    used["loaded_models"][0]["subgraphs"]["sg_00"]["memory_used_bytes"][key] += 1
    found = problems(changed)
    assert len(found) == 2 and all("its parts are" in one for one in found)
    latency = changed["neuron_runtime_data"][0]["report"]["execution_stats"]["latency_stats"]["total_latency"]
    latency["p0"] = 5.0
    assert any("ascend" in one for one in problems(changed))


def test_streams() -> None:
    one = json.dumps(documented_report())
    assert len(list(read_reports(one + "\n" + one + one))) == 3 and list(read_reports(" \n")) == []
    for text in (one[:-1], "[1]", one + "x", "[" * 5000):
        with pytest.raises(FormatError):
            list(read_reports(text, "file"))


def test_problems_that_are_left_out_are_told() -> None:
    found = problems({f"field{number}": 0 for number in range(1000)})
    assert len(found) == 201 and found[-1].startswith("and more")
