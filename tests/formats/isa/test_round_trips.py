"""Bytes to values to text and back, for every class, over everything its fields can hold."""

from __future__ import annotations

import math
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formats import isa
from formats.errors import FormatError
from tests.formats.isa.strategies import EXTENSION, REAL, field_values, own_bytes, settable, values_of

ALL = pytest.mark.parametrize("cls", isa.CLASSES, ids=lambda c: c.NAME)
A_FEW = settings(max_examples=15)  # for each of the classes


@ALL
@A_FEW
@given(data=st.data())
def test_values_come_back_out_of_the_word(cls: type[isa.Instruction], data: st.DataObject) -> None:
    values = data.draw(field_values(cls))
    word = cls(**values)
    again = isa.decode(word.encode(), cls.GENERATIONS[-1])
    assert type(again) is cls and again == word and again.size == cls.SIZE
    assert {name: getattr(again, name) for name in values} == values
    fresh = cls()
    # Nothing else moved: fields that were not set are as in a fresh word, unless setting another raises their flag.
    for name, field in settable(cls).items():
        if name not in values:
            assert field.peek(again.raw) == field.peek(fresh.raw), name


@ALL
@A_FEW
@given(data=st.data())
def test_asm_reads_back_whatever_the_bits(cls: type[isa.Instruction], data: st.DataObject) -> None:
    raw = data.draw(own_bytes(cls))
    target = cls.GENERATIONS[-1]
    word = isa.decode(raw, target)
    assert type(word) is cls and word.encode() == raw
    assert isa.assemble(word.asm, target) == raw
    if word.asm == word.text:
        assert isa.assemble(word.text, target) == raw
    else:
        assert word.asm.startswith(word.text + " {")


@ALL
@A_FEW
@given(data=st.data())
def test_every_field_alone_is_kept_by_asm(cls: type[isa.Instruction], data: st.DataObject) -> None:
    fields = {n: f for n, f in cls.FIELDS.items() if n != "opcode"}
    name = data.draw(st.sampled_from(sorted(fields)))
    word = bytearray(cls.defaults())
    fields[name].write(word, data.draw(values_of(fields[name])))
    target = cls.GENERATIONS[-1]
    assert isa.assemble(isa.decode(bytes(word), target).asm, target) == bytes(word)


@ALL
@A_FEW
@given(data=st.data())
def test_bits_come_back_from_poke(cls: type[isa.Instruction], data: st.DataObject) -> None:
    raw = data.draw(own_bytes(cls))
    name = data.draw(st.sampled_from(sorted(cls.FIELDS)))
    field = cls.FIELDS[name]
    bits = data.draw(st.integers(0, field.mask >> field.offset * 8 >> _low(field.mask >> field.offset * 8)))
    word = bytearray(raw)
    field.poke(word, bits)
    assert field.peek(bytes(word)) == bits
    assert (int.from_bytes(word, "little") ^ int.from_bytes(raw, "little")) & ~field.mask == 0
    with pytest.raises(FormatError, match="does not fit"):
        field.poke(word, 1 << 8 * field.size)


def _low(mask: int) -> int:
    return (mask & -mask).bit_length() - 1


@ALL
def test_a_fresh_word_prints_without_braces(cls: type[isa.Instruction]) -> None:
    assert cls().asm == cls().text
    assert isa.parse_instruction(cls().text, cls.GENERATIONS[-1]) == cls()


def test_no_two_classes_take_one_word() -> None:
    for a, b in combinations(isa.CLASSES, 2):
        assert (a.OPCODE, a.CODE) != (b.OPCODE, b.CODE) and a.NAME != b.NAME
    assert {c.OPCODE for c in EXTENSION} == {isa.EXTENSION_OPCODE}
    assert isa.EXTENSION_OPCODE not in {c.OPCODE for c in REAL}


