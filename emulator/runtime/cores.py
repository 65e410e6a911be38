"""A logical core of a session: what it has on the device, who uses it, its queues and its clock."""

from __future__ import annotations

import threading
from collections.abc import Iterator

from emulator.runtime.errors import invalid
from emulator.runtime.instances import Instance
from emulator.runtime.memory import Stack
from emulator.runtime.model import Model
from emulator.runtime.queues import QUEUES, Unit, UnitKind

__all__ = ["LogicalCore"]


class LogicalCore:
    """One visible core: `index` counts the visible ones, `number` those of the instance."""

    def __init__(self, index: int, number: int, instance: Instance, lnc: int) -> None:
        self.index, self.number = index, number
        self.device, self.physical = instance.place(number, lnc)
        self.stacks: tuple[Stack, ...] = instance.stacks(number, lnc)
        self.models: dict[int, Model] = {}
        self.started = False
        self.lock = threading.RLock()
        self.profiled: Model | None = None
        self.last: Model | None = None
        self.time_ps = 0
        self.busy_ps = 0
        self.executions = 0
        self._units: dict[tuple[UnitKind, int], Unit] = {}
        self._lock = threading.Lock()

    def unit(self, kind: UnitKind, queue: int) -> Unit:
        """Return a queue; NRT_INVALID where the core has no such."""
        if not 0 <= queue < QUEUES[kind]:
            raise invalid(f"{kind.name.lower()} has {QUEUES[kind]} queues a core, not {queue}")
        with self._lock:
            found = self._units.get((kind, queue))
            if found is None:
                found = self._units[kind, queue] = Unit(self.number, kind, queue)
            return found

    def units(self) -> Iterator[Unit]:
        """Yield the queues that were ever used."""
        yield from list(self._units.values())

    def clock(self, time_ps: int) -> tuple[int, int]:
        """Advance the core's clock by an execution; return its begin and end."""
        begin = self.time_ps
        self.time_ps = begin + max(1, time_ps)
        self.busy_ps += max(1, time_ps)
        self.executions += 1
        return begin, self.time_ps
