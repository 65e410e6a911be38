"""The debugger as values: one `Session` whose methods are the commands, and the types of what they return."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from formats.neff.tiles import Tile
    from neurontools.debugger.breakpoint import Breakpoint
    from neurontools.debugger.errors import UsageError
    from neurontools.debugger.post_mortem import open_core_session
    from neurontools.debugger.results import (
        Ahead,
        Checks,
        Disassembly,
        DisassemblyRow,
        DmaRow,
        EngineRow,
        Examined,
        LastWrite,
        Listing,
        Mark,
        MemoryRow,
        Moved,
        QueueRow,
        RegisterRow,
        SemaphoreRow,
        SourceRow,
        State,
        Statistics,
        Step,
        Stop,
        TensorRow,
        TensorValue,
        When,
        Why,
        Write,
    )  # fmt: skip
    from neurontools.debugger.session import Session

__all__ = [
    "Ahead", "Breakpoint", "Checks", "Disassembly", "DisassemblyRow", "DmaRow", "EngineRow", "Examined",
    "LastWrite", "Listing", "Mark", "MemoryRow", "Moved", "QueueRow", "RegisterRow", "SemaphoreRow", "Session",
    "SourceRow", "State", "Statistics", "Step", "Stop", "TensorRow", "TensorValue", "Tile", "UsageError", "When",
    "Why", "Write", "open_core_session",
]  # fmt: skip

# The command line imports this package before it knows whether NumPy will be needed.
_HOMES = {
    "formats.neff.tiles": (
        "Tile",
    ),
    "neurontools.debugger.breakpoint": (
        "Breakpoint",
    ),
    "neurontools.debugger.errors": (
        "UsageError",
    ),
    "neurontools.debugger.post_mortem": (
        "open_core_session",
    ),
    "neurontools.debugger.results": (
        "Ahead", "Checks", "Disassembly", "DisassemblyRow", "DmaRow", "EngineRow", "Examined", "LastWrite",
        "Listing", "Mark", "MemoryRow", "Moved", "QueueRow", "RegisterRow", "SemaphoreRow", "SourceRow",
        "State", "Statistics", "Step", "Stop", "TensorRow", "TensorValue", "When", "Why", "Write",
    ),
    "neurontools.debugger.session": (
        "Session",
    ),
}  # fmt: skip


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names:
            from importlib import import_module  # deferred: start-up

            return getattr(import_module(home), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
