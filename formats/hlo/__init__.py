"""HLO: modules of XLA as protos, text and objects.  No lowering and no arithmetic."""

from __future__ import annotations

from formats.hlo.literals import Literal, dtype_of, literal_of, type_of
from formats.hlo.module import Computation, Instruction, Module, StackFrames
from formats.hlo.reader import Snapshot, open_hlo, read_hlo, read_snapshot
from formats.hlo.shapes import Layout, PrimitiveType, ProgramShape, Shape, array, scalar, tuple_of
from formats.hlo.writer import module_bytes, save_hlo

__all__ = [
    "Computation",
    "Instruction",
    "Layout",
    "Literal",
    "Module",
    "PrimitiveType",
    "ProgramShape",
    "Shape",
    "Snapshot",
    "StackFrames",
    "array",
    "dtype_of",
    "literal_of",
    "module_bytes",
    "open_hlo",
    "read_hlo",
    "read_snapshot",
    "save_hlo",
    "scalar",
    "tuple_of",
    "type_of",
]
