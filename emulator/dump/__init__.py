"""Core dumps of an emulated device: its whole state, or what a fault or hang names, as one ELF file."""

from emulator.dump.tail import EventTail
from emulator.dump.write import LEVELS, write_core

__all__ = ["LEVELS", "EventTail", "write_core"]
