"""Data stores of emulated sessions: what each counted on a device, by the driver's names. Source: runtime.md 12.1."""

from __future__ import annotations

from typing import TYPE_CHECKING

from formats.nrt.datastore import CORES, Datastore
from formats.nrt.memory import BY_KEY

if TYPE_CHECKING:
    from emulator.machine.instances import Instance
    from emulator.runtime.ledger_state import MachineState

__all__ = ["FOLDER", "stores_of"]

FOLDER = "neuron_ds"  # beside the devices; on a real machine a program maps its store from the driver
_FLOPS = "other_info/flop_count"
# What sessions count below stats/ by the names that the store has.
_COUNTED = {
    "status/success": "INFER_COMPLETED",
    "status/infer_completed_with_error": "INFER_COMPLETED_WITH_ERR",
    "status/infer_completed_with_num_error": "INFER_COMPLETED_WITH_NUM_ERR",
    "status/timeout": "INFER_TIMED_OUT",
    "status/exec_bad_input": "INFER_INCORRECT_INPUT",
    "status/infer_failed_to_queue": "INFER_FAILED_TO_QUEUE",
    "status/generic_error": "ERR_GENERIC",
    "status/hw_error": "ERR_HW",
    "status/failure": "GENERIC_FAIL",
    "status/resource_error": "ERR_RESOURCE",
    "status/resource_nc_error": "ERR_RESOURCE_NC",
    "status/invalid_error": "ERR_INVALID",
    "status/unsupported_neff_version": "ERR_UNSUPPORTED_NEFF_VERSION",
    "status/oob_error": "OOB",
    "status/hw_collectives": "HW_ERR_COLLECTIVES",
    "status/dma_abort": "HW_ERR_DMA_ABORT",
    "status/sw_nq_overflow": "ERR_SW_NQ_OVERFLOW",
    "hardware/mem_ecc_uncorrected": "HW_ERR_HBM_UE",
    "hardware/mem_ecc_repairable_uncorrected": "HW_ERR_REPAIRABLE_HBM_UE",
    "hardware/sram_ecc_uncorrected": "HW_ERR_NC_UE",
    "other_info/model_load_count": "MODEL_LOAD_COUNT",
    "other_info/inference_count": "INFERENCE_COUNT",
    _FLOPS: "MAC_COUNT",
}  # fmt: skip


def stores_of(instance: Instance, state: MachineState) -> dict[int, Datastore]:
    """Return the data store of a session on each device where it has something.

    Latencies are sums in microseconds; the version of the format is not published, and 0 here.
    """
    from emulator.runtime.ledger_views import core_of_device  # deferred: start-up

    physical = instance.chip.cores.whole
    found: dict[int, dict[int, dict[str, int]]] = {}

    def add(device: int, core: int, name: str, value: int) -> None:
        if value and core < CORES:
            counters = found.setdefault(device, {}).setdefault(core, {})
            counters[name] = counters.get(name, 0) + value

    for one in state.ledger.entries.values():
        allocation = one.allocation
        core = core_of_device(state.ledger, allocation.owner.core, one.part)
        add(allocation.stack.device, core, f"MEM_USAGE_{BY_KEY[one.category].slot}_DEVICE", allocation.size)
    for (core, name), value in state.counters.items():
        if core >= 0 and name in _COUNTED:
            # A multiplication and an addition are one step of the Tensor engine.
            add(*divmod(core * state.ledger.lnc, physical), _COUNTED[name], value // 2 if name == _FLOPS else value)
    for core, activity in state.activity.items():
        place = divmod(core * state.ledger.lnc, physical)
        add(*place, "LATENCY_TOTAL", activity.busy_ns // 1000)
        add(*place, "LATENCY_DEVICE", activity.device_ns // 1000)
        add(*place, "NC_TIME", activity.device_ns // 1000)
    return {device: Datastore(0, {}, cores) for device, cores in found.items()}
