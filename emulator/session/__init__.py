"""The debugger as values: one `Session` whose methods are the commands, and the types of what they return."""

from __future__ import annotations

from emulator.session.errors import UsageError
from emulator.session.results import (
    Ahead,
    Breakpoint,
    Disassembly,
    DisassemblyRow,
    EngineRow,
    Examined,
    LastWrite,
    Listing,
    Mark,
    MemoryRow,
    Moved,
    QueueRow,
    SemaphoreRow,
    SourceRow,
    State,
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

__all__ = [
    "Ahead",
    "Breakpoint",
    "Disassembly",
    "DisassemblyRow",
    "EngineRow",
    "Examined",
    "LastWrite",
    "Listing",
    "Mark",
    "MemoryRow",
    "Moved",
    "QueueRow",
    "SemaphoreRow",
    "Session",
    "SourceRow",
    "State",
    "Step",
    "Stop",
    "TensorRow",
    "TensorValue",
    "Tile",
    "UsageError",
    "When",
    "Why",
    "Write",
]
