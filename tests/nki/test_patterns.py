"""What `ap` and `reshape` make of a view, from the second time on by its kind, is what their definitions say."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from formats.errors import NeuronError
from formats.targets import resolve_target
from neurontools.builder.trace import View
from neurontools.nki import language as nl
from neurontools.nki.tensor import NkiTensor
from neurontools.nki.tracer import Tracer, tracing

SHAPES = ((128, 64), (64, 2, 32), (8, 4), (16, 1))


def reached(pattern: list[Any], first: int) -> Any:
    """Return the numbers of all elements of a pattern."""
    found = np.array(first)
    for step, count in pattern:
        found = found[..., None] + step * np.arange(count)
    return found


def is_inside(tensor: NkiTensor, pattern: list[Any], first: int) -> bool:
    """Return whether a pattern stays in the allocation, and on chip in the elements of each partition."""
    one = tensor.allocation
    row = one.partition_bytes // tensor.itemsize
    every = reached(pattern, first)
    if every.min() < 0 or every.max() >= row * one.partitions:
        return False
    free = reached(pattern[1:], first)
    return not tensor.on_chip or set((free // row).flat) == {first // row}


def seen(tensor: NkiTensor) -> tuple[Any, ...]:
    """Return all that a view says of itself, and what the builder would read, or the error."""
    try:
        view: Any = tensor.base_view
    except NeuronError as error:
        view = str(error).partition(" at ")[0]
    return tensor.shape, tensor.strides, tensor.offset, tensor.dtype, tensor.name, tensor.is_indirect(), view


def expected(tensor: NkiTensor, pattern: list[Any], first: int) -> View | None:
    """Return what the builder reads of a pattern, None where an operation cannot have it."""
    if not is_inside(tensor, pattern, first):
        return None
    one = tensor.allocation
    if not tensor.on_chip:
        return View(one, tensor.code, 0, 1, first * tensor.itemsize, tuple((step, count) for step, count in pattern))
    row = one.partition_bytes // tensor.itemsize
    (step, count), *free = pattern
    if count > 1 and step != row:
        return None
    dims = tuple((step, count) for step, count in free) or ((1, 1),)
    return View(one, tensor.code, first // row, count, first % row * tensor.itemsize, dims)


def tensors(draw: random.Random) -> list[NkiTensor]:
    """Return tensors of few kinds, and parts of them."""
    found = []
    for number in range(4):
        buffer = draw.choice((nl.sbuf, nl.psum, nl.shared_hbm))
        address = draw.choice((None, (0, 256))) if buffer is not nl.shared_hbm else None
        found.append(nl.ndarray(draw.choice(SHAPES), nl.float32, buffer, name=f"t{number}", address=address))
    parts = [one[draw.choice((0, 4)) :, draw.choice((0, 1)) : 2] for one in found if one.shape[1] > 1]
    return found + parts


@pytest.mark.parametrize("seed", range(30))
def test_patterns_are_what_they_say(seed: int) -> None:
    draw = random.Random(seed)
    inside = 0
    with tracing(Tracer(resolve_target("trn2"))):
        given = tensors(draw)
        for _ in range(120):
            tensor = draw.choice(given)
            row = tensor.strides[0]
            pattern = [
                [draw.choice((row, row, row, 1, 2 * row, -row)), draw.choice((1, 4, 8))],
                *([draw.choice((1, 1, 2, 0, -1)), draw.choice((1, 2, 4))] for _ in range(draw.choice((0, 1, 2)))),
            ]
            offset = draw.choice((None, 0, 0, 1, row, 3 * row + 1, -1, 61))
            dtype = draw.choice((None, tensor.dtype))
            made = tensor.ap(draw.choice((list, tuple))(map(draw.choice((list, tuple)), pattern)), offset, dtype=dtype)
            first = tensor.offset + (offset or 0)
            if tensor.on_chip and 1 < pattern[0][1] <= tensor.shape[0] and pattern[0][0] == tensor.free_size:
                pattern[0][0] = row  # all that a partition of the part has: the next one
            shape, strides, where, kind, name, is_indirect, view = seen(made)
            assert (shape, strides) == (tuple(n for _, n in pattern), tuple(n for n, _ in pattern))
            assert (where, kind, name, is_indirect) == (first, tensor.dtype, tensor.name, False)
            wanted = expected(tensor, pattern, first)
            assert view == wanted if wanted is not None else isinstance(view, str), (pattern, offset)
            inside += wanted is not None
    assert inside > 10


def test_what_is_no_pattern_is_refused_behind_one_that_equals_it() -> None:
    with tracing(Tracer(resolve_target("trn2"))):
        tile = nl.ndarray((128, 64), nl.float32, nl.sbuf, name="tile")
        for _ in range(2):
            assert tile.ap([[64, 128], [1, 32]], 0).shape == (128, 32)
            assert tile.ap(np.array([[64, 128], [1, 32]]), np.int64(0)).shape == (128, 32)
            for pattern in (
                [[64.0, 128], [1, 32]],
                [[64, 128.0], [1, 32]],
                [[64, 128], [1]],
                [[64, 128, 1], [1, 32, 1]],
            ):
                with pytest.raises(NeuronError, match="pairs and an offset"):
                    tile.ap(pattern)
            with pytest.raises(NeuronError, match="pairs and an offset"):
                tile.ap([[64, 128], [1, 32]], 0.5)  # type: ignore[arg-type]  # which is no offset
            with pytest.raises(NeuronError, match="count below 1"):
                tile.ap([[64, 128], [1, 0]])
            with pytest.raises(NeuronError, match="count below 1"):
                tile.ap([])


@pytest.mark.parametrize("seed", range(10))
def test_reshapes_keep_elements_in_their_order(seed: int) -> None:
    draw = random.Random(seed)
    made = 0
    with tracing(Tracer(resolve_target("trn2"))):
        given = [one for one in tensors(draw) if one.on_chip or one.is_contiguous()]
        for _ in range(60):
            tensor = draw.choice(given)
            wanted = draw.choice(
                ((tensor.shape[0], -1), tensor.shape, (tensor.shape[0], 2, -1), (-1,), (*tensor.shape, 1))
            )
            if tensor.on_chip and wanted[0] != tensor.shape[0]:
                continue
            try:
                new = tensor.reshape(wanted)
            except NeuronError as error:
                assert "does not fit" in str(error) or "would need a copy" in str(error)
                continue
            before = reached(tensor.get_pattern(), tensor.offset).flat
            assert [*reached(new.get_pattern(), new.offset).flat] == [*before]
            assert new.shape == tuple(np.empty(tensor.shape).reshape(wanted).shape)
            assert {type(one) for one in new.shape} == {int}
            made += 1
    assert made > 10
