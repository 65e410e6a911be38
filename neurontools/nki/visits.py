"""What the kernel stood at when it called for an operation: line, callers, turns of the loops, variables.

Only frames of the kernel's own code are looked at, and of these only what has changed since the last operation.
Variables are kept where a file can hold them: numbers, short texts, shapes, and the names of tensors, also of those in
lists, tuples and dictionaries, as `tiles[0]`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import compress, starmap
from operator import is_, is_not
from types import CodeType, FrameType
from typing import Any

from formats.named_tuple import NamedTuple
from formats.neff.visits import Site, TensorName, Value
from neurontools.builder.trace import Place
from neurontools.nki.strides import contiguous_strides
from neurontools.nki.syntax import loops_of
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

    `names` and `values` are the variables with what they held then, so that only those that hold another one are
    looked at.
    """

    __slots__ = ("base", "callee", "changes", "first", "frame", "listed", "lists", "names", "own", "parent", "sites",
                 "turns", "values", "visit")  # fmt: skip

    def __init__(self, frame: FrameType, sites: dict[int, int], parent: int) -> None:
        self.frame = frame
        self.sites = sites  # by instruction of the function: number of the site
        self.parent = parent  # the visit of the caller
        self.callee: FrameType | None = None
        self.visit = -1
        self.base = -1  # the first visit, on which the others build
        self.first: dict[str, Value] = {}
        self.names: list[str] = []
        self.values: list[object] = []
        self.own: dict[str, Value] = {}  # what the last visit keeps that the first does not
        self.turns: dict[int, int] = {}  # by instruction of the function: how often it came by
        self.lists: set[str] = set()  # variables whose contents may change while they stay the same object
        self.listed: dict[str, _Listed] = {}  # of those that hold tensors
        self.changes = 0  # visits at which they held others

    def begin(self, variables: Mapping[str, object]) -> dict[str, Value]:
        """Return what a file keeps of the variables of the first visit."""
        self.lists = {name for name, value in variables.items() if type(value) in _HOLDERS}
        self._lists_changed(variables)
        return self.kept(variables)

    def kept(self, variables: Mapping[str, object]) -> dict[str, Value]:
        """Return what a file holds of variables, and of the tensors in those that hold some."""
        found: dict[str, Value] = {}
        for name, value in variables.items():
            if name in self.listed:
                found.update(self.listed[name].named)
                continue
            kept = _KINDS.get(type(value), _other)(value)
            if kept is not None:
                found[name] = kept
        return found

    def changed(
        self, variables: Mapping[str, object], names: list[str], values: list[object]
    ) -> dict[str, Value] | None:
        """Return what a file keeps of the variables, but for what the visit has that others build on.

        None where lists hold other tensors: what they hold would stand in every row from here on, so that this visit
        becomes the one that others build on.
        """
        first = self.first
        if names != self.names:  # some are new, or gone
            self.lists = {name for name, value in variables.items() if type(value) in _HOLDERS}
            if self._lists_changed(variables):
                return None
            now = self.kept(variables)
            own = {name: value for name, value in now.items() if name not in first or first[name] != value}
        else:
            others = [*compress(names, map(is_not, values, self.values))]
            lists = self.lists
            for name in others:
                if type(variables[name]) in _HOLDERS:
                    lists.add(name)
                elif name in lists:
                    lists.discard(name)
            if (lists or self.listed) and self._lists_changed(variables):
                return None
            if not others:
                return self.own
            own = self.own.copy()
            more = False
            for name in others:
                if name in self.listed:  # another list of the same tensors
                    continue
                value = variables[name]
                kept = _KINDS.get(value.__class__, _other)(value)
                if kept is None or (name in first and first[name] == kept):
                    own.pop(name, None)
                else:
                    more = more or name not in own
                    own[name] = kept
            if more:  # in the order of the variables, as the file has them
                own = {name: own[name] for name in names if name in own}
        self.own = own
        return own

    def _lists_changed(self, variables: Mapping[str, object]) -> bool:
        """Return whether lists hold other tensors than before, and note which; after too many times none is followed.

        A list that changes at every turn would make every row as long as the first.
        """
        if self.changes > _CHANGES:
            return False
        gone = [name for name in self.listed if name not in self.lists]
        for name in gone:
            del self.listed[name]
        changed = bool(gone)
        for name in self.lists:
            value, before = variables[name], self.listed.get(name)
            if not _holds(value) if before is None else before.held is not None and _is_held(value, before.held):
                continue  # the usual case, at every operation
            parts = list(_parts(name, value, _DEEP))
            tensors: list[object] = [each for _, each in parts]
            held = _held(value, _DEEP)
            if before is not None and len(before.tensors) == len(tensors) and all(map(is_, before.tensors, tensors)):
                self.listed[name] = before._replace(held=held)
                continue
            named = {key: _tensor(each) for key, each in parts} if len(parts) <= _HELD else {}
            kept = {key: kept for key, kept in named.items() if kept is not None}
            self.listed[name] = _Listed(tensors, kept, held)
            changed = True
        self.changes += changed
        if self.changes > _CHANGES:
            self.listed.clear()
        return changed


