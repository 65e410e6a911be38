"""How much of a stream is understood: what counts as decoded, as encoded again, as consistent."""

from __future__ import annotations

from pathlib import Path

from formats import isa
from formats.neff import open_neff
from formats.neff.compilers import CHECKED_COMPILERS, checked_compiler, is_own
from formats.neff.coverage import coverage
from tests.formats.neff.support import changed, fixture

NOP = isa.decode(isa.assemble("NOP cycle=0", "gen2"), "gen2", "neuron")


def with_stream(words: list[bytes]) -> bytes:
    return changed(sg00__DVE_DOT_bin=b"".join(words))


def test_every_word_of_a_sound_file_is_understood() -> None:
    found = coverage(open_neff(fixture()))
    assert found.complete and found.words == sum(found.names.values()) == 13


def test_an_opcode_without_a_class_is_kept_and_does_not_count() -> None:
    strange = b"\x77\x10" + bytes(range(62))
    before = coverage(open_neff(with_stream([NOP.raw])))
    found = coverage(open_neff(with_stream([NOP.raw, strange, strange])))
    assert (found.words, found.decoded) == (before.words + 2, before.decoded)
    assert found.reencoded == before.reencoded and found.consistent == before.consistent
    example = found.unknown["OPCODE_77"]
    assert (example.count, example.place, example.raw) == (2, "sg00/DVE 1", strange.hex())
    assert not found.complete


def test_bits_that_no_field_has_do_not_count_as_encoded_again() -> None:
    raw = bytearray(NOP.raw)
    declared = 0
    for field in type(NOP).FIELDS.values():
        declared |= field.mask
    bit = next(bit for bit in range(512) if not declared >> bit & 1)
    raw[bit // 8] |= 1 << bit % 8
    found = coverage(open_neff(with_stream([bytes(raw)])))
    assert found.decoded == found.words == found.reencoded + 1
    assert found.inexact["NOP"].raw == bytes(raw).hex()


def test_broken_rules_are_counted_without_their_numbers() -> None:
    word = isa.assemble("TENSOR_TENSOR op=ADD src0=fp32@0x4000[1,1,1][64,1,1] src1=fp32@0x5000[1,1,1][64,1,1] "
                        "dst=fp32@0x6000[1,1,1][32,1,1] channels=128", "gen2")  # fmt: skip
    other = isa.assemble("TENSOR_TENSOR op=ADD src0=fp32@0x4000[1,1,1][64,1,1] src1=fp32@0x5000[1,1,1][64,1,1] "
                         "dst=fp32@0x6000[1,1,1][16,1,1] channels=128", "gen2")  # fmt: skip
    found = coverage(open_neff(with_stream([word, other])))
    assert found.reencoded == found.words == found.consistent + 2
    assert [example.count for example in found.inconsistent.values()] == [2] * len(found.inconsistent)


def test_codes_without_a_name_are_listed() -> None:
    word = bytearray(NOP.raw)
    word[4] = 0x33
    found = coverage(open_neff(with_stream([bytes(word)])))
    assert found.unnamed["NOP.wait_mode=0x33"].count == 1 and not found.complete


def test_compilers_are_checked_by_version_and_target(tmp_path: Path) -> None:
    def version(text: str) -> bytes:
        return changed(info_DOT_json=lambda document: document.update(tool_version=text))

    known = {one.arch_code: one for one in CHECKED_COMPILERS}
    assert checked_compiler(open_neff(version(known["sunda"].version))) == known["sunda"]
    # The version for the other target says nothing of this one.
    assert checked_compiler(open_neff(version(known["cayman"].version))) is None
    assert checked_compiler(open_neff(fixture())) is None
    assert is_own("neurontools") and is_own("neurontools 0.1") and not is_own("2.23") and not is_own(None)
    assert checked_compiler(open_neff(changed(info_DOT_json=None))) is None


def test_a_sample_is_even_over_the_streams() -> None:
    whole = open_neff(with_stream([NOP.raw] * 1000))
    found = coverage(whole, 100)
    assert 90 <= found.words <= 110 and found.complete and found.names["NOP"] >= 80
