"""What counts as a number in text."""

from __future__ import annotations

import pytest

from formats.errors import FormatError
from formats.isa.syntax import parse_integer, parse_scalar
from formats.numerals import parse_decimal, parse_signed

ODD = ["", "²", "٣", "1_000", "0b1", "0o7", "1e3", " 1", "1 ", "0x", "--1", "+", "9" * 5000 + "x", "1.0", "０"]


@pytest.mark.parametrize("text", ODD)
def test_what_is_no_number(text: str) -> None:
    assert parse_decimal(text) is None
    with pytest.raises(ValueError, match="is no integer"):
        parse_signed(text)
    with pytest.raises(FormatError, match="not a number"):
        parse_integer(text, "field")


def test_numbers() -> None:
    assert [parse_decimal(text) for text in ("0", "007", "123456789", "1234567890")] == [0, 7, 123456789, None]
    assert parse_decimal("1234567890", 10) == 1234567890
    assert [parse_signed(text) for text in ("0", "-7", "007", "0x1F", "-0X10")] == [0, -7, 7, 31, -16]


def test_more_digits_than_python_reads() -> None:
    assert parse_decimal("9" * 5000) is None
    with pytest.raises(ValueError, match="digits"):
        parse_signed("9" * 5000)
    with pytest.raises(FormatError):
        parse_integer("9" * 5000, "field")


@pytest.mark.parametrize("text", ["i²", "i--5", "i٣"])
def test_integer_bits_of_a_scalar(text: str) -> None:
    with pytest.raises(FormatError, match="not a number"):
        parse_scalar(text, "scalar")
