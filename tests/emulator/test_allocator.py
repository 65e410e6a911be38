"""The allocator of a stack against a map of its bytes."""

from __future__ import annotations

import random

import pytest

from emulator.runtime.allocator import StackAllocator


class Bytes:
    """The slow reference: one flag a byte."""

    def __init__(self, size: int) -> None:
        self.taken = [False] * size

    def gaps(self) -> list[tuple[int, int]]:
        found, start = [], None
        for at, taken in enumerate([*self.taken, True]):
            if not taken and start is None:
                start = at
            elif taken and start is not None:
                found.append((start, at - start))
                start = None
        return found

    def highest(self, size: int, align: int) -> int | None:
        fits = [a for a in range(0, len(self.taken) - size + 1, align) if not any(self.taken[a : a + size])]
        return max(fits, default=None)

    def lowest(self, size: int, align: int, above: int) -> int | None:
        start = -(-above // align) * align
        fits = [a for a in range(start, len(self.taken) - size + 1, align) if not any(self.taken[a : a + size])]
        return min(fits, default=None)


@pytest.mark.parametrize("seed", range(12))
def test_random_use_is_that_of_a_map_of_bytes(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(seed)
    size = rng.choice((64, 200, 333))
    # Blocks of a few gaps, so that there are several of them.
    monkeypatch.setattr("emulator.runtime.allocator._BLOCK", rng.choice((1, 2, 3, 256)))
    allocator, reference = StackAllocator(0, size), Bytes(size)
    live: list[tuple[int, int]] = []
    for _ in range(250):
        wanted, align = rng.randint(1, size // 4), rng.choice((1, 2, 4, 16))
        if live and rng.random() < 0.45:
            address, nbytes = live.pop(rng.randrange(len(live)))
            allocator.give(address, nbytes)
            reference.taken[address : address + nbytes] = [False] * nbytes
        else:
            above = rng.randrange(size)
            assert allocator.lowest(wanted, align, above) == reference.lowest(wanted, align, above)
            found = allocator.highest(wanted, align)
            assert found == reference.highest(wanted, align)
            if found is not None:
                assert allocator.has(found, wanted)
                allocator.take(found, wanted)
                reference.taken[found : found + wanted] = [True] * wanted
                live.append((found, wanted))
        assert list(allocator.gaps) == reference.gaps()
        assert allocator.used == sum(reference.taken)
        assert allocator.largest == max((n for _, n in reference.gaps()), default=0)
    for address, nbytes in live:
        allocator.give(address, nbytes)
    assert allocator.gaps == ((0, size),)


@pytest.mark.parametrize(("address", "size"), [(4, 8), (0, 4), (10, 3), (15, 4), (2, 0), (-4, 2)])
def test_what_was_not_given_out_is_not_taken_back(address: int, size: int) -> None:
    allocator = StackAllocator(0, 16)
    allocator.take(4, 4)
    before = allocator.gaps
    with pytest.raises(ValueError, match="was not given out"):
        allocator.give(address, size)
    assert allocator.gaps == before


def test_what_is_taken_is_not_given_out_again() -> None:
    allocator = StackAllocator(0, 16)
    allocator.take(4, 4)
    for address, size in ((4, 1), (2, 3), (7, 4), (0, 16), (8, 0), (12, 8)):
        assert not allocator.has(address, size) or size == 0
        with pytest.raises(ValueError, match="is not free"):
            allocator.take(address, size)
