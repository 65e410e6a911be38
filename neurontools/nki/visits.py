"""What the kernel stood at when it called for an operation: line, callers, turns of the loops, variables.

Only frames of the kernel's own code are looked at, and of these only what has changed since the last operation.
Variables are kept where a file can hold them: numbers, short texts, shapes, and the names of tensors, also of those in
lists, tuples and dictionaries, as `tiles[0]`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from operator import is_
from types import FrameType
from typing import Any

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
_HOLDERS = (list, tuple, dict)


class _Call:
    """One call of a function of the kernel: its frame, what it is calling, and what its last visit left."""

    __slots__ = ("base", "callee", "changes", "first", "frame", "held", "tensors", "told", "turns", "visit")

    def __init__(self, frame: FrameType) -> None:
        self.frame = frame
        self.callee: FrameType | None = None
        self.visit = -1
        self.base = -1  # the first visit, on which the others build
        self.first: dict[str, Value] = {}
        self.tensors: dict[str, tuple[NkiTensor, Value | None]] = {}  # what each variable held, and what is kept of it
        # By variable: the tensors that its list held, and the names of these.
        self.held: dict[str, tuple[list[object], dict[str, Value]]] = {}
        self.changes = 0  # of these lists
        self.turns: dict[int, int] = {}  # by instruction of the function: how often it came by
        self.told = 0  # changes up to the last row that others build on

    def names_in(self, name: str, value: Any) -> dict[str, Value]:
        """Return the names of the tensors in a list, tuple or dictionary, none of one that holds too many."""
        before = self.held.get(name)
        now = list(_parts(name, value, _DEEP))
        tensors: list[object] = [each for _, each in now]
        if before is not None and len(before[0]) == len(tensors) and all(map(is_, before[0], tensors)):
            return before[1]
        if self.changes >= _CHANGES:
            return {}
        self.changes += 1
        named = {key: _tensor(each) for key, each in now} if len(now) <= _HELD else {}
        names = {key: kept for key, kept in named.items() if kept is not None}
        self.held[name] = tensors, names
        return names

    def changed(self) -> bool:
        """Return whether a list has changed since the last time this was asked."""
        before, self.told = self.told, self.changes
        return before != self.changes


class VisitRecorder:
    """Collect visits; `rows` and `sites` are what `formats.neff.visits.write_visits` takes.

    `bottom` is the frame that calls the kernel. The frames of the last operation are held until the next one, so that
    another call is another frame; `close` lets go of them.
    """

    __slots__ = ("_bottom", "_calls", "_numbers", "_place", "_sites", "rows", "sites")

    def __init__(self, bottom: FrameType) -> None:
        self._bottom: FrameType | None = bottom
        self._calls: list[_Call] = []  # the kernel's first
        self._place = Place("?", 0, -1)
        self._sites: dict[tuple[object, int], int] = {}
        self._numbers: dict[Site, int] = {}
        self.sites: list[Site] = []
        self.rows: list[tuple[int, int, int, int, Mapping[str, Value]]] = []

    def close(self) -> None:
        """Let go of all frames."""
        self._bottom = None
        self._calls.clear()

    def place(self, frame: FrameType, callee: FrameType) -> Place:
        """Return the place of what a frame of the kernel calls just now, with its visit."""
        calls = self._calls
        if calls and calls[-1].frame is frame and calls[-1].callee is callee:
            return self._place
        if self._bottom is None:
            return Place(frame.f_code.co_filename, frame.f_lineno, -1)
        chain = self._chain(frame, callee)
        if chain is None:
            return Place(frame.f_code.co_filename, frame.f_lineno, -1)
        for each, called in chain:
            self._visit(each, called)
        visit = self._calls[-1].visit
        site = self.sites[self.rows[visit][1]]
        self._place = Place(site.file, site.line, visit)
        return self._place

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

    def _visit(self, frame: FrameType, callee: FrameType) -> None:
        calls = self._calls
        if not calls or calls[-1].frame is not frame:
            calls.append(_Call(frame))
        call = calls[-1]
        call.callee = callee
        turn = call.turns[frame.f_lasti] = call.turns.get(frame.f_lasti, 0) + 1
        found: dict[str, Value] = {}
        tensors = call.tensors
        for name, value in frame.f_locals.items():
            kept: Value | None
            if type(value) is NkiTensor:
                known = tensors.get(name)  # the variable mostly holds the tensor that it held at the last visit
                if known is None or known[0] is not value:
                    known = tensors[name] = value, _tensor(value)
                kept = known[1]
            elif type(value) in _HOLDERS and (name in call.held or _holds(value)):
                found.update(call.names_in(name, value))
                continue
            else:
                kept = _KINDS.get(type(value), _other)(value)
            if kept is not None:
                found[name] = kept
        parent = calls[-2].visit if len(calls) > 1 else -1
        site = self._site(frame)
        call.visit = len(self.rows)
        # A list that has changed would stand in every row from here on: this one becomes what those build on.
        if call.base < 0 or call.changed():
            call.base, call.first = call.visit, found
            self.rows.append((parent, site, -1, turn, found))
        else:
            first = call.first
            own = {name: value for name, value in found.items() if first.get(name) != value or name not in first}
            self.rows.append((parent, site, call.base, turn, own))

    def _site(self, frame: FrameType) -> int:
        code = frame.f_code
        key = code, frame.f_lasti
        number = self._sites.get(key)
        if number is None:
            line = frame.f_lineno
            site = Site(code.co_filename, code.co_name, line, loops_of(code, line))
            number = self._numbers.get(site)
            if number is None:
                number = self._numbers[site] = len(self.sites)
                self.sites.append(site)
            self._sites[key] = number
        return number


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
}
