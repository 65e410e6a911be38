"""What the kernel stood at when it called for an operation: line, callers, turns of the loops, variables.

Only frames of the kernel's own code are looked at, and of these only what has changed since the last operation.
Variables are kept where a file can hold them: numbers, short texts, shapes, and the names of tensors, also of those in
lists, tuples and dictionaries, as `tiles[0]`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import compress, starmap
from operator import is_, is_not
from types import FrameType
from typing import Any

from formats.named_tuple import NamedTuple
from formats.neff.visits import Site, TensorName, Value
from neurontools.builder.trace import Place
from neurontools.nki.flow import Flow, flow_of
from neurontools.nki.strides import contiguous_strides
from neurontools.nki.tensor import NkiTensor
from neurontools.nki.tracer import is_ours

__all__ = ["VisitRecorder"]

_TEXT = 40  # characters of a text that is kept
_SHAPE = 8  # dimensions of a shape that is kept
_LARGE = 1 << 63
_HELD = 64  # tensors in one list that are named
_DEEP = 3  # lists in lists in lists
_CHANGES = 100  # of lists in one call that are followed: each is a row with all variables
_HOLDERS = frozenset((list, tuple, dict))
_NONE: dict[str, Value] = {}  # nobody changes it
_NOTHING = object()  # what a variable without a value holds
# From one visit of a function to the next: the number of its site, which variables may be others, and the line.
_Step = tuple[int, tuple[str, ...] | None, tuple[str, int]]
_Steps = dict[tuple[int, int], _Step]  # by the instructions of both
# What `Place(...)` does but for the visit, without its function: one is made for each operation.
_place_of: Callable[[tuple[str, int]], Place] = partial(tuple.__new__, Place)


class _Held(NamedTuple):
    """What a list, tuple or dictionary held, of long lists of tensors the first, and what the lists among it held."""

    items: list[object]
    inner: list[tuple[Any, _Held]]


class _Listed(NamedTuple):
    """The tensors in a variable, their names, and what it held then."""

    tensors: list[object]
    named: dict[str, Value]
    held: _Held | None


class _Call:
    """One call of a function of the kernel: its frame, what it is calling, and what its last visit left.

    `known` are the variables with what they held then, so that only those that hold another one are looked at.
    """

    __slots__ = ("at", "base", "callee", "changes", "first", "flow", "frame", "known", "listed", "lists", "own",
                 "parent", "place", "steps", "turns", "visit")  # fmt: skip

    def __init__(self, frame: FrameType, flow: Flow, steps: _Steps, parent: int) -> None:
        self.frame = frame
        self.flow = flow
        self.steps = steps
        self.parent = parent  # the visit of the caller
        self.callee: FrameType | None = None
        self.at = -1  # the instruction of the last visit
        self.visit = -1
        self.place: Place  # of the last visit
        self.base = -1  # the first visit, on which the others build
        self.first: dict[str, Value]
        self.known: dict[str, object]
        self.own: dict[str, Value] = _NONE  # what the last visit keeps that the first does not
        self.turns: dict[int, int] = {}  # by instruction of the function: how often it came by
        self.lists: set[str]  # variables whose contents may change while they stay the same object
        self.listed: dict[str, _Listed] = {}  # of those that hold tensors
        self.changes = 0  # visits at which they held others

    def start(self, visit: int) -> None:
        """Make a visit the one that the next ones build on."""
        if self.base >= 0:
            self.own = _NONE
            self.first = self.kept(self.frame.f_locals)
        else:
            self.first = self._begin()
        self.base = visit

    def _begin(self) -> dict[str, Value]:
        """Return what a file keeps of the variables of the first visit; note which are lists that may hold tensors."""
        known = self.known = {**self.frame.f_locals}
        self.lists = set()
        if not _HOLDERS.isdisjoint(map(type, known.values())):
            self.lists.update(
                name
                for name, value in known.items()
                if type(value) in _HOLDERS and (type(value) is not tuple or _may_hold(value))
            )
            self._lists_changed()
        return self.kept(known)

    def kept(self, variables: Mapping[str, object]) -> dict[str, Value]:
        """Return what a file holds of variables, and of the tensors in those that hold some."""
        found: dict[str, Value] = {}
        listed = self.listed
        for name, value in variables.items():
            kind = type(value)
            if kind is int:  # most are numbers or tensors
                if -_LARGE < value < _LARGE:  # type: ignore[operator]  # it is one
                    found[name] = value  # type: ignore[assignment]
                continue
            if listed and name in listed:
                found.update(listed[name].named)
                continue
            kept = _KINDS.get(kind, _other)(value)
            if kept is not None:
                found[name] = kept
        return found

    def changed(self, names: Iterable[str] | None) -> dict[str, Value] | None:
        """Return what a file keeps of the variables, but for what the visit has that others build on.

        Of the variables only these may be others than before, None for any. None where lists hold other tensors: what
        they hold would stand in every row from here on, so that this visit becomes the one that others build on.
        """
        known, lists = self.known, self.lists
        others: list[str] = []
        variables: Mapping[str, object]
        gone: list[str] = []
        if names is None:
            variables = self.frame.f_locals
            if [*variables] == [*known]:
                others = [*compress(known, map(is_not, variables.values(), known.values()))]
            else:  # a new one that is None has nothing to keep
                others = [*compress(variables, map(is_not, variables.values(), map(known.get, variables)))]
                gone = [name for name in known if name not in variables]
                known = self.known = {**variables}
        elif names:
            variables = self.frame.f_locals  # which takes a while: not where nothing is stored
            for name in names:
                value = variables.get(name, _NOTHING)
                if value is not known.get(name, _NOTHING):
                    (gone if value is _NOTHING else others).append(name)
        for name in others:
            value = known[name] = variables[name]
            if type(value) in _HOLDERS and (type(value) is not tuple or _may_hold(value) or name in self.listed):
                lists.add(name)
            elif lists:
                lists.discard(name)
        for name in gone:
            known.pop(name, None)
            lists.discard(name)
        if (lists or self.listed) and self._lists_changed():
            return None
        if not others and not gone:
            return self.own
        first = self.first
        own = self.own.copy()
        for name in gone:
            own.pop(name, None)
        more = False
        for name in others:
            if name in self.listed:  # another list of the same tensors
                continue
            value = known[name]
            kind = type(value)
            kept = _tensor(value) if kind is NkiTensor else _KINDS.get(kind, _other)(value)  # type: ignore[arg-type]
            if kept is None or (name in first and first[name] == kept):
                own.pop(name, None)
            else:
                more = more or name not in own
                own[name] = kept
        if more and len(own) > 1:  # in the order of the variables, as the file has them
            order = [*filter(own.__contains__, variables)]
            if order != [*own]:
                own = {name: own[name] for name in order}
        self.own = own
        return own

    def _lists_changed(self) -> bool:
        """Return whether lists hold other tensors than before, and note which; after too many times none is followed.

        A list that changes at every turn would make every row as long as the first.
        """
        if self.changes > _CHANGES:
            return False
        known, listed = self.known, self.listed
        gone = [name for name in listed if name not in self.lists] if listed else ()
        for name in gone:
            del listed[name]
        changed = bool(gone)
        for name in self.lists:
            value: Any = known[name]
            before = listed.get(name) if listed else None
            if before is None:
                if not value:
                    continue
                first = next(iter(value.values())) if type(value) is dict else value[0]
                if type(first) is not NkiTensor and (type(first) not in _HOLDERS or not _holds(value)):
                    continue  # the usual case, at every operation
            elif before.held is not None and _is_held(value, before.held):
                continue
            parts = list(_parts(name, value, _DEEP))
            tensors: list[object] = [each for _, each in parts]
            held = _held(value, _DEEP)
            if before is not None and len(before.tensors) == len(tensors) and all(map(is_, before.tensors, tensors)):
                listed[name] = before._replace(held=held)
                continue
            named = {key: _tensor(each) for key, each in parts} if len(parts) <= _HELD else {}
            kept = {key: kept for key, kept in named.items() if kept is not None}
            listed[name] = _Listed(tensors, kept, held)
            changed = True
        self.changes += changed
        if self.changes > _CHANGES:
            listed.clear()
        return changed


class VisitRecorder:
    """Collect visits; `rows` and `sites` are what `formats.neff.visits.write_visits` takes.

    `bottom` is the frame that calls the kernel. The frames of the last operation are held until the next one, so that
    another call is another frame; `close` lets go of them.
    """

    __slots__ = ("_bottom", "_calls", "_codes", "_lines", "_numbers", "rows", "sites")

    def __init__(self, bottom: FrameType) -> None:
        self._bottom: FrameType | None = bottom
        self._calls: list[_Call] = []  # the kernel's first
        self._codes: dict[Flow, _Steps] = {}
        self._numbers: dict[Site, int] = {}
        self.sites: list[Site] = []
        self._lines: list[tuple[str, int]] = []  # of each site
        self.rows: list[tuple[int, int, int, int, Mapping[str, Value]]] = []

    def close(self) -> None:
        """Let go of all frames."""
        self._bottom = None
        self._calls.clear()

    def place(self, frame: FrameType, callee: FrameType) -> Place:
        """Return the place of what a frame of the kernel calls just now, with its visit."""
        calls, rows = self._calls, self.rows
        waiting: list[tuple[FrameType, FrameType]] | tuple[()] = ()
        if calls and calls[-1].frame is frame:  # the usual case: the same function calls something else
            call = calls[-1]
            if call.callee is callee:
                return call.place
        else:
            found = None if self._bottom is None else self._chain(frame, callee)
            if found is None:
                return Place(frame.f_code.co_filename, frame.f_lineno, -1)
            if not found:
                return calls[-1].place
            waiting = found
            frame, callee = waiting.pop()
            call = calls[-1] if calls and calls[-1].frame is frame else self._call(frame)
        while True:
            call.callee = callee
            at = frame.f_lasti
            key = call.at, at
            call.at = at
            turns = call.turns
            turn = turns[at] = turns.get(at, 0) + 1
            step = call.steps.get(key)
            if step is None:
                step = call.steps[key] = self._step(call.flow, key, frame)
            site, names, line = step
            visit = call.visit = len(rows)
            own: dict[str, Value] | None = None
            if call.base >= 0:
                if frame.f_trace is not None:
                    names = None  # somebody who steps through the kernel may give variables other values
                own = call.own if names == () and not call.lists else call.changed(names)
            if own is not None:
                rows.append((call.parent, site, call.base, turn, own))
            else:
                call.start(visit)
                rows.append((call.parent, site, -1, turn, call.first))
            place = call.place = _place_of(line)
            place.visit = visit
            if not waiting:
                return place
            frame, callee = waiting.pop()
            call = self._call(frame)

    def _chain(self, frame: FrameType, callee: FrameType) -> list[tuple[FrameType, FrameType]] | None:
        """Return the frames that have gone on, with what they call, innermost first; None outside of the kernel.

        What has returned is forgotten.
        """
        calls = self._calls
        bottom = self._bottom
        chain: list[tuple[FrameType, FrameType]] = []
        one: FrameType | None = frame
        while one is not None and one is not bottom:
            if not is_ours(one.f_code.co_filename):
                for depth in range(len(calls) - 1, -1, -1):
                    if calls[depth].frame is one:
                        break
                else:
                    depth = -1
                if depth >= 0:  # those around it still make the call that led here
                    del calls[depth + 1 :]
                    if calls[depth].callee is not callee:
                        chain.append((one, callee))
                    return chain
                chain.append((one, callee))
            callee, one = one, one.f_back
        if one is None:
            return None
        calls.clear()
        return chain

    def _call(self, frame: FrameType) -> _Call:
        """Return the call of a frame that is not known yet, as the innermost."""
        calls = self._calls
        flow = flow_of(frame.f_code)
        steps = self._codes.get(flow)
        if steps is None:
            steps = self._codes[flow] = {}
        call = _Call(frame, flow, steps, calls[-1].visit if calls else -1)
        calls.append(call)
        return call

    def _step(self, flow: Flow, key: tuple[int, int], frame: FrameType) -> _Step:
        """Return what is known of the way from one instruction of a function, -1 for its start, to another."""
        before, at = key
        site = flow.site(at, frame)
        number = self._numbers.get(site)
        if number is None:
            number = self._numbers[site] = len(self.sites)
            self.sites.append(site)
            self._lines.append((site.file, site.line))
        return number, None if before < 0 else flow.changed(before, at), self._lines[number]


def _items(value: Any) -> list[object]:
    """Return what something holds, as far as tensors in it can count."""
    return [*value, *value.values()] if type(value) is dict else list(value[: _HELD + 1])


def _held(value: Any, deep: int) -> _Held | None:
    """Return what something holds now, None where that is too much to compare at every operation."""
    held = _Held(_items(value), [])
    if len(value) > _HELD and set(map(type, held.items)) != {NkiTensor}:
        return None
    for each in held.items if deep > 1 else ():
        if type(each) in _HOLDERS:
            its = _held(each, deep - 1)
            if its is None:
                return None
            held.inner.append((each, its))
    return held


def _is_held(value: Any, held: _Held) -> bool:
    """Return whether something holds the very objects that it held."""
    items = held.items
    if type(value) is dict:
        value = _items(value)
    elif len(value) > _HELD:
        value = value[: _HELD + 1]
    return len(value) == len(items) and False not in map(is_, value, items) and all(starmap(_is_held, held.inner))


def _holds(value: Any) -> bool:
    """Return whether a list, tuple or dictionary begins with a tensor, or with one that does."""
    for _ in range(_DEEP):
        if not value:
            return False
        value = next(iter(value.values())) if type(value) is dict else value[0]
        if type(value) not in _HOLDERS:
            break
    return type(value) is NkiTensor


def _may_hold(value: tuple[object, ...]) -> bool:
    """Return whether a tuple begins with a tensor, or with what may come to begin with one."""
    return bool(value) and (type(value[0]) is NkiTensor or type(value[0]) in _HOLDERS)


def _parts(name: str, value: Any, deep: int) -> Iterator[tuple[str, NkiTensor]]:
    """Yield the tensors that something holds, with how the kernel would write them; one too many ends it."""
    found = 0
    for key, each in value.items() if type(value) is dict else enumerate(value):
        if type(each) is NkiTensor:
            if type(key) is int or (type(key) is str and len(key) <= _TEXT):
                found += 1
                yield f"{name}[{key!r}]", each
        elif deep > 1 and type(each) in _HOLDERS:
            for part in _parts(f"{name}[{key!r}]", each, deep - 1):
                found += 1
                yield part
        if found > _HELD:
            return


def _tensor(value: NkiTensor) -> Value | None:
    """Return the name of a tensor, None for a part of one."""
    one = value.allocation
    if value.offset or value.shape != one.shape or value.strides != contiguous_strides(one.shape):
        return None
    return TensorName(one.name)


def _other(value: object) -> Value | None:
    """Return what a file holds of a variable of no kind of `_KINDS`, None where it holds nothing."""
    if isinstance(value, int):  # such as an index that knows its turn
        return int(value) if abs(value) < _LARGE else None
    return None


def _text(value: str) -> str | None:
    return value if len(value) <= _TEXT else None


def _shape(value: tuple[object, ...]) -> tuple[int, ...] | None:
    numbers = tuple(one for one in value if type(one) is int and abs(one) < _LARGE)
    return numbers if 0 < len(value) <= _SHAPE and len(numbers) == len(value) else None


_KINDS: dict[type, Callable[..., Value | None]] = {
    bool: bool,
    int: lambda value: value if abs(value) < _LARGE else None,
    float: float,
    str: _text,
    tuple: _shape,
    type(None): lambda value: None,
    list: lambda value: None,
    dict: lambda value: None,
    NkiTensor: _tensor,
}
