"""What the runtime writes about an execution that failed, and which counters move: one row per status.

The lines have the words that the documentation quotes, so that `err explain` and people's own filters find them.
"""

from __future__ import annotations

from collections.abc import Mapping

from formats.named_tuple import NamedTuple
from formats.nrt.status import NrtStatus as S

__all__ = ["DGE_BLAMED", "FAILURES", "FATAL", "Failed", "counters_of", "lines_of"]


class Failed(NamedTuple):
    """The lines of one status, (module, function, text with fields), and its counters below the core's stats."""

    lines: tuple[tuple[str, str, str], ...]
    counters: tuple[str, ...]
    cite: str = "runtime.md 11.1, 11.2"


_UNDEFINED = "(FATAL-RT-UNDEFINED-STATE) "
_HBM = "Uncorrectable HBM memory error is detected. Execution results may be invalid. "
_ROBIN = "exec_wait_round_robin"
DGE_BLAMED = (
    "potentially caused by DGE notifications enabled. Please disable it (set NEURON_RT_ENABLE_DGE_NOTIFICATIONS to 0) "
    "and try again."
)
# fmt: off
FAILURES: Mapping[S, Failed] = {
    S.NRT_EXEC_OOB: Failed(
        (("TDRV", "exec_process_custom_notification", "nd{device}:nc{core}:h_model.id{id}: Received notification "
          "generated at runtime: failed to run scatter/gather (indirect memory copy via vector DGE), due to "
          "out-of-bound access. isa instruction line number = {pc}. model name = {model}."),
         ("TDRV", _ROBIN, "[ND {device}][NC {core}] Out of bounds access on model {model}")),
        ("status/oob_error", "status/infer_completed_with_error")),
    S.NRT_TIMEOUT: Failed(
        (("TDRV", "exec_consume_tpb_status_notifications", "Missing infer_status notification: (end:{engine})"),
         ("TDRV", "exec_consume_infer_status_notifications", _UNDEFINED + "execution timeout ({timeout} ms) on Neuron "
          "Device {device} NC {core}, model {model}, waiting for execution completion notification")),
        ("status/timeout",)),
    S.NRT_EXEC_HW_ERR_COLLECTIVES: Failed(
        (("TDRV", "exec_consume_topsp_cc_notifications", _UNDEFINED + "missing collectives status on Neuron Device "
          "{device} NC {core}, model {model} - suspected hang in collectives operation {operation} out of "
          "{operations}"),), ("status/hw_collectives", "status/timeout")),
    S.NRT_EXEC_HW_ERR_NC_UE: Failed(
        (("TDRV", _ROBIN, _UNDEFINED + "[ND {device}][NC {core}] Uncorrectable memory error is detected, metadata: "
          "0x16. Please terminate or stop/start this instance to prevent future impact from the hardware error."),),
        ("hardware/sram_ecc_uncorrected", "status/hw_error")),
    S.NRT_EXEC_HW_ERR_HBM_UE: Failed(
        (("TDRV", _ROBIN, _UNDEFINED + _HBM + "Please terminate this instance to prevent future impact from the "
          "hardware error."),), ("hardware/mem_ecc_uncorrected", "status/hw_error")),
    S.NRT_EXEC_HW_ERR_REPAIRABLE_HBM_UE: Failed(
        (("TDRV", _ROBIN, _UNDEFINED + _HBM + "Please reload the neuron driver or reboot your EC2 instance to prevent "
          "future impact from the hardware error."),),
        ("hardware/mem_ecc_repairable_uncorrected", "status/hw_error")),
    S.NRT_EXEC_HW_ERR_DMA_ABORT: Failed(
        (("TDRV", _ROBIN, "[MLA {device}][NC {core}] DMA TX engine 0 is in an abort state"),),
        ("status/dma_abort", "status/hw_error")),
    S.NRT_EXEC_SW_NQ_OVERFLOW: Failed(
        (("TDRV", "exec_request_process_errors", "[ND {device}][NC {core}] execution timeout ({timeout} ms) on model "
          "{model}, {overflow}"),), ("status/sw_nq_overflow",)),
    S.NRT_EXEC_COMPLETED_WITH_NUM_ERR: Failed(
        (("TDRV", _ROBIN, "Error notifications found on NC {core}; INFER_ERROR_SUBTYPE_NUMERICAL; model {model}"),),
        ("status/infer_completed_with_num_error",)),
    S.NRT_EXEC_COMPLETED_WITH_ERR: Failed(
        (("TDRV", _ROBIN, "Error notifications found on NC {core}; model {model}: {message}"),),
        ("status/infer_completed_with_error",)),
    S.NRT_EXEC_BAD_INPUT: Failed(
        (("NMGR", "dlr_infer", "Invalid input of model {model}: {message}"),), ("status/exec_bad_input",)),
    S.NRT_NETWORK_PROXY_FAILURE: Failed(
        (("ENC", "enc_network_proxy", "Network proxy of [ND {device}][NC {core}] failed: RX, connection closed by "
          "remote peer"),), ("status/generic_error",)),
    S.NRT_HW_ERROR: Failed(
        (("TDRV", _ROBIN, "[ND {device}][NC {core}] the device does not answer: {message}"),), ("status/hw_error",)),
    S.NRT_FAILURE: Failed(
        (("NMGR", "dlr_infer", "Model {model}: {message}"),), ("status/generic_error", "status/failure")),
}
# fmt: on

# After these a queue of executions answers nothing but NRT_EXEC_UNIT_UNRECOVERABLE: a time-out, or failed hardware.
FATAL = frozenset(
    (
        S.NRT_TIMEOUT,
        S.NRT_HW_ERROR,
        S.NRT_EXEC_HW_ERR_COLLECTIVES,
        S.NRT_EXEC_HW_ERR_HBM_UE,
        S.NRT_EXEC_HW_ERR_NC_UE,
        S.NRT_EXEC_HW_ERR_DMA_ABORT,
        S.NRT_EXEC_HW_ERR_REPAIRABLE_HBM_UE,
    )
)

# Counters of calls that fail outside of an execution.
_CALLS: Mapping[S, tuple[str, ...]] = {
    S.NRT_INVALID: ("status/invalid_error",),
    S.NRT_RESOURCE: ("status/resource_error",),
    S.NRT_LOAD_NOT_ENOUGH_NC: ("status/resource_nc_error",),
    S.NRT_UNSUPPORTED_NEFF_VERSION: ("status/unsupported_neff_version",),
    S.NRT_QUEUE_FULL: ("status/infer_failed_to_queue",),
    S.NRT_SUCCESS: ("status/success",),
}


def counters_of(status: S) -> tuple[str, ...]:
    """Return the counters that move with a status."""
    if status in FAILURES:
        return FAILURES[status].counters
    return _CALLS.get(status, ("status/failure",))


def lines_of(status: S, fields: Mapping[str, object]) -> list[tuple[str, str, str]]:
    """Return module, function and text of each line about a failed execution."""
    row = FAILURES.get(status, FAILURES[S.NRT_FAILURE])
    return [(module, function, text.format_map(fields)) for module, function, text in row.lines]