@given(
    raw=st.binary(min_size=64, max_size=64),
    target=st.sampled_from(["gen2", "gen3", "gen4", "inf1"]),
    dialect=st.sampled_from(["neuron", "extended"]),
)
def test_any_64_bytes_are_an_instruction(raw: bytes, target: str, dialect: str) -> None:
    word = isa.decode(raw, target, dialect)
    assert word.encode() == raw
    assert isa.assemble(word.asm, target, dialect) == raw
    assert isa.decode_stream(raw, target, dialect)[0] == word
    assert word.fields["opcode"] == raw[0] and word.text.startswith(word.name)
    if target != "inf1":
        isa.check(word, target)


@given(
    raw=st.binary(min_size=60, max_size=60),
    opcode=st.sampled_from([c.OPCODE for c in isa.CLASSES]),
    target=st.sampled_from(["gen2", "gen3"]),
)
def test_any_use_of_a_known_opcode_is_an_instruction(raw: bytes, opcode: int, target: str) -> None:
    raw = bytes([opcode, 0x10, 0, 0]) + raw
    for dialect in ("neuron", "extended"):
        word = isa.decode(raw, target, dialect)
        assert word.encode() == raw and isa.assemble(word.asm, target, dialect) == raw


def test_floats_that_decimal_loses_are_kept_in_braces() -> None:
    word = isa.Activate(scale=1 / 3, function="EXP")
    assert "scale=0.333333 " in word.text and word.asm.endswith("{scale=0x3eaaaaab}")
    assert isa.parse_instruction(word.asm) == word
    nan = isa.TensorScalar.from_raw(isa.TensorScalar(immediate0=math.nan).raw[:40] + b"\1\0\xc0\x7f" + bytes(20))
    assert isa.assemble(nan.asm) == nan.raw


def test_replace_changes_one_field_and_refuses_strangers() -> None:
    word = isa.MatMul(acc_flags=3)
    assert word.replace(acc_flags=1).acc_flags == 1 and word.acc_flags == 3
    for name in ("no_such_field", "opcode"):
        with pytest.raises(FormatError, match="no such field"):
            word.replace(**{name: 1})
    with pytest.raises(FormatError, match="no such field"):
        isa.MatMul(no_such_field=1)
    with pytest.raises(FormatError, match="another opcode"):
        isa.MatMul(opcode=1)


@pytest.mark.parametrize(
    "changes",
    [
        {"wait_mode": "EVENT_SET", "wait_index": 4, "wait_value": 9},
        {"wait_index": 4},
        {"wait_value": 1},
        {"update_index": 7},
        {"wait2_mode": "EVENT_SET", "wait2_value": 9},
        {"wait2_index": 4},
        {"update2_mode": "SEM_INC", "update2_value": 1},
        {"update2_index": 3},
        {"update2_value": 5},
        {"update2_mode": 0x44, "update2_value": 5},
        {"wait2_mode": 6, "wait2_value": 5},
    ],
)
def test_what_synchronisation_text_leaves_out_is_in_braces(changes: dict[str, object]) -> None:
    word = isa.EventSemaphore(**changes)
    assert isa.assemble(word.asm) == word.raw
    # Only a mode without a name prints its value; everything else here has no place in the text.
    assert ("{" in word.asm) != (6 in changes.values() or 0x44 in changes.values())


def test_flags_that_contradict_each_other_are_kept() -> None:
    word = isa.TensorScalar(immediate0_pointer=0x4000, immediate0_is_integer=1)
    assert "imm=0x4000,0" in word.text and word.asm.endswith("{immediate0_is_integer=0x1}")
    assert isa.assemble(word.asm) == word.raw


def test_a_float_replaces_an_integer_immediate() -> None:
    word = isa.TensorScalar(immediate0=isa.Bits(5))
    assert word.immediate0_is_integer == 1 and word.immediate0 == isa.Bits(5)
    assert word.replace(immediate0=5.0) == isa.TensorScalar(immediate0=5.0)
