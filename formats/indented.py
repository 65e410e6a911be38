"""JSON on indented lines, as `json.dumps(value, indent=...)` writes it; that one takes every element through Python."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from json.encoder import encode_basestring_ascii
from typing import Any

__all__ = ["indented_json"]

_LEAVES: dict[type, Callable[[Any], str]] = {
    str: encode_basestring_ascii,
    int: int.__repr__,
    bool: lambda value: "true" if value else "false",
    type(None): lambda value: "null",
}


def indented_json(value: object, indent: int, sort_keys: bool = False) -> str:
    """Return the text that `json.dumps(value, indent=indent, sort_keys=sort_keys)` gives; errors are the same."""
    return _text(value, "\n", " " * indent, sort_keys)


def _text(value: Any, line: str, step: str, sort_keys: bool) -> str:
    leaf = _LEAVES.get(type(value))
    if leaf is not None:
        return leaf(value)
    inner = line + step
    if isinstance(value, list | tuple):
        if not value:
            return "[]"
        return f"[{inner}{f',{inner}'.join(_elements(value, inner, step, sort_keys))}{line}]"
    if isinstance(value, dict):
        if not value:
            return "{}"
        items = sorted(value.items()) if sort_keys else value.items()
        pairs = [f"{_key(key)}: {_text(each, inner, step, sort_keys)}" for key, each in items]
        return f"{{{inner}{f',{inner}'.join(pairs)}{line}}}"
    return json.dumps(value)


def _elements(value: Sequence[Any], line: str, step: str, sort_keys: bool) -> Sequence[str]:
    kinds = set(map(type, value))
    if len(kinds) == 1 and (leaf := _LEAVES.get(kinds.pop())) is not None:
        return list(map(leaf, value))
    return [_text(each, line, step, sort_keys) for each in value]


def _key(key: object) -> str:
    if type(key) is str:
        return encode_basestring_ascii(key)
    # Numbers and the like as keys: as the standard library writes them.
    only: Mapping[Any, None] = {key: None}
    return json.dumps(only)[1:].rpartition(": null}")[0]
