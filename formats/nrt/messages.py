"""Messages of runtime, driver, collectives and framework that reveal a cause: pattern, status, meaning, remedy.

Patterns match the constant words of a message.  Source: AWS Neuron documentation, nrt-troubleshoot.
"""

from __future__ import annotations

import re

from formats.named_tuple import NamedTuple
from formats.nrt.facts import REMEDIES, TROUBLESHOOTING, Fact
from formats.nrt.status import NrtStatus as S

__all__ = ["MESSAGES", "Match", "match_message"]


class Match(NamedTuple):
    """A message that was recognised, and the values in it by name."""

    fact: Fact
    values: dict[str, str]


def _row(
    name: str, pattern: str, status: S | None, meaning: str, *steps: str, fatal: bool = True, command: str = ""
) -> tuple[re.Pattern[str], Fact]:
    fact = Fact(
        "" if status is None else str(int(status)),
        name,
        "message",
        meaning,
        (),
        steps,
        "",
        command,
        cite=TROUBLESHOOTING,
        fatal=fatal,
    )
    return re.compile(pattern, re.ASCII | re.IGNORECASE), fact


_PLACE = r"(?:\[ND (?P<device>\d+)\]\[NC (?P<core>\d+)\].{0,200})?"
# fmt: off
# The first row that matches is taken: the specific before the general.
MESSAGES: tuple[tuple[re.Pattern[str], Fact], ...] = (
    _row("oob-instruction", r"failed to run (?P<what>embedding table update|scatter/gather[^,]{0,60}), due to "
         r"out-of-bound access(?:\. isa instruction line number = (?P<instruction>\d+))?",
         S.NRT_EXEC_OOB, "A gather, scatter or embedding update used an index outside its table.",
         "Join the instruction number with the listing: `neurontools disasm FILE`.", REMEDIES["emulate"],
         REMEDIES["inputs"], command="neuron-dump why FILE"),
    _row("oob-model", _PLACE + r"out of bounds access on model (?P<model>\S+)", S.NRT_EXEC_OOB,
         "A gather, scatter or embedding update used an index outside its table.", REMEDIES["emulate"],
         REMEDIES["inputs"], command="neuron-dump why FILE"),
    _row("dge-notifications", r"potentially caused by DGE notifications enabled", S.NRT_EXEC_SW_NQ_OVERFLOW,
         "Notifications of DMA generation filled their queue.", "Set NEURON_RT_ENABLE_DGE_NOTIFICATIONS=0."),
    _row("stuck-after-collectives", _PLACE + r"is stuck after all collectives operation have completed", S.NRT_TIMEOUT,
         "The execution went past its last collective and then stopped.",
         "Look for the cause in the compute part.", command="neuron-dump why FILE"),
    _row("sram-error", _PLACE + r"uncorrectable memory error is detected, metadata: 0x16", S.NRT_EXEC_HW_ERR_NC_UE,
         "On-chip SRAM had a parity error; results are wrong.", REMEDIES["replace"]),
    _row("memory-error", r"uncorrectable memory error is detected on Neuron device: (?P<device>\d+):(?P<core>\d+)",
         S.NRT_EXEC_COMPLETED_WITH_ERR, "Memory had an uncorrectable error; results may be wrong.",
         "Restart from the last checkpoint; if it recurs, replace the instance."),
    _row("hbm-repairable", r"uncorrectable HBM memory error is detected.{0,200}reload the neuron driver",
         S.NRT_EXEC_HW_ERR_REPAIRABLE_HBM_UE, "HBM had an error that a reload of the driver repairs.",
         REMEDIES["reload"]),
    _row("hbm-error", r"uncorrectable HBM memory error is detected", S.NRT_EXEC_HW_ERR_HBM_UE,
         "HBM had an uncorrectable error; results are wrong.", REMEDIES["replace"]),
    _row("dma-engine-abort", r"DMA (?P<direction>TX|RX) engine (?P<engine>\d+) is in an abort state",
         S.NRT_EXEC_HW_ERR_DMA_ABORT, "A DMA engine met an error that it cannot recover from.", REMEDIES["replace"],
         command="neuron-dump dma FILE"),
    _row("collectives-hang", r"missing collectives status on Neuron Device (?P<device>\d+) NC (?P<core>\d+), model "
         r"(?P<model>\S+) - suspected hang in collectives operation (?P<operation>\d+) out of (?P<operations>\d+)",
         S.NRT_EXEC_HW_ERR_COLLECTIVES, "The execution is stuck in a collective operation.", REMEDIES["others"],
         command="neuron-dump triage DIR"),
    _row("missing-infer-status", r"missing infer_status notification: \(end:(?P<engine>\d+)\)", S.NRT_TIMEOUT,
         "An engine did not report the end of its program.", "Unset NEURON_RT_RESET_CORES, or set it to 1.",
         command="neuron-dump why FILE"),
    _row("execution-timeout", r"(?:execution|inference) timeout \((?P<milliseconds>\d+) ms\)", S.NRT_TIMEOUT,
         "The execution did not end in time.",
         "`neuron-dump why FILE` says who waits for whom.", "NEURON_RT_EXEC_TIMEOUT sets the limit in seconds.",
         command="neuron-dump why FILE"),
    _row("numerical-error", r"INFER_ERROR_SUBTYPE_NUMERICAL", S.NRT_EXEC_COMPLETED_WITH_NUM_ERR,
         "The execution produced NaN.", "Look for NaN in inputs and weights, then for its first instruction on the "
         "emulator.", command="neuron-dump why FILE"),
    _row("no-driver", r"unable to determine Neuron Driver version", S.NRT_FAILURE,
         "The Neuron driver is not loaded.", "Install aws-neuronx-dkms; lsmod shows whether it is loaded."),
    _row("old-driver", r"requires Neuron Driver version (?P<version>[\d.]+) or greater", S.NRT_FAILURE,
         "The Neuron driver is older than the runtime needs.", "Update aws-neuronx-dkms and reload the driver."),
    _row("engine-programming", r"failed programming the engine", S.NRT_FAILURE,
         "The driver is too old for this runtime to program an engine.", "Update aws-neuronx-dkms and reload it."),
    _row("incompatible-driver", r"\(compatibility id: (?P<id>[^)]{1,20})\) is not compatible", S.NRT_FAILURE,
         "Runtime and driver are not compatible.", "Update the driver, stop its users, and reload it."),
    _row("cores-not-available", r"NeuronCore\(s\) not available - Requested:(?P<requested>\S+) Available:"
         r"(?P<available>\d+)", S.NRT_LOAD_NOT_ENOUGH_NC, "Another process holds the cores that were asked for.",
         "Find the holder with neuron-ls; often it is a notebook."),
    _row("neff-version", r"NEFF version mismatch supported: (?P<supported>\S+) received: (?P<received>\S+)",
         S.NRT_UNSUPPORTED_NEFF_VERSION, "The NEFF's version is not one that this runtime loads.",
         "Update compiler and runtime to one release."),
    _row("unsupported-operator", r"unsupported hardware operator code (?P<opcode>\d+) found in neff", S.NRT_INVALID,
         "The NEFF has an instruction that this runtime does not know.", "Update aws-neuronx-runtime-lib.",
         command="neurontools disasm FILE"),
    _row("device-memory", r"mc_alloc: device mempool \[(?P<pool>[\d:]+)\] total (?P<total>\d+) occupied "
         r"(?P<occupied>\d+) needed (?P<needed>\d+) available (?P<available>\d+)", S.NRT_RESOURCE,
         "Device memory is exhausted.", "Unload models, or use a larger instance."),
    _row("no-virtual-core", r"could not find VNC id (?P<core>\S+)", S.NRT_LOAD_NOT_ENOUGH_NC,
         "The NEFF needs more NeuronCores than there are.", "Compare `neurontools neff info FILE` with the instance."),
    _row("no-device", r"could not open the nd(?P<device>\d+)", S.NRT_RESOURCE,
         "More cores are asked for than the instance has.", "Ask for fewer cores, or use a larger instance."),
    _row("left-running", r"timestamp program stop timeout \((?P<milliseconds>\d+) ms\)", S.NRT_TIMEOUT,
         "A process before this one left the device running.", REMEDIES["reload"]),
    _row("inputs-dumped", r"(?P<tensors>\d+) input tensors were dumped successfully to directory (?P<directory>\S+?)\."
         r"? Model name", None, "The inputs of the failed execution were written.",
         "Run them again: `neurontools run NEFF --inputs-from DIRECTORY`.", fatal=False),
    _row("no-libnccom", r"error opening libnccom\.so", S.NRT_FAILURE, "The collectives library is not installed.",
         "Install aws-neuronx-collectives, or set LD_LIBRARY_PATH to it."),
    _row("no-ofi", r"Ofi plugin is not installed or EFA is not enabled|OFI plugin initNet\(\) failed", S.NRT_FAILURE,
         "EFA is not set up: several instances cannot communicate.", "Install efa-installer; lspci lists the adapters.",
         "On a single instance it can be ignored."),
    _row("peer-closed", r"connection closed by remote peer", S.NRT_NETWORK_PROXY_FAILURE,
         "Another rank went away.", REMEDIES["others"], command="neuron-dump triage DIR"),
    _row("rank-late", r"timeout waiting for (?P<what>RX|incoming connection) \(waited (?P<seconds>\d+) sec\) - "
         r"retrying|connect to (?P<peer>\S+) failed - retrying", None,
         "Another rank is late, often because it is still compiling.",
         "Wait; if it never connects, it is stuck.", fatal=False),
    _row("deregister", r"failed to process command DEREG_MR", None,
         "A race between driver and network at the end of a process; harmless.", fatal=False),
    _row("fork-safe", r"requires setting FI_EFA_FORK_SAFE=1", None, "The kernel needs FI_EFA_FORK_SAFE=1 for EFA.",
         "Set FI_EFA_FORK_SAFE=1 and start again.", fatal=False),
    _row("long-name", r"invalid NCCL_COMM_ID \[(?P<id>[^\]]{1,300})\]", S.NRT_FAILURE,
         "The host's name cannot be resolved: more than 63 characters, or not in DNS.", "Use a shorter name."),
    _row("no-interface", r"no usable listening interface found", S.NRT_FAILURE,
         "The bootstrap chose a link-local IPv6 address.", "Disable IPv6 on the instances."),
    _row("gpsimd-exception", r"GPSIMD EXCEPTION OCCURRED: (?P<exception>.{1,60})", S.NRT_EXEC_COMPLETED_WITH_ERR,
         "A custom operator on GpSimd raised an exception.", "Unset NEURON_RT_RESET_CORES, or set it to 1."),
    _row("driver-in-use", r"cannot unload neuron module - it is currently in use", None,
         "A process still uses the driver.", "Stop it, then unload the driver.", fatal=False),
)
# fmt: on


def match_message(text: str) -> Match | None:
    """Return the first known message that a line holds, with the values in it."""
    for pattern, fact in MESSAGES:
        found = pattern.search(text)
        if found is not None:
            return Match(fact, {key: value for key, value in found.groupdict().items() if value is not None})
    return None
