"""The rule by which captures are held out was stated before anything was fitted: it never changes."""

from __future__ import annotations

import pytest

from neurontools.validation.captures import held_out


@pytest.mark.parametrize(
    ("path", "held"),
    [
        ("asst4-trainium2/part1/stream_256k_fd1k.ntff", True),
        ("asst4-trainium2/part1/transpose_1024.ntff", False),
        ("cs149-pa4/part2/my_conv_kernel_float32_smaller.ntff", False),
    ],
)
def test_the_split_is_the_one_that_was_stated(path: str, held: bool) -> None:
    assert held_out(path) is held
