"""Errors that the driver counts (sysfs, datastore) and prints to the kernel log, with what to do about each."""

from __future__ import annotations

from formats.nrt.facts import REMEDIES, TROUBLESHOOTING, Fact, Provenance
from formats.nrt.status import NrtStatus as S

__all__ = ["DRIVER_FACTS", "KERNEL_FACTS"]

_SYSFS = "AWS Neuron documentation, neuron-sysfs-user-guide"
_COUNTED = "AWS Neuron driver, error families of neuron_ds.h and its sysfs metrics"


def _kind(
    name: str,
    meaning: str,
    status: S | None,
    *steps: str,
    counter: str = "",
    provenance: Provenance = "documented",
    cite: str = _COUNTED,
) -> Fact:
    steps = steps or (f"`neurontools err explain {status.name}` says more.",) if status is not None else steps
    code = "" if status is None else str(int(status))
    return Fact(
        code, name, "driver", meaning, (), steps, counter or f"status/{name}", "neuron-dump info FILE", provenance, cite
    )


# fmt: off
# Families by the name that the driver counts them under; `code` is the status that an execution ends with.
_FAMILIES = (
    _kind("generic", "An execution failed and no other family fits.", S.NRT_FAILURE),
    _kind("numerical", "An execution produced NaN.", S.NRT_EXEC_COMPLETED_WITH_NUM_ERR),
    _kind("model", "An execution failed because of the model.", None,
          "Check the file: `neurontools neff verify FILE`.", cite=_SYSFS),
    _kind("transient", "An execution failed for a reason that may be gone the next time.", None,
          "Try again; if it persists, read the log before it.", cite=_SYSFS),
    _kind("hw", "An execution failed because of a hardware error.", S.NRT_HW_ERROR),
    _kind("runtime", "An execution failed inside the runtime.", S.NRT_FAILURE),
    _kind("resource", "A resource of the host or the device was not available.", S.NRT_RESOURCE),
    _kind("resource_nc", "Not enough NeuronCores were available.", S.NRT_LOAD_NOT_ENOUGH_NC),
    _kind("invalid", "An argument or a file was not valid.", S.NRT_INVALID),
    _kind("unsupported_neff_version", "A NEFF of another version was refused.", S.NRT_UNSUPPORTED_NEFF_VERSION),
    _kind("oob", "An indirect access went out of bounds.", S.NRT_EXEC_OOB),
    _kind("hw_collectives", "An execution was stuck in a collective operation.", S.NRT_EXEC_HW_ERR_COLLECTIVES),
    _kind("hbm_ue", "HBM had an uncorrectable error.", S.NRT_EXEC_HW_ERR_HBM_UE,
          counter="hardware/mem_ecc_uncorrected"),
    _kind("repairable_hbm_ue", "HBM had an uncorrectable error that a reload repairs.",
          S.NRT_EXEC_HW_ERR_REPAIRABLE_HBM_UE, counter="hardware/mem_ecc_repairable_uncorrected"),
    _kind("nc_ue", "SRAM of a NeuronCore had an uncorrectable error.", S.NRT_EXEC_HW_ERR_NC_UE,
          counter="hardware/sram_ecc_uncorrected"),
    _kind("dma_abort", "A DMA engine entered its abort state.", S.NRT_EXEC_HW_ERR_DMA_ABORT),
    _kind("sw_nq_overflow", "A notification queue overflowed.", S.NRT_EXEC_SW_NQ_OVERFLOW),
    _kind("sw_semaphore_error", "A semaphore was counted past its range.", S.NRT_EXEC_COMPLETED_WITH_ERR,
          "Find the two signals: `neurontools check FILE --tool synccheck`.", provenance="inferred"),
    _kind("sw_event_error", "An event was set or cleared twice.", S.NRT_EXEC_COMPLETED_WITH_ERR,
          "Find the two signals: `neurontools check FILE --tool synccheck`.", provenance="inferred"),
    _kind("sw_psum_collision", "Two engines met on one PSUM bank in a way that is not allowed.",
          S.NRT_EXEC_COMPLETED_WITH_ERR, "Find the pair: `neurontools check FILE --tool racecheck`.",
          provenance="inferred"),
    _kind("sw_sequencer_fatal", "A sequencer stopped at something it cannot execute.", S.NRT_EXEC_COMPLETED_WITH_ERR,
          "`neuron-dump engines FILE` shows where each engine stands.", provenance="inferred"),
)
# fmt: on
DRIVER_FACTS: dict[str, Fact] = {fact.name: fact for fact in _FAMILIES}


def _hardware(name: str, status: S, meaning: str, counter: str, remedy: str, provenance: Provenance) -> Fact:
    return Fact(
        str(int(status)),
        name,
        "hardware",
        meaning,
        (),
        (REMEDIES[remedy], REMEDIES["sysfs"]),
        counter,
        "neuron-dump triage DIR",
        provenance,
        TROUBLESHOOTING,
    )


# fmt: off
# Words after NEURON_HW_ERR= in the kernel log.  One is shown in the documentation; the others follow its table's rows.
KERNEL_FACTS: dict[str, Fact] = {fact.name: fact for fact in (
    _hardware("SRAM_UNCORRECTABLE_ERROR", S.NRT_EXEC_HW_ERR_NC_UE, "An on-chip SRAM had a parity error.",
              "hardware/sram_ecc_uncorrected", "replace", "documented"),
    _hardware("HBM_UNCORRECTABLE_ERROR", S.NRT_EXEC_HW_ERR_HBM_UE, "HBM had an error that cannot be repaired.",
              "hardware/mem_ecc_uncorrected", "replace", "inferred"),
    _hardware("HBM_REPAIRABLE_UNCORRECTABLE_ERROR", S.NRT_EXEC_HW_ERR_REPAIRABLE_HBM_UE,
              "HBM had an error that a reload of the driver repairs.", "hardware/mem_ecc_repairable_uncorrected",
              "reload", "inferred"),
    _hardware("DMA_ABORT", S.NRT_EXEC_HW_ERR_DMA_ABORT, "A DMA engine met an error that it cannot recover from.",
              "status/dma_abort", "replace", "inferred"),
    _hardware("HANG_ON_COLLECTIVES", S.NRT_EXEC_HW_ERR_COLLECTIVES, "A collective operation is stuck.",
              "status/hw_collectives", "others", "inferred"),
    _hardware("HANG_ON_COMPUTE", S.NRT_TIMEOUT, "An execution did not end, and no cause was recognised.",
              "status/timed_out", "replace", "inferred"),
)}
# fmt: on
