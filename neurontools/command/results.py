"""Typed results of commands as plain data for JSON, and as the JSON Schema that the data fits.

A result is a NamedTuple (or a dataclass) whose annotations say all that a reader of the JSON needs:

    class QueueRow(NamedTuple):
        name: str
        blocks: Annotated[int, "descriptor blocks of the engine's JSON member"]
        fault: Annotated[FaultRow | None, LEFT_OUT]          # no key at all where there is none

A string in `Annotated` is the key's description. Result types are looked at when a schema is asked for, never when a
command runs, so their modules import at run time whatever their annotations name.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from math import isfinite
from pathlib import PurePath
from typing import Annotated, Any, Final, Literal, NewType, Union, get_args, get_origin, get_type_hints

__all__ = ["LEFT_OUT", "document_schema", "plain", "schema_of"]

_DRAFT = "https://json-schema.org/draft/2020-12/schema"
_SIMPLE: dict[Any, dict[str, Any]] = {
    str: {"type": "string"}, int: {"type": "integer"}, float: {"type": "number"}, bool: {"type": "boolean"},
    None: {"type": "null"}, type(None): {"type": "null"}, Any: {}, object: {}, bytes: {"type": "string"},
    dict: {"type": "object"}, list: {"type": "array"}, tuple: {"type": "array"},
}  # fmt: skip
_OBJECT = {"type": "object", "additionalProperties": False}


class _LeftOut:
    """Marks a key that a document does not have where the value is None."""

    def __repr__(self) -> str:
        return "LEFT_OUT"


LEFT_OUT: Final = _LeftOut()
_left_out: dict[type, frozenset[str]] = {}


def plain(value: Any) -> Any:
    """Return a value as JSON has it: records as objects, enumerations by value, bytes as hex, arrays as lists."""
    if value is None or isinstance(value, str | bool):
        return value
    if isinstance(value, Enum):
        return plain(value.value)
    if isinstance(value, int):
        return value
    if isinstance(value, float):
        return value if isfinite(value) else str(value)  # JSON has no infinities and no NaN
    fields = field_names(type(value))
    if fields is not None:
        skipped = _skipped(type(value))
        return {name: plain(item) for name in fields
                if (item := getattr(value, name)) is not None or name not in skipped}  # fmt: skip
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, bytes | bytearray):
        return value.hex()
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, Iterable) and not isinstance(value, PurePath):
        return [plain(item) for item in value]
    return str(value)


def field_names(kind: type) -> tuple[str, ...] | None:
    """Return the fields of a NamedTuple or dataclass, None of any other type."""
    if issubclass(kind, tuple):
        return getattr(kind, "_fields", None)
    declared = getattr(kind, "__dataclass_fields__", None)
    return None if declared is None else tuple(declared)


def _skipped(kind: type) -> frozenset[str]:
    """Return the fields whose keys are left out where they are None; read off the annotations' text, once a type."""
    found = _left_out.get(kind)
    if found is None:
        found = _left_out[kind] = frozenset(
            name for base in kind.__mro__ for name, hint in inspect.get_annotations(base).items()
            if "LEFT_OUT" in str(hint))  # fmt: skip
    return found


def schema_of(hint: Any) -> dict[str, Any]:
    """Return the JSON Schema of a type; TypeError for what has none."""
    if isinstance(hint, NewType):
        return schema_of(hint.__supertype__)
    try:
        if hint in _SIMPLE:
            return dict(_SIMPLE[hint])
    except TypeError:
        pass  # an annotation that cannot be hashed is none of the simple ones
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        described = schema_of(arguments[0])
        texts = [item for item in arguments[1:] if isinstance(item, str)]
        return {**described, "description": " ".join(texts)} if texts else described
    if origin is Literal:
        return {"enum": list(arguments)}
    if origin in (Union, types.UnionType):
        return _union([schema_of(item) for item in arguments])
    if origin is tuple and not (len(arguments) == 2 and arguments[1] is Ellipsis):
        kinds = [schema_of(item) for item in arguments]
        return {"type": "array", "items": _union(kinds)} if kinds else {"type": "array"}
    if origin in (list, tuple, Sequence, Iterable, set, frozenset):
        return {"type": "array", "items": schema_of(arguments[0])}
    if origin in (dict, Mapping):
        return {"type": "object", "additionalProperties": schema_of(arguments[1])}
    if isinstance(hint, type):
        return _of_class(hint)
    raise TypeError(f"no JSON Schema for {hint!r}")


def _of_class(kind: type) -> dict[str, Any]:
    names = field_names(kind)
    if names is not None:
        hints = get_type_hints(kind, include_extras=True)
        skipped = _skipped(kind)
        properties = {name: schema_of(_present(hints[name]) if name in skipped else hints[name]) for name in names}
        return {**_OBJECT, "properties": properties, "required": [name for name in names if name not in skipped]}
    if issubclass(kind, Enum):
        return {"enum": [plain(member) for member in kind]}
    if issubclass(kind, PurePath):
        return {"type": "string"}
    raise TypeError(f"no JSON Schema for {kind.__qualname__}: neither a record nor a plain type")


def _present(hint: Any) -> Any:
    """Return the type of a field whose key is left out where it is None: without that None."""
    kind, *notes = get_args(hint)
    kinds = [item for item in get_args(kind) if item is not type(None)]
    return Annotated[Union[tuple(kinds)] if kinds else kind, *notes]  # noqa: UP007  the kinds are known here only


def _union(kinds: list[dict[str, Any]]) -> dict[str, Any]:
    """Return what fits any of some schemas, as short as their kinds allow."""
    distinct = [kind for number, kind in enumerate(kinds) if kind not in kinds[:number]]
    if len(distinct) == 1:
        return distinct[0]
    if {} in distinct:
        return {}
    rest = [kind for kind in distinct if kind != {"type": "null"}]
    if len(rest) == 1 and len(distinct) == 2 and isinstance(rest[0].get("type"), str):
        return {**rest[0], "type": [rest[0]["type"], "null"]}
    if all(set(kind) == {"type"} and isinstance(kind["type"], str) for kind in distinct):
        return {"type": [kind["type"] for kind in distinct]}
    return {"anyOf": distinct}


def document_schema(command: str, result: Any) -> dict[str, Any]:
    """Return the JSON Schema of what `neurontools COMMAND --json` prints, errors included."""
    text = {"type": "string"}
    error = {
        "type": "object",
        "properties": {
            "kind": {**text, "description": "a word for programs"}, "message": text, "path": {},
            "offset": {"type": ["integer", "null"]}, "field": {}, "expected": {}, "got": {},
        },
        "required": ["kind", "message"],
        "additionalProperties": False,
    }  # fmt: skip
    tool = {"type": "object", "properties": {"name": {"const": "neurontools"}, "version": text},
            "required": ["name", "version"], "additionalProperties": False}  # fmt: skip
    return {
        "$schema": _DRAFT,
        "title": f"neurontools {command} --json",
        "type": "object",
        "properties": {
            "schema": {"const": f"neurontools.{command.replace(' ', '.')}/1"},
            "tool": tool,
            "inputs": {"type": "object"},
            "exit": {"type": "integer", "description": "the exit status"},
            "warnings": {"type": "array", "items": text},
            "result": schema_of(result),
            "error": error,
        },
        "required": ["schema", "tool", "inputs", "exit", "warnings"],
        "additionalProperties": False,
    }
