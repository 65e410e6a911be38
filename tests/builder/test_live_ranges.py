"""Tiles filled anew are taken apart, constants filled in late: only where nothing is lost, and results stay."""

from __future__ import annotations

import json
from collections import Counter
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emulator import runtime
from formats import isa
from formats.neff import open_neff
from neurontools.builder import AllocationError, build
from neurontools.builder.allocate import allocate
from neurontools.builder.live_ranges import split_live_ranges
from neurontools.builder.sinking import sink_fills
from neurontools.builder.tiles import lives_of
from neurontools.builder.trace import Allocation, BarrierOp, IndirectDmaOp, LoopEndOp, LoopOp
from tests.builder.maker import I32, Maker, interpret
from tests.builder.order import unordered
from tests.builder.test_sinking import SIZE, SMALL

LINE = "kernel.py", 1


def refilled() -> Maker:
    """Return a kernel that keeps a tile in mind while it uses seven others, and then loads it anew."""
    m = Maker()
    x, y = m.input("x", (SIZE, SIZE)), m.output("y", (9 * SIZE, SIZE))

    def out(row: int, tile: Allocation) -> None:
        m.dma(m.view(y, slice(row * SIZE, row * SIZE + SIZE)), tile)

    kept = m.sbuf((SIZE, SIZE))
    m.dma(kept, x)
    out(0, kept)
    others = [m.sbuf((SIZE, SIZE)) for _ in range(7)]
    for one in others:
        m.dma(one, x)
    for row, one in enumerate(others):
        m.add(others[row - 1], others[row - 1], one)
    for row, one in enumerate(others):
        out(row + 1, one)
    m.dma(kept, x)
    m.add(kept, kept, kept)
    out(8, kept)
    return m


def test_a_tile_that_is_loaded_anew_gives_its_bytes_away_in_between() -> None:
    m = refilled()
    with pytest.raises(AllocationError, match="SBUF is full"):
        allocate(lives_of(m.trace), SMALL)
    with patch("neurontools.builder.built.chip_of", lambda _: SMALL):
        data = build([m.trace], "refilled").to_bytes()
    neff = open_neff(data)
    assert unordered(neff) == []
    x = np.random.default_rng(0).integers(-3, 4, (SIZE, SIZE)).astype(np.float32)
    np.testing.assert_array_equal(runtime.run(data, {"x": x}).outputs["y"], interpret(m.trace, {"x": x})["y"])
    # The debugger's map has both lives under the name that the kernel knows.
    names = Counter(tile["name"] for tile in json.loads(neff.subgraphs[0].read("tiles.json")))
    assert names.pop("t2") == 2 and set(names.values()) == {1}


def kept_whole(kind: str) -> Maker:
    """Return a program that writes a tile twice, the second time in a way that does not begin a new life."""
    m = Maker()
    x, y = m.input("x", (SIZE, SIZE)), m.output("y", (SIZE, SIZE))
    count, other = m.sbuf((1, 1), I32), m.sbuf((SIZE, SIZE))
    m.memset(count, 1)
    m.dma(other, x)
    tile = m.sbuf((SIZE, SIZE), address=(0, 0x8000) if kind == "address" else None)
    m.copy(tile, other)
    m.dma(y, tile)
    if kind == "part":
        m.copy(m.view(tile, slice(0, 8)), m.view(other, slice(0, 8)))
    elif kind == "columns":
        m.copy(m.view(tile, slice(None), slice(0, SIZE, 2)), m.view(other, slice(None), slice(0, SIZE, 2)))
    elif kind == "itself":
        m.add(tile, tile, other)
    elif kind == "not every element":
        m.compute(isa.CopyPredicated, "DVE", {"src": other, "predicate": other, "dst": tile})
    elif kind in ("skip", "scatter", "accumulate"):
        rows = m.view(x)
        index = m.view(count)
        m.trace.ops.append(IndirectDmaOp(m.view(tile), rows, index, 4, 0, "Pool", LINE, **{kind: True}))
    elif kind == "loop":
        m.trace.ops.append(LoopOp(m.view(count), True, LINE))
        m.copy(tile, other)
        m.trace.ops.append(LoopEndOp(LINE))
    elif kind == "meeting":
        m.trace.ops.append(BarrierOp(LINE, data=m.view(tile)))
        m.copy(tile, other)
    else:
        m.copy(tile, other)
    m.dma(y, tile)
    return m


@pytest.mark.parametrize("kind", ["address", "part", "columns", "itself", "not every element", "skip", "scatter",
                                  "accumulate", "loop", "meeting"])  # fmt: skip
def test_what_may_still_be_read_stays_in_its_place(kind: str) -> None:
    m = kept_whole(kind)
    assert split_live_ranges(m.trace, lives_of(m.trace)) is None


def test_an_overwritten_tile_is_taken_apart() -> None:
    """The twin of those above: the very same program with a full overwrite."""
    m = kept_whole("all of it")
    split = split_live_ranges(m.trace, lives_of(m.trace))
    assert split is not None
    assert [life.allocation.name for life in lives_of(split)].count("t4") == 2
    assert len({life.allocation.id for life in lives_of(split)}) == 4


