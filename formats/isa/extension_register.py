"""Extension words that move numbers between memory and the registers of an engine.

Registers, and instructions that load them, are documented (hardware.md 3.2, the nki.isa pages); every bit here is ours.
TENSOR_LOAD of the loader reads device addresses, which a compiler does not know; this word reads a tile.
"""

from __future__ import annotations

from formats.dtypes import Dtype
from formats.isa.extension import _Extension
from formats.isa.field import Enumeration, Integer
from formats.isa.instruction import ENGINES, EXTENSION_OPCODE
from formats.isa.operand import Pattern
from formats.isa.syntax import Key
from formats.isa.syntax_operands import PatternItem

__all__ = ["RegisterLoad"]


class RegisterLoad(_Extension):
    """Load one register of the engine with the one element of a tile."""

    __slots__ = ()
    NAME = "REGISTER_LOAD"
    OPCODE, CODE, SIZE = EXTENSION_OPCODE, 17, 128
    ENGINES = ENGINES
    register = Integer(16, 1, "register loaded", provenance="ours")
    channels = Integer(17, 1, "partitions", unit="partitions", default=1, provenance="ours")
    dtype = Enumeration(18, Dtype, "element type: 32-bit integers", default=Dtype.INT32, provenance="ours")
    src = Pattern(32, 5, "tile of one element", role="read", dtype="dtype", partitions="channels", wide=True,
                  provenance="ours")
    SYNTAX = (Key("register"), PatternItem("src"), Key("channels"))
