"""The debugger as values: one `Session` whose methods are the commands, and the types of what they return."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from emulator.session.breakpoints import Breakpoint
from emulator.session.errors import UsageError
from emulator.session.results import (
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
)
from emulator.session.session import Session
from emulator.session.tiles import Tile

if TYPE_CHECKING:
    from emulator.session.post_mortem import open_core_session

__all__ = [
    "Ahead",
    "Breakpoint",
    "Checks",
    "Disassembly",
    "DisassemblyRow",
    "DmaRow",
    "EngineRow",
    "Examined",
    "LastWrite",
    "Listing",
    "Mark",
    "MemoryRow",
    "Moved",
    "QueueRow",
    "RegisterRow",
    "SemaphoreRow",
    "Session",
    "SourceRow",
    "State",
    "Statistics",
    "Step",
    "Stop",
    "TensorRow",
    "TensorValue",
    "Tile",
    "UsageError",
    "When",
    "Why",
    "Write",
    "open_core_session",
]


def __getattr__(name: str) -> Any:
    # Sessions of core dumps need what live ones do not; every start would pay for it.
    if name == "open_core_session":
        from emulator.session.post_mortem import open_core_session

        return open_core_session
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
