"""Where an engine stands, as values: what it waits for, what is under way, all that its snapshot has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from emulator.bound_words import BoundWord
from emulator.events import SemaphoreChange
from emulator.livelock import Turn
from emulator.semaphores import Waiter
from formats.isa.sync import wait_text
from formats.named_tuple import NamedTuple

if TYPE_CHECKING:
    from emulator.loaded import LoadedWord

__all__ = ["Awaiting", "Flight", "Flow", "SequencerState", "UnderWay", "Values", "WaitingOn"]


class WaitingOn(NamedTuple):
    """What an engine waits for: `kind` is "semaphore" or "event"."""

    kind: str
    core: int
    number: int
    mode: int
    value: int
    since_ps: int

    @property
    def text(self) -> str:
        """Return the condition in the profiler's grammar."""
        return wait_text(self.mode, self.number, self.value)


class UnderWay(NamedTuple):
    """A word that has issued and not completed."""

    loaded: LoadedWord
    issued_ps: int


# The same as an engine keeps it, plain since each word makes one: when it issued, and what it consumed.
Flight = tuple["LoadedWord", BoundWord, int, tuple[SemaphoreChange, ...]]
# What `WaitingOn` says, plain for the same reason.
Awaiting = tuple[str, int, int, int, int, int]


class Flow(NamedTuple):
    """Where an engine stands in its stream; `waiters` are those that wait where it does, in the order they came."""

    position: int
    completed: int
    flights: tuple[Flight, ...]
    state: str
    awaiting: Awaiting | None
    free_ps: int
    last_done: int
    busy_ps: int
    draining: bool
    barrier_raised: bool
    waiters: tuple[Waiter, ...] | None
    turn: Turn | None
    path_ps: int


class Values(NamedTuple):
    """What an engine's words have computed besides memory."""

    registers: tuple[int, ...]
    accumulators: bytes


class SequencerState(NamedTuple):
    """The state of one engine."""

    flow: Flow
    values: Values
