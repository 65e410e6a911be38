"""Protobuf messages that are declared as data."""

from __future__ import annotations

import pytest

from formats.messages import message_types

_DECLARED = """
message Outer {
  repeated Inner inner = 1; string name = 2; int64 count = 3; repeated fixed64 ids = 4; double share = 5;
}
message Inner { bool yes = 1; bytes data = 15; }
"""


def test_messages_go_out_and_come_back() -> None:
    outer = message_types("tests.messages", _DECLARED)["Outer"]
    made = outer(name="n", count=-1, ids=[7], share=0.5)
    made.inner.add(yes=True, data=b"x")
    raw = made.SerializeToString()
    assert raw == bytes.fromhex("0a050801 7a0178 12016e 18ffffffffffffffffff01 210700000000000000 29000000000000e03f")
    again = outer.FromString(raw)
    assert again == made and again.inner[0].data == b"x"


def test_a_field_knows_whether_it_was_set() -> None:
    inner = message_types("tests.messages", _DECLARED)["Inner"]
    assert not inner().HasField("yes") and inner(yes=False).HasField("yes")
    with pytest.raises(ValueError, match="no"):
        inner(nothing=1)
