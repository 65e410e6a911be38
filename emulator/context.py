"""What the parts of a device ask of what holds them, as protocols: no part imports its holder, not even for its types.

A part that moves needs more than one that looks (`machine_view`): it schedules, reports and writes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from emulator.access import Resolver
from emulator.addresses import AddressMap
from emulator.arch import Arch
from emulator.cost import Contention, Cost, CostModel
from emulator.device_memory import DeviceMemory
from emulator.dma.queues import DmaQueue
from emulator.dma.transfer import Transfer
from emulator.engines.pe_state import PeState
from emulator.events import Event, SemaphoreChange
from emulator.faults import Place
from emulator.generators import GeneratorBank
from emulator.livelock import Joint, Loop
from emulator.machine_view import CoreView
from emulator.memory import ChipMemory
from emulator.notes import Notes
from emulator.observers import Hooks
from emulator.semaphores import Events, Semaphores
from emulator.workspace import Workspace
from formats.errors import NeuronError
from formats.targets import Target

__all__ = ["CoreContext", "DeviceContext", "DmaContext", "EngineContext", "Log", "ResolvingEngine"]

Bytes = npt.NDArray[np.uint8]
Plane = npt.NDArray[np.bool_]
Callback = Callable[[int], object]


Log = list[tuple[Any, Any, Any]]
"""What completed, in order (emulator.known_way): an engine, its action, whether products were settled; a transfer, the
cores whose products were, when. A warning stands before what it is about, alone."""


class DmaContext(Protocol):
    """The DMA of a device, as engines trigger it."""

    def trigger(self, transfer: Transfer, now_ps: int) -> None: ...
    def held_up_until(self, core: int, name: str, now_ps: int) -> int: ...


class DeviceContext(Protocol):
    """A device, as its parts know it; fields as in `Device`."""

    heap: list[tuple[int, int, Callback]]
    changes: list[SemaphoreChange]
    steps: int
    numbers: int
    now_ps: int
    watched: bool
    makes_events: bool
    checking: bool
    log: Log | None
    notes: Notes | None
    joint: Joint | None

    @property
    def target(self) -> Target: ...
    @property
    def arch(self) -> Arch: ...
    @property
    def addresses(self) -> AddressMap: ...
    @property
    def costs(self) -> CostModel: ...
    @property
    def timing(self) -> bool: ...
    @property
    def act(self) -> str: ...

    propagation_ps: int
    horizon_ps: int

    @property
    def order(self) -> Callable[[], int]: ...
    @property
    def queues(self) -> Sequence[DmaQueue]: ...
    @property
    def jitter(self) -> Callable[[int], int] | None: ...
    @property
    def reprice(self) -> Callable[[Any, Any, int, int], tuple[int, int]] | None: ...
    @property
    def hooks(self) -> Hooks[Any, Any]: ...
    @property
    def cores(self) -> Sequence[CoreContext]: ...
    @property
    def hbm(self) -> DeviceMemory: ...
    @property
    def dma(self) -> DmaContext: ...
    def schedule(self, time_ps: int, callback: Callback) -> None: ...
    def livelocked(self, loops: tuple[Loop, ...]) -> None: ...
    def emit(self, event: Event) -> None: ...
    def fail(self, error: NeuronError, place: Place) -> None: ...
    def notice(self, kind: str, message: str, place: Place, operand: str = "") -> None: ...
    def warn_unwritten(self, place: Place, operand: str, missing: int, total: int) -> None: ...
    def write_device(self, address: int, size: int, value: int) -> None: ...
    def read_device(self, address: int, size: int) -> int: ...


class CoreContext(CoreView, Protocol):
    """A core, as its engines and the DMA know it: what one may look at, and what they change; fields as in `Core`."""

    @property
    def device(self) -> DeviceContext: ...
    @property
    def memory(self) -> ChipMemory: ...
    @property
    def sbuf(self) -> Bytes: ...
    @property
    def sbuf_written(self) -> Plane: ...
    @property
    def semaphores(self) -> Semaphores: ...
    @property
    def events(self) -> Events: ...
    @property
    def pe(self) -> PeState: ...
    @property
    def generators(self) -> GeneratorBank: ...
    @property
    def workspace(self) -> Workspace: ...
    @property
    def contention(self) -> Contention: ...
    @property
    def activation(self) -> Mapping[int, str]: ...
    @property
    def bound_words(self) -> dict[str, Any]: ...
    @property
    def tables(self) -> Mapping[int, Any]: ...


class ResolvingCore(Protocol):
    """A core, live or in a dump, whose operands can be found."""

    @property
    def resolver(self) -> Resolver: ...


class ResolvingEngine(Protocol):
    """An engine of such a core."""

    @property
    def name(self) -> str: ...
    @property
    def core(self) -> ResolvingCore: ...


class EngineContext(Protocol):
    """An engine, as the words that are bound to it know it; fields as in `Sequencer`."""

    @property
    def costs(self) -> dict[bytes, Cost]: ...
    @property
    def name(self) -> str: ...
    @property
    def core(self) -> CoreContext: ...
    @property
    def device(self) -> DeviceContext: ...
    @property
    def registers(self) -> list[int]: ...
    @property
    def accumulators(self) -> npt.NDArray[np.float32]: ...
    def branch(self, byte_offset: int) -> None: ...
