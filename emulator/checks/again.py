"""Checks of a program that runs again: a run that goes the way of one before it has the same findings.

What the checks of a run say depends on the order in which words issue and complete, when, on what they signal, and on
their bytes and places, which are the open file's.  So the second run of a file keeps its way: every issue, plan and
completion, and what was found.  A later run is compared with that step by step, and nothing else is done as long as it
is the same.  Where it leaves the way, the checks are told of all that came before, and go on from there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from emulator.checks.clocks import Clocks
from emulator.checks.finding import Finding
from emulator.checks.initcheck import Initcheck
from emulator.checks.kept import kept_of
from emulator.checks.racecheck import Racecheck
from emulator.checks.registry import ASKED, TOOLS, make_checks, tools_of
from emulator.device import Device
from emulator.dma.transfer import Transfer
from emulator.events import Event
from emulator.loaded import LoadedWord
from emulator.observers import Occupation
from emulator.sequencer import Sequencer
from formats import isa
from formats.named_tuple import NamedTuple

__all__ = ["Again"]

_MOST = 1 << 16  # steps of a way that is kept, some three for each word
_GOING_ON = ("instruction", "dma", "barrier")  # kinds of events behind which a run goes on, and which have an effect
_OVER = object()
_FOLLOWED = frozenset(TOOLS).difference(ASKED)  # lint could be, nancheck looks at data


class _Way(NamedTuple):
    """What a run did, step by step, and what was found in it."""

    steps: list[object]
    findings: list[Finding]


class _File:
    """What is known of the runs of an open file: how often it was checked, and its ways by what they depend on."""

    def __init__(self) -> None:
        self.runs = 0
        self.ways: dict[tuple[Any, ...], _Way] = {}


class Again:
    """The named checks of one run, as far as they have to look at it; `findings` are those of all of them.

    What two cores store in turn has to be compared as it comes, so that a run of theirs that leaves the way cannot be
    made up for: `is_lost` says so afterwards, where `may_repeat` allows for it, and the run has to be made once more.
    Raises InputError as `make_checks` does.
    """

    def __init__(self, names: str | Iterable[str], may_repeat: bool = False) -> None:
        self._tools, self._may_repeat = tools_of(names), may_repeat
        self.is_lost = False
        self._checks: list[Any] = []
        self._known: list[Finding] | None = None
        self._follower: _Follower | None = None
        self._log: _Log | None = None

    def attach(self, device: Device) -> None:
        """Begin with a device that has its program and its inputs: watch it, or follow the way of an earlier run."""
        self._device = device
        file = kept_of(device, "runs", _File)
        file.runs += 1
        self._ways, self._key = file.ways, (self._tools, device.timing, device.costs.without)
        way = self._ways.get(self._key)
        watching: list[Any]
        if way is not None and (len(device.cores) == 1 or self._may_repeat):
            self._follower = _Follower(device, self._begin, way.steps)
            watching = [self._follower]
        else:
            watching = self._begin()
            if (
                way is None and file.runs > 1 and self._may_be_kept()
            ):  # most programs run once, and shall not pay for a second time
                self._log = _Log(device)
                watching = [*watching, self._log]
        device.observers[:0] = watching

    def _begin(self) -> list[Any]:
        """Return the checks, at the beginning of the run."""
        self._checks = make_checks(self._tools)
        for check in self._checks:
            check.attach(self._device)
        return self._checks

    def _may_be_kept(self) -> bool:
        """Return whether the steps of a run decide what is found: no datum, and no engine that stands at a barrier."""
        device = self._device
        words = [each for core in device.cores for engine in core.engines.values() for each in engine.words]
        return (
            len(words) <= _MOST
            and _FOLLOWED.issuperset(self._tools)
            and not any(map(_is_steered, {type(each.word) for each in words}))
        )

    def finish(self) -> None:
        """Take the findings of the way that was followed to its end, or let the checks look at the end."""
        if self._follower is not None and self._follower.arrives():
            self._known = _copies(self._ways[self._key].findings)
            return
        if self._follower is not None and len(self._device.cores) > 1:
            self.is_lost = True
            del self._ways[self._key]
            return
        for check in self._checks:
            if hasattr(check, "finish"):
                check.finish()
        if self._log is None or not self._device.finished or len(self._log.steps) > _MOST:
            return
        if not any(map(self._goes_by_data, self._checks)):
            self._ways[self._key] = _Way(self._log.steps, _copies(self.findings))

    def _goes_by_data(self, check: Any) -> bool:
        """Return whether what a check found may be for data to decide."""
        if isinstance(check, Racecheck):
            return len(self._device.cores) > 1 and check.races > 0  # of two cores that may store the same bytes
        return isinstance(check, Initcheck) and check.has_met

    @property
    def findings(self) -> list[Finding]:
        """Return what was found, in the order of the checks."""
        if self._known is not None:
            return self._known
        return [finding for check in self._checks for finding in getattr(check, "findings", ())]

    def release(self) -> None:
        """Leave what is as large as a memory to the next run."""
        for check in self._checks:
            if hasattr(check, "release"):
                check.release()


def _is_steered(cls: type[isa.Instruction]) -> bool:
    """Return whether words of a class go by what they find in memory, in a register, at another core or other ranks."""
    return bool(cls.BRANCHES or cls.DECIDES or cls.REGISTERS or cls.MEETS) or cls is isa.Collective


def _copies(findings: Sequence[Finding]) -> list[Finding]:
    """Return findings that others may change."""
    return [replace(finding, details=dict(finding.details)) for finding in findings]


def _outcome(event: Event) -> object:
    """Return what an event says at its end: what it signals, or how the run ended."""
    return event.semaphores if event.kind in _GOING_ON else (event.kind, event.instruction)


class _Log:
    """An observer that keeps the steps of a run."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self.steps: list[object] = []

    def on_issue(self, engine: Sequencer, loaded: LoadedWord, now: int) -> None:
        """Keep who issued what, and when."""
        self.steps.append((engine.core.index, engine.name, loaded.pc, now))

    def on_plan(self, transfer: Transfer, memory: Occupation | None) -> None:
        """Keep a transfer, and how full its queue was."""
        queue = self._device.dma.queue(transfer.core, transfer.queue)
        self.steps.append((transfer.core, transfer.queue, transfer.pc, queue.held, len(queue.pending)))

    def on_effect(self, event: Event) -> None:
        """Keep what is about to complete, and when."""
        self.steps.append((event.core, event.engine, event.pc, event.time_ps))

    def on_event(self, event: Event) -> None:
        """Keep what came of it."""
        self.steps.append(_outcome(event))


