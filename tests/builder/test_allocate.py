"""Placing tiles: nothing that lives together shares bytes, addresses of the kernel hold, overflow says what lives."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formats.dtypes import Dtype
from neurontools.builder import AllocationError
from neurontools.builder.allocate import Life, _in_a_row, _in_order, _policies, allocate, groups_of
from neurontools.builder.chip import CHIPS
from neurontools.builder.trace import Allocation, Space

CHIP = CHIPS["gen3"]
KIB = 1024


def life(
    number: int, nbytes: int, first: int, last: int, space: Space = Space.SBUF, address: tuple[int, int] | None = None
) -> Life:
    tile = Allocation(number, space, f"tile{number}", Dtype.UINT8, (128, nbytes), address=address)
    return Life(tile, first, last, ("kernel.py", first + 1))


def check(lives: list[Life], places: dict[int, tuple[int, int]]) -> None:
    """Assert that every tile has a place inside its memory, and free ones share no byte with any other that lives."""
    for one in lives:
        partition, byte = places[one.allocation.id]
        if one.allocation.address is not None:
            assert (partition, byte) == one.allocation.address
            continue
        assert partition == 0
        size = one.allocation.partition_bytes
        if one.allocation.space is Space.SBUF:
            assert CHIP.sbuf_first <= byte and byte + size <= CHIP.sbuf_end
        else:
            assert byte >= 0 and byte + size <= CHIP.psum_bytes
            bank = CHIP.psum_bank
            assert byte // bank == (byte + size - 1) // bank if size <= bank else byte % bank == 0
        for other in lives:
            if other is one or other.allocation.space is not one.allocation.space:
                continue
            if other.first <= one.last and one.first <= other.last:
                low = places[other.allocation.id][1]
                assert byte + size <= low or low + other.allocation.partition_bytes <= byte


tiles = st.tuples(
    st.integers(1, 9000),
    st.integers(0, 60),
    st.integers(0, 8),
    st.one_of(st.none(), st.integers(0, 40).map(lambda k: (0, 0x4000 + 512 * k))),
)


@given(st.lists(tiles, max_size=40))
def test_sbuf_tiles_that_live_together_lie_apart(made: list[tuple[int, int, int, tuple[int, int] | None]]) -> None:
    lives = [
        life(i, size, first, first + length, address=address) for i, (size, first, length, address) in enumerate(made)
    ]
    check(lives, allocate(lives, CHIP))


@given(st.lists(st.tuples(st.integers(1, 4096), st.integers(0, 60), st.integers(0, 2)), max_size=30))
def test_psum_tiles_keep_to_banks(made: list[tuple[int, int, int]]) -> None:
    lives = [life(i, size, 3 * first, 3 * first + length, Space.PSUM) for i, (size, first, length) in enumerate(made)]
    try:
        check(lives, allocate(lives, CHIP))
    except AllocationError:
        # Refusing is right only where a point needs more banks than there are.
        need = max(
            sum(-(-size // CHIP.psum_bank) for size, first, length in made if 3 * first <= at <= 3 * first + length)
            for at in range(200)
        )
        assert need > CHIP.psum_bytes // CHIP.psum_bank


def test_bytes_are_reused_late() -> None:
    lives = [life(i, 2 * KIB, i, i) for i in range(60)]
    places = allocate(lives, CHIP)
    assert len({byte for _, byte in places.values()}) == 60


@given(st.lists(st.tuples(st.integers(0, 30 * KIB), st.integers(0, 20), st.integers(0, 9)), max_size=20))
def test_tiles_that_come_round_nowhere_lie_where_the_next_fit_puts_them(made: list[tuple[int, int, int]]) -> None:
    lives = [life(number, size, first, first + more) for number, (size, first, more) in enumerate(made)]
    plain, failed = _in_order(lives, [], _policies(Space.SBUF, CHIP)[0])
    found = _in_a_row(lives, CHIP)
    if found is not None:
        assert (found, None) == (plain, failed)
        assert [*found] == [*plain]
    else:
        assert sum(one.allocation.partition_bytes + 64 for one in lives) > CHIP.sbuf_end - CHIP.sbuf_first


def test_psum_goes_round_the_banks() -> None:
    places = allocate([life(i, 512, i, i, Space.PSUM) for i in range(32)], CHIP)
    assert [places[i][1] // 2048 for i in range(8)] == list(range(8))
    assert len({byte for _, byte in places.values()}) == 32


def test_tight_programs_fit() -> None:
    """All of SBUF in use at once, and again after it: going round would leave holes."""
    room = CHIP.sbuf_end - CHIP.sbuf_first
    lives = [
        life(0, 64 * KIB, 0, 9),
        life(1, room // 2, 10, 20),
        life(2, room // 2 - 64, 12, 20),
        life(3, 40 * KIB, 2, 4),
    ]
    check(lives, allocate(lives, CHIP))


def test_overflow_lists_live_tensors() -> None:
    lives = [life(0, 150 * KIB, 0, 5), life(1, 10 * KIB, 1, 5), life(2, 100 * KIB, 3, 5), life(3, 100 * KIB, 6, 7)]
    with pytest.raises(AllocationError) as caught:
        allocate(lives, CHIP)
    text = str(caught.value)
    assert "\n" not in text
    assert text.startswith("SBUF is full: tile2 needs 102400 bytes per partition (kernel.py:4)")
    assert f"{160 * KIB} of {CHIP.sbuf_end - CHIP.sbuf_first} are taken by 2 live tensors" in text
    assert "tile0 153600 (kernel.py:1), tile1 10240 (kernel.py:2)" in text and "tile3" not in text


def test_addresses_outside_are_refused() -> None:
    with pytest.raises(AllocationError, match=r"address=\(0, 229000\).*outside SBUF"):
        allocate([life(0, 4096, 0, 1, address=(0, 229000))], CHIP)


def test_tiles_on_one_address_form_groups_while_both_live() -> None:
    lives = [
        life(0, 100, 0, 5, address=(0, 0x5000)),
        life(1, 100, 3, 9, address=(0, 0x5040)),
        life(2, 100, 10, 12, address=(0, 0x5000)),
        life(3, 100, 0, 12, address=(0, 0x6000)),
        life(4, 100, 0, 12),
    ]
    groups = groups_of(lives)
    assert groups[0] == groups[1] != groups[2] != groups[3]
    assert 4 not in groups
