"""What the kernel stood at when it called for an operation: line, callers, turns of the loops, variables.

Only frames of the kernel's own code are looked at, and of these only what has changed since the last operation. What a
file keeps of the variables is worked out when somebody asks for it (`neurontools.nki.kept_variables`).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import compress
from threading import RLock
from types import FrameType
from typing import Any

from formats.neff.visits import Site, Value
from neurontools.builder.trace import Place
from neurontools.nki.flow import Flow, flow_of
from neurontools.nki.kept_variables import HOLDERS, KeptVariables, TooMuchError, freeze
from neurontools.nki.tracer import OTHER_FILES, OUR_FILES, is_ours

__all__ = ["VisitRecorder"]

_PENDING = 1 << 16  # visits that are noted without a row
_COPIES = 1 << 5  # visits as which one counts that has copies of lists
_is_holder = HOLDERS.__contains__
_settling = RLock()  # who read the same file at the same time
# The call, the visit that called its function, site, instruction, which variables may be others, None for any, and what
# at least these held, or just these where all of them were there before; None where none is another.
_Visit = tuple[int, int, Site, int, tuple[str, ...] | None, dict[str, Any] | list[Any] | None]
# What `Place(...)` does but for the visit, without its function: one is made for each operation.
_place_of: Callable[[tuple[str, int]], Place] = partial(tuple.__new__, Place)


class _Call:
    """One call of a function of the kernel: its frame, and what it is calling."""

    __slots__ = ("at", "callee", "flow", "frame", "had", "held", "number", "parent", "place", "steps", "there", "visit")

    def __init__(self, number: int, frame: FrameType, flow: Flow, parent: int) -> None:
        self.number = number
        self.frame = frame
        self.flow = flow
        self.steps = flow.steps
        self.parent = parent  # the visit of the caller
        self.callee: FrameType | None = None
        self.at = -1  # the instruction of the last visit
        self.visit = -1
        self.place: Place  # of the last visit
        self.had: dict[str, Any] = {}  # its variables at the last visit that noted all of them
        self.there: set[tuple[str, ...]] = set()  # of which it is known that all are among them
        self.held: dict[str, Any] = {}  # those of its variables that may change while they stay the same object


class VisitRecorder:
    """Collect visits; `rows` and `sites` are what `formats.neff.visits.write_visits` takes.

    A visit notes what the variables held, and lists what was in them. Rows are worked out of that for who reads them,
    which hardly anybody does, and take as much room but for copies of lists: notes of many become rows at once.
    `bottom` is the frame that calls the kernel. The frames of the last operation are held until the next one, so that
    another call is another frame; `close` lets go of them.
    """

    __slots__ = ("_begun", "_bottom", "_calls", "_count", "_due", "_frames", "_kept", "_most", "_numbered", "_numbers",
                 "_pending", "_rows", "_sites")  # fmt: skip

    def __init__(self, bottom: FrameType) -> None:
        self._bottom: FrameType | None = bottom
        self._calls: list[_Call] = []  # the kernel's first
        self._frames: list[FrameType] = []  # theirs
        self._numbers: dict[Site, int] = {}
        self._numbered: dict[int, tuple[int, Site]] = {}  # by identity: the hash of a site goes through its loops
        self._sites: list[Site] = []
        self._begun = self._count = 0  # calls, and visits
        self._pending: list[_Visit] = []  # those that have no rows yet
        self._most = self._due = _PENDING  # so many at a time, and the visit from which on they get rows
        self._rows: list[tuple[int, int, int, int, Mapping[str, Value]]] = []
        self._kept: list[KeptVariables] = []  # of the call that the last row is of, and of those around it

    @property
    def sites(self) -> Sequence[Site]:
        """Return the lines that call something, each once, in the order in which they did."""
        with _settling:
            self._settle()
            return self._sites

    @property
    def rows(self) -> Sequence[tuple[int, int, int, int, Mapping[str, Value]]]:
        """Return one row per visit."""
        with _settling:
            self._settle()
            return self._rows

    def close(self) -> None:
        """Let go of all frames."""
        self._bottom = None
        self._frames.clear()
        self._calls.clear()

    def place(self, inner: FrameType) -> Place:
        """Return the place of what the kernel calls just now, with its visit; `inner` is a frame in what it calls."""
        calls = self._calls
        waiting: list[tuple[FrameType, FrameType]] | tuple[()] = ()
        found: Place | list[tuple[FrameType, FrameType]] | None = None
        if calls and inner.f_code.co_filename in OUR_FILES:
            call = calls[-1]
            frame = call.frame
            callee, one = inner, inner.f_back
            while one is not frame:  # what is called calls others of ours
                if one is None or one.f_code.co_filename not in OUR_FILES:
                    found = self._found(one, callee)
                    break
                callee, one = one, one.f_back
            else:  # the usual case: the same function calls something else
                if call.callee is callee:
                    return call.place
        else:
            found = self._found(inner, None)
        if found is not None:
            if isinstance(found, Place):
                return found
            waiting = found
            frame, callee = waiting.pop()
            call = calls[-1] if calls and calls[-1].frame is frame else self._call(frame)
        while True:
            call.callee = callee
            at = frame.f_lasti
            key = call.at, at
            call.at = at
            site, names, line = call.steps.get(key) or call.flow.step(key, frame)
            variables: dict[str, Any] | list[Any] | None = None
            if names != () or call.held or frame.f_trace is not None:
                names, variables = self._noticed(call, frame, names)
            visit = call.visit = self._count
            self._count = visit + 1
            self._pending.append((call.number, call.parent, site, at, names, variables))
            if visit >= self._due:
                self._settle()
            place = call.place = _place_of(line)
            place.visit = visit
            if not waiting:
                return place
            frame, callee = waiting.pop()
            call = self._call(frame)

    def _found(self, frame: FrameType | None, called: FrameType | None) -> Place | list[tuple[FrameType, FrameType]]:
        """Return the frames of the kernel that have gone on, with what they call, innermost first.

        Where there are none, a place: that of the last visit, or one without a visit outside of the kernel. `frame` has
        called the frame `called`, if any.
        """
        while frame is not None:  # two or three frames
            file = frame.f_code.co_filename
            if file in OTHER_FILES or (file not in OUR_FILES and not is_ours(file)):
                break
            called, frame = frame, frame.f_back
        if frame is None:
            return Place("?", 0)
        found = None if self._bottom is None else self._chain(frame, called or sys._getframe(2))
        if found is None:
            return Place(frame.f_code.co_filename, frame.f_lineno, -1)
        return found or self._calls[-1].place

    def _noticed(
        self, call: _Call, frame: FrameType, names: tuple[str, ...] | None
    ) -> tuple[tuple[str, ...] | None, dict[str, Any] | list[Any]]:
        """Return which variables may be others than before, None for any, and what at least these hold now.

        `names` are those that may have been given a value since the last visit; what is in lists may be another anyway.
        """
        before = call.held
        is_stepped = frame.f_trace is not None  # somebody who steps through the kernel may give variables other values
        had, there = call.had, call.there
        if names and had and not before and not is_stepped and self._most > 1:
            if names not in there and had.keys() >= {*names}:
                there.add(names)
            if names in there:
                try:
                    values = [*map(frame.f_locals.__getitem__, names)]
                except KeyError:  # of one that is deleted
                    values = []
                for value in values:
                    if type(value) in HOLDERS:
                        break
                else:
                    if values:
                        return names, values
        if names == () and not is_stepped and self._most > 1:
            variables = before.copy()
            try:
                call.held = freeze(variables, before)
                self._copied(call)
                return (*before,), variables
            except TooMuchError:  # which is met again below
                pass
        variables = {**frame.f_locals}  # which takes a while: not where nothing is stored
        call.had = variables
        if there:
            there.clear()
        if is_stepped or names is None:
            names = None
            among = [*compress(variables, map(_is_holder, map(type, variables.values())))]
        else:  # the others are those of the last visit
            those = dict.fromkeys((*before, *names)) if before else names
            among = [*compress(those, map(_is_holder, map(type, map(variables.get, those))))]
        if self._most > 1 and (among or before):
            try:
                call.held = freeze(variables, among)
                self._copied(call)
            except TooMuchError:
                self._most = 1
        if self._most == 1:  # every visit is worked out at once, from the lists themselves
            self._due = 0
            variables.update(frame.f_locals)
            call.held = {name: variables[name] for name in among}
        return (None if before or call.held else names), variables

    def _copied(self, call: _Call) -> None:
        """Let the notes become rows sooner where lists were copied."""
        if call.held:
            self._due -= _COPIES

    def _settle(self) -> None:
        """Work out the rows of the visits that have none yet."""
        pending, self._pending = self._pending, []
        self._due = self._count + self._most if self._most > 1 else 0
        rows, stack, numbered = self._rows, self._kept, self._numbered
        for number, parent, place, at, names, noted in pending:
            while stack and stack[-1].number > number:  # of calls that have returned
                stack.pop()
            if not stack or stack[-1].number != number:
                stack.append(KeptVariables(number))
            kept = stack[-1]
            turn = kept.turns[at] = kept.turns.get(at, 0) + 1
            site = (numbered.get(id(place)) or self._number(place))[0]
            variables = (
                {**kept.known, **dict(zip(names or (), noted, strict=True))} if isinstance(noted, list) else noted
            )
            own = kept.own if variables is None else kept.changed(names, variables) if kept.base >= 0 else None
            if own is not None:
                rows.append((parent, site, kept.base, turn, own))
            elif variables is not None:
                if kept.base >= 0:  # of those that are as before the visit may have no note
                    variables = kept.known
                rows.append((parent, site, -1, turn, kept.start(len(rows), variables)))
        if self._bottom is None:  # it was the last of the kernel: what it held is let go of
            stack.clear()

    def _number(self, site: Site) -> tuple[int, Site]:
        """Return the number of a site that no row has yet, with the site, which is kept as long as its identity."""
        number = self._numbers.setdefault(site, len(self._sites))
        if number == len(self._sites):
            self._sites.append(site)
        found = self._numbered[id(site)] = number, site
        return found

    def _chain(self, frame: FrameType, callee: FrameType) -> list[tuple[FrameType, FrameType]] | None:
        """Return the frames that have gone on, with what they call, innermost first; None outside of the kernel.

        What has returned is forgotten.
        """
        frames = self._frames
        bottom = self._bottom
        chain: list[tuple[FrameType, FrameType]] = []
        one: FrameType | None = frame
        while one is not None and one is not bottom:
            file = one.f_code.co_filename
            if file in OTHER_FILES or (file not in OUR_FILES and not is_ours(file)):
                if one in frames:  # those around it still make the call that led here
                    behind = frames.index(one) + 1
                    del frames[behind:], self._calls[behind:]
                    if self._calls[-1].callee is not callee:
                        chain.append((one, callee))
                    return chain
                chain.append((one, callee))
            callee, one = one, one.f_back
        if one is None:
            return None
        frames.clear()
        self._calls.clear()
        return chain

    def _call(self, frame: FrameType) -> _Call:
        """Return the call of a frame that is not known yet, as the innermost."""
        calls = self._calls
        call = _Call(self._begun, frame, flow_of(frame.f_code), calls[-1].visit if calls else -1)
        self._begun += 1
        calls.append(call)
        self._frames.append(frame)
        return call