def sums(begin: bool | None) -> Maker:
    m = Maker()
    x, y = m.input("x", (SIZE, SIZE)), m.output("y", (SIZE, SIZE))
    base, out, total = m.sbuf((SIZE, SIZE)), m.sbuf((SIZE, SIZE)), m.psum((SIZE, SIZE))
    m.dma(base, x)
    m.matmul(total, base, base)
    m.copy(out, total)
    m.matmul(total, base, base, accumulate=begin)
    m.add(out, out, total)
    m.dma(y, out)
    return m


@pytest.mark.parametrize("begin", [None, True, False])
def test_only_a_product_that_overwrites_begins_a_new_life(begin: bool | None) -> None:
    m = sums(begin)
    split = split_live_ranges(m.trace, lives_of(m.trace))
    assert (split is not None) == (begin is False)
    x = np.random.default_rng(1).integers(-3, 4, (SIZE, SIZE)).astype(np.float32)
    result = runtime.run(build([split or m.trace], "sums").to_bytes(), {"x": x})
    np.testing.assert_array_equal(result.outputs["y"], interpret(m.trace, {"x": x})["y"])


def changing(data: st.DataObject) -> Maker:
    """Return a program that writes three tiles again and again, in whole and in part, and reads them in between."""
    m = Maker()
    x, y = m.input("x", (SIZE, SIZE)), m.output("y", (12 * SIZE, SIZE))
    base = m.sbuf((SIZE, SIZE))
    m.dma(base, x)
    tiles = [m.sbuf((SIZE, SIZE)) for _ in range(3)]
    for tile in tiles:
        m.memset(tile, 1.0)
    row = 0
    for _ in range(data.draw(st.integers(4, 14))):
        kind = data.draw(st.sampled_from(["load", "fill", "copy", "part", "columns", "add", "read", "read"]))
        one, other = data.draw(st.permutations(tiles))[:2]
        if kind == "load":
            m.dma(one, x)
        elif kind == "fill":
            m.memset(one, float(data.draw(st.integers(0, 3))))
        elif kind == "copy":
            m.copy(one, other)
        elif kind == "part":
            m.copy(m.view(one, slice(0, 8)), m.view(other, slice(0, 8)))
        elif kind == "columns":
            m.add(*[m.view(tile, slice(None), slice(0, 8)) for tile in (one, other, base)])
        elif kind == "add":
            m.add(one, one, other)
        elif row < 9:
            m.dma(m.view(y, slice(row * SIZE, row * SIZE + SIZE)), one)
            row += 1
    for tile in tiles:
        m.dma(m.view(y, slice(row * SIZE, row * SIZE + SIZE)), tile)
        row += 1
    return m


def test_random_programs_keep_their_results() -> None:
    seen: Counter[str] = Counter()

    @settings(max_examples=120)
    @given(st.data(), st.integers(0, 3))
    def one(data: st.DataObject, seed: int) -> None:
        m = changing(data)
        split = split_live_ranges(m.trace, lives_of(m.trace))
        seen["apart" if split else "whole"] += 1
        other = sink_fills(split or m.trace, lives_of(split or m.trace))
        x = np.random.default_rng(seed).integers(-2, 3, (SIZE, SIZE)).astype(np.float32)
        expected = interpret(m.trace, {"x": x})["y"]
        np.testing.assert_array_equal(interpret(other, {"x": x})["y"], expected)
        built = build([other], "random").to_bytes()
        assert unordered(open_neff(built)) == []
        result = runtime.run(built, {"x": x}, seed=seed)
        np.testing.assert_array_equal(result.outputs["y"], expected)

    one()
    assert seen["apart"] >= 40, seen


def test_constants_are_filled_in_where_they_are_wanted() -> None:
    m = Maker()
    x, y = m.input("x", (SIZE, SIZE)), m.output("y", (SIZE, SIZE))
    count, early, late, base = m.sbuf((1, 1), I32), m.sbuf((SIZE, SIZE)), m.sbuf((SIZE, SIZE)), m.sbuf((SIZE, SIZE))
    m.memset(count, 1)  # 0: wanted by the loop
    m.memset(early, 1.0)  # 1: wanted in front of it
    m.memset(late, 2.0)  # 2: wanted behind it, and goes no further than to its head
    m.dma(base, x)  # 3
    m.add(base, base, early)  # 4
    m.trace.ops.append(LoopOp(m.view(count), True, LINE))  # 5
    m.add(count, count, count)
    m.trace.ops.append(LoopEndOp(LINE))
    m.add(base, base, late)
    m.dma(y, base)
    ops = m.trace.ops
    moved = sink_fills(m.trace, lives_of(m.trace))
    assert [ops.index(op) for op in moved.ops] == [3, 1, 4, 0, 2, 5, 6, 7, 8, 9]
    m.trace.after = {3: {1}}  # what others wait for stays in front of them
    moved = sink_fills(m.trace, lives_of(m.trace))
    assert [ops.index(op) for op in moved.ops] == [1, 3, 4, 0, 2, 5, 6, 7, 8, 9] and moved.after == {1: {0}}
