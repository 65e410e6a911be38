"""How each status of the runtime comes about here: one row per status, closed by a test that provokes every one."""

from __future__ import annotations

from formats.named_tuple import NamedTuple
from formats.nrt.status import NrtStatus as S

__all__ = ["REACHED", "Reached"]


class Reached(NamedTuple):
    """One way to a status: the function of libnrt that returns it, and what has to be so.

    `provenance` is of the pairing: `documented` where a public page or header says it, else `inferred` or `ours`.
    """

    status: S
    call: str
    how: str
    provenance: str = "documented"
    cite: str = "runtime.md 11.1"


# fmt: off
REACHED: tuple[Reached, ...] = (
    Reached(S.NRT_SUCCESS, "nrt_execute", "The execution ends."),
    Reached(S.NRT_FAILURE, "nrt_load", "The NEFF is for another chip; also functions that are not emulated, and "
        "words that are not modelled.",
            "documented", "runtime.md 20"),
    Reached(S.NRT_INVALID, "nrt_load", "The file is damaged; a tensor's name or size is not the model's; bytes "
        "outside a tensor; a core that is not visible."),
    Reached(S.NRT_INVALID_HANDLE, "nrt_unload", "A model, tensor, set or tracker that was never made, or is gone."),
    Reached(S.NRT_RESOURCE, "nrt_tensor_allocate", "The core's HBM stack has no room; injected: out-of-memory.",
        "documented", "runtime.md 3.1, 4"),
    Reached(S.NRT_TIMEOUT, "nrt_execute", "Engines wait for what never comes, or device time passes "
        "NEURON_RT_EXEC_TIMEOUT; an output that is not complete in time; injected: hang, missing-notification."),
    Reached(S.NRT_HW_ERROR, "nrt_execute", "Injected: lost-device.", "inferred"),
    Reached(S.NRT_QUEUE_FULL, "nrta_execute_schedule", "A queue has as many requests as it holds.", "documented",
        "runtime.md 5"),
    Reached(S.NRT_LOAD_NOT_ENOUGH_NC, "nrt_load", "No visible core is free, or the file needs more; another process "
        "has the cores (NEURONTOOLS_CORE_LOCKS).", "inferred"),
    Reached(S.NRT_UNSUPPORTED_NEFF_VERSION, "nrt_load", "The header's version is none that a documented runtime "
        "loads."),
    Reached(S.NRT_FAIL_HOST_MEM_ALLOC, "nrt_tensor_allocate", "The host gives no memory for a tensor; injected: "
        "host-memory.", "inferred"),
    Reached(S.NRT_UNINITIALIZED, "nrt_load", "Before nrt_init."),
    Reached(S.NRT_CLOSED, "nrt_load", "After nrt_close."),
    Reached(S.NRT_QUEUE_EMPTY, "nrt_debug_client_read_one_event", "The debug stream has no event.", "documented",
        "runtime.md 15"),
    Reached(S.NRT_EXEC_UNIT_UNRECOVERABLE, "nrta_execute_schedule",
        "An earlier request of the queue timed out or met failed hardware.", "documented", "runtime.md 5"),
    Reached(S.NRT_EXEC_BAD_INPUT, "nrt_execute", "A tensor of the set has no storage; an operand that the "
        "instruction cannot have.", "inferred"),
    Reached(S.NRT_EXEC_COMPLETED_WITH_NUM_ERR, "nrt_execute", "NaN in an output, with NEURON_FAIL_ON_NAN=1; "
        "injected: numerical."),
    Reached(S.NRT_EXEC_COMPLETED_WITH_ERR, "nrt_execute", "A semaphore past its range, a misaligned access; "
        "injected: double-event."),
    Reached(S.NRT_EXEC_NC_BUSY, "nrt_execute", "The core is kept for the profile of another model.", "ours"),
    Reached(S.NRT_EXEC_OOB, "nrt_execute", "An indirect or direct access outside of its tensor."),
    Reached(S.NRT_COLL_PENDING, "nrta_cc_schedule", "The context was given to a queue before and is not done.",
        "ours"),
    Reached(S.NRT_EXEC_HW_ERR_COLLECTIVES, "nrt_execute", "A model of nrt_load_collectives that exchanges data "
        "hangs; a rank does not come to nrt_barrier; injected: collectives-hang."),
    Reached(S.NRT_EXEC_HW_ERR_HBM_UE, "nrt_execute", "Injected: hbm-ue."),
    Reached(S.NRT_EXEC_HW_ERR_NC_UE, "nrt_execute", "Injected: sram-ue."),
    Reached(S.NRT_EXEC_HW_ERR_DMA_ABORT, "nrt_execute", "Injected: dma-abort."),
    Reached(S.NRT_EXEC_SW_NQ_OVERFLOW, "nrt_execute", "Injected: nq-overflow."),
    Reached(S.NRT_EXEC_HW_ERR_REPAIRABLE_HBM_UE, "nrt_execute", "Injected: hbm-ue-repairable."),
    Reached(S.NRT_NETWORK_PROXY_FAILURE, "nrt_execute", "Injected: network."),
)
# fmt: on
