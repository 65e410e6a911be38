"""No byte of a word is passed over in silence: it is refused, stands on the list, or changes the text."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from formats import isa
from formats.isa.registry import BY_NAME, CLASSES
from formats.isa.understood import IGNORED_BYTES, NOT_PRINTED, is_understood, unknown_bytes

WORDS = json.loads((Path(__file__).parent / "words.json").read_text())["words"]
Sample = tuple[bytes, str, str]


def samples() -> Iterator[Sample]:
    for word in WORDS:
        yield bytes.fromhex(word["hex"]), word["archs"][-1], word["dialect"]
    for cls in CLASSES:
        yield cls.defaults(), cls.GENERATIONS[-1], cls.DIALECT


def of_one_class() -> dict[str, list[Sample]]:
    found: dict[str, list[Sample]] = {}
    for sample in samples():
        word = isa.decode(*sample)
        if not isinstance(word, isa.Unknown):
            found.setdefault(word.name, []).append(sample)
    return found


CASES = of_one_class()
SEEN: dict[str, set[str]] = {}


def unprinted(name: str) -> set[str]:
    """Set every byte of every word of a class to several values; return the fields whose change no text shows."""
    found = set()
    for raw, arch, dialect in CASES[name]:
        base = isa.decode(raw, arch, dialect)
        # The length of an extension word says where the next one begins: another stream, not another word.
        for at in range(1, len(raw)) if base.CODE < 0 else (*range(1, 14), *range(16, len(raw))):
            for value in {raw[at] ^ 1, raw[at] ^ 0x10, raw[at] ^ 0x80, 0xFF} - {raw[at]}:
                word = isa.decode(raw[:at] + bytes((value,)) + raw[at + 1 :], arch, dialect)
                if isinstance(word, isa.Unknown):
                    continue  # refused when it is reached
                assert is_understood(word) == (not unknown_bytes(word)), (at, value)
                if not is_understood(word) or word.text != base.text:
                    continue
                assert word.asm != base.asm, (at, value)
                changed = [
                    one.name
                    for one in word.FIELDS.values()
                    if one.offset <= at < one.offset + one.size and one.peek(word.raw) != one.peek(raw)
                ]
                assert changed, (at, value)
                found.update(changed)
    return found  # fmt: skip


@pytest.mark.parametrize("name", sorted(CASES))
def test_every_byte_is_refused_listed_or_printed(name: str) -> None:
    fields = SEEN[name] = unprinted(name)
    listed = {field for word, field in NOT_PRINTED if word in ("*", name)}
    assert fields - listed <= {one.field for one in IGNORED_BYTES if one.word == name}


def test_the_lists_hold_nothing_else() -> None:
    if set(SEEN) != set(CASES):
        pytest.skip("needs the tests above")
    shown = {field for fields in SEEN.values() for field in fields}
    for (word, field), reason in NOT_PRINTED.items():
        assert field in (shown if word == "*" else SEEN[word]) and reason
    for one in IGNORED_BYTES:
        assert one.reason and one.shown_by
        for value in one.values:
            word = BY_NAME[one.word](**{one.field: value})
            assert is_understood(word)
            other = word.replace(**{one.field: value ^ 0x40})
            assert not is_understood(other) and one.field in str(unknown_bytes(other)[0])


def test_every_class_is_tried() -> None:
    assert set(CASES) == {cls.NAME for cls in CLASSES}


def test_a_hidden_byte_is_named() -> None:
    raw = bytearray(BY_NAME["TENSOR_REDUCE"].defaults())
    raw[40] = 7
    (found,) = unknown_bytes(isa.decode(bytes(raw)))
    assert str(found) == "byte 40 is 0x07: no field of TENSOR_REDUCE is known in bits 0x07"


def test_nothing_follows_the_end_of_a_name() -> None:
    raw = bytearray(isa.PseudoDmaTrigger(queue="qSPIO0").raw)
    assert is_understood(isa.decode(bytes(raw)))
    raw[30] = 65
    (found,) = unknown_bytes(isa.decode(bytes(raw)))
    assert str(found) == "byte 30 is 0x41: queue has ended before it"


def test_words_of_the_public_tables_are_understood() -> None:
    for raw, arch, dialect in samples():
        word = isa.decode(raw, arch, dialect)
        assert isinstance(word, isa.Unknown) or is_understood(word), word.asm


LIMITED = [(name, field) for name, cls in BY_NAME.items() for field in cls.FIELDS.values()
           if getattr(field, "known", None) is not None]  # fmt: skip


@pytest.mark.parametrize(("name", "field"), LIMITED, ids=[f"{name}-{field.name}" for name, field in LIMITED])
def test_a_value_without_a_meaning_is_named(name: str, field: isa.Field[int]) -> None:
    """A flag of 5, a mask of five groups, nine bytes of an eight-byte value: printed, and not understood."""
    for value in range(256):
        word = BY_NAME[name](**{field.name: value})
        assert is_understood(word) == (value in field.known)
        if value not in field.known:
            assert f"what {field.name} {value} means is not known" in str(unknown_bytes(word)[0])
            assert isa.assemble(word.asm) == word.raw


def test_flags_and_masks_are_limited() -> None:
    assert {(name, field.name) for name, field in LIMITED} == {
        ("ACTIVATE", "no_bias"), ("EVENT_SEMAPHORE", "setter"), ("LDWEIGHTS", "column_groups"),
        ("LDWEIGHTS", "row_groups"), ("MATMUL", "acc_flags"), ("MATMUL", "column_groups"), ("MATMUL", "row_groups"),
        ("TENSOR_REDUCE", "negate"), ("WRITE", "size0"), ("WRITE", "size1"),
    }  # fmt: skip
