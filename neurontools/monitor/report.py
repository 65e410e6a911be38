"""Make reports of neuron-monitor from emulated sessions and from this host's own counters. Source: runtime.md 13.3."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from formats.named_tuple import NamedTuple
from formats.nrt.monitor import EXECUTION_STATUS, PERCENTILES
from neurontools.monitor.config import MonitorConfig

if TYPE_CHECKING:
    from emulator.machine.instances import Instance
    from emulator.runtime.activity import CoreActivity
    from emulator.runtime.ledger_state import MachineState

__all__ = ["Sample", "make_report", "sample"]

_CPU = ("user", "nice", "system", "idle", "io_wait", "irq", "soft_irq")
_TICKS = os.sysconf("SC_CLK_TCK")
# Counters of a session by the summaries of the report.
_FLOPS = "other_info/flop_count"
_OUTCOMES = {
    "completed": ("success",),
    "completed_with_err": ("infer_completed_with_error", "oob_error", "hw_error"),
    "completed_with_num_err": ("infer_completed_with_num_error",),
    "timed_out": ("timeout",),
    "incorrect_input": ("exec_bad_input",),
    "failed_to_queue": ("infer_failed_to_queue",),
}
_CAUSES: dict[str, tuple[str, ...]] = {
    "generic": ("generic_error", "failure"),
    "numerical": ("infer_completed_with_num_error",),
    "transient": (),
    "model": ("oob_error", "invalid_error"),
    "runtime": ("resource_error", "resource_nc_error"),
    "hardware": ("hw_error",),
}
# Only the version of trn2's devices is documented, in a sample.
_VERSIONS = {"inf1": ("inferentia", "", "v1"), "inf2": ("inferentia2", "", "v2"), "trn1": ("trainium1", "", "v2"),
             "trn2": ("trainium2", "v4", "v3"), "trn3": ("trainium3", "", "v4")}  # fmt: skip
_HARDWARE = ("mem_ecc_corrected", "mem_ecc_uncorrected", "sram_ecc_uncorrected", "sram_ecc_corrected")


class Sample(NamedTuple):
    """What there was at one moment: seconds, sessions, ticks of CPUs, context switches, ticks of sessions."""

    time: float
    states: tuple[MachineState, ...]
    cpus: dict[str, tuple[int, ...]]
    switches: int
    processes: dict[int, tuple[int, int]]


def sample(states: list[MachineState], time: float) -> Sample:
    """Take a sample; what the host does not tell is left out."""
    cpus: dict[str, tuple[int, ...]] = {}
    switches = 0
    with suppress(OSError):
        for line in Path("/proc/stat").read_text().splitlines():
            words = line.split()
            if words and re.fullmatch(r"cpu\d*", words[0]):
                cpus[words[0].removeprefix("cpu")] = tuple(map(int, words[1:8]))
            elif words and words[0] == "ctxt":
                switches = int(words[1])
    processes = {}
    for state in states:
        with suppress(OSError, ValueError, IndexError):
            words = Path(f"/proc/{state.pid}/stat").read_text().rpartition(")")[2].split()
            processes[state.pid] = int(words[11]), int(words[12])
    return Sample(time, tuple(states), cpus, switches, processes)


def make_report(now: Sample, before: Sample, config: MonitorConfig, instance: Instance, lnc: int) -> dict[str, Any]:
    """Return the report of the time between two samples; of one sample twice, with nothing done in between."""
    period = max(now.time - before.time, 0.0)
    earlier = {state.pid: state for state in before.states}
    processes = []
    for state in now.states:
        if state.pid in earlier and _began_anew(state, earlier[state.pid]):
            del earlier[state.pid]
        groups: dict[str, Any] = {}
        for one in config.runtimes:
            if re.search(one.tag_filter, state.tag):
                groups |= {name: _runtime_group(name, state, earlier.get(state.pid), now, before, period)
                           for name in one.groups}  # fmt: skip
        if groups:
            processes.append({"pid": state.pid, "address": "", "neuron_runtime_tag": state.tag, "error": "",
                              "report": groups})  # fmt: skip
    return {
        "neuron_runtime_data": processes,
        "system_data": {name: _system_group(name, now, before, period, instance) for name in config.system},
        "instance_info": {
            "instance_name": "emulated", "instance_id": "i-00000000000000000", "instance_type": instance.name,
            "instance_availability_zone": "", "instance_availability_zone_id": "", "instance_region": "", "ami_id": "",
            "subnet_id": "", "error": "",
        },
        "neuron_hardware_info": _hardware(instance, lnc),
    }  # fmt: skip


def _began_anew(state: MachineState, then: MachineState) -> bool:
    """Return whether a program closed its session and made another one: its counters began from zero again."""
    return any(state.counters.get(key, 0) < count for key, count in then.counters.items()) or any(
        (mine := state.activity.get(core)) is None or mine.executions < one.executions
        for core, one in then.activity.items()
    )


def _hardware(instance: Instance, lnc: int) -> dict[str, Any]:
    chip = instance.chip
    kind, version, core = _VERSIONS[instance.target]
    found = {
        "neuron_device_type": kind, **({"neuron_device_version": version} if version else {}),
        "neuroncore_version": core + ("d" if lnc > 1 else ""), "neuron_device_count": instance.chips_per_server,
        "neuron_device_memory_size": chip.hbm_stacks.whole * chip.hbm_bytes.whole,
        "neuroncore_per_device_count": chip.cores.whole // lnc,
    }  # fmt: skip
    return {**found, **({"logical_neuroncore_config": lnc} if chip.lnc.whole > 1 else {}), "error": ""}


def _runtime_group(
    name: str, state: MachineState, earlier: MachineState | None, now: Sample, before: Sample, period: float
) -> dict[str, Any]:
    if name == "memory_used":
        from emulator.runtime.ledger_views import monitor_memory  # deferred: start-up

        found = monitor_memory(state.ledger, {"application_memory": _resident(state.pid)})
    elif name == "neuroncore_counters":
        found = {"neuroncores_in_use": _cores(state, earlier, period)}
    elif name == "execution_stats":
        found = _executions(state, earlier)
    else:
        a, b = before.processes.get(state.pid), now.processes.get(state.pid)
        share = (
            [100 * (y - x) / _TICKS / period if period else 0.0 for x, y in zip(a, b, strict=True)]
            if a and b
            else [0.0, 0.0]
        )
        found = {"vcpu_usage": {"user": round(share[0], 2), "system": round(share[1], 2)}}
    return {"period": period, **found, "error": ""}


def _resident(pid: int) -> int:
    with suppress(OSError, ValueError, IndexError):
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return 0


def _cores(state: MachineState, earlier: MachineState | None, period: float) -> dict[str, Any]:
    """Return how busy each core was, and the operations a second of what it executed."""
    ledger = state.ledger
    found = {}
    for core in sorted({one.allocation.owner.core for one in ledger.entries.values()}):
        then = earlier.activity.get(core) if earlier is not None else None
        mine = state.activity.get(core)
        # What was not there before began in this period.
        busy = 0.0 if mine is None else (mine.busy_ns - (then.busy_ns if then is not None else 0)) / 1e9
        share = round(min(100.0, 100 * busy / period), 2) if period else 0.0
        counted = {} if earlier is None else earlier.counters
        made = state.counters.get((core, _FLOPS), 0) - counted.get((core, _FLOPS), 0)
        row: dict[str, Any] = {"neuroncore_utilization": share, "flops": round(made / period) if period else 0}
        if ledger.lnc > 1:
            row["v3d"] = {
                f"nc_v3.{core * ledger.lnc + part}": {"neuroncore_utilization": share} for part in range(ledger.lnc)
            }
        found[str(core)] = row
    return found


def _executions(state: MachineState, earlier: MachineState | None) -> dict[str, Any]:
    def counted(names: tuple[str, ...]) -> int:
        then: Mapping[tuple[int, str], int] = {} if earlier is None else earlier.counters
        return sum(
            count - then.get(key, 0) for key, count in state.counters.items() if key[1].removeprefix("status/") in names
        )

    recent: list[tuple[int, int]] = []
    for core, activity in state.activity.items():
        then = earlier.activity.get(core) if earlier is not None else None
        recent += _new(activity, then)
    return {
        "error_summary": {name: counted(names) for name, names in _CAUSES.items()},
        "execution_summary": {name: counted(_OUTCOMES[name]) for name in EXECUTION_STATUS},
        "latency_stats": {
            "total_latency": _percentiles([host for host, _ in recent]),
            "device_latency": _percentiles([device for _, device in recent]),
        },
    }


def _new(activity: CoreActivity, then: CoreActivity | None) -> tuple[tuple[int, int], ...]:
    number = activity.executions - (then.executions if then is not None else 0)
    return activity.latencies[-number:] if number else ()


def _percentiles(nanoseconds: list[int]) -> dict[str, float] | None:
    if not nanoseconds:
        return None
    ordered = sorted(nanoseconds)
    return {name: ordered[round((len(ordered) - 1) * int(name[1:]) / 100)] / 1e9 for name in PERCENTILES}


def _system_group(name: str, now: Sample, before: Sample, period: float, instance: Instance) -> dict[str, Any]:
    if name == "neuron_hw_counters":
        devices = []
        for device in range(instance.chips_per_server):
            counts = dict.fromkeys(_HARDWARE, 0)
            for state in now.states:
                physical = instance.chip.cores.whole
                for (core, counter), count in state.counters.items():
                    each = counter.removeprefix("hardware/")
                    if each in counts and core >= 0 and core * state.ledger.lnc // physical == device:
                        counts[each] += count
            devices.append({"neuron_device_index": device, **counts})
        found: dict[str, Any] = {"neuron_devices": devices}
    elif name == "vcpu_usage":
        shares = {cpu: _shares(before.cpus.get(cpu, ticks), ticks) for cpu, ticks in now.cpus.items()}
        average = shares.pop("", dict.fromkeys(_CPU, 0))
        found = {"average_usage": average, "usage_data": shares, "context_switch_count": now.switches - before.switches}
    else:
        found = _memory()
    return {"period": period, **found, "error": ""}


def _shares(before: tuple[int, ...], now: tuple[int, ...]) -> dict[str, float]:
    spent = [max(0, b - a) for a, b in zip(before, now, strict=True)]
    total = sum(spent) or 1
    return {name: round(100 * ticks / total, 2) for name, ticks in zip(_CPU, spent, strict=True)}


def _memory() -> dict[str, int]:
    sizes: dict[str, int] = {}
    with suppress(OSError, ValueError, IndexError):
        for line in Path("/proc/meminfo").read_text().splitlines():
            sizes[line.partition(":")[0]] = int(line.split()[1]) * 1024
    return {
        "memory_total_bytes": sizes.get("MemTotal", 0),
        "memory_used_bytes": sizes.get("MemTotal", 0) - sizes.get("MemAvailable", 0),
        "swap_total_bytes": sizes.get("SwapTotal", 0),
        "swap_used_bytes": sizes.get("SwapTotal", 0) - sizes.get("SwapFree", 0),
    }