class _Follower:
    """An observer that compares a run with a way; where it leaves that, the checks look at all of it.

    `begin` makes the checks; what was `seen` till then is what they are to be told of.
    """

    def __init__(self, device: Device, begin: Callable[[], list[Any]], way: list[object]) -> None:
        self._device, self._begin, self._steps = device, begin, iter(way)
        self._checks: list[Any] | None = None  # none as long as the run goes the way
        # Issues and plans, with the method to tell of them; events, once at their effect and once at their end.
        self._seen: list[Event | tuple[Any, ...]] = []

    def arrives(self) -> bool:
        """Return whether the run went all of the way; where it did not, the checks know of all that it did."""
        if self._checks is None and (next(self._steps, _OVER) is not _OVER or not self._device.finished):
            self._leave()
        return self._checks is None

    def _leave(self) -> None:
        """Tell the checks of all that was seen."""
        self._checks = self._begin() if len(self._device.cores) == 1 else []
        clocks = [check for check in self._checks if isinstance(check, Clocks)]
        for each in clocks:
            each.behind = True
        begun: Event | None = None
        for seen in self._seen:
            if not isinstance(seen, Event):
                self._tell(*seen)
            elif seen is begun or seen.kind not in _GOING_ON:
                self._tell("on_event", seen)
            else:
                begun = seen
                self._tell("on_effect", seen)
        for each in clocks:
            each.behind = False
        self._seen.clear()

    def _tell(self, method: str, *given: Any) -> None:
        for check in self._checks or ():
            if hasattr(check, method):
                getattr(check, method)(*given)

    def on_issue(self, engine: Sequencer, loaded: LoadedWord, now: int) -> None:
        """Take an issue."""
        if self._checks is None:
            if next(self._steps, _OVER) == (engine.core.index, engine.name, loaded.pc, now):
                self._seen.append(("on_issue", engine, loaded, now))
                return
            self._leave()
        self._tell("on_issue", engine, loaded, now)

    def on_plan(self, transfer: Transfer, memory: Occupation | None) -> None:
        """Take a transfer that is planned."""
        queue = self._device.dma.queue(transfer.core, transfer.queue)
        held, pending = queue.held, len(queue.pending)
        if self._checks is None:
            if next(self._steps, _OVER) == (transfer.core, transfer.queue, transfer.pc, held, pending):
                self._seen.append(("planned", transfer, held, pending))
                return
            self._leave()
        self._tell("planned", transfer, held, pending)

    def on_effect(self, event: Event) -> None:
        """Take what is about to complete."""
        if self._checks is None:
            if next(self._steps, _OVER) == (event.core, event.engine, event.pc, event.time_ps):
                self._seen.append(event)
                return
            self._leave()
        self._tell("on_effect", event)

    def on_event(self, event: Event) -> None:
        """Take what came of it."""
        if self._checks is None:
            if next(self._steps, _OVER) == _outcome(event):
                self._seen.append(event)
                return
            self._leave()
        self._tell("on_event", event)
