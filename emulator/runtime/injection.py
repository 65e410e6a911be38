"""Faults that a session can be told to have: what each does to the device, and what the runtime says of it.

An injected fault of an execution stops the device where it stands, with a fault that a dump keeps; `core why` names it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from emulator.errors import InputError
from emulator.faults import Fault
from formats.named_tuple import NamedTuple
from formats.nrt.status import NrtStatus as S
from formats.numerals import parse_decimal

if TYPE_CHECKING:
    from emulator.device import Device
    from emulator.events import Event

__all__ = ["INJECTIONS", "INJECT_VARIABLE", "Injection", "Injector", "Planned", "read_plan"]

INJECT_VARIABLE = "NEURONTOOLS_INJECT"  # ours: kind[@core][:event], more of them with commas


class Injection(NamedTuple):
    """One kind: the fault of the device ("" where no execution is needed), what it says, the status.

    `kernel` is what the driver calls it in the kernel's log.
    """

    kind: str
    fault: str
    message: str
    status: S
    kernel: str = ""
    cite: str = "runtime.md 11.1"


# fmt: off
_ALL = (
    Injection("sram-ue", "sram-ue", "injected: parity error in SBUF", S.NRT_EXEC_HW_ERR_NC_UE,
              "SRAM_UNCORRECTABLE_ERROR"),
    Injection("hbm-ue", "hbm-ue", "injected: uncorrectable error in HBM", S.NRT_EXEC_HW_ERR_HBM_UE,
              "HBM_UNCORRECTABLE_ERROR"),
    Injection("hbm-ue-repairable", "hbm-ue-repairable", "injected: repairable uncorrectable error in HBM",
              S.NRT_EXEC_HW_ERR_REPAIRABLE_HBM_UE, "HBM_REPAIRABLE_UNCORRECTABLE_ERROR"),
    Injection("dma-abort", "dma-abort", "injected: DMA engine 0 in its abort state", S.NRT_EXEC_HW_ERR_DMA_ABORT,
              "DMA_ERROR"),
    Injection("hang", "timeout", "injected: the engine stands still", S.NRT_TIMEOUT),
    Injection("missing-notification", "timeout", "injected: the notification of the end never came", S.NRT_TIMEOUT),
    Injection("collectives-hang", "collectives", "injected: a collective operation does not end",
              S.NRT_EXEC_HW_ERR_COLLECTIVES),
    Injection("numerical", "numerical", "injected: NaN", S.NRT_EXEC_COMPLETED_WITH_NUM_ERR),
    Injection("double-event", "semaphore", "injected: an event was set twice", S.NRT_EXEC_COMPLETED_WITH_ERR),
    Injection("nq-overflow", "nq-overflow", "injected: a notification queue overflowed", S.NRT_EXEC_SW_NQ_OVERFLOW),
    Injection("network", "network", "injected: the network's proxy failed", S.NRT_NETWORK_PROXY_FAILURE),
    Injection("lost-device", "lost-device", "injected: the device does not answer", S.NRT_HW_ERROR),
    Injection("out-of-memory", "", "injected: device memory is exhausted", S.NRT_RESOURCE),
    Injection("host-memory", "", "injected: host memory is exhausted", S.NRT_FAIL_HOST_MEM_ALLOC,
              cite="runtime.md 11.1: kept for compatibility"),
)
# fmt: on
INJECTIONS: Mapping[str, Injection] = {each.kind: each for each in _ALL}


@dataclass
class Planned:
    """A fault that is still to come: on one logical core or on any, after so many completions of an execution."""

    injection: Injection
    core: int | None = None
    after: int = 1


def read_plan(text: str) -> list[Planned]:
    """Return the faults that "dma-abort@0:5,out-of-memory" plans; InputError names what is wrong."""
    found: list[Planned] = []
    for part in filter(None, (each.strip() for each in text.split(","))):
        head, colon, after = part.partition(":")
        kind, at, core = head.partition("@")
        if kind not in INJECTIONS:
            raise InputError(f"no fault {kind!r} to inject; there are {', '.join(INJECTIONS)}")
        where, behind = parse_decimal(core), parse_decimal(after)
        if (at and where is None) or (colon and behind is None):
            raise InputError(f"{part!r}: expected kind[@core][:completions]")
        found.append(Planned(INJECTIONS[kind], where, max(1, behind or 1)))
    return found


class Injector:
    """An observer that stops a device with a planned fault behind a completion."""

    def __init__(self, planned: Planned) -> None:
        self.planned = planned
        self.done = False
        self._left = planned.after
        self._device: Device | None = None

    def attach(self, device: Device) -> None:
        """Remember the device."""
        self._device = device

    def on_event(self, event: Event) -> None:
        """Stop the device where its turn has come."""
        self._left -= 1
        device = self._device
        # Zero exactly once: afterwards the count goes on below zero, and nothing more happens.
        if self._left or device is None or device.finished:
            return
        self.done = True
        kind = self.planned.injection.fault
        space, address = None, None
        if kind == "sram-ue":
            # The bit is really wrong: what a dump shows is what the program would have read.
            device.cores[event.core].memory.sbuf[0, 0] ^= 1
            space, address = "SBUF", (0, 1)
        device.raise_fault(
            Fault(
                kind,
                self.planned.injection.message,
                core=event.core,
                engine=event.engine,
                pc=event.pc,
                space=space,
                address=address,
            )
        )
