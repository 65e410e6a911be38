"""Semaphores and events of one core: values, when they last changed, and who waits for them. Source: isa.md 2, 3."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from emulator.events import SemaphoreChange
from emulator.faults import fault_error

if TYPE_CHECKING:
    from emulator.core import Core

__all__ = ["COUNT", "Events", "Semaphores", "signed"]

COUNT = 256
_LOW, _HIGH = -(1 << 31), (1 << 31) - 1

Waiter = Callable[[int], None]


def signed(value: int) -> int:
    """Return a 32-bit value as the signed number a semaphore holds."""
    return value - (1 << 32) if value > _HIGH else value


class Semaphores:
    """256 counters; index them to read, `add` and `set` to change."""

    __slots__ = ("changed", "core", "values", "waiters")

    def __init__(self, core: Core) -> None:
        self.core = core
        self.values = [0] * COUNT
        self.changed = [-(1 << 62)] * COUNT
        self.waiters: list[list[Waiter]] = [[] for _ in range(COUNT)]

    def __getitem__(self, index: int) -> int:
        return self.values[index]

    def __len__(self) -> int:
        return COUNT

    def add(self, index: int, amount: int, now: int) -> None:
        """Raise or lower a semaphore and tell who waits for it; FaultError beyond 32 bits."""
        self.set(index, self.values[index] + amount, now)

    def set(self, index: int, value: int, now: int) -> None:
        """Give a semaphore a value and tell who waits for it; FaultError beyond 32 bits."""
        if not _LOW <= value <= _HIGH:
            raise fault_error("semaphore", f"S[{index}] leaves the range of 32 bits", expected=f"{_LOW} to {_HIGH}",
                              got=str(value))
        device = self.core.device
        if device.watched:
            device.changes.append(SemaphoreChange(index, self.values[index], value, self.core.index))
        self.values[index] = value
        self.changed[index] = now
        if self.waiters[index]:
            for waiter in tuple(self.waiters[index]):
                waiter(now)


class Events:
    """256 flags; a wait consumes one. Setting one that is set already is worth a notice."""

    __slots__ = ("changed", "core", "values", "waiters")

    def __init__(self, core: Core) -> None:
        self.core = core
        self.values = [0] * COUNT
        self.changed = [-(1 << 62)] * COUNT
        self.waiters: list[list[Waiter]] = [[] for _ in range(COUNT)]

    def __getitem__(self, index: int) -> int:
        return self.values[index]

    def __len__(self) -> int:
        return COUNT

    def set(self, index: int, value: int, now: int) -> bool:
        """Set or clear an event, tell who waits for it, and return whether it had that value already."""
        old = self.values[index]
        device = self.core.device
        if device.watched:
            device.changes.append(SemaphoreChange(index, old, value, self.core.index, "event"))
        self.values[index] = value
        self.changed[index] = now
        if value and self.waiters[index]:
            for waiter in tuple(self.waiters[index]):
                waiter(now)
        return old == value
