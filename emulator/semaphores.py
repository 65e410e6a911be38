"""Semaphores and events of one core: values, when they last changed, and who waits for them. Source: isa.md 2, 3."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import ClassVar, Protocol

from emulator.events import SemaphoreChange
from emulator.faults import fault_error
from formats.isa import WaitMode
from formats.named_tuple import NamedTuple
from formats.neuron_core import SYNC_COUNT

__all__ = ["HIGHEST", "LOWEST", "Counters", "CountersState", "Events", "Semaphores", "Waiter", "holds", "signed"]

LOWEST, HIGHEST = -(1 << 31), (1 << 31) - 1

_EQ, _GT, _GE = int(WaitMode.SEM_EQ), int(WaitMode.SEM_GT), int(WaitMode.SEM_GE)

_made = tuple.__new__  # a named tuple in half the time

Waiter = tuple[int, Callable[[int], None]]
"""Who is told of a change, and from which value on; of others nobody that waits has to hear."""


class Watched(Protocol):
    """The device, which notes changes while somebody watches."""

    @property
    def watched(self) -> bool: ...
    @property
    def changes(self) -> list[SemaphoreChange]: ...


class Owner(Protocol):
    """The core that has the counters."""

    @property
    def index(self) -> int: ...
    @property
    def device(self) -> Watched: ...


def holds(mode: int, have: int, need: int) -> bool:
    """Return whether a wait of a mode is satisfied; `need` is ignored for events."""
    if mode == _GE:
        return have >= need
    if mode == _EQ:
        return have == need
    return have > need if mode == _GT else have != 0


def signed(value: int) -> int:
    """Return a 32-bit value as the signed number a semaphore holds."""
    return value - (1 << 32) if value > HIGHEST else value


class CountersState(NamedTuple):
    """The state of the semaphores or events of a core; who waits for them is in the state of the engines."""

    values: tuple[int, ...]
    changed: tuple[int, ...]


class Counters:
    """256 numbers of one core, when they last changed, and who waits for them; index them to read."""

    __slots__ = ("changed", "core", "values", "waiters")
    NOT_STATE: ClassVar = {"core": "wiring", "waiters": "in the states of the engines that wait"}

    def __init__(self, core: Owner) -> None:
        self.core = core
        self.values = [0] * SYNC_COUNT
        # Before any time that a wait may ask about.
        self.changed = [-(1 << 62)] * SYNC_COUNT
        self.waiters: defaultdict[int, list[Waiter]] = defaultdict(list)

    def __getitem__(self, index: int) -> int:
        return self.values[index]

    def __len__(self) -> int:
        return SYNC_COUNT

    def snapshot(self) -> CountersState:
        """Return the state as a value, for `restore`."""
        return CountersState(tuple(self.values), tuple(self.changed))

    def restore(self, state: CountersState) -> None:
        """Return to a state that `snapshot` gave."""
        self.values[:], self.changed[:] = state

    def release(self) -> None:
        """Let go of the core and of who waits; nothing may change after that."""
        self.waiters.clear()
        del self.core


class Semaphores(Counters):
    """256 counters; `add` and `set` change them."""

    __slots__ = ()

    def add(self, index: int, amount: int, now: int) -> None:
        """Raise or lower a semaphore and tell who waits for it; FaultError beyond 32 bits."""
        values = self.values
        old = values[index]
        value = old + amount
        if not LOWEST <= value <= HIGHEST:
            self.set(index, value, now)
            return
        device = self.core.device
        if device.watched:
            device.changes.append(_made(SemaphoreChange, (index, old, value, self.core.index, "semaphore")))
        values[index] = value
        self.changed[index] = now
        if waiters := self.waiters[index]:
            for need, wake in tuple(waiters):
                if value >= need:
                    wake(now)

    def set(self, index: int, value: int, now: int) -> None:
        """Give a semaphore a value and tell who waits for it; FaultError beyond 32 bits."""
        if not LOWEST <= value <= HIGHEST:
            raise fault_error(
                "semaphore",
                f"S[{index}] leaves the range of 32 bits",
                expected=f"{LOWEST} to {HIGHEST}",
                got=str(value),
            )
        device = self.core.device
        if device.watched:
            change = (index, self.values[index], value, self.core.index, "semaphore")
            device.changes.append(_made(SemaphoreChange, change))
        self.values[index] = value
        self.changed[index] = now
        if waiters := self.waiters[index]:
            for need, wake in tuple(waiters):
                if value >= need:
                    wake(now)


class Events(Counters):
    """256 flags; a wait consumes one. Setting one that is set already is worth a notice."""

    __slots__ = ()

    def set(self, index: int, value: int, now: int) -> bool:
        """Set or clear an event, tell who waits for it, and return whether it had that value already."""
        old = self.values[index]
        device = self.core.device
        if device.watched:
            device.changes.append(_made(SemaphoreChange, (index, old, value, self.core.index, "event")))
        self.values[index] = value
        self.changed[index] = now
        if value and self.waiters[index]:
            for _, wake in tuple(self.waiters[index]):
                wake(now)
        return old == value
