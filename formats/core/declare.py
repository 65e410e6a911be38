"""How a note is declared, and the one encoding that follows from the declaration: an object of compact JSON.

A note is a NamedTuple whose every field has a default and a sentence of documentation:

    @note(0x4E540003, "fault")
    class FaultNote(NamedTuple):
        pc: Annotated[int, "Compiler pc of the word."] = -1

Fields hold strings, integers, floats, truth values, None, tuples, dictionaries with string keys, and other records.
Fields that have their default are left out. A reader takes what it understands: a field that is missing or has another
type gets its default, one that it does not know is passed over.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin, get_type_hints

from formats.named_tuple import NamedTuple

__all__ = ["NOTES", "FieldDoc", "NoteKind", "decode", "encode", "fields_of", "kind_of", "note"]

Record = TypeVar("Record", bound=type)
_LOW, _HIGH = -(1 << 63), (1 << 64) - 1
_CONTROLS = dict.fromkeys((*range(9), *range(11, 32), *range(127, 160)), "?")


class NoteKind(NamedTuple):
    """One kind of note: its number in the file, its name, and the record that its bytes hold."""

    number: int
    name: str
    record: type


class FieldDoc(NamedTuple):
    """One field of a record, as the manual page shows it."""

    name: str
    type: str
    doc: str


NOTES: dict[int, NoteKind] = {}
_KINDS: dict[type, NoteKind] = {}


def note(number: int, name: str) -> Callable[[Record], Record]:
    """Declare the decorated record as a kind of note."""

    def declare(record: Record) -> Record:
        taken = NOTES.get(number)
        if taken is not None or any(kind.name == name for kind in NOTES.values()):
            raise TypeError(f"{record.__name__}: note {number:#x} {name!r} is declared already")
        NOTES[number] = _KINDS[record] = NoteKind(number, name, record)
        return record

    return declare


def kind_of(record: object) -> NoteKind:
    """Return the kind of note that a record is."""
    return _KINDS[type(record)]


def encode(record: object) -> bytes:
    """Return a record as JSON."""
    return json.dumps(_plain(record), separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode(
        "utf-8", "replace"
    )


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        if not hasattr(value, "_field_defaults"):
            return [_plain(item) for item in value]
        defaults = value._field_defaults
        return {
            name: _plain(item)
            for name, item in zip(value._fields, value, strict=True)  # type: ignore[attr-defined]
            if name not in defaults or item != defaults[name] or type(item) is not type(defaults[name])
        }
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    return value


class _BadError(Exception):
    """What a value is instead of what its field declares."""


Reader = Callable[[Any, list[str]], Any]


def decode(kind: NoteKind, data: bytes, warnings: list[str]) -> Any:
    """Return the record that JSON gives; what it does not give right has its default and a line in `warnings`."""
    try:
        value = json.loads(data.decode("utf-8", "replace"))
    except (ValueError, RecursionError) as error:
        warnings.append(f"note {kind.name!r} is no JSON: {str(error)[:80]}")
        return kind.record()
    found: list[str] = []
    try:
        record = _reader(kind.record)(value, found)
    except _BadError as bad:
        found.append(f"expected {bad}")
        record = kind.record()
    warnings += [f"note {kind.name!r}: {text}" for text in found[:3]]
    return record


@cache
def _reader(hint: Any) -> Reader:
    """Return the function that takes a value of JSON to one of a type."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _reader(arguments[0])
    if origin in (Union, UnionType):
        (inner,) = (each for each in arguments if each is not NoneType)
        some = _reader(inner)
        return lambda value, found: None if value is None else some(value, found)
    if origin is tuple:
        return _tuple_reader(arguments)
    if origin is dict:
        each = _reader(arguments[1])
        return lambda value, found: {
            _text(key, found): each(item, found) for key, item in _need(value, dict, "an object").items()
        }
    if hasattr(hint, "_fields"):
        return _record_reader(hint)
    return {int: _int, float: _float, str: _text, bool: lambda value, _: _need(value, bool, "true or false")}[hint]


def _tuple_reader(arguments: tuple[Any, ...]) -> Reader:
    if arguments[-1] is Ellipsis:
        each = _reader(arguments[0])
        if arguments[0] is int:
            return _ints
        return lambda value, found: tuple(each(item, found) for item in _need(value, list, "a list"))
    parts = tuple(map(_reader, arguments))

    def read(value: Any, found: list[str]) -> tuple[Any, ...]:
        if len(_need(value, list, "a list")) != len(parts):
            raise _BadError(f"{len(parts)} items")
        return tuple(part(item, found) for part, item in zip(parts, value, strict=True))

    return read


def _record_reader(record: Any) -> Reader:
    parts = {name: _reader(hint) for name, hint in get_type_hints(record).items()}

    def read(value: Any, found: list[str]) -> Any:
        values = {}
        for name, item in _need(value, dict, "an object").items():
            part = parts.get(name)
            if part is None:
                continue
            try:
                values[name] = part(item, found)
            except _BadError as bad:
                found.append(f"{name}: expected {bad}")
        return record(**values)

    return read


def _need(value: Any, kind: type, name: str) -> Any:
    if type(value) is not kind:
        raise _BadError(f"{name}, found {type(value).__name__}")
    return value


def _int(value: Any, _: list[str]) -> int:
    if type(value) is not int or not _LOW <= value <= _HIGH:
        raise _BadError(f"an integer of 64 bits, found {str(type(value).__name__)[:40]}")
    return value


def _ints(value: Any, found: list[str]) -> tuple[int, ...]:
    return tuple(_int(item, found) for item in _need(value, list, "a list"))


def _float(value: Any, _: list[str]) -> float:
    if type(value) not in (int, float) or not abs(value) < 1e300:
        raise _BadError(f"a number, found {type(value).__name__}")
    return float(value)


def _text(value: Any, _: list[str]) -> str:
    text = str(_need(value, str, "text"))
    if text.isprintable():
        return text
    # JSON can name half a surrogate pair, which no file can hold, and what would take command of a terminal.
    return text.translate(_CONTROLS).encode("utf-8", "replace").decode()


def fields_of(record: type) -> Iterator[FieldDoc]:
    """Yield the fields of a record with the names of their types and their documentation."""
    for name, hint in get_type_hints(record, include_extras=True).items():
        inner, doc = get_args(hint) if get_origin(hint) is Annotated else (hint, "")
        yield FieldDoc(name, _type_name(inner), doc)


def _type_name(hint: Any) -> str:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return " or ".join(_type_name(each) for each in arguments if each is not NoneType) + " or null"
    if origin is tuple and arguments[-1] is Ellipsis:
        return f"list of {_type_name(arguments[0])}"
    if origin is tuple:
        return "[" + ", ".join(map(_type_name, arguments)) + "]"
    if origin is dict:
        return f"object of {_type_name(arguments[1])}"
    names = {int: "integer", str: "text", float: "number", bool: "truth value"}
    return names.get(hint) or str(hint.__name__)
