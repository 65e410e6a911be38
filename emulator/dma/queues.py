"""DMA queues: transfers of one engine in order, spread over rings of the core's DMA engines."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import ClassVar

from emulator.dma.transfer import UNPLANNED, Shares, Transfer, TransferCourse
from formats.named_tuple import NamedTuple

__all__ = ["DmaQueue", "QueueState", "descriptors_in_ring"]


def descriptors_in_ring(shares: Shares) -> int:
    """Return the descriptors of a transfer in the ring that has most of them: the first; one is its semaphore write."""
    return shares[0][1] - shares[0][0] + 1 if shares else 1


class QueueState(NamedTuple):
    """The state of a queue: its pending transfers, what it has done, and what rings count by."""

    pending: tuple[Transfer, ...]
    completed: int
    nbytes: int
    handed: tuple[tuple[Shares, int], ...]
    retired: tuple[tuple[Shares, int], ...]
    generator_ps: int
    planned_ps: int
    due_ps: int
    signalled_ps: int


class DmaQueue:
    """One queue set of a core: `num_queues` rings with one number on as many engines.

    `engine` is the sequencer that triggers it, `semaphores` those its transfers may raise, `kind` as the file says:
    transfers of a "dynamic" queue get their descriptors at the trigger, those of the others have them from load time.
    """

    __slots__ = (
        "asked",
        "by_course",
        "complete",
        "completed",
        "core",
        "due_ps",
        "engine",
        "fits",
        "generates",
        "generator_ps",
        "given",
        "held",
        "is_even",
        "kind",
        "made",
        "name",
        "nbytes",
        "num_queues",
        "pending",
        "planned_ps",
        "ring",
        "room",
        "semaphores",
        "signalled_ps",
        "stores",
        "tallies",
    )

    NOT_STATE: ClassVar = {
        **dict.fromkeys(
            ("complete", "core", "engine", "generates", "kind", "name", "num_queues", "ring", "semaphores"), "wiring"
        ),
        "made": "the program",
        "held": "the descriptors of what is pending",
        **dict.fromkeys(("asked", "fits", "given", "is_even", "room", "stores"), "derived from what is pending"),
        **dict.fromkeys(("by_course", "tallies"), "in the state as `handed` and `retired`"),
    }

    complete: Callable[[int], object]  # the oldest transfer; given by whoever owns the queue

    def __init__(
        self, core: int, name: str, engine: str, ring: int, num_queues: int, semaphores: tuple[int, ...], kind: str
    ) -> None:
        self.core, self.name, self.engine, self.ring = core, name, engine, ring
        self.num_queues, self.semaphores, self.kind = num_queues, semaphores, kind
        self.generates = not self.prebuilt and engine != "Pool"  # descriptors, by a generator of the chip
        self.pending: deque[Transfer] = deque()
        self.completed = 0
        self.nbytes = 0
        # How often transfers of each shape were handed to the rings, and completed; rings count descriptors by it.
        self.tallies: dict[Shares, list[int]] = {}
        self.by_course: dict[TransferCourse, list[int]] = {}  # the same lists
        self.made: list[tuple[Transfer, Shares]] = []  # with descriptors from load time, in trigger order
        self.held = 0  # descriptors of pending transfers in the fullest ring
        # For `emulator.dma.holding`: pending stores; bytes given to each engine so far, and whether all were whole
        # numbers; how many of the latest transfers fitted into which room when it was asked last, and how many there
        # had been by then.
        self.stores: deque[Transfer] = deque()
        self.given, self.is_even = 0.0, True
        self.fits = self.room = self.asked = 0
        self.generator_ps = 0  # when the descriptor generator has finished what it was given
        self.planned_ps = 0  # when the last one that is complete was to complete
        self.due_ps = 0  # when the oldest one that is pending is
        self.signalled_ps = 0  # when the semaphore writes of that one are through, 0 before they are made

    def __repr__(self) -> str:
        return f"<DmaQueue nc{self.core} {self.name}: {len(self.pending)} pending, {self.completed} completed>"

    @property
    def prebuilt(self) -> bool:
        """Return whether descriptors are made at load time."""
        return self.kind != "dynamic"

    def tally(self, shares: Shares) -> list[int]:
        """Return how often transfers of a shape were handed over and completed, to be counted up in place."""
        found = self.tallies.get(shares)
        if found is None:
            found = self.tallies[shares] = [0, 0]
        return found

    def count(self, transfer: Transfer, course: TransferCourse) -> None:
        """Count the bytes of a transfer that is pending from now on."""
        transfer.ahead = self.given
        self.given += course.share
        if not course.is_even:
            self.is_even = False
        if course.writes_hbm:
            self.stores.append(transfer)

    @property
    def handed(self) -> dict[Shares, int]:
        """Return how often transfers of each shape were handed to the rings."""
        return {shares: handed for shares, (handed, _) in self.tallies.items() if handed}

    @property
    def retired(self) -> dict[Shares, int]:
        """Return how often transfers of each shape have completed."""
        return {shares: retired for shares, (_, retired) in self.tallies.items() if retired}

    @property
    def transfers(self) -> tuple[Transfer, ...]:
        """Return the transfers that are not complete, the next one first."""
        return tuple(self.pending)

    @property
    def outstanding(self) -> int:
        """Return how many transfers are not complete."""
        return len(self.pending)

    def in_flight(self, now_ps: int) -> tuple[Transfer, ...]:
        """Return the transfers whose data is moving."""
        return tuple(transfer for transfer in self.pending if transfer.running(now_ps))

    def snapshot(self) -> QueueState:
        """Return the state as a value, for `restore`."""
        return QueueState(tuple(self.pending), self.completed, self.nbytes, tuple(self.handed.items()),
                          tuple(self.retired.items()), self.generator_ps, self.planned_ps, self.due_ps,
                          self.signalled_ps)  # fmt: skip

    def restore(self, state: QueueState) -> None:
        """Return to a state that `snapshot` gave; transfers may have to be bound again."""
        pending, self.completed, self.nbytes, handed, retired, *times = state
        self.generator_ps, self.planned_ps, self.due_ps, self.signalled_ps = times
        self.pending.clear()
        self.pending.extend(pending)
        for tally in self.tallies.values():
            tally[:] = 0, 0
        for shares, count in handed:
            self.tally(shares)[0] = count
        for shares, count in retired:
            self.tally(shares)[1] = count
        self.held = sum(descriptors_in_ring(transfer.shares) for transfer in pending)
        self.given, self.fits, self.asked = 0.0, 0, 0
        self.stores.clear()
        for transfer in pending:
            if transfer.course is not None:
                self.count(transfer, transfer.course)
            transfer.state, transfer.completed_ps, transfer.plan = "queued", -1, UNPLANNED

    def release(self) -> None:
        """Let go of transfers and of the owner; nothing may complete after that."""
        self.pending.clear()
        self.stores.clear()
        self.made.clear()
        del self.complete

    def signals(self, semaphore: int, core: int) -> tuple[Transfer, ...]:
        """Return the pending transfers that raise a semaphore of a core."""
        return tuple(
            transfer
            for transfer in self.pending
            if (transfer.core == core and transfer.semaphore == semaphore)
            or (transfer.remote is not None and transfer.remote[:2] == (core, semaphore))
        )
