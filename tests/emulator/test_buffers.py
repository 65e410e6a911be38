"""Buffers that wait for the next run: which of them is given, and which are dropped where there are too many."""

from __future__ import annotations

import numpy as np
import pytest

from emulator import buffers


@pytest.fixture(autouse=True)
def _nobody_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(buffers, "_free", {})
    monkeypatch.setattr(buffers, "_kept", 0)
    buffers._returned.clear()


def test_what_was_given_last_is_taken_first_as_the_same_object() -> None:
    first, second = buffers.take(1 << 15), buffers.filled(1 << 15, 0xFF)
    buffers.give(first)
    buffers.give(second)
    assert buffers.take(1 << 15) is second and buffers.blank(1 << 15) is first
    assert not first.any() and buffers._kept == 0
    assert buffers.take(1 << 15) is not first  # nothing waits any more
    buffers.give(second.reshape(128, -1).view(np.bool_))
    assert np.shares_memory(buffers.take(1 << 15), second)


def test_sizes_that_nobody_asks_for_make_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(buffers, "_MOST_KEPT", 10 << 15)
    old, used = [buffers.take(3 << 15) for _ in range(2)], [buffers.take(2 << 15) for _ in range(3)]
    for each in (*used, *old):
        buffers.give(each)
    assert buffers._kept == 10 << 15  # one of `used` had to go
    assert buffers.take(2 << 15) is used[2]
    buffers.give(used[2])
    buffers.give(buffers.take(2 << 14))
    assert buffers._kept == 8 << 15
    assert buffers.take(3 << 15) is old[1] and buffers.take(2 << 15) is used[2] and buffers.take(2 << 15) is used[1]
    assert buffers.take(3 << 15) is not old[0]
    for nbytes in np.random.default_rng(0).integers(1 << 14, 6 << 15, 300):
        waiting = buffers.take(int(nbytes))
        buffers.give(waiting)
        assert buffers._kept == sum(nbytes * len(each) for nbytes, each in buffers._free.items()) <= 10 << 15
        assert all(buffers._free.values())
    huge = buffers.take(11 << 15)
    buffers.give(huge)
    assert not buffers._free and buffers._kept == 0


def test_what_was_handed_over_comes_back_when_nobody_has_it() -> None:
    own, other = buffers.take(1 << 15), buffers.take(1 << 15)
    handed = buffers.hand_over(own)
    assert np.shares_memory(handed, own) and handed.shape == own.shape and handed.flags.writeable
    part = handed.view(np.float32).reshape(64, -1)[3:5]
    buffers.give(other)
    del handed
    assert buffers.take(1 << 15) is other and buffers.take(1 << 15) is not own  # a part of it is in use
    buffers.give(other)
    del part
    assert buffers.take(1 << 15) is other  # what was given goes first, as a program gave it
    assert buffers.take(1 << 15) is own and buffers._kept == 0
    small = buffers.take(1 << 10)
    assert buffers.hand_over(small) is small


def test_few_of_those_that_come_back_wait() -> None:
    handed = [buffers.hand_over(buffers.take(1 << 15)) for _ in range(40)]
    del handed
    assert len(buffers._returned) == buffers._MOST_RETURNED
    buffers.give(buffers.take(1 << 15))
    assert buffers._kept == buffers._MOST_RETURNED << 15 and not buffers._returned
