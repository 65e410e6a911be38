"""A session as other processes see it: ledger, models, counters and activity in a JSON file that it keeps up to date.

Ours: on a machine of AWS the driver holds these. A session with NEURONTOOLS_MACHINE=FOLDER writes FOLDER/PID.json,
whole each time; `mem watch`, `monitor`, `top` and `sysfs` read it.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from time import time
from typing import Any, Protocol

from emulator.runtime.activity import Activity, CoreActivity
from emulator.runtime.instances import Instance
from emulator.runtime.ledger import Counter, Entry, Ledger, LoadedModel
from emulator.runtime.ledger_plan import PartPlan, Scratchpad
from emulator.runtime.memory import Allocation, Category, Owner, Stack
from formats.errors import FormatError
from formats.named_tuple import NamedTuple
from formats.neuron_core import GENERATIONS
from formats.nrt.memory import BY_KEY, USES
from formats.whole_files import write_whole

__all__ = ["FOLDER_VARIABLE", "MachineState", "Publisher", "dump_state", "read_state", "state_of"]

FOLDER_VARIABLE = "NEURONTOOLS_MACHINE"
SCHEMA = "neurontools.machine-state/1"
_KEYS: dict[str, type | tuple[type, ...]] = {
    "pid": int, "tag": str, "command": str, "instance": str, "time": (int, float), "ended": bool, "generation": str,
    "lnc": int, "contiguous": bool, "page": int,
}  # fmt: skip
_PERIOD = 0.2  # seconds between two writes
_LARGEST = 256 << 20


class Session(Protocol):
    """What is read of a session, which makes a `Publisher`."""

    @property
    def memory(self) -> Ledger: ...
    @property
    def environ(self) -> Mapping[str, str]: ...
    @property
    def instance(self) -> Instance: ...
    @property
    def counters(self) -> Mapping[tuple[int, str], int]: ...
    @property
    def activity(self) -> Activity: ...


class MachineState(NamedTuple):
    """One session: who it is, when this was written, its ledger; counters by (core, name), -1 for no core."""

    pid: int
    tag: str
    command: str
    instance: str
    time: float
    ended: bool
    ledger: Ledger
    counters: Mapping[tuple[int, str], int] = {}
    activity: Mapping[int, CoreActivity] = {}


def dump_state(state: MachineState) -> dict[str, Any]:
    """Return a state as JSON has it."""
    ledger = state.ledger
    return {
        "schema": SCHEMA,
        "pid": state.pid, "tag": state.tag, "command": state.command, "instance": state.instance,
        "time": state.time, "ended": state.ended,
        "generation": ledger.generation, "lnc": ledger.lnc, "contiguous": ledger.scratchpad.contiguous,
        "page": ledger.scratchpad.page,
        "entries": [[a.number, one.use, a.stack.device, a.stack.hbm, a.address, a.size, a.owner.core, a.owner.model,
                     one.part, a.name] for one in list(ledger.entries.values()) for a in (one.allocation,)],
        "models": [[m.owner.core, m.owner.model, m.name, m.uuid, [list(stack) for stack in m.stacks], len(m.parts)]
                   for m in list(ledger.models.values())],
        "memory": [[*stack, core, part, name, *counter]
                   for (stack, core, part, name), counter in list(ledger.counters.items())],
        "counters": [[core, name, count] for (core, name), count in list(state.counters.items())],
        "activity": [[core, *one[:3], [list(pair) for pair in one.latencies]] for core, one in state.activity.items()],
    }  # fmt: skip


def _need(condition: bool, what: str, path: str) -> None:
    if not condition:
        raise FormatError("not a state of a machine", path=path, field=what)


def _row(row: object, kinds: str, what: str, path: str) -> list[Any]:
    """Return a row whose items are integers not below -1 (i), texts (s) or lists (l), in that order."""
    ok = isinstance(row, list) and len(row) == len(kinds)
    if ok and isinstance(row, list):
        for kind, item in zip(kinds, row, strict=True):
            fits = {"i": isinstance(item, int) and not isinstance(item, bool) and -1 <= item < 1 << 62,
                    "s": isinstance(item, str), "l": isinstance(item, list)}  # fmt: skip
            ok = ok and fits[kind]
    _need(ok, what, path)
    assert isinstance(row, list)  # `_need` saw to it
    return row


def read_state(path: Path) -> MachineState:
    """Return the state in a file; FormatError for what is none, or contradicts itself."""
    where = str(path)
    if path.stat().st_size > _LARGEST:
        raise FormatError("too large for a state of a machine", path=where)
    try:
        found = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise FormatError(f"not JSON: {error}", path=where) from None
    _need(isinstance(found, dict) and found.get("schema") == SCHEMA, "schema", where)
    for name, kind in _KEYS.items():
        _need(isinstance(found.get(name), kind), name, where)
    for name in ("entries", "models", "memory", "counters", "activity"):
        _need(isinstance(found.get(name), list), name, where)
    _need(found["generation"] in GENERATIONS and found["lnc"] in (1, 2) and found["page"] > 0, "lnc", where)
    _need(abs(found["time"]) < 1 << 62, "time", where)  # JSON has integers that no float holds
    ledger = Ledger(found["generation"], lnc=found["lnc"], scratchpad=Scratchpad(found["contiguous"], found["page"]))
    for row in found["entries"]:
        number, use, device, hbm, address, size, core, model, part, name = _row(row, "isiiiiiiis", "entries", where)
        _need(use in USES and size > 0 and device >= 0 and 0 <= hbm < 4, "entries", where)
        stack = Stack(device, hbm)
        category = Category(BY_KEY[USES[use].category].label)
        made = Allocation(number, category, stack, address, size, Owner(core, model), name)
        try:
            ledger.restore(Entry(made, use, part))
        except (ValueError, IndexError):
            raise FormatError("two allocations overlap, or lie outside of their stack", path=where) from None
    for row in found["models"]:
        core, model, name, uuid, stacks, parts = _row(row, "iissli", "models", where)
        _need(0 <= parts <= 2 and len(stacks) <= 2, "models", where)
        pairs = tuple(Stack(*_row(pair, "ii", "models", where)) for pair in stacks)
        owner = Owner(core, model)
        ledger.models[owner] = LoadedModel(owner, name, uuid, pairs, (PartPlan(()),) * parts)
    for row in found["memory"]:
        # The last change may be any negative number, which `i` does not take.
        present = row.pop(6) if isinstance(row, list) and len(row) == 8 else None
        device, hbm, core, part, name, total, peak = _row(row, "iiiisii", "memory", where)
        if not isinstance(present, int):
            raise FormatError("not a state of a machine", path=where, field="memory")
        ledger.counters[Stack(device, hbm), core, part, name] = Counter(total, present, peak)
    counters = {(core, name): count for core, name, count in
                (_row(row, "isi", "counters", where) for row in found["counters"])}  # fmt: skip
    activity = {}
    for row in found["activity"]:
        core, number, busy, device, latencies = _row(row, "iiiil", "activity", where)
        pairs_of = tuple((a, b) for a, b in (_row(pair, "ii", "activity", where) for pair in latencies))
        activity[core] = CoreActivity(number, busy, device, pairs_of)
    return MachineState(found["pid"], found["tag"], found["command"], found["instance"], float(found["time"]),
                        found["ended"], ledger, counters, activity)  # fmt: skip


def state_of(session: Session, *, ended: bool = False) -> MachineState:
    """Return the state of a session."""
    tag = session.environ.get("NEURON_PROCESS_TAG", "")[:255] or str(os.getpid())
    return MachineState(os.getpid(), tag, " ".join(sys.argv)[:4096], session.instance.name, time(), ended,
                        session.memory, dict(session.counters), session.activity.cores())  # fmt: skip


class Publisher:
    """A thread that writes a session's state when something has changed, a few times a second at most.

    Raises OSError where the first state cannot be written. Later ones that cannot are told, once: a session goes on
    without anybody who looks at it.
    """

    def __init__(self, session: Session, folder: Path, tell: Callable[[str], object]) -> None:
        self._session, self._path, self._tell = session, folder / f"{os.getpid()}.json", tell
        self._changed, self._stop = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="machine state", daemon=True)
        self._failing = False
        self._write()
        self._thread.start()

    def changed(self) -> None:
        """Say that the file is out of date."""
        self._changed.set()

    def close(self) -> None:
        """Write the last state, and end."""
        self._stop.set()
        self._changed.set()
        self._thread.join()
        self._renew(ended=True)

    def _run(self) -> None:
        while not self._stop.is_set():
            self._changed.wait()
            self._changed.clear()
            if not self._stop.is_set():
                self._renew()
                self._stop.wait(_PERIOD)

    def _renew(self, *, ended: bool = False) -> None:
        try:
            self._write(ended=ended)
            self._failing = False
        except OSError as error:
            if not self._failing:
                self._tell(f"{FOLDER_VARIABLE}: {error}")
            self._failing = True

    def _write(self, *, ended: bool = False) -> None:
        state = dump_state(state_of(self._session, ended=ended))
        with write_whole(self._path) as place:
            place.write_text(json.dumps(state))
