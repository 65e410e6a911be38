"""Columns say what decoding word by word says."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formats import isa
from formats.errors import FormatError
from formats.isa.extension_dma import WidePattern
from formats.isa.operand import DmaAddressField, DmaPatternField, Pattern
from tests.formats.isa.strategies import EXTENSION, REAL, own_bytes


def agree(data: bytes, target: str, dialect: str) -> None:
    words = isa.decode_stream(data, target, dialect)
    found = isa.columns_by_class(data, target, dialect)
    assert sorted(i for c in found.values() for i in c["index"].tolist()) == list(range(len(words)))
    for cls, table in found.items():
        index = table["index"].tolist()
        assert index == sorted(index) and {type(words[i]) for i in index} == {cls}
        for name, field in (cls.HEADER if cls is isa.Unknown else cls.FIELDS).items():
            parts = [words[i].raw[field.offset : field.offset + field.size] for i in index]
            values = [field.read(words[i].raw) for i in index]
            if isinstance(field, Pattern | DmaPatternField | WidePattern):
                assert table[f"{name}.steps"].tolist() == [list(v.steps) for v in values]
                assert table[f"{name}.counts"].tolist() == [list(v.counts) for v in values]
                if isinstance(field, Pattern):
                    assert table[f"{name}.address"].tolist() == [v.address for v in values]
            elif isinstance(field, DmaAddressField) or field.kind in ("float32", "immediate"):
                assert table[name].tobytes() == b"".join(parts)
            elif field.kind in ("text", "bytes"):
                assert [bytes(row) for row in table[name]] == parts
            else:
                assert table[name].tolist() == values


@settings(max_examples=40)
@given(data=st.data(), target=st.sampled_from(["gen2", "gen3"]), dialect=st.sampled_from(["neuron", "extended"]))
def test_columns_of_real_words(data: st.DataObject, target: str, dialect: str) -> None:
    anything = st.binary(min_size=64, max_size=64).filter(lambda raw: raw[0] != isa.EXTENSION_OPCODE)
    words = st.sampled_from(REAL).flatmap(own_bytes) | anything
    agree(b"".join(data.draw(st.lists(words, max_size=8))), target, dialect)


@settings(max_examples=20)
@given(data=st.data())
def test_columns_of_streams_with_extension_words(data: st.DataObject) -> None:
    words = st.sampled_from(EXTENSION + REAL[:3]).flatmap(own_bytes)
    agree(b"".join(data.draw(st.lists(words, min_size=1, max_size=6))), "gen3", "extended")


@pytest.mark.parametrize("cls", EXTENSION, ids=lambda cls: cls.NAME)
def test_columns_of_every_extension_word(cls: type[isa.Instruction]) -> None:
    agree(cls().raw * 2, "gen4", "extended")


def test_columns_of_one_class_and_of_the_header() -> None:
    data = isa.Nop(cycle=5, wait_mode=5, wait_index=7, wait_value=70000).raw + isa.Drain().raw + isa.Nop(cycle=6).raw
    nops = isa.columns(data, isa.Nop)
    assert nops["index"].tolist() == [0, 2] and nops["cycle"].tolist() == [5, 6]
    assert isa.columns(data)["wait_value"].tolist() == [70000, 0, 0] and isa.columns(data)["opcode"].dtype == np.uint8
    assert list(isa.columns_by_class(data)) == [isa.Drain, isa.Nop] and isa.columns_by_class(b"") == {}
    for read, bad in ((isa.columns, data[:-1]), (isa.columns_by_class, data[:-1]), (isa.columns, isa.Select().raw)):
        with pytest.raises(FormatError):
            read(bad)


def test_words_with_codes_of_ours_are_unknown_columns_in_the_neuron_dialect() -> None:
    data = b"".join(isa.Activate(function=code).raw for code in (7, 0xC7, 130)) + isa.Memset(value=1.0).raw
    found = isa.columns_by_class(data)
    assert {cls: table["index"].tolist() for cls, table in found.items()} == {isa.Activate: [0, 2], isa.Unknown: [1, 3]}
    assert isa.columns_by_class(data, dialect="extended")[isa.Activate]["function"].tolist() == [7, 0xC7, 130]
