"""JSON on indented lines, as `json.dumps(value, indent=...)` writes it; that one takes every element through Python."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
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
    # Leaves are written where they stand: a call for each would be most of a file's cost.
    leaf = _LEAVES.get(type(value))
    if leaf is not None:
        return leaf(value)
    inner = line + step
    parts: list[str] = []
    if isinstance(value, list | tuple):
        if not value:
            return "[]"
        kinds = set(map(type, value))
        leaf = _LEAVES.get(kinds.pop()) if len(kinds) == 1 else None
        if leaf is not None:
            parts += map(leaf, value)
        else:
            parts += [_text(each, inner, step, sort_keys) for each in value]
        return f"[{inner}{f',{inner}'.join(parts)}{line}]"
    if isinstance(value, dict):
        if not value:
            return "{}"
        for key, each in sorted(value.items()) if sort_keys else value.items():
            leaf = _LEAVES.get(type(each))
            name = encode_basestring_ascii(key) if type(key) is str else _key(key)
            parts.append(f"{name}: {_text(each, inner, step, sort_keys) if leaf is None else leaf(each)}")
        return f"{{{inner}{f',{inner}'.join(parts)}{line}}}"
    return json.dumps(value)


def _key(key: object) -> str:
    """Return a number or the like as a key, as the standard library writes it."""
    only: Mapping[Any, None] = {key: None}
    return json.dumps(only)[1:].rpartition(": null}")[0]
