"""Words without addresses: what an operation's shape decides once, for every operation of that shape."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from formats.named_tuple import NamedTuple

__all__ = ["Spot", "Template", "fill"]

# of an operand that a word reads or writes on chip: 32 bits (isa.md 4)
_ADDRESS = struct.Struct("<I").pack_into


class Spot(NamedTuple):
    """An address in a word: where it stands, the number of its operand, how many bytes behind the first element."""

    offset: int
    operand: int
    delta: int


class Template(NamedTuple):
    """A word whose addresses are still to come."""

    raw: bytes
    spots: tuple[Spot, ...]


def fill(stream: bytearray, place: int, template: Template, addresses: Sequence[int]) -> None:
    """Put the engine addresses of its operands into the word that begins at byte `place`."""
    for offset, operand, delta in template.spots:
        _ADDRESS(stream, place + offset, addresses[operand] + delta)