class VisitRecorder:
    """Collect visits; `rows` and `sites` are what `formats.neff.visits.write_visits` takes.

    `bottom` is the frame that calls the kernel. The frames of the last operation are held until the next one, so that
    another call is another frame; `close` lets go of them.
    """

    __slots__ = ("_bottom", "_calls", "_codes", "_lines", "_numbers", "_place", "rows", "sites")

    def __init__(self, bottom: FrameType) -> None:
        self._bottom: FrameType | None = bottom
        self._calls: list[_Call] = []  # the kernel's first
        self._place = Place("?", 0, -1)
        # By the identity of a code, which is kept with it: its hash would go through all of its constants and names.
        self._codes: dict[int, tuple[CodeType, dict[int, int]]] = {}
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
        calls = self._calls
        if calls and calls[-1].frame is frame:
            if calls[-1].callee is callee:
                return self._place
            number = self._visit(calls[-1], callee)  # the usual case: the same function calls something else
        else:
            chain = None if self._bottom is None else self._chain(frame, callee)
            if chain is None:
                return Place(frame.f_code.co_filename, frame.f_lineno, -1)
            for each, called in chain:
                self._visit(self._call(each), called)
            number = self.rows[calls[-1].visit][1]
        place = self._place = _place_of(self._lines[number])
        place.visit = calls[-1].visit
        return place

    def _chain(self, frame: FrameType, callee: FrameType) -> list[tuple[FrameType, FrameType]] | None:
        """Return the frames that have gone on, with what they call, outermost first; None outside of the kernel.

        What has returned is forgotten.
        """
        known = {call.frame: depth for depth, call in enumerate(self._calls)}
        chain: list[tuple[FrameType, FrameType]] = []
        one: FrameType | None = frame
        while one is not None and one is not self._bottom:
            if not is_ours(one.f_code.co_filename):
                depth = known.get(one)
                if depth is not None and self._calls[depth].callee is callee:
                    del self._calls[depth + 1 :]
                    return chain[::-1]
                chain.append((one, callee))
                if depth is not None:  # those around it still make the call that led here
                    del self._calls[depth + 1 :]
                    return chain[::-1]
            callee, one = one, one.f_back
        if one is None:
            return None
        self._calls.clear()
        return chain[::-1]

    def _call(self, frame: FrameType) -> _Call:
        """Return the call of a frame, which is the innermost."""
        calls = self._calls
        if not calls or calls[-1].frame is not frame:
            code = frame.f_code
            known = self._codes.get(id(code))
            if known is None:
                known = self._codes[id(code)] = code, {}
            calls.append(_Call(frame, known[1], calls[-1].visit if calls else -1))
        return calls[-1]

    def _visit(self, call: _Call, callee: FrameType) -> int:
        """Note a visit; return the number of its site."""
        frame = call.frame
        call.callee = callee
        at = frame.f_lasti
        turn = call.turns[at] = call.turns.get(at, 0) + 1
        site = call.sites.get(at)
        if site is None:
            site = call.sites[at] = self._site(frame)
        rows = self.rows
        number = call.visit = len(rows)
        # What the frame gives is one and the same dictionary each time, so that its values are taken out of it.
        variables = frame.f_locals
        names, values = [*variables], [*variables.values()]
        if call.base < 0:
            own = None
        elif names == call.names and not call.lists and True not in map(is_not, values, call.values):
            own = call.own  # the usual case
        else:
            own = call.changed(variables, names, values)
        if own is None:
            call.first = call.begin(variables) if call.base < 0 else call.kept(variables)
            call.base, call.own = number, {}
            rows.append((call.parent, site, -1, turn, call.first))
        else:
            rows.append((call.parent, site, call.base, turn, own))
        call.names, call.values = names, values
        return site

    def _site(self, frame: FrameType) -> int:
        code = frame.f_code
        line = frame.f_lineno
        site = Site(code.co_filename, code.co_name, line, loops_of(code, line))
        number = self._numbers.get(site)
        if number is None:
            number = self._numbers[site] = len(self.sites)
            self.sites.append(site)
            self._lines.append((site.file, site.line))
        return number


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
