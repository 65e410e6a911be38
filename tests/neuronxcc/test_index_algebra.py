"""Index expressions and masks against NumPy's numbers, axes of one place among them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import neurontools.neuronxcc.nki as nki
import neurontools.neuronxcc.nki.language as nl
from formats.errors import UnsupportedError
from neurontools.neuronxcc.nki.affine import Index
from neurontools.neuronxcc.nki.masks import masked_boxes, whole_box
from neurontools.nki.errors import NkiValidationError

Pair = tuple[Any, Any]  # the same expression of ours and of NumPy


def values(one: Index) -> Any:
    """Return what an expression says at each place."""
    total: Any = np.full((1,) * one.ndim, one.const)
    for axis, (coefficient, extent) in one.axes.items():
        total = total + coefficient * np.arange(extent).reshape([-1 if at == axis else 1 for at in range(one.ndim)])
    return total


@st.composite
def expressions(draw: st.DrawFn, shape: tuple[int, ...]) -> Pair:
    """Return a sum of one to four terms, each over an axis of that shape or over one place of it."""
    mine: Any = draw(st.integers(-3, 3))
    numbers: Any = mine
    for _ in range(draw(st.integers(1, 4))):
        axis = draw(st.integers(0, len(shape) - 1))
        extent = draw(st.sampled_from((1, shape[axis])))
        key = tuple(slice(None) if place == axis else None for place in range(len(shape)))
        factor, shift, sign = draw(st.integers(-4, 4)), draw(st.integers(-5, 5)), draw(st.sampled_from((1, -1)))
        term = nl.arange(extent)[key] * factor + shift, np.arange(extent)[key] * factor + shift
        mine, numbers = mine + sign * term[0], numbers + sign * term[1]
    return mine, numbers


SHAPES = st.lists(st.integers(1, 6), min_size=1, max_size=4).map(tuple)
PAIRS = SHAPES.flatmap(lambda shape: st.tuples(st.just(shape), expressions(shape), expressions(shape)))


@settings(max_examples=300, deadline=None)
@given(PAIRS)
def test_expressions_count_like_numpy(case: tuple[tuple[int, ...], Pair, Pair]) -> None:
    _, (a, x), (b, y) = case
    for mine, want in ((a, x), (a + b, x + y), (a - b, x - y), (3 - a, 3 - x), (-2 * a, -2 * x)):
        assert mine.shape == want.shape
        np.testing.assert_array_equal(values(mine), want)
        assert mine.bounds() == (want.min(), want.max())
    for divisor in (2, 3):
        try:
            quotient, rest = a // divisor, a % divisor
        except UnsupportedError:
            continue
        np.testing.assert_array_equal(np.broadcast_to(values(quotient), x.shape), x // divisor)
        np.testing.assert_array_equal(np.broadcast_to(values(rest), x.shape), x % divisor)


@settings(max_examples=300, deadline=None)
@given(PAIRS, st.integers(-6, 12))
def test_a_mask_holds_where_numpy_says(case: tuple[tuple[int, ...], Pair, Pair], bound: int) -> None:
    shape, (a, x), (b, y) = case
    for mine, want in (((a < bound) & (b >= -bound), (x < bound) & (y >= -bound)), (a <= b, x <= y), (a == b, x == y),
                       (a != bound, x != bound), ((a < bound) | (b > 2), (x < bound) | (y > 2)), (bound > a, bound > x),
                       (~((a < bound) & (b != 1)), ~((x < bound) & (y != 1))),
                       (~(a == b) | (a > bound), ~(x == y) | (x > bound))):  # fmt: skip
        if any(extent not in (1, size) for extent, size in zip(want.shape, shape, strict=True)):
            continue
        boxes = masked_boxes(mine, shape)
        got = np.zeros(shape, int)
        for box in (whole_box(shape),) if boxes is None else boxes:
            got[tuple(slice(low, high) for low, high in box)] += 1
        np.testing.assert_array_equal(got, np.broadcast_to(want, shape))


@pytest.mark.parametrize("ask", [
    lambda m: m and m, lambda m: m or True, lambda m: not m, lambda m: 0 <= nl.arange(3) < 2, lambda m: m & 3,
    lambda m: m | "x", lambda m: bool(nl.arange(3)), lambda m: list(range(nl.arange(3))),
    lambda m: nl.arange(3) < 1.5, lambda m: nl.arange(3) == "x",
])  # fmt: skip
def test_what_python_would_decide_alone_is_refused(ask: Any) -> None:
    """`and`, `or`, `not` and chained comparisons would silently keep one of two masks."""
    with pytest.raises(NkiValidationError, match=r"true nor false|masks join|masks compare|no single number"):
        ask(nl.arange(4) < 2)


@pytest.mark.parametrize("ask", [
    lambda i: i / 2, lambda i: 2 // i, lambda i: i**2, lambda i: i << 1, lambda i: i & 3, lambda i: abs(i),
    lambda i: i * i, lambda i: i * 0.5, lambda i: i + 0.5, lambda i: 1.5 - i, lambda i: list(i), lambda i: divmod(i, 2),
])  # fmt: skip
def test_arithmetic_that_is_not_affine_is_refused(ask: Any) -> None:
    with pytest.raises(UnsupportedError, match=r"index expression.* is not supported, at"):
        ask(nl.arange(8))


def test_numbers_of_numpy_leave_expressions_and_masks_to_themselves() -> None:
    for number in (np.int64(3), np.int32(3), np.uint8(3)):
        index = nl.arange(8)
        for mine in (number + index, number * index, number - index, index - number):
            assert isinstance(mine, Index)
        for mask in (number > index, index < number, np.bool_(True) & (index < 3)):
            assert masked_boxes(mask, (8,)) == (((0, 3),),)
    np.testing.assert_array_equal(values(np.int64(3) - 2 * nl.arange(8)), 3 - 2 * np.arange(8))


def test_expressions_of_one_place_move_nothing() -> None:
    """Were the coefficients of axes of one place kept, every second element would be read."""
    x = np.arange(4 * 512, dtype=np.float32).reshape(4, 512)

    def kernel(x: Any) -> Any:
        out = nl.zeros((4, 256), nl.float32, buffer=nl.shared_hbm)
        row, column, one = nl.arange(4)[:, None], nl.arange(256)[None, :], nl.arange(1)
        tile = nl.load(x[row + one[:, None], column + 7 * one[None, :]])
        nl.store(out[row, column], tile[row, column + one[:, None]], mask=column + one[None, :] < 200)
        return out

    want = x[:, :256].copy()
    want[:, 200:] = 0
    np.testing.assert_array_equal(nki.jit(kernel)(x), want)


def _walks() -> list[tuple[Any, Any]]:
    """Return forty pairs of index tuples over a (64, 6, 30) tensor, ours and NumPy's."""
    random, found = np.random.default_rng(5), []
    for _ in range(40):
        mine, numbers = [], []
        for axis, extent in enumerate((64, 6, 30)):
            key = tuple(slice(None) if place == axis else None for place in range(3))
            count = int(random.choice([1, 1, extent // 3]))
            step = int(random.integers(1, 3))
            shift = int(random.integers(0, extent - step * (count - 1)))
            other = int(random.integers(0, 3))
            single = tuple(slice(None) if place == other else None for place in range(3))
            mine.append(nl.arange(count)[key] * step + shift + 5 * nl.arange(1)[single])
            numbers.append(np.arange(count)[key] * step + shift + 5 * np.arange(1)[single])
        found.append((tuple(mine), tuple(numbers)))
    return found


def test_walks_read_the_elements_that_numpy_reads() -> None:
    x = np.random.default_rng(6).standard_normal((64, 6, 30), np.float32)
    walks = _walks()

    def kernel(x: Any) -> Any:
        outs = []
        for mine, numbers in walks:
            shape = np.broadcast_shapes(*(one.shape for one in numbers))
            out = nl.ndarray(shape, nl.float32, buffer=nl.shared_hbm)
            nl.store(out, nl.load(x[mine]))
            outs.append(out)
        return tuple(outs)

    for got, (_, numbers) in zip(nki.jit(kernel)(x), walks, strict=True):
        np.testing.assert_array_equal(got, x[numbers])


def test_a_mask_of_fewer_places_than_the_tile_has_is_refused() -> None:
    def kernel(x: Any) -> Any:
        return nl.copy(nl.load(x), mask=nl.arange(64)[:, None] < 32)

    with pytest.raises(NkiValidationError, match="a mask over 64 places of dimension 0 of a tile of"):
        nki.jit(kernel)(np.zeros((128, 4), np.float32))


@pytest.mark.parametrize(("read", "words"), [
    (lambda x, i, j: x[i, j + 1], "indices 1 to 512 leave dimension 1 of size 512"),
    (lambda x, i, j: x[i, j - 1], "indices -1 to 510 leave dimension 1 of size 512"),
    (lambda x, i, j: x[i + 400, j], "indices 400 to 403 leave dimension 0 of size 8"),
    (lambda x, i, j: x[8, j + 0 * i], "indices 8 to 8 leave dimension 0 of size 8"),
    (lambda x, i, j: nl.load(x)[i, j + 1], "indices 1 to 512 leave dimension 1 of size 512"),
])  # fmt: skip
def test_an_index_that_leaves_its_dimension_never_reads_the_next_row(read: Any, words: str) -> None:
    """Rows follow each other in storage, so all but the first of these stay inside of it."""

    def kernel(x: Any) -> Any:
        return nl.copy(read(x, nl.arange(4)[:, None], nl.arange(512)[None, :]))

    with pytest.raises(NkiValidationError, match=words):
        nki.jit(kernel)(np.zeros((8, 512), np.float32))


def test_masks_keep_indices_inside() -> None:
    x = np.random.default_rng(7).standard_normal((8, 512), np.float32)

    def kernel(x: Any) -> Any:
        out = nl.zeros((8, 512), nl.float32, buffer=nl.shared_hbm)
        i, j = nl.arange(8)[:, None], nl.arange(512)[None, :]
        inside = (j + 3 < 512) & (i - 2 >= 0)
        tile = nl.load(x[i - 2, j + 3], mask=inside)
        nl.store(out[i, j], nl.multiply(tile, 2.0, mask=inside), mask=inside)
        nl.store(out[0, j], nl.load(x[-1, j]))
        return out

    want = np.zeros_like(x)
    want[2:, :-3] = 2 * x[:6, 3:]
    want[0] = x[-1]
    np.testing.assert_array_equal(nki.jit(kernel)(x), want)

    def too_little(x: Any) -> Any:
        i, j = nl.arange(8)[:, None], nl.arange(512)[None, :]
        return nl.load(x[i - 2, j + 3], mask=(j + 3 < 512) & (i >= 1))

    with pytest.raises(NkiValidationError, match="indices -1 to 5 leave dimension 0 of size 8"):
        nki.jit(too_little)(x)
