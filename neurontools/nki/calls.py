"""Calls of `nl` and `nisa` that do not fit their parameters: what the kernel may have meant."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from types import TracebackType
from typing import Any

from neurontools.nki import isa, language
from neurontools.nki.errors import NkiValidationError
from neurontools.nki.tracer import Tracer, chain_of, is_ours
from neurontools.nki.unknown import meant

__all__ = ["CallError", "explained"]

# how Python words a call with missing, surplus or unknown arguments
_MISFIT = re.compile(r"(?:\w+\.)*(\w+)\(\) (?:missing|got|takes) ")
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
    called = _called(found[1]) if found is not None else None
    if called is None or not places:
        return None
    name, function = called
    parameters = inspect.signature(function).parameters
    text = f"{name.partition('.')[0]}.{error}; it is {name}({', '.join(map(_shown, parameters.values()))})"
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
