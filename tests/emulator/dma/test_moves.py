"""Every byte that a copy or a transpose moves, against a walk that takes one after the other."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from emulator.device import Device
from emulator.dma.binding import bind, bytes_of, written_by
from emulator.dma.moves import transpose_move, unit_of
from emulator.dma.transfer import Dims, Limit, Part, Request, Side, Transfer
from formats.dtypes import Dtype

PARTITION = 0x40000
ROOM = 1 << 14

TYPES = (Dtype.UINT8, Dtype.FLOAT16, Dtype.FLOAT32)


def rows_of(side: Side, width: int) -> list[int]:
    """Return where each run of a side begins: in its allocation, or in an array of partitions."""
    found = []
    for row in range(side.rows):
        address = side.row_address(row)
        if side.space == "SBUF":
            partition, byte = divmod(address, PARTITION)
            found.append(partition * width + byte)
        else:
            assert side.limit is not None
            found.append(address - side.limit.address)
    return found


@st.composite
def pairs(draw: Any) -> tuple[str, str, Dtype, Dims, int, Dims, int]:
    """Return two sides that hold as many elements: memories, element type, dimensions and runs."""
    spaces = draw(st.sampled_from([("HBM", "SBUF"), ("SBUF", "HBM"), ("HBM", "HBM"), ("SBUF", "SBUF")]))
    dtype = draw(st.sampled_from(TYPES))
    counts = draw(st.sampled_from([(), (1,), (3,), (5, 4), (2, 3, 4)]))
    run = dtype.size * draw(st.sampled_from([1, 2, 3, 4, 8, 9, 12]))
    whole = dtype.size * draw(st.booleans())  # whether one side has single elements apart

    def dims(space: str) -> tuple[Dims, int]:
        length = whole or run
        ends = [*counts, *([run // whole] if whole and run > whole else [])]
        step, made = length, []
        for number, count in reversed(list(enumerate(ends))):
            if space == "SBUF" and number == 0 and len(ends) > 1:
                made.append((PARTITION, count))
                continue
            gap = step + dtype.size * draw(st.integers(0, 2))
            made.append((gap, count))
            step = gap * count
        return tuple(reversed(made)), length

    first = dims(spaces[0])
    whole = whole if draw(st.booleans()) else 0
    return (*spaces, dtype, *first, *dims(spaces[1]))


@settings(max_examples=150, deadline=None)
@given(pairs(), st.integers(0, 40), st.booleans())
def test_a_copy_moves_every_byte(parts: tuple[Any, ...], apart: int, bare: bool) -> None:
    where, there, dtype, dims, run, into_dims, into_run = parts
    device = Device("trn2")
    device.hbm.allocate(ROOM, "before")
    address = device.hbm.allocate(ROOM, "x")
    limit, tensor = Limit("x", address, ROOM), device.hbm.allocations[address]
    random = np.random.default_rng(apart)
    tensor.write(0, random.integers(0, 256, ROOM).astype(np.uint8))
    sbuf = device.cores[0].sbuf
    sbuf[:8, :ROOM] = random.integers(0, 256, (8, ROOM))
    places = {"HBM": (address, limit), "SBUF": (PARTITION, None)}
    source = Side(where, 0, places[where][0], dims, run, dtype, places[where][1])
    # Near enough that sides in one memory overlap: what is read is what was there before.
    begin = places[there][0] + apart * dtype.size
    target = Side(there, 0, begin, into_dims, into_run, dtype, places[there][1])
    width = sbuf.shape[1]
    flat = {"HBM": tensor.data, "SBUF": sbuf.reshape(-1)}
    wanted = {space: data.copy() for space, data in flat.items()}
    taken = b"".join(flat[where][at : at + run].tobytes() for at in rows_of(source, width))
    for number, at in enumerate(rows_of(target, width)):
        wanted[there][at : at + into_run] = np.frombuffer(taken, np.uint8)[number * into_run : (number + 1) * into_run]
    transfer = Transfer(Request(queue="q", core=0, engine="SP", pc=0, parts=(Part("copy", ((source, target),)),)))
    if bare:
        bytes_of(device, transfer)()
        for extent in written_by(device, transfer):
            extent.mark()
    else:
        bind(device, transfer)()
    assert all(np.array_equal(flat[space], wanted[space]) for space in flat)
    if there == "SBUF":
        plane = np.zeros(sbuf.size, np.bool_)
        for at in rows_of(target, width):
            plane[at : at + into_run] = True
        assert np.array_equal(device.cores[0].sbuf_written.reshape(-1), plane)
    device.release()


@settings(max_examples=80, deadline=None)
@given(
    st.tuples(*[st.integers(1, 4)] * 4), st.sampled_from([1, 2, 3, 4, 6, 8]), st.integers(1, 3), st.booleans(),
    st.booleans(),
)  # fmt: skip
def test_a_transpose_is_the_same_with_and_without_a_copy_between(
    shape: tuple[int, int, int, int], element: int, blocks: int, apart: bool, cut: bool
) -> None:
    inner, first, second, outer = shape
    size = inner * first * second * outer * element * blocks
    data = np.random.default_rng(size).integers(0, 256, size).astype(np.uint8)
    # Rows of single elements, apart from each other; or in runs that cut elements.
    source = np.zeros((size // element, element + 5), np.uint8)[:, : element if apart else None]
    source = source if apart else np.zeros(size, np.uint8)
    source[...] = data.reshape(source.shape)
    target = np.zeros((size, 2), np.uint8)[:, :1] if cut else np.zeros((1, size), np.uint8)
    transpose_move(source, target, shape, element)()
    tiles = data.reshape(blocks, inner, second, first, outer, element)
    wanted = [
        tiles[block, i, s, f, o].tobytes()
        for block in range(blocks)
        for o in range(outer)
        for s in range(second)
        for f in range(first)
        for i in range(inner)
    ]
    assert target.tobytes() == b"".join(wanted)


def test_units_stay_together() -> None:
    assert [unit_of(nbytes).itemsize for nbytes in range(1, 40)] == list(range(1, 40))
