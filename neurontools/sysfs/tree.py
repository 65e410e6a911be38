"""The driver's tree of attributes as emulated sessions fill it. Names and places: runtime.md 12.

Counters are folders with `total` and `present`, those of memory with `peak` too. What is not accounted for here, and is
zero: host memory, power, resets.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from formats.named_tuple import NamedTuple
from formats.nrt.memory import CATEGORIES, HOST_USES, SYSFS_ONLY

if TYPE_CHECKING:
    from emulator.machine.instances import Instance
    from emulator.runtime.ledger import Counter
    from emulator.runtime.ledger_state import MachineState

__all__ = ["STATUS_NAMES", "Attributes", "Tree", "tree_of"]

# As the user guide has them; the driver's source says execute_ for infer_ (runtime.md 12, 20).
STATUS_NAMES = (
    "exec_bad_input", "hw_error", "infer_failed_to_queue", "resource_nc_error", "unsupported_neff_version", "failure",
    "infer_completed_with_error", "invalid_error", "oob_error", "success", "generic_error",
    "infer_completed_with_num_error", "resource_error", "timeout",
)  # fmt: skip
_HARDWARE = ("mem_ecc_uncorrected", "mem_ecc_repairable_uncorrected", "sram_ecc_uncorrected")
_PLAIN = ("flop_count", "inference_count", "model_load_count", "reset_fail_count", "reset_req_count", "nc_time_in_use")
_DEVICE_NAMES = {
    "inf1": "Inferentia",
    "inf2": "Inferentia2",
    "trn1": "Trainium1",
    "trn2": "Trainium2",
    "trn3": "Trainium3",
}
_CORES = {"inf1": "NCv1", "inf2": "NCv2", "trn1": "NCv2", "trn2": "NCv3", "trn3": "NCv4"}


class Tree(NamedTuple):
    """Texts of attributes by their path below the folder of all devices; counters among them by their folder."""

    texts: dict[str, str]
    counters: dict[str, int]
    memory: dict[str, Counter]


def tree_of(instance: Instance, states: list[MachineState]) -> Tree:
    """Return the tree of one server with the sessions that run on it."""
    from emulator.machine.topology import topology_of  # deferred: start-up

    topology = None if instance.wiring == "unpublished" else topology_of(instance)
    texts: dict[str, str] = {}
    counters: dict[str, int] = {}
    physical = instance.chip.cores.whole
    for device in range(instance.chips_per_server):
        top = f"neuron{device}"
        linked = () if topology is None else topology.neighbours(device)
        texts[f"{top}/connected_devices"] = ", ".join(str(one) for one in linked if one < instance.chips_per_server)
        texts[f"{top}/core_count"] = str(physical)
        texts[f"{top}/reset"] = ""
        texts[f"{top}/info/notify_delay"] = "-1"
        texts[f"{top}/info/serial_number"] = f"{device:016x}"
        texts[f"{top}/info/architecture/arch_type"] = _CORES[instance.target]
        texts[f"{top}/info/architecture/device_name"] = _DEVICE_NAMES[instance.target]
        texts[f"{top}/info/architecture/instance_type"] = instance.name.partition(".")[0].capitalize()
        texts[f"{top}/stats/power/utilization"] = "POWER_STATUS_NO_DATA,0,0.00,0.00,0.00"
        for name in _HARDWARE:
            counters[f"{top}/stats/hardware/{name}"] = 0
        for name in HOST_USES:
            counters[f"{top}/stats/memory_usage/host_mem/{name}"] = 0
        for core in range(physical):
            place = f"{top}/neuron_core{core}"
            texts[f"{place}/info/architecture/arch_type"] = _CORES[instance.target]
            counters |= {f"{place}/stats/status/{name}": 0 for name in STATUS_NAMES}
            texts |= {f"{place}/stats/other_info/{name}": "0" for name in _PLAIN}
    return Tree(texts, counters, _memory(instance, states, texts, counters))


def _memory(
    instance: Instance, states: list[MachineState], texts: dict[str, str], counters: dict[str, int]
) -> dict[str, Counter]:
    """Fill in what sessions have counted, and return the counters of device memory."""
    from emulator.runtime.ledger import Counter  # deferred: start-up
    from emulator.runtime.ledger_views import device_counters  # deferred: start-up

    physical = instance.chip.cores.whole
    names = [*dict.fromkeys(one.sysfs for one in CATEGORIES), *SYSFS_ONLY]
    memory = {
        f"neuron{device}/neuron_core{core}/stats/memory_usage/device_mem/{name}": Counter()
        for device in range(instance.chips_per_server) for core in range(physical) for name in names
    }  # fmt: skip
    for state in states:
        for (device, core), found in device_counters(state.ledger).items():
            for name, one in found.items():
                key = f"neuron{device}/neuron_core{core}/stats/memory_usage/device_mem/{name}"
                if key in memory:
                    old = memory[key]
                    memory[key] = Counter(old.total + one.total, one.present or old.present, old.peak + one.peak)
        _count(state, physical, texts, counters)
    return memory


def _count(state: MachineState, physical: int, texts: dict[str, str], counters: dict[str, int]) -> None:
    for (core, name), count in state.counters.items():
        if core < 0:
            continue
        device, first = divmod(core * state.ledger.lnc, physical)
        place = f"neuron{device}/neuron_core{first}/stats/{name}"
        whole = f"neuron{device}/stats/{name}"
        if whole in counters:
            counters[whole] += count
        elif place in texts:
            texts[place] = str(int(texts[place]) + count)
        else:
            counters[place] = counters.get(place, 0) + count
    for core, activity in state.activity.items():
        device, first = divmod(core * state.ledger.lnc, physical)
        place = f"neuron{device}/neuron_core{first}/stats/other_info/nc_time_in_use"
        if activity.latencies and place in texts:
            texts[place] = str(activity.latencies[-1][1] // 1000)


class Attributes:
    """The tree as files have it: what was cleared counts from there on, what changed shows by how much."""

    def __init__(self) -> None:
        self._cleared: dict[str, int] = {}
        self._seen: dict[str, int] = {}
        self._present: dict[str, int] = {}

    def clear(self, path: str, tree: Tree) -> None:
        """Set a counter to zero, given the path of its `total`, `present` or `peak`."""
        folder = path.rpartition("/")[0]
        if folder in tree.counters:
            self._cleared[folder] = tree.counters[folder]
            self._present[folder] = 0
        elif folder in tree.memory:
            self._cleared[path] = getattr(tree.memory[folder], path.rpartition("/")[2], 0)

    def texts(self, tree: Tree) -> Mapping[str, str]:
        """Return every attribute with its text."""
        found = dict(tree.texts)
        for folder, total in tree.counters.items():
            change = total - self._seen.get(folder, 0)
            if change:
                self._present[folder] = change
            self._seen[folder] = total
            found[f"{folder}/total"] = str(total - self._cleared.get(folder, 0))
            found[f"{folder}/present"] = str(self._present.get(folder, 0))
        for folder, one in tree.memory.items():
            for name, number in one._asdict().items():
                path = f"{folder}/{name}"
                found[path] = str(number - self._cleared.get(path, 0))
        return found
