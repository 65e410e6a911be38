"""Calls of `nl` and `nisa` that do not fit their parameters: what the kernel may have meant."""

from __future__ import annotations

import builtins
import inspect
import linecache
import os
import re
import sys
from collections.abc import Callable, Mapping
from itertools import islice
from types import FrameType, TracebackType
from typing import Any

import numpy as np

import formats
from neurontools import builder
from neurontools.nki.errors import NkiValidationError
from neurontools.nki.operators import Operator
from neurontools.nki.tensor import NkiTensor
from neurontools.nki.tracer import Tracer, chain_of, is_ours
from neurontools.nki.unknown import meant, of_tensor

__all__ = ["PYTHON_ERRORS", "CallError", "explained"]

PYTHON_ERRORS = (TypeError, ValueError, AttributeError, ArithmeticError, LookupError)
"""What Python and NumPy raise inside of a call that is given what it cannot take."""

# how Python words a call with missing, surplus or unknown arguments
_MISFIT = re.compile(r"(?:\w+\.)*(\w+)\(\) (?:missing|got|takes) ")
_DOTTED = re.compile(r"(\w+(?:\.\w+)*)\(")
# what calls of the front end are carried out with
_BELOW = tuple(os.path.join(folder, "") for one in (np, formats, builder) for folder in one.__path__)
_PLAIN = (bool, int, float, str, list, tuple)  # what kernels get for arrays that the caller forgot to make
_MOST_TOLD = 60  # characters of an argument
_NUMBER = re.compile(r"\d+")
_PRESENT, _FIRST = "neurontools.nki", "neurontools.neuronxcc.nki"
_PARTS = ("nisa", "isa"), ("nl", "language")
_SUGGESTION = re.compile(r"\. Did you mean '\w+'\?$")  # which Python adds from 3.13 on; ours knows more
_UNEXPECTED = re.compile(r"unexpected keyword argument '(\w+)'")
_OLD_KEYWORDS = {
    "mask": "take slices of the operands, nl.where or nisa.tensor_copy_predicated",
    "dtype": "the result has the type of dst",
}


class CallError(NkiValidationError, TypeError):
    """A call that does not fit its parameters; the message shows how it is written."""


def explained(t: Tracer, error: Exception, arguments: Mapping[str, Any]) -> NkiValidationError | None:
    """Return what to say of an error of Python's about a call or tensor of ours in the kernel; None for any other.

    `arguments` are those of the kernel, by name.
    """
    lacking = _lacking(error)
    if isinstance(lacking, NkiValidationError):
        return lacking
    places, inside = _places(error.__traceback__)
    if not places:
        return None
    # A call of the first generation goes through what looks at its keywords, which is where Python refuses it.
    called = not inside or inside[-1].f_code.co_name == "strict"
    text = _misfit(error) if called and isinstance(error, TypeError) else None
    if text is None and (inside or lacking is not None):
        text = _carried_out(lacking or error, inside)
    elif text is None and isinstance(error, AttributeError):
        text = _no_array(error, arguments)
    if text is None:
        return None
    return CallError(f"{text}, on {t.target.name} ({t.limits.generation}) at {chain_of(places)}")


def _lacking(error: Exception) -> AttributeError | None:
    """Return what to say of an attribute that a tensor lacks, None for any other error."""
    if not isinstance(error, AttributeError) or type(error.obj) is not NkiTensor:
        return None
    name = error.name
    if not name or str(error) != f"'NkiTensor' object has no attribute '{name}'":
        return None
    places, raised = [], error.__traceback__
    while raised is not None:
        file = raised.tb_frame.f_code.co_filename
        if not is_ours(file):
            places.append(f"{file}:{raised.tb_lineno}")
        raised = raised.tb_next
    told = of_tensor(error.obj.name, name, dir(NkiTensor), place=chain_of(places[::-1]) if places else None)
    return told.with_traceback(error.__traceback__)


def _no_array(error: AttributeError, arguments: Mapping[str, Any]) -> str | None:
    """Return what to say of an argument that the kernel takes for a tensor, and that is none."""
    if type(error.obj) not in _PLAIN or not hasattr(NkiTensor, error.name or ""):
        return None
    kind = type(error.obj).__name__
    names = [name for name, value in arguments.items() if type(value) is type(error.obj) and value == error.obj]
    if not names:
        return None
    return f"argument {names[0]} is of type {kind}, no array: for a tensor pass np.asarray(..., dtype=...)"


