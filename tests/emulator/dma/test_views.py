"""Sides of transfers as strided views: every byte in the place that the pattern says, nothing outside."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator.dma.transfer import Part, Request, Side, Transfer
from emulator.dma.views import sbuf_geometry, strided
from formats.dtypes import Dtype

STRIDE = 0x40000
WIDTH, PARTITIONS = 4096, 128


class _OutsideError(Exception):
    pass


def _refuse(low: int, high: int, allowed: str) -> None:
    raise _OutsideError(allowed)


def _sbuf(side: Side) -> np.ndarray:
    memory = np.arange(PARTITIONS * WIDTH, dtype=np.uint32).view(np.uint8).reshape(-1)[: PARTITIONS * WIDTH].copy()
    memory = memory.reshape(PARTITIONS, WIDTH)
    return memory, strided(memory, sbuf_geometry(side, WIDTH, PARTITIONS, _refuse), side, np.dtype(np.uint8))


@st.composite
def sides(draw: st.DrawFn) -> Side:
    run = draw(st.integers(1, 32))
    dims = tuple(
        (
            draw(
                st.sampled_from(
                    [0, 1, 2, 8, 64, -3, -64, STRIDE, 2 * STRIDE, STRIDE + 4, STRIDE - 4, -STRIDE, -STRIDE + 4]
                )
            ),
            draw(st.integers(1, 6)),
        )
        for _ in range(draw(st.integers(0, 3)))
    )
    address = draw(st.integers(0, PARTITIONS - 1)) * STRIDE + draw(st.integers(0, WIDTH - run))
    return Side("SBUF", 0, address, dims, run, Dtype.UINT8)


def _walk(side: Side) -> list[tuple[int, int]] | None:
    """Return (partition, byte) of every byte in walk order, or None where one is outside."""
    found = []
    for row in range(side.rows):
        partition, byte = divmod(side.row_address(row), STRIDE)
        if not 0 <= partition < PARTITIONS or byte + side.run > WIDTH:
            return None
        found += [(partition, byte + offset) for offset in range(side.run)]
    return found


@given(sides())
def test_sbuf_view_is_the_walk(side: Side) -> None:
    expected = _walk(side)
    if expected is None:
        with pytest.raises(_OutsideError):
            _sbuf(side)
        return
    try:
        memory, view = _sbuf(side)
    except _OutsideError:
        # Refused although every single byte is inside: only where dimensions leave their box and come back.
        assert sum(count > 1 for _, count in side.dims) > 1
        return
    assert view.reshape(-1).tolist() == [int(memory[place]) for place in expected]


def test_sbuf_bounds_name_what_is_touched() -> None:
    side = Side("SBUF", 0, WIDTH - 16, ((STRIDE, 128),), 32, Dtype.UINT8)
    with pytest.raises(
        _OutsideError, match=r"bytes 0 to 0xfff; touched are partitions 0 to 127, bytes 0xff0 to 0x100f"
    ):
        _sbuf(side)


def test_side_span_with_negative_steps() -> None:
    side = Side("HBM", 0, 1000, ((-100, 3), (10, 4)), 8, Dtype.UINT8)
    assert side.span == (800, 1038)
    assert (side.rows, side.nbytes) == (12, 96)


@given(rows=st.integers(1, 40), run=st.sampled_from([4, 512, 65536, 65540, 200_000]), cast=st.booleans())
def test_descriptors_cover_the_copy(rows: int, run: int, cast: bool) -> None:
    source = Side("HBM", 0, 0, ((1 << 20, rows),), run, Dtype.FLOAT32)
    target = Side(
        "HBM", 0, 1 << 32, ((1 << 20, rows),), run // 2 if cast else run, Dtype.FLOAT16 if cast else Dtype.FLOAT32
    )
    transfer = Transfer(Request(queue="q", core=0, engine="SP", pc=0, parts=(Part("copy", ((source, target),)),)))
    found = list(transfer.descriptors(0, transfer.pieces))
    assert sum(d.nbytes for d in found) == source.nbytes
    assert max(d.nbytes for d in found) <= 65536
    for d in found:
        row, byte = divmod(d.source, 1 << 20)
        assert d.destination == (1 << 32) + (row << 20) + (byte // 2 if cast else byte)
    assert found[3:5] == list(transfer.descriptors(3, 5))
