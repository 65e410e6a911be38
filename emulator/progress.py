"""Where a device stands, as values: in time, and with all that it holds."""

from __future__ import annotations

from collections.abc import Callable

from emulator.core import CoreState
from emulator.diagnosis.graph import Hang
from emulator.dma.system import DmaState
from emulator.events import Notice
from emulator.faults import Fault
from emulator.livelock import Joint, Loop
from emulator.memory_state import DeviceMemoryState
from formats.named_tuple import NamedTuple

__all__ = ["Callback", "DeviceState", "Progress"]

Callback = Callable[[int], object]


class Progress(NamedTuple):
    """Where a device stands in time; fields as in `Device`, `numbers` counts its events, `loops` are never left."""

    now_ps: int
    steps: int
    heap: tuple[tuple[int, int, Callback], ...]
    ended: bool
    fault: Fault | None
    hang: Hang | None
    checking: bool
    warnings: tuple[Notice, ...]
    drawn: int
    alarm_ps: int
    numbers: int
    joint: Joint | None
    loops: tuple[Loop, ...]


class DeviceState(NamedTuple):
    """The whole state of a device between two completions."""

    progress: Progress
    cores: tuple[CoreState, ...]
    dma: DmaState
    hbm: DeviceMemoryState
