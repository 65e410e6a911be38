"""System trace: events of the runtime and of its devices, in a ring for each core, read once. Source: runtime.md 14."""

from __future__ import annotations

import json
import threading
from collections import deque
from collections.abc import Iterable
from itertools import count
from typing import Any

from emulator.errors import InputError
from formats.named_tuple import NamedTuple

__all__ = ["EVENT_TYPES", "HARDWARE", "MOST_EVENTS", "SysTrace", "TraceConfig", "read_filter"]

# What the ring of one core has unless asked otherwise (runtime.md 11.3).
MOST_EVENTS = 1_000_000
HARDWARE = (
    "nc_exec_running", "cc_running", "cc_exec_barrier", "numerical_err", "nrt_model_switch", "timestamp_sync_point",
    "hw_notify",
)  # fmt: skip
EVENT_TYPES = (
    *HARDWARE, "nrt_load", "nrt_unload", "nrt_execute", "nrt_tensor_read", "nrt_tensor_write", "nrt_tensor_allocate",
    "model_load", "kbl_exec_wait", "kmgr_exec_core", "dmem_buf_copyin", "dmem_buf_copyout", "oob_error", "device_exec",
)  # fmt: skip


class TraceConfig:
    """What a trace keeps: events per core, cores (none named: all), kinds."""

    def __init__(self) -> None:
        self.set_defaults()

    def set_defaults(self) -> None:
        """Keep everything."""
        self.max_events = MOST_EVENTS
        self.cores: dict[int, bool] = {}
        self.kinds = set(EVENT_TYPES)

    def wants(self, core: int, kind: str) -> bool:
        """Return whether an event is kept; a core that was named is, and then only those that were."""
        if kind not in self.kinds:
            return False
        if core in self.cores:
            return self.cores[core]
        return not any(self.cores.values())


class _Event(NamedTuple):
    number: int
    core: int
    kind: str
    phase: str
    tracking: int
    time_ns: int
    data: dict[str, Any]

    def row(self) -> dict[str, Any]:
        return {
            "event_type": self.kind,
            "phase": self.phase,
            "tracking_id": self.tracking,
            "nc_idx": self.core,
            "timestamp_ns": self.time_ns,
            "data": self.data,
        }


class SysTrace:
    """A trace under way; the oldest events of a core go where its ring is full."""

    def __init__(self, config: TraceConfig) -> None:
        self.config = config
        self._rings: dict[int, deque[_Event]] = {}
        self._numbers = count()
        self._lock = threading.Lock()

    def add(self, core: int, kind: str, phase: str, tracking: int, time_ns: int, **data: Any) -> None:
        """Keep an event."""
        if not self.config.wants(core, kind):
            return
        with self._lock:
            ring = self._rings.get(core)
            if ring is None:
                ring = self._rings[core] = deque(maxlen=max(1, self.config.max_events))
            ring.append(_Event(next(self._numbers), core, kind, phase, tracking, time_ns, data))

    def fetch(self, most: int | None = None, core: int | None = None) -> str:
        """Return events as JSON, in their order, at most so many of a core; they are gone after that."""
        found: list[_Event] = []
        with self._lock:
            for index, ring in self._rings.items():
                if core is None or index == core:
                    take = len(ring) if most is None else min(most, len(ring))
                    found += [ring.popleft() for _ in range(take)]
        return json.dumps({"events": [event.row() for event in sorted(found)]})


def read_filter(text: str, known: Iterable[str] = EVENT_TYPES) -> set[str]:
    """Return the kinds that "hardware,^cc_running" names: kinds and groups, ^ leaves out what it stands before.

    Where everything is left out, the rest is meant. InputError for a kind that there is not.
    """
    names = tuple(known)
    groups = {"hardware": set(HARDWARE), "software": set(names) - set(HARDWARE)}
    kept: set[str] = set()
    dropped: set[str] = set()
    parts = [part.strip() for part in text.split(",") if part.strip()]
    for part in parts:
        name = part.removeprefix("^")
        chosen = groups.get(name, {name} & set(names) or {each for each in names if each.startswith(name)})
        if not chosen:
            raise InputError(f"no event {name!r}; there are {', '.join(names)}, hardware, software")
        (dropped if part.startswith("^") else kept).update(chosen)
    if not any(not part.startswith("^") for part in parts):
        kept = set(names)
    return kept - dropped
