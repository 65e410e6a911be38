"""Typed access to JSON members: a value of the declared kind, or one FormatError that names member and key."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from formats.errors import FormatError

__all__ = ["Fields", "load", "load_value", "printable"]


class _TwiceError(Exception):
    """A key that stands twice: which of the two values other readers take is not known."""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        counts = Counter(key for key, _ in pairs)
        raise _TwiceError(next(key for key, count in counts.items() if count > 1))
    return found


_DECODER = json.JSONDecoder(object_pairs_hook=_object)


def load_value(data: bytes, where: str) -> object:
    """Return whatever JSON there is in `data`; FormatError for text that is not JSON."""
    try:
        # as `json.loads` does, which makes a decoder each time
        return _DECODER.decode(data.decode(json.detect_encoding(data), "surrogatepass"))
    except _TwiceError as error:
        raise FormatError("key stands twice in one object", path=where, field=printable(str(error))[:80]) from None
    except RecursionError:
        raise FormatError("JSON is nested too deeply", path=where) from None
    except ValueError as error:  # also text that is not UTF-8, and integers beyond Python's digit limit
        raise FormatError(f"not JSON ({error})", path=where) from None


def load(data: bytes, where: str) -> Fields:
    """Return the JSON object in `data`.

    Raises FormatError for text that is not JSON, and for JSON that is not an object.
    """
    value = load_value(data, where)
    if not isinstance(value, dict):
        raise FormatError("JSON is not an object", path=where, got=type(value).__name__)
    return Fields(value, where)


class Fields:
    """A JSON object whose keys are read with their kind checked; `where` names it in errors."""

    __slots__ = ("raw", "where")

    def __init__(self, raw: dict[str, Any], where: str) -> None:
        self.raw, self.where = raw, where

    def __contains__(self, key: str) -> bool:
        return key in self.raw

    def fail(self, key: str, expected: str) -> FormatError:
        """Return the error that says what stands under `key`."""
        value = self.raw.get(key)
        got = "nothing" if key not in self.raw else type(value).__name__
        if isinstance(value, str | int | float):
            got += f" {str(value)[:40]!r}"
        return FormatError("wrong value", path=self.where, field=key, expected=expected, got=got)

    def text(self, key: str, default: str | None = None) -> str:
        """Return a string; without a default the key must be there."""
        value = self.raw.get(key, default)
        if not isinstance(value, str):
            raise self.fail(key, "a string")
        return printable(value)

    def optional_text(self, key: str) -> str | None:
        """Return a string, or None where the key is absent or null."""
        return None if self.raw.get(key) is None else self.text(key)

    def integer(self, key: str, default: int | None = None) -> int:
        """Return an integer; without a default the key must be there."""
        value = self.raw.get(key, default)
        if not isinstance(value, int) or isinstance(value, bool):
            raise self.fail(key, "an integer")
        return value

    def counted(self, key: str) -> int:
        """Return an integer that counts or numbers something: from 0, in 63 bits."""
        value = self.integer(key)
        if not 0 <= value < 1 << 63:
            raise self.fail(key, "a number from 0 that 63 bits hold")
        return value

    def optional_integer(self, key: str) -> int | None:
        """Return an integer, or None where the key is absent or null."""
        return None if self.raw.get(key) is None else self.integer(key)

    def flag(self, key: str) -> bool:
        """Return true or false, also where it is written as 1 or 0; false where the key is absent or null."""
        value = self.raw.get(key)
        if value not in (None, False, True, 0, 1) or isinstance(value, float):
            raise self.fail(key, "true or false")
        return bool(value)

    def truth(self, key: str) -> bool:
        """Return true or false; 1 and 0 do not pass for them."""
        value = self.raw.get(key)
        if not isinstance(value, bool):
            raise self.fail(key, "true or false")
        return value

    def one_of(self, key: str, known: tuple[str, ...]) -> str:
        """Return one of some words."""
        value = self.raw.get(key)
        if value not in known:
            raise self.fail(key, " or ".join(known))
        return str(value)

    def shape(self, key: str) -> tuple[int, ...]:
        """Return the extents of an array: up to 32 of them, none negative."""
        found = self.integers(key)
        if len(found) > 32 or min(found, default=0) < 0 or max(found, default=0) >= 1 << 63:
            raise self.fail(key, "up to 32 extents from 0")
        return found

    def finite(self, key: str) -> float:
        """Return a number that can be calculated with: finite, and no larger than any measurement is."""
        value = self.number(key)
        if not abs(value) < 1e18:
            raise self.fail(key, "a finite number")
        return value

    def number(self, key: str, default: float | None = None) -> float:
        """Return a finite number, as a float."""
        value = self.raw.get(key, default)
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise self.fail(key, "a number")
        # Python reads NaN and Infinity, which JSON does not have, and integers that no float holds.
        if not abs(value) <= sys.float_info.max:
            raise self.fail(key, "a finite number")
        return float(value)

    def integers(self, key: str) -> tuple[int, ...]:
        """Return a list of integers; empty where the key is absent or null."""
        values = self.raw.get(key)
        if values is None:
            return ()
        if not isinstance(values, list) or any(not isinstance(v, int) or isinstance(v, bool) for v in values):
            raise self.fail(key, "a list of integers")
        return tuple(values)

    def texts(self, key: str) -> tuple[str, ...]:
        """Return a list of strings; empty where the key is absent or null."""
        values = self.raw.get(key)
        if values is None:
            return ()
        if not isinstance(values, list) or any(not isinstance(v, str) for v in values):
            raise self.fail(key, "a list of strings")
        return tuple(printable(v) for v in values)

    def array(self, key: str) -> list[Any]:
        """Return a list of anything; empty where the key is absent."""
        values = self.raw.get(key, [])
        if not isinstance(values, list):
            raise self.fail(key, "a list")
        return values

    def objects(self, key: str) -> Iterator[Fields]:
        """Yield the objects of a list; none where the key is absent."""
        for number, item in enumerate(self.array(key)):
            yield self._object(item, f"{key}[{number}]")

    def object(self, key: str) -> Fields:
        """Return an object; an empty one where the key is absent."""
        return self._object(self.raw.get(key, {}), key)

    def named_objects(self, key: str) -> Iterator[tuple[str, Fields]]:
        """Yield name and object of the mapping under a key; none where the key is absent."""
        return self.object(key).items()

    def items(self) -> Iterator[tuple[str, Fields]]:
        """Yield name and object of this mapping's entries."""
        for name, item in self.raw.items():
            yield printable(name), self._object(item, name)

    def _object(self, item: Any, key: str) -> Fields:
        if not isinstance(item, dict):
            raise FormatError(
                "wrong value", path=self.where, field=printable(key), expected="an object", got=type(item).__name__
            )
        return Fields(item, f"{self.where}: {printable(key)}")

    def rest(self, *known: str) -> Mapping[str, Any]:
        """Return the entries whose keys are not in `known`: what this reader has no name for."""
        return {key: value for key, value in self.raw.items() if key not in known}


def printable(text: str) -> str:
    """Return `text` with everything escaped that is not for printing: no file writes to a terminal's controls."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)
