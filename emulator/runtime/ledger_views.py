"""What each tool shows of a ledger: tables of the runtime, counters of the driver, numbers of monitor and profiler.

Every function reads the ledger's entries and nothing else. Names: `formats.nrt.memory`; source: runtime.md 3.1, 13.3.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from emulator.arch import ARCHS
from emulator.runtime.ledger import Counter, Entry, Ledger, NoRoomError
from emulator.runtime.memory import OutOfMemoryError, Owner, Stack
from formats.nrt.memory import BY_KEY, CATEGORIES, MONITOR_KEYS
from formats.nrt.oom import (
    OomRow,
    OomTable,
    failed_line,
    model_block,
    sharing_line,
    table_lines,
)

__all__ = [
    "by_category", "core_of_device", "device_counters", "model_lines", "monitor_memory", "oom_lines",
    "oom_table", "slots",
]  # fmt: skip

_SLOTS = ("CODE", "TENSORS", "CONSTANTS", "SCRATCHPAD", "MISC")


def by_category(entries: Iterable[Entry]) -> dict[str, int]:
    """Return the bytes of entries by category, every category there."""
    found = {one.key: 0 for one in CATEGORIES}
    for one in entries:
        found[one.category] += one.allocation.size
    return found


def _on(ledger: Ledger, stack: Stack | None = None, device: int | None = None) -> list[Entry]:
    return [one for one in list(ledger.entries.values())
            if (stack is None or one.allocation.stack == stack)
            and (device is None or one.allocation.stack.device == device)]  # fmt: skip


def oom_table(ledger: Ledger, stack: Stack, *, overall: bool = False) -> OomTable:
    """Return the runtime's table of one stack: the whole, each core, each of its models.

    `overall` names the first row as older runtimes do.
    """
    entries = _on(ledger, stack)
    rows = [OomRow("device", stack.device, by_category(entries), None if overall else stack.hbm)]
    names: dict[int, str] = {}
    for core in sorted({one.allocation.owner.core for one in entries}):
        mine = [one for one in entries if one.allocation.owner.core == core]
        rows.append(OomRow("core", core, by_category(mine)))
        # -1: what belongs to the core and to no model.
        for model in sorted({one.allocation.owner.model for one in mine} - {-1}):
            values = by_category(one for one in mine if one.allocation.owner.model == model)
            shown = {key: value if BY_KEY[key].by_model else None for key, value in values.items()}
            rows.append(OomRow("model", model, shown))
            loaded = ledger.models.get(Owner(core, model))
            names[model] = loaded.name if loaded is not None else ""
    return OomTable(tuple(rows), names)


def oom_lines(ledger: Ledger, error: OutOfMemoryError, *, overall: bool = False) -> list[tuple[str, str]]:
    """Return what the runtime logs when an allocation fails, as (function, text); the table has no function."""
    stack, owner = error.stack, error.owner
    cores = sorted({one.allocation.owner.core for one in _on(ledger, stack)} | {owner.core})
    align = error.align if isinstance(error, NoRoomError) else 1
    shown = 1 if align in (64, 4096) else align  # what this allocator takes for itself was not asked for
    return [
        ("print_lnc_hbm_details", sharing_line(ledger.lnc, cores)),
        ("log_dev_mem", failed_line(error.size, shown, str(error.category), stack.device, owner.core)),
        ("log_dev_mem_usage_table", "Displaying Current Memory Utilization:"),
        ("", "(NOTE: the lines are LONG, and NEFF id to name mapping is printed after)"),
        ("", ""),
        *(("", line) for line in table_lines(oom_table(ledger, stack, overall=overall))),
    ]


def model_lines(ledger: Ledger, owner: Owner) -> list[str]:
    """Return the lines that the runtime logs when a model has been loaded: its core, then the model."""
    from formats.nrt.memory_sizes import size_text  # deferred: start-up

    loaded = ledger.models[owner]
    total = shared = 0
    for (_, core, _, name), counter in list(ledger.counters.items()):
        if core == owner.core:
            total += counter.total
            shared += counter.total * (name == BY_KEY["shared_scratchpad"].sysfs)
    return [
        f"[ND {loaded.stacks[0].device}:NC {owner.core}] Current Usage Total: {size_text(total)}",
        f"        shared scratchpad: {size_text(shared)}",
        *model_block(loaded.name, by_category(ledger.entries_of(owner))),
    ]


def core_of_device(ledger: Ledger, core: int, part: int) -> int:
    """Return the number that a physical core has on its device: cores of the instance are numbered through."""
    physical = next(arch.cores.whole for arch in ARCHS.values() if arch.generation == ledger.generation)
    return core * ledger.lnc % physical + part


def device_counters(ledger: Ledger) -> dict[tuple[int, int], dict[str, Counter]]:
    """Return the driver's counters of device memory, by device and physical core, by their names in sysfs."""
    found: dict[tuple[int, int], dict[str, Counter]] = {}
    for (stack, core, part, name), counter in ledger.counters.items():
        place = found.setdefault((stack.device, core_of_device(ledger, core, part)), {})
        other = place.get(name)
        if other is None:
            place[name] = counter
        else:  # a core that has memory on two stacks: the peaks need not have been at one time
            place[name] = Counter(other.total + counter.total, counter.present, other.peak + counter.peak)
    return found


