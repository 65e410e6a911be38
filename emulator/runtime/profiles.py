"""Device profiles of a session: which executions are captured, and the NTFF that is made of them.

A profile holds the executions of one model on one logical core, one behind the other on the core's clock. Its buffers
are in device memory while it is under way, and what they have no room for is lost, as the documentation says.
Sources: runtime.md 3.1, 11.3; formats.md 6.1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from emulator.runtime.cores import LogicalCore
from emulator.runtime.errors import invalid
from emulator.runtime.ledger import Ledger
from emulator.runtime.log import Log
from emulator.runtime.memory import Owner
from emulator.runtime.model import Model
from emulator.timeline.capture import Capture
from formats.neff.definition import ENGINE_KEYS
from formats.neff.memory import profiler_bytes
from formats.ntff.writer import CoreContents, Origin, write_ntff
from formats.numerals import parse_decimal
from formats.whole_files import write_whole

__all__ = ["Buffers", "Profile", "Profiles", "buffer_bytes"]

_MIB = 1 << 20
_BUFFER = 64 * _MIB  # of one kind, unless a variable says
_DOCUMENTED = 2048 * _MIB  # of a physical core of a chip that no capture tells of
_KINDS = {"trace": "EVENT", "notify": "EVENT", "trace_dma": "DMA"}  # which buffer has the records of a section
_UNKNOWN_PLACE, _STREAM = 0x1000000, 0x100000  # where streams lie that no ledger has
# As `nrt_get_version` says.
_VERSION = (2, 0, 0)


def _asked(environ: Mapping[str, str], kind: str) -> int | None:
    text = environ.get(f"NEURON_RT_PROFILE_BUF_{kind}_MB", "").strip()
    return (parse_decimal(text, 5) or 0) * _MIB or None


def buffer_bytes(generation: str, environ: Mapping[str, str]) -> int:
    """Return the bytes that the profiler's buffers take on a physical core, as variables ask.

    A kind that is named takes what it asks for instead of 64 MiB (inferred: "about 64 or 128 MB each").
    """
    asked = [found for kind in ("EVENT", "DMA", "THROTTLE", "CC_CORE_INSTRUCTION", "CC_CORE_EVENT")
             if (found := _asked(environ, kind)) is not None]  # fmt: skip
    whole = profiler_bytes(generation) or _DOCUMENTED
    return max(0, whole - _BUFFER * len(asked)) + sum(asked)


class Buffers:
    """The profiler's buffers in device memory; `reserve` takes memory for a core, or raises StatusError."""

    def __init__(
        self,
        ledger: Ledger,
        environ: Mapping[str, str],
        generation: str,
        reserve: Callable[[Callable[[], object], LogicalCore], object],
    ) -> None:
        self.ledger = ledger
        self._nbytes, self._reserve = buffer_bytes(generation, environ), reserve
        self._held: set[int] = set()

    def take(self, core: LogicalCore) -> None:
        """Take the buffers of a core, once."""
        if core.index not in self._held:
            self._reserve(lambda: self.ledger.start_profile(core.number, core.stacks, self._nbytes), core)
            self._held.add(core.index)

    def give(self, core: LogicalCore) -> None:
        """Give the buffers of a core back, where it has any."""
        if core.index in self._held:
            self._held.discard(core.index)
            self.ledger.stop_profile(core.number)


class Profile:
    """The executions of one model on one logical core, as far as the buffers have room."""

    def __init__(self, core: LogicalCore, model: Model, ledger: Ledger, environ: Mapping[str, str]) -> None:
        self.core, self.model = core, model
        self.full = False
        self._ledger = ledger
        self._most = {kind: _asked(environ, buffer) or _BUFFER for kind, buffer in _KINDS.items()}
        self._contents: list[CoreContents] = []

    def add(self, capture: Capture, begin_ps: int) -> None:
        """Take one execution that began at a time of the core's clock; records that find no room are lost."""
        found = capture.cores(self.core.physical[0], self._address, self._uses(), begin_ps)
        if not self._contents:
            self._contents = [one._replace(records={}) for one in found]
        kept = []
        for mine, new in zip(self._contents, found, strict=True):
            records = dict(mine.records)
            for key, data in new.records.items():
                # Whole records of 16 bytes.
                room = (self._most[key[0]] - len(records.get(key, b""))) // 16 * 16
                self.full = self.full or len(data) > room
                records[key] = records.get(key, b"") + data[: max(0, room)]
            kept.append(mine._replace(records=records))
        self._contents = kept

    def _uses(self) -> dict[int, dict[str, int]]:
        """Return the bytes of each use of device memory, by physical core of the logical one."""
        found: dict[int, dict[str, int]] = {}
        for owner in (Owner(self.core.number), Owner(self.core.number, self.model.number)):
            for entry in self._ledger.entries_of(owner):
                uses = found.setdefault(entry.part, {})
                uses[entry.use] = uses.get(entry.use, 0) + entry.allocation.size
        return found

    def _address(self, part: int, engine: str) -> int:
        """Return the device address of an engine's stream: the ledger's, where it has one."""
        for entry in self._ledger.entries_of(Owner(self.core.number, self.model.number)):
            if entry.part == part and entry.use == ENGINE_KEYS[engine]:
                return entry.allocation.address
        return _UNKNOWN_PLACE + (part * len(ENGINE_KEYS) + list(ENGINE_KEYS).index(engine)) * _STREAM

    def ntff(self, instance_type: str, instance_id: str, writer: str) -> bytes:
        """Return the capture; of a model that was not executed, its streams alone."""
        if not self._contents:
            device = self.model.make_device()
            try:
                capture = Capture()
                capture.attach(device)
                self.add(capture, 0)
            finally:
                device.release()
        header = self.model.neff.header
        origin = Origin(self.model.name, bytes(header.uuid), instance_type, instance_id, _VERSION, writer)
        return write_ntff(origin, self._contents)


