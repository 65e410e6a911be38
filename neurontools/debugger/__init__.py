"""The debugger as values: one `Session` whose methods are the commands, and the types of what they return."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from neurontools.debugger.breakpoint import Breakpoint
    from neurontools.debugger.errors import UsageError
    from neurontools.debugger.post_mortem import open_core_session
    from neurontools.debugger.results import Examined, State, TensorValue
    from neurontools.debugger.session import Session

__all__ = ["Breakpoint", "Examined", "Session", "State", "TensorValue", "UsageError", "open_core_session"]

# The command line imports this package before it knows whether NumPy will be needed.
_HOMES = {
    "Breakpoint": "breakpoint", "Examined": "results", "Session": "session", "State": "results",
    "TensorValue": "results", "UsageError": "errors", "open_core_session": "post_mortem",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module  # deferred: start-up

    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
