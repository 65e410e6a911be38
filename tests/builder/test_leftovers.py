"""Bytes between tiles at one address of the kernel: given away as a last resort, and only where nobody reads them."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emulator import runtime
from formats.neff import open_neff
from neurontools.builder import AllocationError, build
from neurontools.builder.allocate import allocate
from neurontools.builder.tiles import lives_of, place_tiles
from neurontools.builder.trace import Allocation, LoopEndOp, LoopOp, Space, View
from tests.builder.maker import I32, Maker
from tests.builder.order import unordered
from tests.builder.test_sinking import SIZE, SMALL

LINE = "kernel.py", 1
BANK = SMALL.psum_bank // 4  # fp32 elements
SLOTS = (SMALL.sbuf_end - SMALL.sbuf_first) // 64


def whole_banks(later: str) -> Maker:
    """Return a kernel with two tiles on each bank, and one of 64 bytes between; what the later ones do is `later`."""
    m = Maker()
    x, y = m.input("x", (SIZE, SIZE)), m.output("y", (8 * SIZE, SIZE))
    weights, ones = m.sbuf((SIZE, SIZE)), m.sbuf((SIZE, SIZE))
    m.dma(weights, x)
    m.memset(ones, 2.0)
    row = 0

    def out(tile: Allocation | View) -> None:
        nonlocal row
        copy = m.sbuf((SIZE, SIZE))
        m.copy(copy, tile if isinstance(tile, View) else m.view(tile, slice(None), slice(SIZE)))
        m.dma(m.view(y, slice(row * SIZE, row * SIZE + SIZE)), copy)
        row += 1

    def bank(number: int) -> Allocation:
        return m.psum((SIZE, BANK), address=(0, number * SMALL.psum_bank))

    def product(tile: Allocation, accumulate: bool | None = None) -> None:
        m.matmul(m.view(tile, slice(None), slice(SIZE)), weights, ones, accumulate)

    banks = range(SMALL.psum_bytes // SMALL.psum_bank)
    for number in banks:
        tile = bank(number)
        m.memset(tile, 1.0 + number)
        out(tile)
    small = m.psum((SIZE, SIZE))
    product(small)
    out(small)
    if later == "other name":  # of a part of the bytes, before they are overwritten
        out(m.psum((SIZE, BANK // 2), address=(0, 0)))
        out(m.psum((SIZE, BANK // 2), address=(0, SMALL.psum_bank)))
    if later == "loop":
        count = m.sbuf((1, 1), I32)
        m.memset(count, 2)
        m.trace.ops.append(LoopOp(m.view(count), True, LINE))
    for number in banks:
        tile = bank(number)
        if later == "products":
            product(tile)
        elif later == "adding":
            product(tile, True)
        elif later == "a half":
            m.memset(m.view(tile, slice(SIZE // 2)), 0.0)
        elif later != "read":
            m.memset(tile, 0.0)
        out(tile)
    if later == "loop":
        m.trace.ops.append(LoopEndOp(LINE))
    return m


@pytest.mark.parametrize("later", ["overwritten", "products"])
def test_bytes_between_two_tiles_are_given_away_where_the_later_one_writes_what_it_reads(later: str) -> None:
    m = whole_banks(later)
    with pytest.raises(AllocationError, match=r"0 of 4096 are taken by 0 live tensors; 4096 more are held"):
        allocate(lives_of(m.trace), SMALL)
    x = np.random.default_rng(1).standard_normal((SIZE, SIZE)).astype(np.float32)
    with patch("neurontools.builder.built.chip_of", lambda _: SMALL):
        data = build([m.trace], "banks").to_bytes()
    found = runtime.run(data, {"x": x}).outputs["y"].reshape(8, SIZE, SIZE)
    product = x.T @ np.full((SIZE, SIZE), 2, np.float32)
    assert unordered(open_neff(data)) == []
    np.testing.assert_array_equal(found[0], np.full((SIZE, SIZE), 1))
    np.testing.assert_array_equal(found[1], np.full((SIZE, SIZE), 2))
    np.testing.assert_allclose(found[2], product, rtol=1e-5)
    for row in found[3:5]:
        np.testing.assert_allclose(row, product if later == "products" else 0, rtol=1e-5)


@pytest.mark.parametrize("later", ["read", "a half", "adding", "other name", "loop"])
def test_bytes_that_a_later_tile_may_read_are_kept(later: str) -> None:
    m = whole_banks(later)
    with pytest.raises(AllocationError) as caught:
        place_tiles(m.trace, SMALL)
    text = str(caught.value)
    assert "\n" not in text
    assert text.startswith("PSUM is full: p8 needs 64 bytes per partition (kernel.py:9), 0 of 4096 are taken by 0 live")
    assert "4096 more are held at addresses that the kernel chose" in text
    assert "2048 from byte 0 on for p4 (kernel.py:3) and p" in text


def test_a_tile_at_an_address_that_comes_while_another_lives_is_named() -> None:
    m = Maker()
    first = m.psum((SIZE, BANK))
    m.memset(first)
    for number in range(2):
        m.copy(m.psum((SIZE, BANK), address=(0, number * SMALL.psum_bank)), first)
    with pytest.raises(AllocationError, match=r"a tile comes while this one lives.*: 2048 from byte \d+ on for p\d "):
        place_tiles(m.trace, SMALL)


steps = st.lists(
    st.tuples(
        st.sampled_from(["new", "write", "write", "left", "right", "read", "read left", "read right", "free", "free"]),
        st.integers(0, SLOTS - 1),
    ),
    min_size=10,
    max_size=40,
)


@settings(max_examples=60)
@given(steps)
def test_what_is_kept_under_another_name_stays(given_steps: list[tuple[str, int]]) -> None:
    """Every slot of SBUF has tiles at its address in turn; outputs are those of a memory that only they write."""
    m = Maker()
    y = m.output("y", (64 * SIZE, SIZE))
    want = np.full((64, SIZE, SIZE), np.nan, np.float32)
    memory = np.full((SLOTS, SIZE, SIZE), np.nan, np.float32)
    parts = {"": slice(None), "left": slice(SIZE // 2), "right": slice(SIZE // 2, None)}
    row = 0

    def slot(number: int) -> Allocation:
        return m.sbuf((SIZE, SIZE), address=(0, SMALL.sbuf_first + 64 * number))

    tiles = [slot(number) for number in range(SLOTS)]
    everything = [("write", number) for number in range(SLOTS)]
    for value, (what, number) in enumerate([*everything, *given_steps, *everything], 1):
        tile = tiles[number]
        if what == "new":
            tiles[number] = slot(number)
        elif what == "free":
            free = m.sbuf((SIZE, SIZE))
            m.memset(free, float(value))
            m.dma(m.view(y, slice(row * SIZE, row * SIZE + SIZE)), free)
            want[row] = value
            row += 1
        else:
            part = parts[what.removeprefix("write").removeprefix("read").strip()]
            if what.startswith("read"):
                m.dma(m.view(y, slice(row * SIZE, row * SIZE + SIZE), part), m.view(tile, slice(None), part))
                want[row, :, part] = memory[number, :, part]
                row += 1
            else:
                m.memset(m.view(tile, slice(None), part), float(value))
                memory[number, :, part] = value
    try:
        with patch("neurontools.builder.built.chip_of", lambda _: SMALL):
            data = build([m.trace], "slots").to_bytes()
    except AllocationError as error:
        assert "free" in dict(given_steps) and "SBUF is full" in str(error)
        return
    found = runtime.run(data, {}).outputs["y"].reshape(want.shape)
    known = ~np.isnan(want)
    np.testing.assert_array_equal(found[known], want[known])


def test_slots_of_the_property_are_given_away_at_all() -> None:
    """Between a tile that was read and one that overwrites it a free tile finds its place, elsewhere none."""
    m = Maker()
    for number in range(SLOTS):
        m.memset(m.sbuf((SIZE, SIZE), address=(0, SMALL.sbuf_first + 64 * number)))
    free = m.sbuf((SIZE, SIZE))
    m.memset(free)
    m.copy(m.psum((SIZE, SIZE)), free)
    for number in range(SLOTS):
        later = m.sbuf((SIZE, SIZE), address=(0, SMALL.sbuf_first + 64 * number))
        m.memset(m.view(later, slice(None), slice(SIZE if number == 3 else SIZE // 2)))
        m.copy(m.psum((SIZE, SIZE)), later)
    _, tiles = place_tiles(m.trace, SMALL)
    assert tiles.places[free.id] == (0, SMALL.sbuf_first + 64 * 3)
    assert free.space is Space.SBUF
