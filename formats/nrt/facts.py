"""What is known of one error: the record that status codes, driver kinds, log messages and compiler codes share."""

from __future__ import annotations

from typing import Literal

from formats.named_tuple import NamedTuple

__all__ = ["API_PAGE", "HEADER", "NOTES", "REMEDIES", "TROUBLESHOOTING", "Fact", "Family", "Provenance"]

Family = Literal["status", "driver", "hardware", "message", "compiler"]
Provenance = Literal["documented", "observed", "inferred", "ours"]

HEADER = "public header nrt_status.h"
API_PAGE = "AWS Neuron documentation, nrt_status.h"
TROUBLESHOOTING = "AWS Neuron documentation, nrt-troubleshoot"
NOTES = "AWS Neuron release notes"

# Next steps that several errors share.
REMEDIES: dict[str, str] = {
    "replace": "Replace the instance: terminate it, or stop and start it.",
    "reload": "Reload the driver (sudo rmmod neuron; sudo modprobe neuron) or reboot the instance.",
    "others": "Look at the other workers for the first failure; `neurontools core triage DIR` finds it.",
    "inputs": "Set NEURON_RT_DBG_DUMP_INPUTS_ON_ERR to the code to have the inputs written at the next failure.",
    "emulate": "Run kernel or NEFF on the emulator: `neurontools run FILE` names instruction, line, index and limit.",
    "sysfs": "Read the counter below /sys/devices/virtual/neuron_device/neuron<N>.",
}


class Fact(NamedTuple):
    """What is known of one error.

    `code` is its number or "".  `causes` and `next_steps` are sentences, the likeliest first; `counter` is the sysfs
    counter that moves with it; `command` the command of this toolkit that shows most of a dump with it.  `provenance`
    is that of the meaning: causes and next steps are our advice where `cite` gives none.  An execution fails with a
    `fatal` error.
    """

    code: str
    name: str
    family: Family
    meaning: str
    causes: tuple[str, ...] = ()
    next_steps: tuple[str, ...] = ()
    counter: str = ""
    command: str = ""
    provenance: Provenance = "documented"
    cite: str = HEADER
    fatal: bool = True