def slots(ledger: Ledger, device: int) -> dict[str, int]:
    """Return the bytes of a device by the slots that the driver's data store has for memory."""
    found = dict.fromkeys(_SLOTS, 0)
    for key, nbytes in by_category(_on(ledger, device=device)).items():
        found[BY_KEY[key].slot] += nbytes
    return found


def _monitored(values: Mapping[str, int]) -> dict[str, int]:
    found = dict.fromkeys(MONITOR_KEYS, 0)
    for key, nbytes in values.items():
        found[BY_KEY[key].monitor] += nbytes
    return found


def monitor_memory(ledger: Ledger, host: Mapping[str, int] | None = None) -> dict[str, Any]:
    """Return neuron-monitor's `memory_used`, without period and error; `host` is host memory by its four keys."""
    shares = {"application_memory": 0, "constants": 0, "dma_buffers": 0, "tensors": 0, **(host or {})}
    cores: dict[str, dict[str, int]] = {}
    for core in sorted({one.allocation.owner.core for one in list(ledger.entries.values())}):
        values = by_category(one for one in list(ledger.entries.values()) if one.allocation.owner.core == core)
        cores[str(core)] = _monitored(values)
    models = []
    for owner, loaded in ledger.models.items():
        subgraphs = {}
        for part, stack in enumerate(loaded.stacks[: len(loaded.parts)]):
            mine = (one for one in list(ledger.entries.values()) if one.allocation.owner == owner and one.part == part)
            device = _monitored(by_category(mine))
            del device["model_shared_scratchpad"]  # it is the core's
            subgraphs[f"sg_{part:02d}"] = {
                "memory_used_bytes": {
                    "host": 0,
                    "neuron_device": sum(device.values()),
                    "usage_breakdown": {
                        "host": {"application_memory": 0, "constants": 0, "dma_buffers": 0, "tensors": 0},
                        "neuron_device": device,
                    },
                },
                "neuroncore_index": owner.core,
                "neuron_device_index": stack.device,
            }
        models.append({"name": loaded.name, "uuid": loaded.uuid, "model_id": owner.model, "is_running": False,
                       "subgraphs": subgraphs})  # fmt: skip
    return {
        "neuron_runtime_used_bytes": {
            "host": sum(shares.values()),
            "neuron_device": sum(sum(core.values()) for core in cores.values()),
            "usage_breakdown": {"host": shares, "neuroncore_memory_usage": cores},
        },
        "loaded_models": models,
    }
