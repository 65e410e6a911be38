"""Words without addresses: what an operation's shape decides once, for every operation of that shape."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any

__all__ = ["Spot", "Template", "keep", "put_address", "template_of"]

_MOST = 1 << 12  # of one encoder's plans that a process keeps
_ADDRESS = 4  # of an operand that a word reads or writes on chip: 32 bits (isa.md 4)

put_address = struct.Struct("<I").pack_into


# An address in a word: where it stands, the number of its operand, how many bytes behind the first element.
Spot = tuple[int, int, int]
# A word whose addresses are still to come, where they go, and what makes the word of the engine addresses of its
# operands. Plain tuples, as of `builder.areas.Access`.
Template = tuple[bytes, tuple[Spot, ...], Callable[[Sequence[int]], bytes]]


def keep(plans: dict[Any, Any], key: Any, plan: Any) -> None:
    """Keep what operations of a shape share for later programs of the process: kernels are built again and again."""
    if len(plans) >= _MOST:
        plans.clear()
    plans[key] = plan


def template_of(word: bytes, spots: Sequence[Spot]) -> Template:
    """Return a template; its word is made in one step for as many addresses as words mostly have."""
    spots = tuple(spots)
    ordered = sorted(spots)
    ends = [0, *(offset + _ADDRESS for offset, _, _ in ordered)]
    begins = [*(offset for offset, _, _ in ordered), len(word)]
    if len(spots) > 3 or any(begin < end for begin, end in zip(begins, ends, strict=True)):
        return word, spots, _one_by_one(word, spots)
    parts = [word[end:begin] for end, begin in zip(ends, begins, strict=True)]
    pack = struct.Struct("<" + "I".join(f"{len(part)}s" for part in parts)).pack
    places = [(operand, delta) for _, operand, delta in ordered]
    return word, spots, (_fixed, _of_one, _of_two, _of_three)[len(spots)](pack, parts, places)


_Make = Callable[[Sequence[int]], bytes]
_Pack = Callable[..., bytes]
_Places = Sequence[tuple[int, int]]


def _one_by_one(word: bytes, spots: Sequence[Spot]) -> _Make:
    def make(addresses: Sequence[int]) -> bytes:
        made = bytearray(word)
        for offset, operand, delta in spots:
            put_address(made, offset, addresses[operand] + delta)
        return bytes(made)

    return make


def _fixed(pack: _Pack, parts: Sequence[bytes], places: _Places) -> _Make:
    (word,) = parts
    return lambda addresses: word


def _of_one(pack: _Pack, parts: Sequence[bytes], places: _Places) -> _Make:
    head, tail = parts
    ((operand, delta),) = places
    return lambda addresses: pack(head, addresses[operand] + delta, tail)


def _of_two(pack: _Pack, parts: Sequence[bytes], places: _Places) -> _Make:
    head, middle, tail = parts
    (one, to_one), (other, to_other) = places
    return lambda addresses: pack(head, addresses[one] + to_one, middle, addresses[other] + to_other, tail)


def _of_three(pack: _Pack, parts: Sequence[bytes], places: _Places) -> _Make:
    head, front, back, tail = parts
    (one, to_one), (two, to_two), (three, to_three) = places
    return lambda addresses: pack(
        head, addresses[one] + to_one, front, addresses[two] + to_two, back, addresses[three] + to_three, tail
    )