class Profiles:
    """The profiles of a session that calls begin and end: of one model (nrt_profile_start), or continuous ones."""

    def __init__(
        self, buffers: Buffers, environ: Mapping[str, str], log: Log, instance: tuple[str, str], writer: str
    ) -> None:
        self.buffers = buffers
        self._environ, self._log = environ, log
        self._instance, self._writer = instance, writer
        self._by_name: dict[str, Profile] = {}
        self.continuous = False
        self._last: dict[int, Profile] = {}
        self._saved = 0

    def new(self, core: LogicalCore, model: Model) -> Profile:
        """Return an empty profile of a model."""
        return Profile(core, model, self.buffers.ledger, self._environ)

    def write(self, profile: Profile, path: Path) -> None:
        """Write a profile as NTFF; raises OSError."""
        if profile.full:
            self._log.write("WARN", "NRT", "nrt_profile_stop", f"{profile.model.name}: profiler buffers are full, "
                            "events are lost: NEURON_RT_PROFILE_BUF_<EVENT|DMA>_MB")  # fmt: skip
        data = profile.ntff(*self._instance, self._writer)
        with write_whole(path) as place:
            place.write_bytes(data)

    # --- of one model ------------------------------------------------------------------------------------------------

    def start(self, core: LogicalCore, model: Model, name: str) -> None:
        """Begin the profile of a model; NRT_INVALID where its core has one, or a file of this name is to come."""
        if self.continuous:
            raise invalid("continuous profiling is under way")
        if core.profiled is not None:
            raise invalid(f"nc{core.number} is kept for a profile of {core.profiled.name} already")
        if name in self._by_name:
            raise invalid(f"a profile for {name} is under way")
        self.buffers.take(core)
        self._by_name[name] = self.new(core, model)
        core.profiled = model

    def stop(self, name: str) -> Profile:
        """End the profile that was begun for a file, or the only one; NRT_INVALID where there is none."""
        if name not in self._by_name:
            if len(self._by_name) != 1:
                begun = ", ".join(self._by_name) or "none"
                raise invalid(f"no profile was begun for {name!r}; there are {begun}")
            name = next(iter(self._by_name))
        profile = self._by_name.pop(name)
        profile.core.profiled = None
        self.buffers.give(profile.core)
        return profile

    def forget(self, model: Model) -> Profile | None:
        """End the profile of a model that is unloaded, without a file."""
        name = next((name for name, each in self._by_name.items() if each.model is model), None)
        return None if name is None else self.stop(name)

    # --- continuous --------------------------------------------------------------------------------------------------

    def start_continuous(self) -> None:
        """Capture every execution from here on; NRT_INVALID where a profile is under way."""
        if self.continuous or self._by_name:
            raise invalid("a profile is under way")
        self.continuous = True

    def save(self, core: LogicalCore, folder: Path) -> Path:
        """Write the last execution of a core into a folder under a name of its own; NRT_INVALID without one."""
        profile = self._last.get(core.index)
        if not self.continuous or profile is None:
            raise invalid(f"nothing was captured of nc{core.number}" if self.continuous else "no continuous profiling")
        folder.mkdir(parents=True, exist_ok=True)
        while True:
            path = folder / f"profile_nc_{core.number}_exec_{self._saved}.ntff"
            self._saved += 1
            if not path.exists():
                break
        self.write(profile, path)
        return path

    def stop_continuous(self) -> None:
        """End it, and forget what was captured; NRT_INVALID where it is not under way."""
        if not self.continuous:
            raise invalid("no continuous profiling is under way")
        self.continuous = False
        self._last.clear()

    # --- executions --------------------------------------------------------------------------------------------------

    def wants(self, core: LogicalCore, model: Model) -> bool:
        """Return whether an execution is captured."""
        return self.continuous or core.profiled is model

    def ran(self, core: LogicalCore, model: Model, capture: Capture, begin_ps: int) -> None:
        """Keep an execution where it is wanted."""
        for profile in self._by_name.values():
            if profile.model is model:
                profile.add(capture, begin_ps)
        if self.continuous:
            self._last[core.index] = profile = self.new(core, model)
            profile.add(capture, begin_ps)
