"""Which engine moves each byte, against a walk element by element; whether rings keep an order, against all bytes."""

from __future__ import annotations

from itertools import product
from math import prod

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from emulator.cost.dma import dma_costs
from emulator.dma.course import PACKET_BYTES, Course
from emulator.dma.ring_order import keeps_order, runs_of
from emulator.dma.transfer import Part, Request, Side, Transfer
from formats.dtypes import Dtype
from formats.neuron_core import DESCRIPTOR_LIMIT
from formats.regions import Region

COSTS = dma_costs("trn2")._replace(rows_per_engine=2)
F32, BF16 = Dtype.FLOAT32, Dtype.BFLOAT16
ALL = Region("HBM", 0, 0, 1, 0, 1 << 40)


def transfer(*copies: tuple[Side, Side], op: str = "copy") -> Transfer:
    made = Transfer(Request(queue="q", core=0, engine="SP", pc=0, parts=tuple(Part(op, (pair,)) for pair in copies)))
    made.course = Course(made.facts, 4, "hardware", PACKET_BYTES, COSTS)
    return made


@st.composite
def sides(draw: st.DrawFn, elements: int, dtype: Dtype = F32) -> Side:
    run = draw(st.sampled_from([one for one in (1, 2, 3, 4, 6) if elements % one == 0]))
    rows = elements // run
    outer = draw(st.sampled_from([one for one in range(1, rows + 1) if rows % one == 0]))
    steps = [dtype.size * draw(st.integers(0, 9)) for _ in range(2)]
    dims = tuple((step, count) for step, count in zip(steps, (outer, rows // outer), strict=True) if count > 1)
    return Side("HBM", 0, 4 * draw(st.integers(0, 12)), dims, run * dtype.size, dtype)


@st.composite
def transfers(draw: st.DrawFn) -> Transfer:
    pairs = []
    for _ in range(draw(st.integers(1, 2))):
        elements = draw(st.sampled_from([6, 12, 24]))
        narrow = draw(st.booleans())
        pairs.append((draw(sides(elements)), draw(sides(elements, BF16 if narrow else F32))))
    return transfer(*pairs)


def by_byte(made: Transfer, writes: bool) -> list[tuple[int, int]]:
    """Return (byte, engine) of everything that is written or read, by walking both sides of each copy."""
    found = []
    start = 0
    for source, target in made.copies:

        def addresses(side: Side) -> list[int]:
            rows = [side.address + sum(step * at for (step, _), at in zip(side.dims, place, strict=True))
                    for place in product(*(range(count) for _, count in side.dims))]  # fmt: skip
            return [row + byte for row in rows for byte in range(side.run)]

        per_row = max(1, -(-source.run // DESCRIPTOR_LIMIT))
        ratio = (source.dtype.size, target.dtype.size) if source.nbytes != target.nbytes else (1, 1)
        for place, byte in enumerate(addresses(target if writes else source)):
            at = place // ratio[1] * ratio[0] if writes else place
            number = start + at // source.run * per_row + at % source.run // DESCRIPTOR_LIMIT
            found.append((byte, next(e for e, (first, last) in enumerate(made.shares) if first <= number < last)))
        start += prod(count for _, count in source.dims) * per_row
    return found


@given(transfers(), st.booleans())
def test_every_byte_has_its_engine(made: Transfer, writes: bool) -> None:
    runs = runs_of(made, writes, "HBM", 0)
    assert sorted(
        (byte, engine)
        for low, high, engine in zip(*(one.tolist() for one in runs), strict=True)
        for byte in range(low, high)
    ) == sorted(by_byte(made, writes))


@settings(max_examples=300)
@given(transfers(), st.booleans(), transfers(), st.booleans())
def test_order_is_kept_where_each_byte_stays_on_its_engine(
    old: Transfer, old_writes: bool, new: Transfer, new_writes: bool
) -> None:
    before = by_byte(old, old_writes)
    expected = all(mine == engine for byte, engine in by_byte(new, new_writes) for at, mine in before if at == byte)
    if not expected and old.copies == new.copies and old_writes == new_writes:
        return  # bytes that one transfer touches twice: its own clash
    assert keeps_order(old, old_writes, new, new_writes, ALL) == expected


def test_long_runs_are_cut_where_descriptors_end() -> None:
    long = Side("HBM", 0, 0, ((200000, 2),), 150000, Dtype.UINT8)
    flat = Side("SBUF", 0, 0, (), 300000, Dtype.UINT8)
    made = transfer((long, flat))
    runs = runs_of(made, False, "HBM", 0)
    assert (runs.high - runs.low).tolist() == [65536, 65536, 18928] * 2
    written = runs_of(made, True, "SBUF", 0)
    assert written.low.tolist() == np.cumsum([0, 65536, 65536, 18928, 65536, 65536]).tolist()
    assert written.engine.tolist() == runs.engine.tolist()


def test_what_changes_places_is_in_order_only_the_same_way() -> None:
    """Which engine takes which element of a transpose is not known."""
    side = Side("HBM", 0, 0, ((64, 8),), 64, F32)
    on_chip = Side("SBUF", 0, 0, ((1 << 18, 8),), 64, F32)
    turned = transfer((side, on_chip), op="transpose")
    box = Region("SBUF", 0, 0, 8, 0, 64)
    assert keeps_order(turned, True, transfer((side, on_chip), op="transpose"), True, box)
    assert not keeps_order(turned, True, transfer((side, on_chip)), True, box)
