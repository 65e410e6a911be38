"""Calls of `nl` and `nisa` that do not fit their parameters: what the kernel may have meant."""

from __future__ import annotations

import inspect
import linecache
import re
from collections.abc import Callable
from itertools import islice
from types import TracebackType
from typing import Any

from neurontools.nki import isa, language
from neurontools.nki.errors import NkiValidationError
from neurontools.nki.operators import Operator
from neurontools.nki.tracer import Tracer, chain_of, is_ours
from neurontools.nki.unknown import meant

__all__ = ["CallError", "explained"]

# how Python words a call with missing, surplus or unknown arguments
_MISFIT = re.compile(r"(?:\w+\.)*(\w+)\(\) (?:missing|got|takes) ")
_DOTTED = re.compile(r"(\w+(?:\.\w+)*)\(")
_NUMBER = re.compile(r"\d+")
_UNEXPECTED = re.compile(r"unexpected keyword argument '(\w+)'")
_OLD_KEYWORDS = {
    "mask": "take slices of the operands, nl.where or nisa.tensor_copy_predicated",
    "dtype": "the result has the type of dst",
}


class CallError(NkiValidationError, TypeError):
    """A call that does not fit its parameters; the message shows how it is written."""


def explained(t: Tracer, error: TypeError) -> CallError | None:
    """Return what to say of an error of Python's about a call of ours in the kernel; None for any other error."""
    places = _places(error.__traceback__)
    found = _MISFIT.match(str(error))
    if found is None or not places:
        return None
    said = str(error)
    called = _called(found[1])
    if found[1] == "__call__":  # Python names the class of an operator, the kernel its instance
        called = _operator(error.__traceback__)
        counted = _NUMBER.sub(lambda number: str(int(number[0]) - 1), said.partition("()")[2])  # without the operator
        said = f"{called[0].rpartition('.')[2]}(){counted if 'takes' in said else said.partition('()')[2]}" if (
            called is not None) else said  # fmt: skip
    if called is None:
        return None
    name, function = called
    parameters = inspect.signature(function).parameters
    text = f"{name.partition('.')[0]}.{said}; it is {name}({', '.join(map(_shown, parameters.values()))})"
    unexpected = _UNEXPECTED.search(str(error))
    if unexpected is not None and unexpected[1] in _OLD_KEYWORDS and unexpected[1] not in parameters:
        text += f"; {unexpected[1]}= is of the first generation (neuronxcc.nki): {_OLD_KEYWORDS[unexpected[1]]}"
    elif unexpected is not None:
        text += meant(unexpected[1], parameters)
    elif "dst" in parameters:
        text += "; it writes into dst and returns no tile, as calls of the first generation (neuronxcc.nki) do"
    return CallError(f"{text}, on {t.target.name} ({t.limits.generation}) at {chain_of(places)}")


def _called(name: str) -> tuple[str, Callable[..., Any]] | None:
    for short, module in (("nisa", isa), ("nl", language)):
        function = vars(module).get(name)
        if inspect.isfunction(function) and function.__name__ == name:
            return f"{short}.{name}", function
    return None


def _operator(raised: TracebackType | None) -> tuple[str, Callable[..., Any]] | None:
    """Return the operator of `nl` that the innermost line of the kernel calls, None where that is not to be told."""
    if raised is None:
        return None
    while raised.tb_next is not None:
        raised = raised.tb_next
    frame = raised.tb_frame
    positions = next(islice(frame.f_code.co_positions(), raised.tb_lasti // 2, None), None)
    if positions is None or None in positions or positions[0] != positions[1]:
        return None
    line = linecache.getline(frame.f_code.co_filename, positions[0] or 0).encode()[positions[2] : positions[3]]
    names = _DOTTED.match(line.decode(errors="replace"))
    if names is None:
        return None
    first, *rest = names[1].split(".")
    value = frame.f_locals.get(first, frame.f_globals.get(first))
    for name in rest:
        value = vars(value).get(name) if hasattr(value, "__dict__") else None
    return (f"nl.{value.name}", value) if isinstance(value, Operator) and callable(value) else None


def _shown(parameter: inspect.Parameter) -> str:
    return parameter.name if parameter.default is parameter.empty else f"{parameter.name}="


def _places(raised: TracebackType | None) -> list[str]:
    """Return the lines of the kernel's own code, the innermost first; none where the error is one inside of ours."""
    places, ours = [], True
    while raised is not None:
        file = raised.tb_frame.f_code.co_filename
        ours = is_ours(file)
        if not ours:
            places.append(f"{file}:{raised.tb_lineno}")
        raised = raised.tb_next
    return [] if ours else places[::-1]
