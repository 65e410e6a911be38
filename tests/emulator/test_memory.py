"""Physical memories and their written planes."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator import buffers
from emulator.device_memory import DeviceMemory
from emulator.errors import LoadError
from emulator.faults import FaultError
from emulator.memory import FRESH, ChipMemory
from formats.regions import Region


@pytest.fixture
def chip() -> ChipMemory:
    return ChipMemory(0, 128, 1024, 256, 64)


def test_fresh_memory_is_poison_and_unwritten(chip: ChipMemory) -> None:
    assert (chip.sbuf == FRESH).all() and (chip.psum == FRESH).all()
    assert np.isnan(chip.sbuf.view(np.float32)).all()
    assert not chip.sbuf_written.any()
    assert chip.check_written("SBUF", 0, 128, 0, 1024) == 128 * 1024


def test_marking_is_per_byte(chip: ChipMemory) -> None:
    chip.mark_written("PSUM", 3, 5, 10, 20)
    assert chip.psum_written.sum() == 20
    assert chip.check_written("PSUM", 3, 5, 10, 20) == 0
    assert chip.check_written("PSUM", 2, 5, 9, 20) == 3 * 11 - 20


def test_a_strided_extent_covers_only_its_elements(chip: ChipMemory) -> None:
    extent = chip.extent(Region("SBUF", 0, 0, 2, 8, 28, (((16, 2),), 4)))
    extent.mark()
    assert np.flatnonzero(chip.sbuf_written[1]).tolist() == [8, 9, 10, 11, 24, 25, 26, 27]
    assert chip.extent(Region("SBUF", 0, 0, 2, 8, 28, (((16, 2),), 4))) is extent


def test_known_extents_are_forgotten_on_demand(chip: ChipMemory) -> None:
    chip.mark_written("SBUF", 0, 1, 0, 8)
    chip.sbuf_written[0, 4] = False
    assert chip.check_written("SBUF", 0, 1, 0, 8) == 0  # known to be full
    chip.forget()
    assert chip.check_written("SBUF", 0, 1, 0, 8) == 1


@given(
    st.lists(st.tuples(st.integers(0, 127), st.integers(1, 128), st.integers(0, 255), st.integers(1, 256)), max_size=8)
)
def test_the_count_of_missing_bytes_is_that_of_the_plane(rectangles: list[tuple[int, int, int, int]]) -> None:
    chip = ChipMemory(0, 128, 256, 64, 64)
    model = np.zeros((128, 256), bool)
    for p0, partitions, b0, nbytes in rectangles:
        p1, b1 = min(128, p0 + partitions), min(256, b0 + nbytes)
        assert chip.check_written("SBUF", p0, p1, b0, b1) == (~model[p0:p1, b0:b1]).sum()
        chip.mark_written("SBUF", p0, p1, b0, b1)
        model[p0:p1, b0:b1] = True
    assert (chip.sbuf_written == model).all()


def test_hbm_hands_out_aligned_ranges_that_do_not_meet() -> None:
    hbm = DeviceMemory(((0x1000, 1 << 20), (1 << 30, 1 << 20)), reserve=16)
    a, b = hbm.allocate(100, "a", align=64), hbm.allocate(100, "b", align=4096)
    assert a % 64 == 0 and b % 4096 == 0 and b >= a + 100
    assert hbm.allocate((1 << 20) - 64, "c", align=16) >= 1 << 30
    with pytest.raises(LoadError, match="d: no HBM left for 2097152 bytes"):
        hbm.allocate(1 << 21, "d")


def test_hbm_outside_of_allocations_is_a_fault_that_names_the_neighbour() -> None:
    hbm = DeviceMemory(((0, 1 << 22),))
    start = hbm.allocate(64, "weights")
    hbm.view(start, 64)
    for address, nbytes in ((start + 60, 8), (start - 1, 1), (start + 64, 1)):
        with pytest.raises(FaultError) as caught:
            hbm.view(address, nbytes)
        fault = caught.value.fault
        assert (fault.kind, fault.address) == ("oob", (address, address + nbytes))
    with pytest.raises(FaultError) as caught:
        hbm.view(start + 60, 8)
    assert "weights ends at" in str(caught.value.fault.expected)


def test_hbm_tracks_written_bytes() -> None:
    hbm = DeviceMemory(((0, 1 << 22),))
    whole, part = hbm.allocate(8, "whole"), hbm.allocate(8, "part")
    hbm.write(whole, bytes(range(8)))
    hbm.write(part + 2, b"ab")
    assert hbm.view(whole, 8).tolist() == list(range(8)) and hbm.check_written(whole, 8) == 0
    assert hbm.view(part, 8).tobytes() == b"\xff\xffab\xff\xff\xff\xff" and hbm.check_written(part, 8) == 6
    hbm.mark_written(part, 2)
    assert hbm.check_written(part, 8) == 4


def test_arrays_of_one_byte_are_their_own() -> None:
    """They share pages until somebody writes; one that was given back is not handed out with what it held."""
    size = 3 << 20
    one, two = buffers.filled(size, 0xFF), buffers.filled(size, 0xFF)
    one[::4096] = 7
    assert (two == 0xFF).all() and (buffers.filled(size + (1 << 20), 0xFF) == 0xFF).all()
    assert (one[::4096] == 7).all() and one[1] == 0xFF
    buffers.give(one.reshape(3, -1))
    assert (buffers.filled(size, 0xFF) == 0xFF).all() and (buffers.filled(size, 1) == 1).all()
    assert (buffers.filled(100, 0xFF) == 0xFF).all() and (buffers.filled(1 << 26, 2)[-1]) == 2


@pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="this host has no files in memory to map from")
def test_what_nobody_writes_takes_no_memory_again() -> None:
    """Thirty devices' worth of fresh memory; the host counts pages that are this process's own."""

    def own() -> int:
        lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
        return sum(int(line.split()[1]) for line in lines if line.startswith(("Private_Dirty", "Private_Clean")))

    buffers.filled(24 << 20, 0xFF)
    before = own()
    kept = [buffers.filled(24 << 20, 0xFF) for _ in range(30)]
    assert kept[-1][-1] == 0xFF and own() - before < 30 << 10


def test_a_renewed_memory_is_as_a_new_one() -> None:
    """What was written through regions, through whole arrays, or set apart: nothing of it stays."""
    chip, new, other = (ChipMemory(0, 128, 1024, 512, 64) for _ in range(3))

    def by_region() -> None:
        region = Region("SBUF", 0, 3, 7, 100, 64, None)
        chip.array("SBUF")[3:10, 100:164] = 7
        chip.extent(region).mark()

    def by_steps() -> None:
        region = Region("PSUM", 0, 0, 128, 200, 36, (((8, 5),), 4))
        chip.array("PSUM")[:, 200:236] = 1
        chip.extent(region).mark()

    def by_hand() -> None:
        chip.sbuf[127, 1023] = 1
        chip.written("PSUM")[0, 0] = True

    def set_apart() -> None:
        chip.set_fresh("PSUM", 5, 2, 16, 8, bytes(4))

    def restored() -> None:
        chip.restore(other.snapshot())

    other.sbuf[60, 900:1000] = 3
    other.mark_written("SBUF", 60, 61, 900, 1000)
    for acts in (
        (by_region,),
        (by_steps, by_region),
        (by_hand,),
        (set_apart,),
        (restored,),
        (by_region, set_apart),
        (),
    ):
        for act in acts:
            act()
        chip.renew()
        assert chip.set_apart == []
        for space in ("SBUF", "PSUM"):
            assert np.array_equal(chip.array(space), new.array(space)), acts
            assert not chip.written(space).any(), acts
        assert all(extent.missing() == extent.size for extent in chip.extents.values())


@pytest.mark.parametrize("byte", [0, 0xFF])
@pytest.mark.parametrize("size", [1 << 12, 3 << 20, 1 << 26])
def test_an_array_is_renewed_in_its_place(byte: int, size: int) -> None:
    """Small ones, mapped ones, and those that are too large to share pages; views see what the array is then."""
    array = (buffers.filled(size, byte) if byte else buffers.blank(size)).reshape(4, -1)
    view = array[1:3, 5:100]
    for _ in range(2):
        array[:, ::512] = 7
        view[...] = 9
        buffers.renew(array, byte)
        assert (array == byte).all() and (view == byte).all()
    again = buffers.filled(size, 0xFF)
    buffers.renew(again, 3)  # another byte than it was made of
    assert (again == 3).all()
