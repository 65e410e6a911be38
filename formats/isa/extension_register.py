"""Extension words that move numbers between memory and the registers of an engine.

Registers, and instructions that load them, are documented (hardware.md 3.2, the nki.isa pages); every bit here is ours.
TENSOR_LOAD of the loader reads device addresses, which a compiler does not know; this word reads a tile.
"""

from __future__ import annotations

from collections.abc import Iterator

from formats.dtypes import Dtype
from formats.engines import ENGINES
from formats.isa.behaviour import Duration
from formats.isa.extension import ExtensionWord
from formats.isa.field import Enumeration, Integer
from formats.isa.operand import Tile
from formats.isa.rule import Context, Finding, Rule, has_elements
from formats.isa.syntax import Key
from formats.isa.syntax_operands import PatternItem

__all__ = ["RegisterLoad"]


def _one_partition(word: RegisterLoad, context: Context) -> Iterator[Finding]:
    if word.channels != 1:
        yield "channels", f"{word.channels} partitions, not 1"


class RegisterLoad(ExtensionWord):
    """Load one register of the engine with the one element of a tile."""

    __slots__ = ()
    CALM = True
    NAME = "REGISTER_LOAD"
    CODE, SIZE = 17, 128
    ENGINES = ENGINES
    COST = Duration("device_read")
    DECIDES = REGISTERS = True
    register = Integer(16, 1, "register loaded")
    channels = Integer(17, 1, "partitions", unit="partitions", default=1)
    dtype = Enumeration(18, Dtype, "element type: 32-bit integers", default=Dtype.INT32)
    src = Tile(32, "tile of one element", role="read", dtype="dtype")
    SYNTAX = (Key("register"), PatternItem("src"), Key("channels"))
    RULES = (
        has_elements("src", 1, "src has one element."),
        Rule("One partition is read.", "ours", "ours", _one_partition),
    )

    @property
    def loaded(self) -> tuple[int, ...]:
        """Return the register that it loads."""
        return (self.register,)
