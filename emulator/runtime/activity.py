"""What a session has executed on each core: how long it was busy, and how long the last executions took."""

from __future__ import annotations

import threading
from collections import deque

from formats.named_tuple import NamedTuple

__all__ = ["Activity", "CoreActivity"]

_KEPT = 1000  # executions of a core whose times are kept


class CoreActivity(NamedTuple):
    """One core: executions, nanoseconds of the host in them, emulated ns; (host, device) ns of the last ones."""

    executions: int = 0
    busy_ns: int = 0
    device_ns: int = 0
    latencies: tuple[tuple[int, int], ...] = ()


class Activity:
    """Counts of a session; several threads may add to it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sums: dict[int, tuple[int, int, int]] = {}
        self._last: dict[int, deque[tuple[int, int]]] = {}

    def ran(self, core: int, host_ns: int, device_ps: int) -> None:
        """Count an execution of a logical core."""
        with self._lock:
            number, busy, device = self._sums.get(core, (0, 0, 0))
            self._sums[core] = number + 1, busy + host_ns, device + device_ps // 1000
            self._last.setdefault(core, deque(maxlen=_KEPT)).append((host_ns, device_ps // 1000))

    def cores(self) -> dict[int, CoreActivity]:
        """Return what there is of each core that executed something."""
        with self._lock:
            return {core: CoreActivity(*sums, tuple(self._last[core])) for core, sums in self._sums.items()}
