"""Every instruction class, by opcode and by extension code."""

from __future__ import annotations

from formats.isa import words
from formats.isa.instruction import EXTENSION_OPCODE, Instruction
from formats.isa.unknown import Unknown
from formats.neuron_core import WORD

__all__ = ["BY_CODE", "BY_NAME", "BY_OPCODE", "CLASSES", "lookup"]

# Real words by opcode, then extension words by code.
CLASSES: tuple[type[Instruction], ...] = tuple(
    sorted(
        (found for found in vars(words).values() if isinstance(found, type) and issubclass(found, Instruction)),
        key=lambda cls: (cls.CODE, cls.OPCODE),
    )
)

BY_OPCODE: list[type[Instruction] | None] = [None] * 256
BY_CODE: dict[int, type[Instruction]] = {}
BY_NAME: dict[str, type[Instruction]] = {}
for _cls in CLASSES:
    if _cls.NAME in BY_NAME or (BY_OPCODE[_cls.OPCODE] if _cls.CODE < 0 else BY_CODE.get(_cls.CODE)):
        raise TypeError(f"{_cls.NAME}: name or code is taken")
    BY_NAME[_cls.NAME] = _cls
    if _cls.CODE < 0:
        BY_OPCODE[_cls.OPCODE] = _cls
    else:
        BY_CODE[_cls.CODE] = _cls


def lookup(raw: bytes, *, extended: bool) -> type[Instruction]:
    """Return the class of a word that begins at `raw`; `Unknown` for whatever is not established.

    In the neuron dialect the escape opcode and every bit of ours mean nothing, so a word that uses them is unknown.
    """
    opcode = raw[0]
    if opcode == EXTENSION_OPCODE:
        if not extended:
            return Unknown
        cls = BY_CODE.get(int.from_bytes(raw[12:14], "little"), Unknown)
        # the length is part of the declaration: what a shorter or longer word would mean is not guessed
        return cls if int.from_bytes(raw[14:16], "little") * WORD == cls.SIZE else Unknown
    found = BY_OPCODE[opcode]
    if found is None:
        return Unknown
    if not extended:
        if found.OURS_MASK and int.from_bytes(raw[:64], "little") & found.OURS_MASK:
            return Unknown
        for offset, limit in found.OURS_CODES:
            if raw[offset] >= limit:
                return Unknown
    return found
