"""What is noted as written, and ranges that answer for their parts, against a plane that is written at once."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from emulator.device_memory import DeviceMemory
from emulator.extents import Ranges, merged
from emulator.memory import ChipMemory
from formats.regions import Pattern, Region

WIDTH = 64
PATTERNS: tuple[Pattern | None, ...] = (None, None, None, (((16, 2),), 4), (((8, 3),), 2), (((20, 2), (6, 2)), 3))
REGIONS = st.builds(
    lambda first, partitions, byte, nbytes, pattern: Region(
        "SBUF", 0, first, min(partitions, 128 - first), byte,
        min(nbytes, WIDTH - byte) if pattern is None else reach(pattern), pattern,
    ),
    st.sampled_from((0, 0, 0, 32, 64, 127)), st.sampled_from((1, 32, 64, 128, 128, 128)),
    st.integers(0, WIDTH - 30), st.sampled_from((1, 4, 8, 16, 64)), st.sampled_from(PATTERNS),
)  # fmt: skip


def reach(pattern: Pattern) -> int:
    """Return the bytes from the first to behind the last."""
    steps, run = pattern
    return run + sum(step * (count - 1) for step, count in steps)


def under(plane: np.ndarray[Any, Any], region: Region) -> np.ndarray[Any, Any]:
    """Return the part of a plane under a region."""
    offset, shape, strides = region.walk(plane.shape[1])
    return np.ndarray(shape, np.bool_, plane, offset, strides)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(("mark", "mark", "ask", "known", "look", "back")), REGIONS), max_size=30))
def test_what_is_noted_counts_as_written_and_nothing_else_does(steps: list[tuple[str, Region]]) -> None:
    chip, model = ChipMemory(0, 128, WIDTH, 64, 64), np.zeros((128, WIDTH), np.bool_)
    for what, region in steps:
        part = under(model, region)
        if what == "mark":
            chip.extent(region).mark()
            part[...] = True
        elif what == "ask":
            assert chip.extent(region).missing() == part.size - np.count_nonzero(part)
        elif what == "known":
            assert part.all() or not chip.known_written(region)
        elif what == "look":
            assert (chip.sbuf_written == model).all()
        else:  # as time travel does
            under(chip.written("SBUF"), region)[...] = False
            part[...] = False
            chip.forget()
    assert (chip.sbuf_written == model).all() and chip.written_bytes("SBUF") == model.sum()


def test_a_part_of_what_is_noted_is_known_without_a_plane() -> None:
    chip = ChipMemory(0, 128, 4096, 64, 64)
    for byte in (0, 2048, 1024):
        chip.extent(Region("SBUF", 0, 0, 128, byte, 1024)).mark()
    # Over the border of two tiles, with gaps, in some of the partitions.
    for parts in ((0, 128, 900, 200), (32, 64, 0, 3072), (5, 1, 2047, 2)):
        assert chip.extent(Region("SBUF", 0, *parts)).missing() == 0
    assert chip.extent(Region("SBUF", 0, 0, 128, 8, 1028, (((512, 3),), 4))).missing() == 0
    assert len(chip.notes.extents) == 3 and not chip.plane("SBUF").any()
    assert chip.extent(Region("SBUF", 0, 0, 128, 3000, 200)).missing() == 128 * 128
    assert chip.extent(Region("PSUM", 0, 0, 128, 0, 64)).missing() == 128 * 64


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(1, 9)), max_size=20))
def test_ranges_are_those_of_a_set_of_bytes(given_: list[tuple[int, int]]) -> None:
    ranges, held = Ranges(), set[int]()
    for low, nbytes in given_:
        ranges.add(("SBUF", 0, 0, 4, low, nbytes, None))
        held |= set(range(low, low + nbytes))
        for at in range(0, 50, 3):
            for size in (1, 2, 7):
                inside = set(range(at, at + size)) <= held
                assert ranges.covers(("SBUF", 0, 1, 2, at, size, None)) == inside
    assert not ranges.covers(("PSUM", 0, 0, 4, 0, 1, None)) and not ranges.covers(("SBUF", 0, 2, 4, 0, 1, None))


def test_notes_do_not_pile_up() -> None:
    hbm = DeviceMemory(((0, 1 << 22),))
    found = hbm.find(hbm.allocate(1 << 16, "out"))
    assert found is not None
    for number in range(10_000):
        found.extent(number * 4, ((8, 2),), 4).mark()
    assert len(found.notes.extents) < 5000
    assert found.written_bytes == 0  # nobody looked at the bytes
    assert int(found.written.sum()) == 10_002 * 4 and not found.notes.extents


def test_an_allocation_forgets_its_notes_when_its_plane_does() -> None:
    hbm = DeviceMemory(((0, 1 << 22),))
    found = hbm.find(hbm.allocate(64, "x"))
    assert found is not None

    def noted() -> Any:
        extent = found.extent(8, ((16, 2),), 4)
        extent.mark()
        return extent

    fresh = found.snapshot()
    assert found.is_blank and found.extent(0, (), 64).missing() == 64 and found.is_blank, "it takes no plane to say so"
    noted()
    assert found.data.size and np.flatnonzero(found.snapshot().written).tolist() == [8, 9, 10, 11, 24, 25, 26, 27]
    for change in (found.untouch, found.doubt, lambda: found.restore(fresh)):
        noted()
        change()
        assert not found.written.any(), change
    noted()
    found.write(0, np.zeros(64, np.uint8))
    assert found.whole and found.extent(0, (), 64).missing() == 0
    assert not found.notes.extents


WALKS = st.tuples(
    st.integers(0, 40),
    st.lists(st.tuples(st.integers(-6, 24), st.integers(1, 4)), max_size=3).map(tuple),
    st.sampled_from((1, 2, 4)),
)


def touched(offset: int, dims: tuple[tuple[int, int], ...], run: int) -> list[int]:
    """Return the bytes of a walk, as often as it touches each."""
    found = [offset + at for at in range(run)]
    for step, count in dims:
        found = [byte + step * at for byte in found for at in range(count)]
    return sorted(found)


@given(WALKS)
def test_what_is_merged_touches_the_same_bytes_as_often(walk: tuple[int, tuple[tuple[int, int], ...], int]) -> None:
    offset, dims, run = walk
    assert touched(offset, *merged(dims, run)) == touched(offset, dims, run)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(("mark", "mark", "ask", "look", "back")), WALKS), max_size=20))
def test_an_allocation_knows_what_is_written_however_walks_cut_it(
    steps: list[tuple[str, tuple[int, tuple[tuple[int, int], ...], int]]],
) -> None:
    hbm = DeviceMemory(((0, 1 << 22),))
    found = hbm.find(hbm.allocate(512, "x"))
    assert found is not None and found.data.size
    model = np.zeros(512, np.bool_)
    for what, (offset, dims, run) in steps:
        offset += 64  # steps go down, too
        bytes_ = touched(offset, dims, run)
        if what == "mark":
            found.extent(offset, dims, run).mark()
            model[bytes_] = True
        elif what == "ask":
            assert found.extent(offset, dims, run).missing() == np.count_nonzero(~model[bytes_])
        elif what == "look":
            assert (found.written == model).all()
        else:  # as time travel does
            found.written[bytes_] = model[bytes_] = False
    assert (found.written == model).all()


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 7), st.integers(1, 4), st.integers(0, 9)), max_size=24),
    st.booleans(),
)
def test_columns_of_rows_that_make_all_of_a_tensor_need_no_plane(
    parts: list[tuple[int, int, int, int]], whole: bool
) -> None:
    """Stores of tiles: four bands of rows, each by columns of eight pieces; some begin in the middle of a piece."""
    hbm = DeviceMemory(((0, 1 << 22),))
    found = hbm.find(hbm.allocate(4 * 5 * 64, "x"))
    assert found is not None and found.laid.size
    model = np.zeros((20, 64), np.bool_)
    tiles = [(band, 8 * piece + max(0, shift - 6), 8 * many) for band, piece, many, shift in parts]
    tiles += [(band, 16 * piece, 16) for band in range(4) for piece in range(4)] if whole else []
    for band, column, nbytes in tiles:
        nbytes = min(nbytes, 64 - column)
        found.extent(5 * 64 * band + column, ((64, 5),), nbytes).mark()
        model[5 * band : 5 * band + 5, column : column + nbytes] = True
    bands = model.reshape(4, -1).all(axis=1)
    assert found._is_one_range == bool(model.all())
    assert [found.notes.cover(("HBM", 0, 0, 1, 320 * band, 320, None)) for band in range(4)] == bands.tolist()
    assert found._written is None and found.written_bytes == np.count_nonzero(model)
    assert (found.written == model.reshape(-1)).all()


def test_one_walk_cut_differently_needs_no_plane() -> None:
    chip = ChipMemory(0, 128, 4096, 64, 64)
    chip.extent(Region("SBUF", 0, 0, 128, 0, 2290, (((18, 128),), 4))).mark()
    assert chip.extent(Region("SBUF", 0, 0, 128, 0, 2290, (((576, 4), (18, 32)), 4))).missing() == 0
    # A transfer that transposes walks partitions last.
    chip.strided_extent(3000, ((2, 128), (4096 * 128, 1), (4096, 128)), 2).mark()
    assert chip.extent(Region("SBUF", 0, 0, 128, 3000, 256)).missing() == 0
    assert not chip.plane("SBUF").any()
    assert chip.strided_extent(3000, ((2, 128), (8192, 2)), 2).missing() == 0, "not one region"
    hbm = DeviceMemory(((0, 1 << 22),))
    found = hbm.find(hbm.allocate(1 << 16, "x"))
    assert found is not None
    found.extent(0, ((1024, 32), (512, 2)), 512).mark()
    assert found.extent(0, ((256, 2), (512, 60)), 256).missing() == 0
    assert not found.plane.any()
