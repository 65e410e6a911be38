"""What the arguments of requests are: checked once, where they come in, so that no request meets another kind.

Kinds are those of the protocol's specification, by name: no two requests give one name to different kinds.
"""

from __future__ import annotations

from typing import Any

from neurontools.debugger import UsageError

__all__ = ["checked"]

_LARGE = 1 << 53  # what JSON's numbers hold exactly

# fmt: off
_NUMBERS = frozenset((
    "column", "count", "endColumn", "endLine", "frameId", "instructionCount", "instructionOffset", "levels", "line",
    "offset", "sourceReference", "start", "startFrame", "targetId", "threadId", "variablesReference",
))
_TEXTS = frozenset((
    "accessType", "condition", "context", "data", "dataId", "expression", "filter", "filterId", "granularity",
    "hitCondition", "instructionReference", "logMessage", "memoryReference", "mode", "name", "path", "program", "text",
    "value",
))
_TRUTHS = frozenset(("allowPartial", "linesStartAt1", "noDebug", "stopOnEntry"))
# fmt: on
_OBJECTS = frozenset(("source",))
_LISTS = {"breakpoints": dict, "filterOptions": dict, "filters": str}
_CALLED = {int: "a number", str: "a text", dict: "an object", list: "a list", bool: "true or false"}


def checked(arguments: object, where: str = "") -> dict[str, Any]:
    """Return the arguments of a request without those that are null; UsageError names one of another kind."""
    if not isinstance(arguments, dict):
        raise _other(where or "arguments", dict, arguments)
    return {name: _checked(name, value, where) for name, value in arguments.items() if value is not None}


def _checked(name: str, value: Any, where: str) -> Any:
    full = f"{where}.{name}" if where else name
    if name in _NUMBERS:
        if type(value) is float and value.is_integer():  # some clients know no other numbers
            value = int(value)
        if type(value) is not int:
            raise _other(full, int, value)
        if abs(value) > _LARGE:
            raise UsageError(f"{full} is {value}; at most {_LARGE}")
    elif name in _TEXTS:
        _require(full, str, value)
    elif name in _TRUTHS:
        _require(full, bool, value)
    elif name in _OBJECTS:
        return checked(value, full)
    elif name in _LISTS:
        _require(full, list, value)
        kind = _LISTS[name]
        for number, one in enumerate(value):
            _require(f"{full}[{number}]", kind, one)
        if kind is dict:
            return [checked(one, f"{full}[{number}]") for number, one in enumerate(value)]
    return value


def _require(name: str, kind: type, value: object) -> None:
    if not isinstance(value, kind):
        raise _other(name, kind, value)


def _other(name: str, kind: type, value: object) -> UsageError:
    shown = repr(value)
    return UsageError(f"{name} is {_CALLED[kind]}, not {shown if len(shown) <= 40 else shown[:39] + '…'}")
