"""JSON on lines is the standard library's, byte for byte."""

from __future__ import annotations

import json
from enum import IntEnum, StrEnum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formats.indented import indented_json


class Number(IntEnum):
    TWO = 2


class Word(StrEnum):
    ONE = "one"


LEAVES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(), st.just(Number.TWO), st.just(Word.ONE)
)
KEYS = st.one_of(st.text(), st.text(), st.text(), st.integers(), st.booleans(), st.none(), st.floats(allow_nan=False))


def nested(keys: Any) -> Any:
    return st.recursive(
        LEAVES,
        lambda inner: st.one_of(st.lists(inner), st.tuples(inner, inner), st.dictionaries(keys, inner)),
        max_leaves=30,
    )


@given(nested(KEYS), st.integers(0, 4))
def test_any_value_is_written_as_the_standard_library_writes_it(value: Any, indent: int) -> None:
    assert indented_json(value, indent) == json.dumps(value, indent=indent)


@given(nested(st.text()))
def test_keys_are_sorted_as_there(value: Any) -> None:
    assert indented_json(value, 1, sort_keys=True) == json.dumps(value, indent=1, sort_keys=True)


@pytest.mark.parametrize("value", [object(), {"a": [b""]}, {(1, 2): 3}, {"a": 1, 2: 3}])
def test_what_json_refuses_is_refused(value: Any) -> None:
    with pytest.raises(TypeError):
        json.dumps(value, indent=1, sort_keys=True)
    with pytest.raises(TypeError):
        indented_json(value, 1, sort_keys=True)
