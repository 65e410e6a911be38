"""Shared intermediate arrays: one buffer per position, never too small, never shared inside a word."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from emulator.scratch import Arena, arena_of, scratch, taking_from

SHAPES = st.lists(st.tuples(st.integers(0, 60), st.integers(1, 60)), max_size=5)


class Owner:
    pass


@given(st.lists(SHAPES, max_size=5))
def test_arrays_of_one_word_never_overlap(words: list[list[tuple[int, int]]]) -> None:
    arena = Arena()
    for shapes in words:
        with taking_from(arena):
            arrays = [scratch(shape, np.float32) for shape in shapes]
        for number, array in enumerate(arrays):
            assert array.shape == shapes[number] and array.dtype == np.float32
            array.fill(number)
        assert all((array == number).all() for number, array in enumerate(arrays))


def test_words_of_one_core_share_and_cores_do_not() -> None:
    one, other = Owner(), Owner()
    assert arena_of(one) is arena_of(one) is not arena_of(other)
    with taking_from(arena_of(one)):
        a, b = scratch((8, 8), np.float32), scratch((8, 8), np.float32)
    with taking_from(arena_of(one)):
        c = scratch((4, 4), np.int16)
    assert np.shares_memory(a, c) and not np.shares_memory(a, b)
    assert not np.shares_memory(scratch((8, 8), np.float32), a)  # outside of binding: an array of its own


def test_a_replaced_buffer_stays_valid_for_who_has_it() -> None:
    arena = Arena()
    with taking_from(arena):
        small = scratch((16,), np.float32)
    with taking_from(arena):
        large = scratch((1 << 16,), np.float32)
    small.fill(1)
    large.fill(2)
    assert (small == 1).all() and not np.shares_memory(small, large)
