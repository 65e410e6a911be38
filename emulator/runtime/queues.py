"""Execution units: queues of a core that work on their own, sequence numbers, and what they do when they fail.

Source: runtime.md 5; nrt_async.h for kinds and the layout of a sequence number.
"""

from __future__ import annotations

import os
import sys
import threading
from collections import deque
from collections.abc import Callable
from enum import IntEnum

from emulator.runtime.errors import StatusError, invalid
from emulator.runtime.failures import FATAL
from formats.errors import NeuronError
from formats.named_tuple import NamedTuple
from formats.nrt.status import NrtStatus

__all__ = ["DEPTH", "QUEUES", "SEQUENCE_BITS", "ErrorTracker", "Unit", "UnitKind", "unit_id"]

SEQUENCE_BITS = 48
# Requests that a queue holds. The figure of the older asynchronous mode; that of the queues is not public.
DEPTH = 63


class UnitKind(IntEnum):
    """Kinds of execution units, as nrt_async.h numbers them."""

    TENSOR_READ = 0
    TENSOR_WRITE = 1
    TENSOR_OP = 2
    COMPUTE = 3
    COLLECTIVES = 4


# Queues of each kind on a core. Two queues are documented for tensors, which the header has three kinds for.
QUEUES = {
    UnitKind.TENSOR_READ: 2,
    UnitKind.TENSOR_WRITE: 2,
    UnitKind.TENSOR_OP: 2,
    UnitKind.COMPUTE: 1,
    UnitKind.COLLECTIVES: 3,
}
_EACH = sum(QUEUES.values())


def unit_id(core: int, kind: UnitKind, queue: int) -> int:
    """Return the number of a queue: the upper 16 bits of its sequence numbers; how real ones count is not public."""
    return core * _EACH + sum(QUEUES[each] for each in UnitKind if each < kind) + queue


class ErrorTracker:
    """Errors of requests that were given this tracker: (sequence number, status), in order."""

    def __init__(self, core: int) -> None:
        self.core = core
        self.errors: list[tuple[int, NrtStatus]] = []


class _Request(NamedTuple):
    number: int
    work: Callable[[], object]
    tracker: ErrorTracker | None


class Unit:
    """One queue: requests in order, each done by a thread of the queue's own."""

    def __init__(self, core: int, kind: UnitKind, queue: int, depth: int = DEPTH) -> None:
        self.core, self.kind, self.queue, self.depth = core, kind, queue, depth
        self.base = unit_id(core, kind, queue) << SEQUENCE_BITS
        self.broken = False
        self._given = self._done = 0
        self._waiting: deque[_Request] = deque()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._closed = False
        self._handles: list[tuple[int, int]] = []

    @property
    def completed(self) -> int:
        """Return the sequence number of the last request that is done, number 0 of the queue before the first."""
        return self.base | self._done

    @property
    def pending(self) -> int:
        """Return how many requests are not done."""
        return self._given - self._done

    def schedule(self, work: Callable[[], object], tracker: ErrorTracker | None = None) -> int:
        """Append a request and return its sequence number.

        NRT_QUEUE_FULL where the queue holds as many as it can, NRT_EXEC_UNIT_UNRECOVERABLE after a fatal error.
        """
        with self._changed:
            if self._closed:
                raise StatusError(NrtStatus.NRT_CLOSED, "the runtime is closed")
            if self.broken:
                name = f"{self.kind.name.lower()} queue {self.queue} of core {self.core}"
                raise StatusError(NrtStatus.NRT_EXEC_UNIT_UNRECOVERABLE, f"{name} had a fatal error; reset the runtime")
            if self._given - self._done >= self.depth:
                raise StatusError(NrtStatus.NRT_QUEUE_FULL, f"{self.depth} requests are in flight")
            self._given += 1
            number = self._given
            self._waiting.append(_Request(number, work, tracker))
            if self._thread is None:
                name = f"nrt-{self.core}-{self.kind.name.lower()}-{self.queue}"
                self._thread = threading.Thread(target=self._serve, name=name, daemon=True)
                self._thread.start()
            self._changed.notify_all()
        return self.base | number

    def _serve(self) -> None:
        while True:
            with self._changed:
                while not self._waiting and not self._closed:
                    self._changed.wait()
                if not self._waiting:
                    return
                request = self._waiting.popleft()
            status = NrtStatus.NRT_SUCCESS
            if self.broken:
                status = NrtStatus.NRT_EXEC_UNIT_UNRECOVERABLE
            else:
                try:
                    request.work()
                except StatusError as error:
                    status = error.status
                except (NeuronError, MemoryError):
                    status = NrtStatus.NRT_FAILURE
                except Exception:  # noqa: BLE001  shown as a thread shows it; without this thread the queue would hang
                    threading.excepthook(threading.ExceptHookArgs((*sys.exc_info(), threading.current_thread())))
                    status = NrtStatus.NRT_FAILURE
            with self._changed:
                if status and request.tracker is not None:
                    request.tracker.errors.append((self.base | request.number, status))
                self.broken |= status in FATAL
                self._done = request.number
                self._signal()
                self._changed.notify_all()

    def _signal(self) -> None:
        for number, handle in self._handles:
            if number <= self._done:
                os.eventfd_write(handle, 1)
                os.close(handle)
        self._handles = [each for each in self._handles if each[0] > self._done]

    def is_completed(self, sequence: int) -> bool:
        """Return whether a request is done; NRT_INVALID for a number that was not given out."""
        number = sequence & ((1 << SEQUENCE_BITS) - 1)
        if not 1 <= number <= self._given:
            raise invalid(f"sequence number {sequence:#x} was not given out")
        return number <= self._done

    def handle(self, sequence: int) -> int:
        """Return a file descriptor that is readable when a request is done; the caller closes it."""
        with self._changed:
            done = self.is_completed(sequence)
            # The queue writes to a copy of its own, since the caller may close the first one at any time.
            mine = os.eventfd(1 if done else 0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
            if not done:
                self._handles.append((sequence & ((1 << SEQUENCE_BITS) - 1), os.dup(mine)))
        return mine

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until every request is done, or the queue is closed; return whether they are."""
        with self._changed:
            self._changed.wait_for(lambda: self._given == self._done or self._closed, timeout)
            return self._given == self._done

    def close(self) -> None:
        """Let the thread end behind the request under way; those behind it are given up."""
        with self._changed:
            self._closed = True
            self._waiting.clear()
            for _, handle in self._handles:
                os.close(handle)
            self._handles.clear()
            self._changed.notify_all()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()
