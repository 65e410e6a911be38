"""What words that differ in addresses only have in common: nothing else may be left out of it, an immediate least."""

from __future__ import annotations

import random

import pytest

from formats.isa import BY_NAME, Instruction
from formats.isa.operand import DmaAddressField, Pattern, Pointer

HEADER = range(8, 96)  # bits of flags, waits and updates
CLASSES = sorted(set(BY_NAME.values()), key=lambda cls: cls.NAME)


def addresses(word: Instruction) -> set[int]:
    """Return the bits of a word that say where an operand lies that the word has."""
    found: set[int] = set()
    for field in word.FIELDS.values():
        if isinstance(field, Pattern) or (isinstance(field, Pointer) and field.enabled(word.raw)):
            found.update(range(8 * field.offset, 8 * field.offset + 32))
        elif isinstance(field, DmaAddressField):
            found.update(range(8 * field.offset, 8 * (field.offset + field.size)))
    return found


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.NAME)
def test_a_bit_that_is_no_address_makes_another_kind(cls: type[Instruction]) -> None:
    chance = random.Random(cls.NAME)
    for _ in range(4):
        raw = bytearray(chance.randbytes(cls.SIZE))
        raw[0] = cls.OPCODE
        word = cls.from_raw(bytes(raw))
        kind = word.without_addresses()
        for bit in range(8 * cls.SIZE):
            changed = bytearray(raw)
            changed[bit // 8] ^= 1 << bit % 8
            other = cls.from_raw(bytes(changed))
            if bit not in HEADER and bit not in addresses(word) and bit not in addresses(other):
                assert other.without_addresses() != kind, f"bit {bit}: {word.text}"


def test_words_at_other_places_are_of_one_kind() -> None:
    made = BY_NAME["TENSOR_SCALAR"]
    two, four = (made.from_raw(made(immediate0=value).raw) for value in (2, 4))
    assert two.without_addresses() != four.without_addresses()
    here, there = (made(immediate0_pointer=address) for address in (0x4000, 0x4040))
    assert here.without_addresses() == there.without_addresses()
