"""Words without addresses: what an operation's shape decides once, for every operation of that shape."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

__all__ = ["Spot", "Template", "fill", "keep", "put_address"]

_MOST = 1 << 12  # of one encoder's plans that a process keeps

# of an operand that a word reads or writes on chip: 32 bits (isa.md 4)
put_address = struct.Struct("<I").pack_into


# An address in a word: where it stands, the number of its operand, how many bytes behind the first element.
Spot = tuple[int, int, int]
# A word whose addresses are still to come, and where they go. Plain tuples, as of `builder.areas.Access`.
Template = tuple[bytes, tuple[Spot, ...]]


def keep(plans: dict[Any, Any], key: Any, plan: Any) -> None:
    """Keep what operations of a shape share for later programs of the process: kernels are built again and again."""
    if len(plans) >= _MOST:
        plans.clear()
    plans[key] = plan


def fill(stream: bytearray, place: int, template: Template, addresses: Sequence[int]) -> None:
    """Put the engine addresses of its operands into the word that begins at byte `place`."""
    for offset, operand, delta in template[1]:
        put_address(stream, place + offset, addresses[operand] + delta)
