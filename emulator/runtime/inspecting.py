"""Captures of a whole session (nrt_inspect_*): device profiles and the system trace, in a folder for each process.

The files that AWS's runtime writes of the system trace and the host (ntrace.pb, trace_info.pb, cpu_util.pb,
host_mem.pb) have no published schema: the trace is sys_trace.json here, of the host nothing is written.
Source: runtime.md 11.3, 14, 19.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from copy import deepcopy
from pathlib import Path

from emulator.errors import InputError
from emulator.runtime.cores import LogicalCore
from emulator.runtime.errors import invalid
from emulator.runtime.log import Log
from emulator.runtime.model import Model
from emulator.runtime.profiles import Profile, Profiles
from emulator.runtime.trace import SysTrace, TraceConfig, read_filter
from emulator.runtime.variables import read_cores
from emulator.timeline.capture import Capture
from formats.whole_files import write_whole

__all__ = ["ACTIVITIES", "InspectConfig", "Inspection", "trace_config"]

ACTIVITIES = ("system_profile", "device_profile", "host_memory", "cpu_util")
_FOLDER = "./output"


class InspectConfig(TraceConfig):
    """Options of a capture."""

    def set_defaults(self) -> None:
        super().set_defaults()
        self.session, self.folder = 1, _FOLDER
        self.activities = set(ACTIVITIES)
        self.enabled = self.on_failure = False

    def copy(self) -> InspectConfig:
        """Return options that do not change when these do."""
        return deepcopy(self)

    @classmethod
    def of(cls, environ: Mapping[str, str], trace_events: int) -> InspectConfig:
        """Return what variables ask for."""
        config = cls()
        fill_filters(config, environ, trace_events)
        config.enabled = _on(environ, "ENABLE", False)
        config.on_failure = _on(environ, "ON_FAIL", False)
        config.folder = environ.get("NEURON_RT_INSPECT_OUTPUT_DIR", "").strip() or _FOLDER
        wanted = (("SYSTEM_PROFILE", "system_profile"), ("DEVICE_PROFILE", "device_profile"),
                  ("HOST_MEMORY", "host_memory"), ("CPU_UTIL", "cpu_util"))  # fmt: skip
        config.activities = {activity for name, activity in wanted if _on(environ, name, True)}
        return config


def _on(environ: Mapping[str, str], name: str, default: bool) -> bool:
    """Return whether a variable asks for something; device profiles have modes, which are asked for by name."""
    text = environ.get(f"NEURON_RT_INSPECT_{name}", "").strip().lower()
    return default if not text else text not in ("0", "false")


def fill_filters(config: TraceConfig, environ: Mapping[str, str], trace_events: int) -> None:
    """Set what variables say of the cores and events that a trace keeps; StatusError names what is wrong."""
    config.max_events = trace_events
    name = "NEURON_RT_INSPECT_EVENT_FILTER_NC"
    for part in filter(None, environ.get(name, "").split(",")):
        config.cores.update(dict.fromkeys(read_cores(part, name), True))
    if kinds := environ.get("NEURON_RT_INSPECT_EVENT_FILTER_TYPE"):
        try:
            config.kinds = read_filter(kinds)
        except InputError as error:
            raise invalid(str(error)) from None


def trace_config(environ: Mapping[str, str], trace_events: int) -> TraceConfig:
    """Return the options of a system trace as variables have them."""
    config = TraceConfig()
    fill_filters(config, environ, trace_events)
    return config


class Inspection:
    """A capture under way."""

    def __init__(self, config: InspectConfig, profiles: Profiles, log: Log, instance_id: str) -> None:
        self.config = config
        traced = config.enabled and "system_profile" in config.activities
        self.trace = SysTrace(config) if traced else None
        self.folder = Path(config.folder) / f"{instance_id}_pid_{os.getpid()}" / str(time.time_ns())
        self._profiles, self._log = profiles, log
        self.devices = "device_profile" in config.activities and (config.enabled or config.on_failure)
        self._by_model: dict[tuple[int, int], Profile] = {}

    def wants(self, core: LogicalCore) -> bool:
        """Return whether executions of a core are captured."""
        chosen = self.config.cores
        # A core that nobody named is captured unless another one was asked for: cores may also have been switched off
        # only.
        mine = chosen.get(core.index, not any(chosen.values()))
        return self.devices and mine

    def ran(self, core: LogicalCore, model: Model, capture: Capture, begin_ps: int, failed: bool) -> None:
        """Keep an execution; of one that failed a profile is written at once, where that is asked for."""
        if self.config.enabled:
            key = core.index, model.number
            profile = self._by_model.pop(key, None) or self._profiles.new(core, model)
            profile.add(capture, begin_ps)
            self._by_model[key] = profile  # the last one is the last that ran
        elif failed:
            profile = self._profiles.new(core, model)
            profile.add(capture, begin_ps)
            self._write(profile, f"profile_nc_{core.number}_session_{self.config.session}_failed_{model.number}.ntff")

    def _write(self, profile: Profile, name: str) -> None:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._profiles.write(profile, self.folder / name)
            neff = profile.model.neff
            digest = neff.header.hash.hex()[:16] or neff.header.uuid.hex()[:16]
            with write_whole(self.folder / f"neff_{digest}_vnc_{profile.core.number}.neff") as place:
                place.write_bytes(neff.to_bytes())
        except OSError as error:
            self._log.say("NRT", "nrt_inspect_stop", f"{name} cannot be written: {error}")

    def end(self) -> None:
        """Write what was captured: a profile of each core's last model, others by the number of their model."""
        session = self.config.session
        for (index, number), profile in self._by_model.items():
            last = [key for key in self._by_model if key[0] == index][-1] == (index, number)
            more = "" if last else f"_model_{number}"
            self._write(profile, f"profile_nc_{profile.core.number}_session_{session}{more}.ntff")
        if self.trace is not None:
            try:
                self.folder.mkdir(parents=True, exist_ok=True)
                with write_whole(self.folder / "sys_trace.json") as place:
                    place.write_text(self.trace.fetch() + "\n", encoding="utf-8")
            except OSError as error:
                self._log.say("NRT", "nrt_inspect_stop", f"the system trace cannot be written: {error}")
        if self.config.activities & {"host_memory", "cpu_util"} and self.config.enabled:
            self._log.write("INFO", "NRT", "nrt_inspect_stop", "host_memory and cpu_util are not captured: their "
                            "files have no published schema")  # fmt: skip