def _misfit(error: TypeError) -> str | None:
    """Return what to say of arguments that are missing, surplus or unknown."""
    found = _MISFIT.match(str(error))
    if found is None:
        return None
    said = _SUGGESTION.sub("", str(error))
    packages = _packages(error.__traceback__)
    called = _called(found[1], packages)
    if found[1] == "__call__":  # Python names the class of an operator, the kernel its instance
        called = _operator(error.__traceback__)
        counted = _NUMBER.sub(lambda number: str(int(number[0]) - 1), said.partition("()")[2])  # without the operator
        said = f"{called[0].rpartition('.')[2]}(){counted if 'takes' in said else said.partition('()')[2]}" if (
            called is not None) else said  # fmt: skip
    if called is None:
        return None
    name, function = called
    parameters = inspect.signature(function).parameters
    text = f"{name.partition('.')[0]}.{said}; it is {name}({_shown(function)})"
    unexpected = _UNEXPECTED.search(str(error))
    if len(packages) > 1:
        text += meant(unexpected[1], parameters) if unexpected is not None else ""
    elif unexpected is not None and unexpected[1] in _OLD_KEYWORDS and unexpected[1] not in parameters:
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
        found = _public(frame)
        if found is None:
            continue
        name, function = found
        parameters = inspect.signature(function).parameters
        given = [f"{key}={_told(frame.f_locals[key])}" for key, one in parameters.items()
                 if key in frame.f_locals and _is_told(frame.f_locals[key], one)]  # fmt: skip
        return f"{name} does not take {', '.join(given) or 'this'} ({said}); it is {name}({_shown(function)})"
    return said


def _public(frame: FrameType) -> tuple[str, Callable[..., Any]] | None:
    """Return the function of `nl` or `nisa`, of either generation, that a frame carries out, with its name."""
    for package in (_PRESENT, _FIRST):
        for short, part in _PARTS:
            function = vars(sys.modules.get(f"{package}.{part}", builtins)).get(frame.f_code.co_name)
            if inspect.isfunction(function) and inspect.unwrap(function).__code__ is frame.f_code:
                return f"{short}.{frame.f_code.co_name}", function
    return None


def _is_told(value: Any, parameter: inspect.Parameter) -> bool:
    """Return whether an argument may be the one that a call does not take: no tile, no operator, no default."""
    given = value is not parameter.default and parameter.kind is not parameter.VAR_KEYWORD
    return given and not isinstance(value, (NkiTensor, Operator))


def _told(value: Any) -> str:
    told = f"an array of shape {value.shape}" if isinstance(value, np.ndarray) and value.ndim else repr(value)
    return told if len(told) <= _MOST_TOLD else f"{told[:_MOST_TOLD]}..."


def _packages(raised: TracebackType | None) -> tuple[str, ...]:
    """Return where functions are looked for: a kernel of the first generation runs in a function of its package."""
    while raised is not None:
        if raised.tb_frame.f_globals.get("__name__", "").startswith(_FIRST):
            return _FIRST, _PRESENT
        raised = raised.tb_next
    return (_PRESENT,)


def _called(name: str, packages: tuple[str, ...]) -> tuple[str, Callable[..., Any]] | None:
    for package in packages:
        for short, part in _PARTS:
            function = vars(sys.modules[f"{package}.{part}"]).get(name)
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


def _shown(function: Callable[..., Any]) -> str:
    """Return the parameters of a function as a message has them."""
    named = [one for one in inspect.signature(function).parameters.values() if one.kind is not one.VAR_KEYWORD]
    return ", ".join(one.name if one.default is one.empty else f"{one.name}=" for one in named)


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
        if file.startswith(_BELOW):
            asked = asked or not inside
        elif is_ours(file):
            inside.append(frame)
        else:
            places.append(f"{file}:{raised.tb_lineno}")
            inside, asked = [], False
        raised = raised.tb_next
    return ([] if asked else places[::-1]), inside
