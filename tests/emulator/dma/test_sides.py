"""Sides of transfers in memory: found once for a place, and doubted with their memory."""

from __future__ import annotations

import pytest

from emulator.device import Device
from emulator.dma.sides import find_side
from emulator.dma.transfer import Dims, Part, Request, Side, Transfer
from formats.dtypes import Dtype

PARTITION = 0x40000


@pytest.mark.parametrize(
    "dims",
    [
        ((PARTITION, 4),),
        ((PARTITION, 4), (128, 3)),  # one run in each partition, in other words
        ((PARTITION, 4), (512, 3)),
        ((PARTITION + 256, 4), (512, 3)),  # across, which is no region
    ],
)
def test_a_place_in_sbuf_is_found_once_and_forgotten_with_its_memory(dims: Dims) -> None:
    device = Device("trn2")
    memory = device.cores[0].memory
    fresh = memory.snapshot()
    side = Side("SBUF", 0, 2 * PARTITION + 64, dims, 128, Dtype.FLOAT32)
    transfer = Transfer(Request(queue="q", core=0, engine="SP", pc=0, parts=(Part("copy", ((side, side),)),)))
    for dtype in (None, Dtype.FLOAT32):
        found = find_side(device, transfer, side, "dst", dtype)
        assert found is not None and found is find_side(device, transfer, side, "src", dtype)
        array, extent = found
        assert extent is not None and extent.size == side.nbytes == array.nbytes
        assert extent.missing() == side.nbytes
        extent.mark()
        assert not extent.missing() and memory.written_bytes("SBUF") == side.nbytes
        memory.restore(fresh)
        assert find_side(device, transfer, side, "src", dtype) is found
        assert extent.missing() == side.nbytes and not memory.written_bytes("SBUF")
    device.release()
