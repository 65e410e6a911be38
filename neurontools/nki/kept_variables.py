"""What a file keeps of the variables of the kernel's functions, worked out of what they held at each visit.

Variables are kept where a file can hold them: numbers, short texts, shapes, and the names of tensors, also of those in
lists, tuples and dictionaries, as `tiles[0]`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import compress, islice, starmap
from operator import is_, is_not
from typing import Any

from formats.named_tuple import NamedTuple
from formats.neff.visits import TensorName, Value
from neurontools.nki.strides import contiguous_strides
from neurontools.nki.tensor import NkiTensor

__all__ = ["HOLDERS", "KeptVariables", "TooMuchError", "freeze"]

_TEXT = 40  # characters of a text that is kept
_SHAPE = 8  # dimensions of a shape that is kept
_LARGE = 1 << 63
_HELD = 64  # tensors in one list that are named
_DEEP = 3  # lists in lists in lists
_CHANGES = 100  # of lists in one call that are followed: each is a row with all variables
HOLDERS = frozenset((list, tuple, dict))
_TENSORS = frozenset((NkiTensor,))
_TELLING = HOLDERS | _TENSORS
_UNTOLD: list[object] = []  # stands for lists and dictionaries of which nothing is kept; nobody changes it
_NONE: dict[str, Value] = {}  # nobody changes it
_NOTHING = object()  # what a variable without a value holds


class _Held(NamedTuple):
    """What a list, tuple or dictionary held, of long lists of tensors the first, and what the lists among it held."""

    items: list[object]
    inner: list[tuple[Any, _Held]]


class _Listed(NamedTuple):
    """The tensors in a variable, their names, and what it held then."""

    tensors: list[object]
    named: dict[str, Value]
    held: _Held | None


class TooMuchError(Exception):
    """A list holds more than is copied at every visit."""


def freeze(variables: dict[str, Any], among: Iterable[str]) -> dict[str, Any]:
    """Put copies into the place of lists, so that they hold what they hold now; return the lists that have some.

    `among` are the variables that are lists, tuples or dictionaries. Of those without a tensor or another list nothing
    is kept, whatever is in them. Raises TooMuchError where one is long.
    """
    found: dict[str, Any] = {}
    for name in among:
        value = variables[name]
        kind = type(value)
        if kind is tuple and not (value and type(value[0]) in _TELLING):
            continue
        if len(value) > _HELD:
            raise TooMuchError
        kinds = {*map(type, value.values() if kind is dict else value)}
        if kinds == _TENSORS:  # as most lists of which anything is kept
            if kind is tuple:
                continue
            variables[name] = value.copy()
        elif _TELLING.isdisjoint(kinds):
            variables[name] = _UNTOLD
        elif not HOLDERS.isdisjoint(kinds):
            variables[name] = _frozen(value, _DEEP)
        elif kind is not tuple:
            variables[name] = value.copy()
        else:
            continue
        found[name] = value
    return found


def _frozen(value: Any, deep: int) -> Any:
    """Return a copy of a list or dictionary, with those in it; a tuple without any is the same."""
    if len(value) > _HELD:
        raise TooMuchError
    kind = type(value)
    if deep > 1:
        if kind is dict:
            if not HOLDERS.isdisjoint(map(type, value.values())):
                return {key: _frozen(each, deep - 1) if type(each) in HOLDERS else each for key, each in value.items()}
        elif not HOLDERS.isdisjoint(map(type, value)):
            return kind([_frozen(each, deep - 1) if type(each) in HOLDERS else each for each in value])
    return value if kind is tuple else value.copy()


class KeptVariables:
    """The variables of one call of a function, visit by visit; `number` is that of the call.

    `known` are the variables with what they held at the last visit, so that only those that hold another one are
    looked at.
    """

    __slots__ = ("base", "changes", "first", "known", "listed", "lists", "number", "own", "turns")

    def __init__(self, number: int) -> None:
        self.number = number
        self.base = -1  # the first visit, on which the others build
        self.first: dict[str, Value]
        self.known: dict[str, Any]
        self.own: dict[str, Value] = _NONE  # what the last visit keeps that the first does not
        self.lists: set[str]  # variables whose contents may change while they stay the same object
        self.listed: dict[str, _Listed] = {}  # of those that hold tensors
        self.changes = 0  # visits at which they held others
        self.turns: dict[int, int] = {}  # by instruction of the function: how often it came by

    def start(self, visit: int, variables: dict[str, Any]) -> dict[str, Value]:
        """Make a visit the one that the next ones build on; return what a file keeps of all variables."""
        if self.base >= 0:
            self.own = _NONE
        else:
            self._begin(variables)
        self.base = visit
        first = self.first = self.kept(variables)
        return first

    def _begin(self, variables: dict[str, Any]) -> None:
        """Note which variables of the first visit are lists that may hold tensors."""
        self.known = variables
        self.lists = set()
        if not HOLDERS.isdisjoint(map(type, variables.values())):
            self.lists.update(
                name
                for name, value in variables.items()
                if type(value) in HOLDERS and (type(value) is not tuple or _may_hold(value))
            )
            self._lists_changed()

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
            kept = _tensor(value) if kind is NkiTensor else _KINDS.get(kind, _other)(value)  # type: ignore[arg-type]
            if kept is not None:
                found[name] = kept
        return found

    def changed(self, names: Iterable[str] | None, variables: dict[str, Any]) -> dict[str, Value] | None:
        """Return what a file keeps of the variables, but for what the visit has that others build on.

        Of the variables only these may be others than before, None for any. None where lists hold other tensors: what
        they hold would stand in every row from here on, so that this visit becomes the one that others build on.
        """
        known, lists = self.known, self.lists
        others: list[str] = []
        gone: list[str] = []
        is_new = False
        if names is None:
            if [*variables] == [*known]:
                others = [*compress(known, map(is_not, variables.values(), known.values()))]
            else:  # a new one that is None has nothing to keep
                others = [*compress(variables, map(is_not, variables.values(), map(known.get, variables)))]
                gone = [name for name in known if name not in variables]
                known = self.known = variables
        else:
            for name in names:
                value, before = variables.get(name, _NOTHING), known.get(name, _NOTHING)
                if value is not before:
                    (gone if value is _NOTHING else others).append(name)
                    is_new = is_new or before is _NOTHING
            if is_new:  # all are there then, in the order in which the frame has them
                known = self.known = variables
        for name in others:
            value = known[name] = variables[name]
            if type(value) in HOLDERS and (type(value) is not tuple or _may_hold(value) or name in self.listed):
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
        first, listed = self.first, self.listed
        own = self.own.copy()
        for name in gone:
            own.pop(name, None)
        added: list[str] = []
        for name in others:
            if name in listed:  # another list of the same tensors
                continue
            value = known[name]
            kind = type(value)
            kept = _tensor(value) if kind is NkiTensor else _KINDS.get(kind, _other)(value)
            if kept is None or (name in first and first[name] == kept):
                own.pop(name, None)
            else:
                if name not in own:
                    added.append(name)
                own[name] = kept
        # In the order of the variables, as the file has them. What was there is: so it is with new ones at the end.
        if added and len(own) > 1 and [*islice(reversed(variables), len(added))] != added[::-1]:
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
        gone = () if listed.keys() <= self.lists else [name for name in listed if name not in self.lists]
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
                if type(first) is not NkiTensor and (type(first) not in HOLDERS or not _holds(value)):
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


def _items(value: Any) -> list[object]:
    """Return what something holds, as far as tensors in it can count."""
    return [*value, *value.values()] if type(value) is dict else list(value[: _HELD + 1])


def _held(value: Any, deep: int) -> _Held | None:
    """Return what something holds now, None where that is too much to compare at every operation."""
    held = _Held(_items(value), [])
    if len(value) > _HELD and set(map(type, held.items)) != {NkiTensor}:
        return None
    for each in held.items if deep > 1 else ():
        if type(each) in HOLDERS:
            its = _held(each, deep - 1)
            if its is None:
                return None
            held.inner.append((each, its))
    return held


def _is_held(value: Any, held: _Held) -> bool:
    """Return whether something holds the very objects that it held."""
    items, inner = held
    if type(value) is dict:
        value = _items(value)
    elif len(value) > _HELD:
        value = value[: _HELD + 1]
    if len(value) != len(items) or False in map(is_, value, items):
        return False
    return not inner or all(starmap(_is_held, inner))


def _holds(value: Any) -> bool:
    """Return whether a list, tuple or dictionary begins with a tensor, or with one that does."""
    for _ in range(_DEEP):
        if not value:
            return False
        value = next(iter(value.values())) if type(value) is dict else value[0]
        if type(value) not in HOLDERS:
            break
    return type(value) is NkiTensor


def _may_hold(value: tuple[object, ...]) -> bool:
    """Return whether a tuple begins with a tensor, or with what may come to begin with one."""
    return bool(value) and (type(value[0]) is NkiTensor or type(value[0]) in HOLDERS)


def _parts(name: str, value: Any, deep: int) -> Iterator[tuple[str, NkiTensor]]:
    """Yield the tensors that something holds, with how the kernel would write them; one too many ends it."""
    found = 0
    for key, each in value.items() if type(value) is dict else enumerate(value):
        if type(each) is NkiTensor:
            if type(key) is int or (type(key) is str and len(key) <= _TEXT):
                found += 1
                yield f"{name}[{key!r}]", each
        elif deep > 1 and type(each) in HOLDERS:
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
