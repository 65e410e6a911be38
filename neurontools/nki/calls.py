"""Calls of `nl` and `nisa` that do not fit their parameters: what the kernel may have meant."""

from __future__ import annotations

import inspect
import linecache
import os
import re
from collections.abc import Callable
from itertools import islice
from types import FrameType, TracebackType
from typing import Any

import numpy as np

import formats
from neurontools import builder
from neurontools.nki import isa, language
from neurontools.nki.errors import NkiValidationError
from neurontools.nki.operators import Operator
from neurontools.nki.tensor import NkiTensor
from neurontools.nki.tracer import Tracer, chain_of, is_ours
from neurontools.nki.unknown import meant

__all__ = ["PYTHON_ERRORS", "CallError", "explained"]

PYTHON_ERRORS = (TypeError, ValueError, AttributeError, ArithmeticError, LookupError)
"""What Python and NumPy raise inside of a call that is given what it cannot take."""

# how Python words a call with missing, surplus or unknown arguments
_MISFIT = re.compile(r"(?:\w+\.)*(\w+)\(\) (?:missing|got|takes) ")
_DOTTED = re.compile(r"(\w+(?:\.\w+)*)\(")
# what calls of the front end are carried out with
_BELOW = tuple(os.path.join(folder, "") for one in (np, formats, builder) for folder in one.__path__)
_MOST_TOLD = 60  # characters of an argument
_NUMBER = re.compile(r"\d+")
_UNEXPECTED = re.compile(r"unexpected keyword argument '(\w+)'")
_OLD_KEYWORDS = {
    "mask": "take slices of the operands, nl.where or nisa.tensor_copy_predicated",
    "dtype": "the result has the type of dst",
}


class CallError(NkiValidationError, TypeError):
    """A call that does not fit its parameters; the message shows how it is written."""


def explained(t: Tracer, error: Exception) -> CallError | None:
    """Return what to say of an error of Python's about a call of ours in the kernel; None for any other error."""
    places, inside = _places(error.__traceback__)
    if not places:
        return None
    text = _carried_out(error, inside) if inside else _misfit(error) if isinstance(error, TypeError) else None
    if text is None:
        return None
    return CallError(f"{text}, on {t.target.name} ({t.limits.generation}) at {chain_of(places)}")


def _misfit(error: TypeError) -> str | None:
    """Return what to say of arguments that are missing, surplus or unknown."""
    found = _MISFIT.match(str(error))
    if found is None:
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
    return text


def _carried_out(error: Exception, inside: list[FrameType]) -> str:
    """Return what to say of a call that fails while it is carried out, on arguments of kinds that it does not take."""
    said = f"{type(error).__name__}: {error}".replace("\n", " ")
    for frame in inside:
        code = frame.f_code
        module = "nisa" if ".nki.isa" in frame.f_globals["__name__"] else "nl"
        function: Any = frame.f_globals.get(code.co_name)
        public = inspect.isfunction(function) and not code.co_name.startswith("_")
        if not public or inspect.unwrap(function).__code__ is not code:
            continue
        parameters = inspect.signature(function).parameters
        given = [f"{name}={_told(frame.f_locals[name])}" for name, one in parameters.items()
                 if name in frame.f_locals and _is_told(frame.f_locals[name], one)]  # fmt: skip
        name, shown = f"{module}.{code.co_name}", ", ".join(map(_shown, parameters.values()))
        return f"{name} does not take {', '.join(given) or 'this'} ({said}); it is {name}({shown})"
    return said


def _is_told(value: Any, parameter: inspect.Parameter) -> bool:
    """Return whether an argument may be the one that a call does not take: no tile, no operator, no default."""
    return value is not parameter.default and not isinstance(value, (NkiTensor, Operator))


def _told(value: Any) -> str:
    told = f"an array of shape {value.shape}" if isinstance(value, np.ndarray) and value.ndim else repr(value)
    return told if len(told) <= _MOST_TOLD else f"{told[:_MOST_TOLD]}..."


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


def _places(raised: TracebackType | None) -> tuple[list[str], list[FrameType]]:
    """Return the lines of the kernel's own code, the innermost first, and the frames of ours inside of it, in order.

    What they are carried out with, NumPy among it, goes with them. No line where it is the kernel that asked NumPy.
    """
    places: list[str] = []
    inside: list[FrameType] = []
    asked = False
    while raised is not None:
        frame = raised.tb_frame
        file = frame.f_code.co_filename
        if is_ours(file):
            inside.append(frame)
        elif file.startswith(_BELOW):
            asked = asked or not inside
        else:
            places.append(f"{file}:{raised.tb_lineno}")
            inside, asked = [], False
        raised = raised.tb_next
    return ([] if asked else places[::-1]), inside
