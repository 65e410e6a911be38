"""Words of other lengths: extension words, words that are cut off, words nobody knows."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formats import isa
from formats.errors import FormatError
from tests.formats.isa.strategies import EXTENSION


def escape(code: int, units: int, length: int | None = None) -> bytes:
    """Return an extension word of `length` bytes whose header claims `units` of 64."""
    word = bytearray(max(units, 1) * 64 if length is None else length)
    word[0], word[1] = isa.EXTENSION_OPCODE, 0x10
    word[12:16] = code.to_bytes(2, "little") + units.to_bytes(2, "little")
    return bytes(word)


@pytest.mark.parametrize("cls", EXTENSION, ids=lambda c: c.NAME)
def test_header_of_an_extension_word(cls: type[isa.Instruction]) -> None:
    raw = cls().raw
    assert raw[0] == 0xEE and int.from_bytes(raw[12:14], "little") == cls.CODE
    assert int.from_bytes(raw[14:16], "little") * 64 == len(raw) == cls.SIZE
    own = [field for name, field in cls.FIELDS.items() if name not in cls.HEADER]
    assert {cls.PROVENANCE, *(field.provenance for field in own)} == {"ours"}
    assert isinstance(isa.decode(raw[:64], dialect="neuron"), isa.Unknown)


def test_the_neuron_dialect_has_no_long_words() -> None:
    raw = isa.Select().raw
    with pytest.raises(FormatError, match="more than one instruction word, expected 64 bytes, found 256 bytes"):
        isa.decode(raw, dialect="neuron")
    words = isa.decode_stream(raw, dialect="neuron")
    assert len(words) == 4 and isinstance(words[0], isa.Unknown) and list(words.offsets) == [0, 64, 128, 192]


@pytest.mark.parametrize("size", [0, 1, 63, 65, 100, 127])
def test_lengths_that_are_no_words_are_errors(size: int) -> None:
    for read in (isa.decode, isa.decode_stream):
        if size or read is isa.decode:
            with pytest.raises(FormatError, match="a multiple of 64 bytes"):
                read(bytes(size))
    assert len(isa.decode_stream(b"")) == 0


def test_two_words_are_not_one() -> None:
    with pytest.raises(FormatError, match="more than one instruction word"):
        isa.decode(isa.Nop().raw * 2)
    with pytest.raises(FormatError, match="more than one instruction word"):
        isa.decode(isa.CoreBarrier().raw + isa.Nop().raw)


@pytest.mark.parametrize("units", [0, 1, 2, 5, 40])
def test_extension_words_without_a_class_have_any_length(units: int) -> None:
    raw = escape(999, units)
    word = isa.decode(raw)
    assert isinstance(word, isa.Unknown) and word.size == max(units, 1) * 64 and word.encode() == raw
    assert isa.assemble(word.asm) == raw and word.text.startswith("OPCODE_EE bytes=")


@pytest.mark.parametrize("cls", EXTENSION, ids=lambda c: c.NAME)
def test_a_known_code_with_another_length_is_unknown(cls: type[isa.Instruction]) -> None:
    raw = escape(cls.CODE, cls.SIZE // 64 + 1)
    assert isinstance(isa.decode(raw), isa.Unknown) and isa.assemble(isa.decode(raw).asm) == raw


def test_words_that_are_cut_off_are_unknown() -> None:
    raw = isa.Select().raw
    for length in (64, 128, 192):
        word = isa.decode(raw[:length])
        assert isinstance(word, isa.Unknown) and word.encode() == raw[:length] == isa.assemble(word.asm)
        assert "cut off" in isa.check(word)[0].message
        stream = isa.decode_stream(isa.Nop().raw + raw[:length], dialect="extended")
        assert [type(w) for w in stream] == [isa.Nop, isa.Unknown] and stream[1].raw == raw[:length]
    assert isinstance(isa.decode(raw), isa.Select)


def test_streams_of_mixed_lengths() -> None:
    words = [isa.Nop(), isa.Select(), isa.CoreBarrier(), isa.TensorTensorScan(), isa.Copy()]
    stream = isa.decode_stream(b"".join(w.raw for w in words), dialect="extended")
    assert list(stream) == words and list(stream.offsets) == [0, 64, 320, 384, 576]
    assert stream[-1] == words[-1] and stream[1:3] == words[1:3] and len(stream) == 5
    assert isa.assemble("\n".join(w.asm for w in stream)) == stream.data
    with pytest.raises(IndexError):
        stream[5]


@given(
    data=st.binary(max_size=640).map(lambda b: b[: len(b) // 64 * 64]),
    escapes=st.sets(st.integers(0, 9)),
    units=st.integers(0, 6),
    dialect=st.sampled_from(["neuron", "extended"]),
)
def test_any_stream_is_covered_once(data: bytes, escapes: set[int], units: int, dialect: str) -> None:
    stream = bytearray(data)
    for slot in escapes:
        if slot * 64 < len(stream):
            stream[slot * 64], stream[slot * 64 + 14], stream[slot * 64 + 15] = isa.EXTENSION_OPCODE, units, 0
    words = isa.decode_stream(bytes(stream), "gen3", dialect)
    assert b"".join(w.raw for w in words) == bytes(stream)
    assert [sum(w.size for w in words[:i]) for i in range(len(words))] == list(words.offsets)
    for word in words:
        assert isa.decode(word.raw, "gen3", dialect) == word


def test_other_generations_and_dialects_by_name() -> None:
    trigger = isa.PseudoDmaDirect2d()
    assert isinstance(isa.decode(trigger.raw, "trn1"), isa.Unknown)
    assert isinstance(isa.decode(trigger.raw, "trn3"), isa.PseudoDmaDirect2d)
    with pytest.raises(FormatError, match="PSEUDO_DMA_DIRECT2D does not exist on gen2"):
        isa.assemble(trigger.text, "gen2")
    for call in (lambda: isa.decode(trigger.raw, "trn9"), lambda: isa.decode(trigger.raw, "gen3", "klingon")):
        with pytest.raises(FormatError, match=r"unknown (target|dialect)"):
            call()


def test_pseudo_dma_trigger_keeps_any_queue_name() -> None:
    word = isa.PseudoDmaTrigger(queue="qSyncPIOParam0", block_id=1)
    assert word.text == "PSEUDO_DMA_TRIGGER qSyncPIOParam0 block_id=1" == word.asm
    longest = isa.PseudoDmaTrigger(queue="q" * 36, block_id=(1 << 32) - 1)
    assert isa.assemble(longest.text) == longest.raw and longest.queue == "q" * 36
    for name in (b"q0\0left over", b"S[1]>=2", b"a b", b"#q", b"x=1", b"{q}", b"\xff\xfe", b"\0q", b"0x12"):
        raw = word.raw[:12] + name.ljust(36, b"\0") + word.raw[48:]
        odd = isa.decode(raw)
        assert odd.text == "PSEUDO_DMA_TRIGGER block_id=1" and "{queue=0x" in odd.asm
        assert isa.assemble(odd.asm) == raw
    assert isa.PseudoDmaTrigger().asm == "PSEUDO_DMA_TRIGGER block_id=0"


def test_immediates_and_pointers_exclude_each_other() -> None:
    number = isa.ActivationExtended(scale=2.5, bias=isa.Bits(7))
    assert "imm=2.5,i7 imm_src=INSTRUCTION,INSTRUCTION" in number.text and number.bias == isa.Bits(7)
    pointer = isa.ActivationExtended(scale_pointer=0x4000, bias_pointer=isa.AccessPattern(0x5000, (1,), (1,)))
    assert "imm=0x4000,0x5000 imm_src=PTR,PTR" in pointer.text
    reads = [(access.operand, access.pattern.address) for access in pointer.reads]
    assert reads == [("scale_pointer", 0x4000), ("bias_pointer", 0x5000)]
    assert pointer.replace(bias=isa.Bits(-1)).bias == isa.Bits(0xFFFFFFFF)
    with pytest.raises(FormatError, match="32 bits"):
        isa.ActivationExtended(bias=isa.Bits(1 << 32))
