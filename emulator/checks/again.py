"""Checks of a run that nobody has to stop at what they find: they look at its notes when it is over.

While a program runs, nothing but notes is made (`emulator.notes`).  Behind its end the checks are told of all that
happened, one check after the other.  Where bytes are used that nothing wrote, initcheck follows what comes of them by
the notes, too (`emulator.checks.pursuit`); if something had been written before the run, it is told of what came
before, and watches from there on.  What data decide is noted as it comes: the registers that branches compared, what
scatters brought to one place.  Stores of two cores are compared byte by byte: what each overwrote is kept, and put back
while the checks are told.

What the checks of a run say depends on the order in which words issue and complete, when, on what they signal, and on
their bytes and places, which are the open file's where no datum steers the program.  So the second run of such a file
keeps its way: every issue and completion, and what was found.  The notes of a later run are compared with that, and
where they are the same the checks do not look at all.  Of stores of two cores they ask whether these changed anything:
the answers are kept with the way, and asked for again.

Where the device knows itself that its run goes the way of one before (`emulator.repeats`), nothing is compared: what
was found is kept with that way, undefined bytes as well as long as no data decided where they went, and a run that
nobody else watches needs no device (`emulator.runtime.known_runs`).
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import compress
from operator import itemgetter
from typing import Any

from emulator.checks.clocks import Clocks
from emulator.checks.finding import Finding
from emulator.checks.initcheck import Initcheck
from emulator.checks.inside import Clash, duplicates
from emulator.checks.kept import kept_of, traits_of
from emulator.checks.memcheck import Memcheck
from emulator.checks.orderly import Order, order_of
from emulator.checks.pursuit import Pursuit
from emulator.checks.quiet import speaking
from emulator.checks.racecheck import Racecheck
from emulator.checks.registry import ASKED, TOOLS, make_checks, tools_of
from emulator.checks.row_sets import are_apart
from emulator.checks.stores import Answers, Stores
from emulator.checks.synccheck import Synccheck
from emulator.checks.written import is_fresh
from emulator.device import Device
from emulator.dma.transfer import Part, Transfer
from emulator.faults import Place
from emulator.known_way import Found, KnownWay
from emulator.notes import COMPARED, CROWDED, EXECUTED, ISSUED, MOVED, Notes
from formats import isa
from formats.named_tuple import NamedTuple

__all__ = ["Again"]

_MOST_NOTES = 1 << 19  # of a run, a hundred megabytes; one that has more is watched from there on
_NOTES_OF_A_WORD = 4  # its issue, its completion, its transfer, that rings were full
_ANY_NUMBER = 1 << 62
_KIND, _WHOSE = itemgetter(0), itemgetter(1, 2)  # of a note; of one of a word, its engine and the word
_STORING = frozenset([isa.Write, isa.TensorStore])  # classes whose words may store to device memory
_MOST = 1 << 16  # steps of a way that is kept, some three for each word
_MOST_FINDINGS = 1 << 9  # that are kept with the way of a program
_AFTERWARDS = frozenset(TOOLS).difference(ASKED)  # nancheck looks at data; lint is behind no other run


class _Way(NamedTuple):
    """What a run did, step by step, what was asked of the bytes that two cores stored, and what was found in it."""

    steps: list[object]
    answers: Answers
    findings: list[Finding]


class _File:
    """What is known of the runs of an open file: how often it was checked, and its ways by what they depend on."""

    def __init__(self) -> None:
        self.runs = 0
        self.ways: dict[tuple[Any, ...], _Way] = {}


class Again:
    """The named checks of one run, as far as they have to look at it; `findings` are those of all of them.

    Raises InputError as `make_checks` does.
    """

    def __init__(self, names: str | Iterable[str]) -> None:
        self.tools = tools_of(names)
        self._checks: list[Any] = []
        self._known: list[Finding] | None = None
        self._notes: Notes | None = None
        self._stores: Stores | None = None  # of two cores
        self._answers: Answers | None = []  # what these were asked, None where the way of a run is not all there is
        self._scattered: dict[tuple[int, str, int], tuple[Part, ...]] = {}  # the last one looked at, by place
        self._doubles: dict[int, tuple[Clash, ...]] = {}  # of scatters, by transfer
        self._initcheck: Initcheck | None = None  # once bytes were used that nothing wrote
        self._pursuit: Pursuit | None = None  # by which it follows them, where it does not watch
        self._is_fresh = False  # whether nothing had been written when the run began
        self._watches = False  # whether all checks are told of what happens as it does

    def attach(self, device: Device) -> None:
        """Begin with a device that has its program and its inputs: see to it that notes are made, or watch."""
        self._device = device
        self._file = kept_of(device, "runs", _File)
        self._file.runs += 1
        self._key = self.tools, device.timing, device.costs.without
        self._way = self._file.ways.get(self._key)
        self._steering = steering = kept_of(device, "steering", lambda: _steering(device))
        if not _AFTERWARDS.issuperset(self.tools) or steering.at_once:
            self._watch()
            return
        device.notes = self._notes = Notes()
        if "initcheck" in self.tools:
            device.on_unwritten = self._wake
            self._is_fresh = all(is_fresh(core) for core in device.cores)
        if "racecheck" in self.tools:
            if len(device.cores) > 1:
                self._stores = Stores(device)
                self._notes.before = self._stores.keep
            if steering.scatters or steering.most_notes > _MOST_NOTES:
                self._notes.behind = self._moved

    def _begin(self, order: Order | None = None, notes: Notes | None = None) -> None:
        """Make the checks, of a run that did so much; where all is in order, those that have something to say."""
        tools, branches = self.tools, self._steering.branches
        ran = _ran(self._device, notes) if branches and notes else frozenset()
        if order is not None:
            tools = speaking(self._device, tools, order, self._initcheck is not None, ran)
            if not tools:
                return
        self._checks = make_checks(tools)
        if self._initcheck is not None:  # it watches already
            self._checks = [self._initcheck if isinstance(each, Initcheck) else each for each in self._checks]
        # Of a program with branches words that did not run count, too.
        needs = order.needs if order is not None and Synccheck.name in tools and not branches else None
        if needs is not None:
            foreseen = needs, ()
            kept_of(self._device, "needs", lambda: foreseen)
        for check in self._checks:
            if isinstance(check, Clocks) and order is not None:
                check.look_at(self._device)
            elif check is not self._initcheck:
                if isinstance(check, Memcheck):
                    check.ran = ran
                check.attach(self._device)

    def _watch(self) -> None:
        """Let the checks watch from here on."""
        self._watches = True
        self._begin()
        self._device.observers[:0] = self._checks

    def _moved(self, transfer: Transfer) -> None:
        """Look at what a transfer is over with that data decide; begin to watch where notes become too many."""
        if transfer.instruction is not None and type(transfer.instruction) is isa.DmaIndirect:
            place = transfer.core, transfer.queue, transfer.pc
            if are_apart(transfer):
                self._scattered[place] = ()
            elif self._scattered.get(place) != transfer.parts:
                self._scattered[place] = transfer.parts
                self._doubles[id(transfer)] = duplicates(self._device, transfer)
        if self._notes is not None and len(self._notes) > _MOST_NOTES:
            self._wake_all()

    def _wake(self, place: Place) -> None:
        """Have initcheck follow what comes of bytes that nothing wrote, by notes, or by watching from here on.

        `place` is whose bytes these are.
        """
        device = self._device
        device.on_unwritten = None
        check = next((check for check in self._checks if isinstance(check, Initcheck)), None)
        if check is None:
            check = Initcheck()
            check.attach(device)
        self._initcheck = check
        if self._is_fresh and self._notes is not None:
            self._pursuit = Pursuit(check, device, self._notes)
            self._pursuit.lacks(place)
            device.on_unwritten = self._pursuit.lacks
            return
        so_far = Notes()
        so_far += self._notes or ()
        check.follow(so_far)
        device.look([check, *device.observers])
        device.dma.tell_moving()

    def _wake_all(self) -> None:
        """Tell the checks of all so far, and let them watch from here on: more is not noted."""
        device = self._device
        notes, self._notes = self._notes or Notes(), None
        device.notes = device.on_unwritten = None
        pursuit, self._pursuit = self._pursuit, None
        if pursuit is not None:
            pursuit.end()
        moving = self._stores.moving if self._stores is not None else None
        self._tell(notes)
        self._watches = True
        seen: list[object] = [*self._checks, pursuit]
        others = [each for each in device.observers if each not in seen]
        device.look([*self._checks, *others])
        device.dma.tell_moving()
        if moving is not None:
            self._race.alike.begin(moving)  # as it was before anything moved

    @property
    def _race(self) -> Racecheck:
        return next(check for check in self._checks if isinstance(check, Racecheck))

    def _tell(self, notes: Notes) -> None:
        stores, races = self._stores, "racecheck" in self.tools
        order = order_of(self._device, notes, self._doubles) if races else None
        if not self._checks:
            self._begin(order, notes)
        rest = None if order is None else order.rest
        race = self._race if races and (order is None or rest is not None) else None
        if race is not None:
            race.stores, race.doubles = stores, self._doubles
            if stores is not None:
                stores.rewind()
        for check in self._checks:
            if check is self._initcheck:
                continue  # it has seen all of it
            if order is None:
                if hasattr(check, "follow"):
                    check.follow(notes)
            elif isinstance(check, Initcheck):
                check.follow(notes, over=True)
            elif isinstance(check, Synccheck):
                if self._device.hang is not None:
                    check.follow(notes)  # what its loops compared
            elif isinstance(check, Clocks):
                check.last_signals = order.last_signals
                if rest is not None:
                    check.stand(rest.signals)
            elif isinstance(check, Racecheck):
                # Where nothing may race, what it has to say it found in the words.
                check.look_at(*((rest.units, rest.host) if rest is not None else ((), ())))
        if race is not None:
            race.doubles = {}
            if stores is not None:
                is_over = self._device.outcome == "finished"
                self._answers = stores.answers if is_over else None if race.races else []
                stores.redo_all()
                race.stores = None
        self._stores = None

    def finish(self) -> None:
        """Take the findings of the way that was gone to its end, or let the checks look at the run and its end."""
        device, notes = self._device, self._notes
        device.notes = device.on_unwritten = None
        steps: list[object] = []
        known = None if self._watches else device.way
        if known is not None:
            if self._is_found_on(known):
                return
        elif (
            notes is not None
            and not self._steering.by_data
            and self._initcheck is None
            and self._file.runs > 1
            and len(notes) <= _MOST
            and device.finished
        ):
            steps = _steps(notes)
        if not self._watches:
            way, stores = self._way, self._stores
            if (
                way is not None
                and self._initcheck is None
                and steps == way.steps
                and (stores is None or stores.give(way.answers))
            ):
                self._known = [finding.copy() for finding in way.findings]
                return
            if self._pursuit is not None:
                self._pursuit.end()
            self._tell(notes or Notes())
        for check in self._checks:
            if hasattr(check, "finish"):
                check.finish()
        if known is not None:
            self._keep_with(known)
        elif steps and self._way is None and self._answers is not None and not self._has_met:
            self._file.ways[self._key] = _Way(steps, self._answers, [finding.copy() for finding in self.findings])

    def _is_found_on(self, way: KnownWay) -> bool:
        """Return whether what is found on a way is known for the data of this run, and take it then."""
        found, stores = way.findings.get(self.tools), self._stores
        if found is None or not (stores is None or stores.give(found.answers)):
            return False
        self._known = [finding.copy() for finding in found.findings]
        return True

    def _keep_with(self, way: KnownWay) -> None:
        """Keep what was found with the way that the run has gone, unless data decided any of it."""
        if self._answers is None or self._checks_data or len(self.findings) > _MOST_FINDINGS:
            return
        found = Found([finding.copy() for finding in self.findings], self._answers)
        way.findings.setdefault(self.tools, found)

    @property
    def _checks_data(self) -> bool:
        """Return whether initcheck has looked at data to tell what comes of undefined bytes."""
        return any(isinstance(check, Initcheck) and check.looks_at_data for check in self._checks)

    @property
    def _has_met(self) -> bool:
        """Return whether initcheck has met anything undefined: what comes of that may be for data to decide."""
        return any(isinstance(check, Initcheck) and check.has_met for check in self._checks)

    @property
    def findings(self) -> list[Finding]:
        """Return what was found, in the order of the checks."""
        if self._known is not None:
            return self._known
        return [finding for check in self._checks for finding in getattr(check, "findings", ())]

    def release(self) -> None:
        """Leave what is as large as a memory to the next run, and no cycles behind."""
        if self._notes is not None:
            self._notes.before = self._notes.behind = None
        for check in self._checks:
            if hasattr(check, "release"):
                check.release()
        if self._pursuit is not None:
            self._pursuit.leave()
        if self._initcheck is not None and self._initcheck not in self._checks:
            self._initcheck.release()


class _Steering(NamedTuple):
    """What data decide in a program: which words come next, anything at all, what only a look as it comes can tell.

    `scatters`: whether what transfers do to themselves shows when they are over; `most_notes` are those of a run.
    """

    branches: bool
    by_data: bool
    at_once: bool
    scatters: bool
    most_notes: int


def _steering(device: Device) -> _Steering:
    traits = traits_of(device)
    # What two cores store is compared, and words that store beside transfers keep nothing.
    beside = len(device.cores) > 1 and not _STORING.isdisjoint(traits.classes) and _writes_memory(device)
    words = sum([engine.count for core in device.cores for engine in core.engines.values()])
    return _Steering(
        traits.branches,
        traits.by_data,
        isa.Collective in traits.classes or beside,  # other ranks decide what that brings
        isa.DmaIndirect in traits.classes,
        _ANY_NUMBER if traits.branches else _NOTES_OF_A_WORD * words,
    )


def _writes_memory(device: Device) -> bool:
    """Return whether words write to device memory themselves; nearly all write to registers and semaphores."""
    addresses = set()
    for core in device.cores:
        for engine in core.engines.values():
            for loaded in engine.words:
                word = loaded.word
                if isinstance(word, isa.Write):
                    addresses |= {word.address0, word.address1} if word.size1 else {word.address0}
                elif isinstance(word, isa.TensorStore):
                    addresses.add(word.address)
    return any(device.addresses.locate(address).kind == "hbm" for address in addresses)


def _ran(device: Device, notes: Notes) -> frozenset[tuple[Any, Any]]:
    """Return the words that came to their ends, each with its engine."""
    executed = map(EXECUTED.__eq__, map(_KIND, notes))
    if device.fault is not None:  # one of them may have that
        return frozenset([(note[1], note[2]) for note in compress(notes, executed) if note[6] is not None])
    return frozenset(map(_WHOSE, compress(notes, executed)))


def _steps(notes: Notes) -> list[object]:
    """Return what notes say, without what belongs to the run alone."""
    steps: list[object] = []
    for note in notes:
        what = note[0]
        if what == ISSUED:
            _, engine, loaded, _, now = note
            steps.append((engine.core.index, engine.name, loaded.pc, now))
        elif what == EXECUTED:
            _, engine, loaded, _, _, now, changes = note
            steps.append((engine.name, engine.core.index, loaded.pc, now, changes))
        elif what == MOVED:
            _, transfer, now, changes, _ = note
            steps.append((transfer.queue, transfer.core, transfer.pc, now, changes))
        elif what == CROWDED:
            steps.append((note[1].queue, *note[2:]))
        elif what == COMPARED:
            _, engine, loaded, values = note
            steps.append((engine.core.index, engine.name, loaded.pc, values))
        else:
            steps.append(note)
    return steps
