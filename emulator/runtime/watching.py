"""What a session records of itself: the system trace, device profiles, inspections of everything."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from itertools import count
from pathlib import Path
from time import monotonic_ns
from typing import Any

from emulator.runtime.cores import LogicalCore
from emulator.runtime.errors import invalid
from emulator.runtime.inspecting import InspectConfig, Inspection
from emulator.runtime.log import Log
from emulator.runtime.model import Model
from emulator.runtime.profiles import Buffers, Profiles
from emulator.runtime.trace import SysTrace, TraceConfig
from emulator.timeline.capture import Capture

__all__ = ["Watching"]


class Watching:
    """The records of one session; `instance` is its type and what it is called, `writer` who writes files."""

    def __init__(
        self, buffers: Buffers, environ: Mapping[str, str], log: Log, instance: tuple[str, str], writer: str
    ) -> None:
        self.trace: SysTrace | None = None
        self.profiles = Profiles(buffers, environ, log, instance, writer)
        self.inspection: Inspection | None = None
        self._by_itself = False
        self._environ, self._log, self._instance = environ, log, instance
        self._captured: set[LogicalCore] = set()
        self._tracking = count(1)
        self._lock = threading.Lock()

    def begin(self, trace_events: int) -> None:
        """Begin what variables ask for."""
        config = InspectConfig.of(self._environ, trace_events)
        if config.enabled or config.on_failure:
            self.inspect(config, by_itself=True)

    # --- the system trace --------------------------------------------------------------------------------------------

    def start_trace(self, config: TraceConfig) -> None:
        """Trace from here on; NRT_INVALID where a trace is under way."""
        if self.trace is not None:
            raise invalid("a system trace is under way")
        self.trace = SysTrace(config)

    def stop_trace(self) -> None:
        """End the trace; NRT_INVALID where there is none."""
        if self.trace is None:
            raise invalid("no system trace is under way")
        self.trace = None

    @property
    def tracing(self) -> bool:
        """Return whether anything is noted."""
        return self.trace is not None or self.inspection is not None

    def _traces(self) -> tuple[SysTrace, ...]:
        inspection = self.inspection
        both = self.trace, None if inspection is None else inspection.trace
        return tuple(one for one in both if one is not None)

    def note(self, core: int, kind: str, phase: str = "instant", tracking: int = 0, **data: Any) -> int:
        """Add something to the trace; return the number that it is tracked by, 0 where nobody traces."""
        traces = self._traces()
        if not traces:
            return 0
        tracking = tracking or next(self._tracking)
        for trace in traces:
            trace.add(core, kind, phase, tracking, monotonic_ns(), **data)
        return tracking

    def executed(self, core: int, tracking: int, begin_ps: int, end_ps: int) -> None:
        """Add the pair of events of one execution; below a nanosecond it still takes one."""
        begin = begin_ps // 1000
        for phase, time in (("start", begin), ("stop", max(begin + 1, end_ps // 1000))):
            for trace in self._traces():
                trace.add(core, "nc_exec_running", phase, tracking, monotonic_ns(), nc_timestamp_ns=time)

    # --- captures ----------------------------------------------------------------------------------------------------

    def capture(self, core: LogicalCore, model: Model) -> Capture | None:
        """Return what captures an execution, where somebody wants it; NRT_RESOURCE without room for its buffers."""
        inspection = self.inspection
        if not self.profiles.wants(core, model) and (inspection is None or not inspection.wants(core)):
            return None
        self.profiles.buffers.take(core)
        self._captured.add(core)
        return Capture()

    def unloaded(self, model: Model) -> None:
        """End the profile of a model that is unloaded, without a file."""
        with self._lock:
            self.profiles.forget(model)
            self._release()

    def _release(self) -> None:
        """Give the buffers of cores back that nobody captures any more."""
        for core in list(self._captured):
            if core.profiled is None and not self.profiles.continuous and self.inspection is None:
                self.profiles.buffers.give(core)
                self._captured.discard(core)

    def start_profile(self, core: LogicalCore, model: Model, name: str) -> None:
        """Begin the profile of a model."""
        with self._lock:
            if self.inspection is not None and self.inspection.devices:
                raise invalid("an inspection captures device profiles")
            self.profiles.start(core, model, name)

    def stop_profile(self, name: str) -> None:
        """End a profile and write it as NTFF; raises OSError where it cannot be written."""
        with self._lock:
            profile = self.profiles.stop(name)
            self._release()
            self.profiles.write(profile, Path(name))

    def start_continuous(self) -> None:
        """Capture the last execution of every core from here on."""
        with self._lock:
            if self.inspection is not None and self.inspection.devices:
                raise invalid("an inspection captures device profiles")
            self.profiles.start_continuous()

    def save_continuous(self, core: LogicalCore, folder: str) -> Path:
        """Write the last execution of a core; raises OSError where it cannot be written."""
        with self._lock:
            return self.profiles.save(core, Path(folder))

    def stop_continuous(self) -> None:
        """End it."""
        with self._lock:
            self.profiles.stop_continuous()
            self._release()

    def ran(self, core: LogicalCore, model: Model, capture: Capture, begin_ps: int, failed: bool) -> None:
        """Keep an execution that was captured."""
        with self._lock:
            self.profiles.ran(core, model, capture, begin_ps)
            inspection = self.inspection
            if inspection is not None and inspection.wants(core):
                inspection.ran(core, model, capture, begin_ps, failed)

    # --- inspections -------------------------------------------------------------------------------------------------

    def inspect(self, config: InspectConfig, *, by_itself: bool = False) -> None:
        """Begin an inspection; NRT_INVALID where one is under way that did not begin by itself."""
        with self._lock:
            if self.inspection is not None:
                if not self._by_itself:
                    raise invalid("an inspection is under way")
                self._by_itself = False
                return
            if self.profiles.continuous and "device_profile" in config.activities:
                raise invalid("continuous profiling is under way")
            self.inspection = Inspection(config, self.profiles, self._log, self._instance[1])
            self._by_itself = by_itself

    def stop_inspection(self) -> Path | None:
        """End the inspection and return where its files are; NRT_INVALID where there is none."""
        with self._lock:
            inspection, self.inspection = self.inspection, None
            self._release()
        if inspection is None:
            raise invalid("no inspection is under way")
        inspection.end()
        return inspection.folder if inspection.folder.is_dir() else None

    def close(self) -> None:
        """End everything; what an inspection has is written."""
        if self.inspection is not None:
            self.stop_inspection()
        self.trace = None
