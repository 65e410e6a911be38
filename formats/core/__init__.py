"""Core dumps: ELF64 ET_CORE files in a format of neurontools' own; neuron-core(5) specifies it.

AWS's format is not published; nothing here claims to read it.
"""

from formats.core.declare import NOTES, NoteKind, fields_of
from formats.core.reader import Core, open_core
from formats.core.records import VERSION
from formats.core.space import Bytes, Segment, Segments
from formats.core.writer import CoreWriter

__all__ = [
    "NOTES",
    "VERSION",
    "Bytes",
    "Core",
    "CoreWriter",
    "NoteKind",
    "Segment",
    "Segments",
    "fields_of",
    "open_core",
]
