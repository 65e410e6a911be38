"""Words that no class explains: kept byte for byte, printed so that they read back."""

from __future__ import annotations

from typing import Self

from formats.engines import ENGINES
from formats.errors import FormatError
from formats.isa.behaviour import Duration
from formats.isa.instruction import Instruction
from formats.isa.sync import header_text, header_values, parse_sync
from formats.isa.syntax import Tokens, parse_raw, split_braces
from formats.neuron_core import WORD

__all__ = ["Unknown"]


class Unknown(Instruction):
    """A word whose opcode, or whose use of it, is not established; kept byte for byte."""

    __slots__ = ()
    NAME = "UNKNOWN"
    CITE = "isa.md 6"
    PROVENANCE = "observed"
    ENGINES = ENGINES
    COST = Duration("control")

    @property
    def name(self) -> str:
        return f"OPCODE_{self.raw[0]:02X}"

    @property
    def operands(self) -> str:
        sync = header_text(self.raw[4:12])[0]
        return f"{sync + ' ' if sync else ''}bytes={self.raw[12:].hex()}"

    @property
    def text(self) -> str:
        return f"{self.name} {self.operands}"

    @property
    def asm(self) -> str:
        # `text` shows bytes 4 to 11 as wait and update and the rest from byte 12: what it cannot show are these three
        if self.raw[1] == 0x10 and not any(self.raw[2:4]) and not header_text(self.raw[4:12])[1]:
            return self.text
        return f"{self.name} {{raw={self.raw.hex()}}}"

    @classmethod
    def parse_named(cls, name: str, operands: str) -> Self:
        """Return the word that `OPCODE_xx` and operand text give."""
        body, hidden = split_braces(operands)
        try:
            opcode = bytes.fromhex(name[7:])
        except ValueError:
            opcode = b""
        if len(opcode) != 1:
            raise FormatError("unknown instruction", got=repr(name))
        if hidden:
            raw = parse_raw(hidden.pop("raw", ""))
            if hidden or body.split() or len(raw) < WORD or len(raw) % WORD or raw[:1] != opcode:
                raise FormatError(f"not the bytes of {name} alone", field="raw", expected="64 bytes or more")
            return cls.from_raw(raw)
        tokens, values = Tokens(), {}
        for word in body.split():
            sync = parse_sync(word)
            if sync is None or f"{sync.kind}_mode" in values:
                tokens.add(word)
            else:
                values.update(header_values(sync))
        rest = parse_raw(tokens.need("bytes"), "bytes")
        tokens.refuse_rest(name)
        if (len(rest) + 12) % WORD:
            raise FormatError(
                "wrong length", field="bytes", expected="52 bytes, or 64 more at a time", got=f"{len(rest)} bytes"
            )
        return cls.from_raw(opcode + cls(**values).raw[1:12] + rest)
