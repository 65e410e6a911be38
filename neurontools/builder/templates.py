"""Words without addresses: what an operation's shape decides once, for every operation of that shape."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import NamedTuple

__all__ = ["Spot", "Template", "fill"]

_ADDRESS = struct.Struct("<I").pack_into


class Spot(NamedTuple):
    """An address in a word: where it stands, of which operand, how many bytes behind the operand's first element."""

    offset: int
    operand: str
    delta: int


class Template(NamedTuple):
    """A word whose addresses are still to come."""

    raw: bytes
    spots: tuple[Spot, ...]


def fill(template: Template, addresses: Mapping[str, int]) -> bytearray:
    """Return the word with the engine addresses of its operands put in."""
    word = bytearray(template.raw)
    for offset, operand, delta in template.spots:
        _ADDRESS(word, offset, addresses[operand] + delta)
    return word
