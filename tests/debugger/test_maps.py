"""Maps against brute force, cell by cell and byte by byte; and through time travel against looking afresh."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emulator.dtypes import numpy_dtype
from emulator.memory import ChipMemory
from formats.dtypes import Dtype
from formats.errors import NotFoundError
from formats.neff.tiles import Tile
from formats.regions import Region
from neurontools.debugger import Session, UsageError
from neurontools.debugger import blocks as blocks_module
from neurontools.debugger.last_writes import BLOCK, NEVER, LastWrites, blocks_of
from neurontools.debugger.maps import MODES, Maps, cells_of_regions
from neurontools.debugger.opening import open_session
from neurontools.debugger.tile_table import TileTable
from neurontools.debugger.window import Window
from neurontools.text.looks import GLYPHS, magnitude_levels

PARTITIONS, WIDTH = 6, 5 * BLOCK
DTYPES = [
    Dtype.FLOAT32, Dtype.BFLOAT16, Dtype.FLOAT16, Dtype.FLOAT8E3, Dtype.FLOAT8E4, Dtype.FLOAT8E5, Dtype.FLOAT8E4FN,
    Dtype.FLOAT8E8M0, Dtype.INT8, Dtype.UINT8, Dtype.INT16, Dtype.INT32, Dtype.UINT32, Dtype.INT64,
]  # fmt: skip


@st.composite
def windows(draw: Any, partitions: int = PARTITIONS, width: int = WIDTH) -> Window:
    """Return a window that begins inside of the memory; it may reach beyond."""
    step = draw(st.sampled_from([1, 2, 3, 4, 7, 16, 48, 64, 128, 192]))
    byte = draw(st.integers(0, width - 1))
    return Window("SBUF", 0, draw(st.integers(0, partitions - 1)), byte // step * step if draw(st.booleans()) else byte,
                  draw(st.integers(1, 5)), draw(st.integers(1, 9)), draw(st.integers(1, 4)), step)  # fmt: skip


def memory_of(seed: int, share: float) -> ChipMemory:
    """Return a small memory of random bytes, of which a share was written."""
    chance = np.random.default_rng(seed)
    memory = ChipMemory(0, PARTITIONS, WIDTH, WIDTH, BLOCK)
    memory.sbuf[...] = chance.integers(0, 256, memory.sbuf.shape, np.uint8)
    memory.sbuf[chance.random(memory.sbuf.shape) < 0.3] = 0
    memory.sbuf_written[...] = chance.random(memory.sbuf.shape) < share
    return memory


def execution_on(memory: ChipMemory) -> Any:
    """Return what maps need of an execution, without a journal."""
    core = SimpleNamespace(memory=memory, engines={})
    device = SimpleNamespace(cores=[core], steps=1)
    tensors = SimpleNamespace(tiles=lambda core: ())
    return SimpleNamespace(device=device, log=None, events=0, tensors=tensors)


def cell_slices(window: Window, row: int, column: int) -> tuple[slice, slice]:
    """Return the bytes of one cell."""
    top, left = window.partition + row * window.row_step, window.byte + column * window.byte_step
    return slice(top, min(top + window.row_step, PARTITIONS)), slice(left, min(left + window.byte_step, WIDTH))


def elements_of(memory: ChipMemory, part: tuple[slice, slice], dtype: Dtype) -> tuple[list[float], bool]:
    """Return the written elements that have bytes in a cell, once for each byte, and whether one is NaN."""
    kind, found, nan = numpy_dtype(dtype), [], False
    for partition in range(part[0].start, part[0].stop):
        for byte in range(part[1].start, part[1].stop):
            start = byte // kind.itemsize * kind.itemsize
            if memory.sbuf_written[partition, start : start + kind.itemsize].all():
                value = float(memory.sbuf[partition, start : start + kind.itemsize].view(kind)[0])
                nan |= bool(np.isnan(value))
                found += [] if np.isnan(value) else [value]
    return found, nan


@settings(max_examples=50)
@given(windows(), st.sampled_from(DTYPES), st.integers(0, 1 << 30), st.sampled_from([0.0, 0.9, 0.99, 1.0]))
def test_values_are_those_of_brute_force(window: Window, dtype: Dtype, seed: int, share: float) -> None:
    memory = memory_of(seed, share)
    maps = Maps(execution_on(memory))
    largest = maps.cells(window, "value", dtype)
    mean = maps.cells(window, "value", dtype, "mean")
    assert largest.window == window.clipped(PARTITIONS, WIDTH)
    for (row, column), value in np.ndenumerate(largest.cells):
        wanted, nan = elements_of(memory, cell_slices(window, row, column), dtype)
        assert largest.marked[row, column] == mean.marked[row, column] == nan
        if not wanted:
            assert np.isnan(value) and np.isnan(mean.cells[row, column])
            continue
        assert value == np.float32(max(map(abs, wanted)))
        with np.errstate(all="ignore"):
            np.testing.assert_allclose(mean.cells[row, column], np.float32(np.mean(wanted)), rtol=1e-6, atol=1e-30)


@settings(max_examples=40)
@given(windows(), st.integers(0, 1 << 30), st.sampled_from([0.0, 0.5, 1.0]))
def test_unwritten_shares_are_those_of_brute_force(window: Window, seed: int, share: float) -> None:
    memory = memory_of(seed, share)
    found = Maps(execution_on(memory)).cells(window, "unwritten")
    for (row, column), value in np.ndenumerate(found.cells):
        plane = memory.sbuf_written[cell_slices(window, row, column)]
        assert value == pytest.approx(1 - plane.mean())
        assert found.marked[row, column] == plane.any()


@settings(max_examples=40)
@given(windows(), st.data())
def test_the_newest_tile_is_in_every_cell(window: Window, data: st.DataObject) -> None:
    tiles = []
    for number in range(data.draw(st.integers(0, 6))):
        first, byte = data.draw(st.integers(0, PARTITIONS - 1)), data.draw(st.integers(0, WIDTH - 5))
        height, nbytes = data.draw(st.integers(1, PARTITIONS - first)), data.draw(st.integers(1, WIDTH - byte))
        pcs = {e: tuple(sorted((data.draw(st.integers(0, 9)), data.draw(st.integers(0, 9))))) for e in ("PE", "DVE")}
        tiles.append(Tile(f"t{number % 4}", "SBUF", first, height, byte, (height, nbytes), "uint8", pcs))
    pcs = {"PE": data.draw(st.integers(0, 10)), "DVE": data.draw(st.integers(0, 10))}
    core: Any = SimpleNamespace(engines={name: SimpleNamespace(name=name, pc=pc) for name, pc in pcs.items()})
    table = TileTable(tiles, core)
    window = window.clipped(PARTITIONS, WIDTH)
    begun = [t for t in tiles if any(pcs[e] >= t.pcs[e][0] for e in pcs)]
    living = [t for t in begun if any(pcs[e] <= t.pcs[e][1] for e in pcs)]
    newest = [*(t for t in begun if t not in living), *living]
    for (row, column), index in np.ndenumerate(table.cells(window)):
        rows, columns = cell_slices(window, row, column)
        here = [t for t in newest
                if t.partition < rows.stop and t.partition + t.partitions > rows.start
                and t.offset < columns.stop and t.offset + t.partition_bytes > columns.start]  # fmt: skip
        assert (table.names[index] if index >= 0 else None) == (here[-1].name if here else None)
    partition, byte = window.partition, window.byte
    inside = [t for t in newest if t.partition <= partition < t.partition + t.partitions
              and t.offset <= byte < t.offset + t.partition_bytes]  # fmt: skip
    assert table.at(partition, byte) is (inside[-1] if inside else None)


# --- last writes ----------------------------------------------------------------------------------------------------


@st.composite
def regions(draw: Any) -> Region:
    """Return a region, often strided."""
    first, byte = draw(st.integers(0, PARTITIONS - 1)), draw(st.integers(0, WIDTH - 1))
    height = draw(st.integers(1, PARTITIONS - first))
    if draw(st.booleans()):
        return Region("SBUF", 0, first, height, byte, draw(st.integers(1, WIDTH - byte)))
    run = draw(st.integers(1, min(4, WIDTH - byte)))
    step, count = draw(st.integers(run, 100)), draw(st.integers(1, 4))
    count = min(count, (WIDTH - byte - run) // step + 1)
    return Region("SBUF", 0, first, height, byte, step * (count - 1) + run, (((step, count),), run))


def touched(region: Region) -> set[int]:
    """Return the bytes of a partition that a region touches."""
    if region.pattern is None:
        return set(range(region.byte, region.byte + region.nbytes))
    (((step, count),), run) = region.pattern
    return {region.byte + step * at + offset for at in range(count) for offset in range(run)}


@settings(max_examples=40)
@given(st.lists(st.lists(regions(), max_size=3), max_size=40), st.lists(st.integers(0, 40), min_size=1, max_size=6))
def test_last_writes_follow_the_log_forwards_and_back(written: list[list[Region]], stops: list[int]) -> None:
    memory = ChipMemory(0, PARTITIONS, WIDTH, WIDTH, BLOCK)
    log = [SimpleNamespace(number=3 * at, regions=tuple(found)) for at, found in enumerate(written)]
    journal: Any = SimpleNamespace(device=SimpleNamespace(cores=[SimpleNamespace(memory=memory)]), log=log)
    writes = LastWrites(journal)
    writes._apart = 3  # copies every few events, thinned out
    before, turns = [np.full((PARTITIONS, WIDTH // BLOCK), NEVER)], [-1]
    for stop in stops:
        journal.log = log[:stop]
        wanted = np.full((PARTITIONS, WIDTH // BLOCK), NEVER)
        for entry in journal.log:
            for region in entry.regions:
                for block in {byte // BLOCK for byte in touched(region)}:
                    wanted[region.first : region.first + region.partitions, block] = entry.number
        np.testing.assert_array_equal(writes.numbers("SBUF", 0), wanted)
        for numbers, turn in zip(before, turns, strict=True):
            box = writes.changed("SBUF", 0, turn)
            outside = np.ones(wanted.shape, np.bool_)
            outside[box.top : box.bottom, box.left : box.right] = False
            assert not ((numbers != wanted) & outside).any()
        before.append(wanted)
        turns.append(writes.changed("SBUF", 0, -1).turn)


@given(regions(), st.sampled_from([1, 3, 16, 64, 100]))
def test_blocks_of_a_region(region: Region, unit: int) -> None:
    found = blocks_of(region.byte, region.nbytes, region.pattern, unit)
    numbers = set(range(found.start, found.stop)) if isinstance(found, slice) else set(found.tolist())
    assert numbers == {byte // unit for byte in touched(region)}


@settings(max_examples=40)
@given(windows(), st.lists(regions(), max_size=3))
def test_cells_that_regions_meet(window: Window, given_regions: list[Region]) -> None:
    window = window.clipped(PARTITIONS, WIDTH)
    for (row, column), meets in np.ndenumerate(cells_of_regions(window, tuple(given_regions))):
        rows, columns = cell_slices(window, row, column)
        assert meets == any(
            region.first < rows.stop and region.first + region.partitions > rows.start
            and touched(region) & set(range(columns.start, columns.stop))
            for region in given_regions
        )  # fmt: skip


# --- sessions -------------------------------------------------------------------------------------------------------


@pytest.fixture
def attention(root: Path) -> Session:
    """Return a session at the beginning of the attention example."""
    return open_session(root / "examples" / "attention.py")


def test_maps_after_time_travel_are_those_of_a_fresh_look(attention: Session) -> None:
    used = attention.inspector.maps.used("SBUF", 0)
    window = Window("SBUF", 0, 0, used[0], 16, -(-(used[1] - used[0]) // BLOCK), 8, BLOCK)
    bank = window._replace(space="PSUM", byte=0, columns=16, byte_step=1024)
    for event in (10, 40, 20, 21, 66, 5, 67, 66, 0, 50):
        attention.goto(f"#{event}")
        fresh = Maps(attention.execution)
        for where in (window, bank):
            for mode in MODES:
                for dtype in (Dtype.FLOAT32, Dtype.BFLOAT16):
                    kept, wanted = attention.inspector.maps.cells(where, mode, dtype), fresh.cells(where, mode, dtype)
                    np.testing.assert_array_equal(kept.cells, wanted.cells)
                    np.testing.assert_array_equal(kept.marked, wanted.marked)
        # Blocks that something wrote are the blocks that the memory itself knows to be written.
        shares = fresh.cells(window, "unwritten").cells
        np.testing.assert_array_equal(fresh.cells(window, "age").marked, shares < 1)


def test_scrolled_windows_of_a_run_are_those_of_a_fresh_look(attention: Session) -> None:
    first, behind = attention.inspector.maps.used("SBUF", 0)
    half = (behind - first) // BLOCK // 2
    left = Window("SBUF", 0, 0, first, 8, half, 16, BLOCK)
    windows = left, left._replace(byte=first + half * BLOCK), left._replace(partition=64, rows=4)
    for number, event in enumerate((12, 13, 30, 31, 58, 45, 46, 67)):
        attention.goto(f"#{event}")
        for window in (windows[number % 3], windows[number // 3]):
            for mode in ("tensor", "unwritten"):
                kept = attention.inspector.maps.cells(window, mode)
                wanted = Maps(attention.execution).cells(window, mode)
                np.testing.assert_array_equal(kept.cells, wanted.cells)
                np.testing.assert_array_equal(kept.marked, wanted.marked)


def test_what_is_written_whole_is_not_counted_again(attention: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    attention.goto("end")
    first, behind = attention.inspector.maps.used("SBUF", 0)
    window = Window("SBUF", 0, 0, first, 8, -(-(behind - first) // BLOCK), 16, BLOCK)
    attention.goto("#40")
    attention.inspector.maps.cells(window, "unwritten")
    read: list[int] = []
    true = blocks_module.figures_of
    monkeypatch.setattr(blocks_module, "figures_of", lambda data, *rest: read.append(len(data)) or true(data, *rest))
    attention.goto("end")
    found = attention.inspector.maps.cells(window, "unwritten")
    numbers = attention.inspector.maps.numbers("SBUF", 0)
    assert numbers is not None and 0 < sum(read) < (numbers >= 40).sum(), "blocks of reused tiles were whole before"
    np.testing.assert_array_equal(found.cells, Maps(attention.execution).cells(window, "unwritten").cells)


def test_only_the_window_and_what_changed_is_read(attention: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    read = []
    true = blocks_module.figures_of

    def counted(data: Any, *rest: Any) -> Any:
        read.append(data.size)
        return true(data, *rest)

    monkeypatch.setattr(blocks_module, "figures_of", counted)
    attention.goto("#30")
    maps = attention.inspector.maps
    queries = next(tile for tile in attention.tensors.tiles(0) if tile.name == "queries")
    window = Window("SBUF", 0, 0, queries.offset, 4, 4, 16, 256)
    maps.cells(window, "value")
    read[0] = 0  # what a map begins with
    assert sum(read) == 64 * 1024
    read.clear()
    maps.cells(window, "value")
    attention.step(5)
    maps.cells(window, "value")
    assert not read, "nothing wrote there"


def test_without_a_journal_maps_look_anew_after_every_completion(attention: Session) -> None:
    session = Session(attention.neff, attention.inputs, journal_bytes=0)
    window = Window("SBUF", 0, 0, 0x4000, 1, 1, 128, 8192)
    shares = []
    while session.step().completions:
        found = session.inspector.maps.cells(window, "unwritten")
        plane = session.device.cores[0].memory.sbuf_written[:, 0x4000:0x6000]
        shares.append(float(found.cells[0, 0]))
        assert shares[-1] == pytest.approx(1 - plane.mean())
    assert len(set(shares)) > 5
    age = session.inspector.maps.cells(window, "age")
    assert not age.kept and (age.cells == NEVER).all()


def test_a_map_begins_anew_with_the_program(attention: Session) -> None:
    window = Window("SBUF", 0, 0, 0x4000, 1, 1, 128, 8192)
    attention.step(40)
    assert attention.inspector.maps.cells(window, "age").cells[0, 0] > 0
    attention.restart()
    assert attention.inspector.maps.cells(window, "age").cells[0, 0] == NEVER


@pytest.mark.parametrize(
    ("change", "mode", "error"),
    [
        ({"space": "HBM"}, "age", NotFoundError),
        ({"core": 7}, "age", NotFoundError),
        ({"partition": 128}, "age", NotFoundError),
        ({"byte": 1 << 20}, "age", NotFoundError),
        ({"rows": 0}, "age", UsageError),
        ({"byte_step": 0}, "age", UsageError),
        ({}, "beauty", UsageError),
    ],
)
def test_what_is_no_map(attention: Session, change: dict[str, Any], mode: str, error: type[Exception]) -> None:
    window = Window("SBUF", 0, 0, 0, 4, 4, 1, 64)._replace(**change)
    with pytest.raises(error):
        attention.inspector.maps.cells(window, mode)


def test_the_legend_has_every_sign_that_is_shown() -> None:
    nothing = np.zeros((1, 2), np.bool_)
    for values, there in (([1.0, np.inf], True), ([1.0, 2.0], False)):
        _, legend = magnitude_levels(np.array([values]), nothing)
        assert ({GLYPHS[number]: text for number, text in legend}.get("∞") == "inf") == there
