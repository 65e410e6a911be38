"""Who wrote which byte last, and which tiles are in use: against a number for every byte, and a look at every tile."""

import random
from types import SimpleNamespace

import numpy as np
import pytest

from emulator.checks.lint import _distinct
from emulator.checks.tiles import _COLUMNS, _Lived, _Lives, _Used, _used
from emulator.checks.writers import Writers
from emulator.device import Device
from formats.regions import Region

SIZES = {"SBUF": (128, 192 * 1024), "PSUM": (128, 16 * 1024), "HBM": (1, 5000)}


def device():
    """Return a device with one odd allocation, and where that lies."""
    found = Device("trn2")
    return found, found.hbm.allocate(SIZES["HBM"][1], "odd")


def some_region(chance, space, base, fine):
    """Return a region inside its memory; a `fine` one may begin and end anywhere."""
    partitions, width = SIZES[space]
    unit = chance.choice((1, 2, 4)) if fine else chance.choice((64, 256, 2048))
    first = 0 if partitions == 1 else chance.randrange(128) if fine else chance.choice((0, 32, 64, 96))
    rows = 1 if partitions == 1 else chance.randint(1, 128 - first) if fine else 32
    run = unit * chance.randint(1, 4)
    steps, reach = [], run
    for _ in range(chance.randrange(3)):
        step, count = reach + unit * chance.randrange(3), chance.randint(1, 4)
        steps.insert(0, (step, count))
        reach = step * (count - 1) + reach
    if reach > width:  # of a small memory
        steps, run = [], min(run, width)
        reach = run
    byte = chance.randrange((width - reach) // unit + 1) * unit
    return Region(space, 0, first, rows, base + byte, reach, (tuple(steps), run) if steps else None)


@pytest.mark.parametrize("space", SIZES)
@pytest.mark.parametrize("fine", [0, 0.1])
def test_every_byte_has_the_number_of_its_last_writer(space, fine):
    chance, (held, address) = random.Random(space + str(fine)), device()
    base = address if space == "HBM" else 0
    writers, dense = Writers(held), np.zeros(SIZES[space], np.int32)

    def of_bytes(region):
        offset, shape, strides = region._replace(byte=region.byte - base).walk(SIZES[space][1])
        return np.ndarray(shape, np.int32, dense, 4 * offset, tuple(4 * step for step in strides))

    for number in range(1, 200):
        region = some_region(chance, space, base, chance.random() < fine)
        found = set(np.unique(writers.of(region)).tolist())
        assert (found or {0}) == set(np.unique(of_bytes(region)).tolist()), (number, region)
        if number % 2:
            writers.write(region, number)
            of_bytes(region)[...] = number
    assert len(np.unique(dense)) > (1 if space == "HBM" else 9)


def test_reading_leaves_a_memory_that_nobody_wrote_alone():
    held, address = device()
    writers = Writers(held)
    assert writers.of(Region("HBM", 0, 0, 1, address, 7)).size == 0
    writers.write(Region("HBM", 0, 0, 1, address + 4096, 904), 1)
    assert set(writers.of(Region("HBM", 0, 0, 1, address + 4095, 905)).flat) == {0, 1}


def test_tiles_in_use_are_those_whose_first_and_last_words_lie_around():
    chance = random.Random(5)
    for count in (0, 1, 31, 32, 33, 300):
        tiles = [SimpleNamespace(name=str(number)) for number in range(count)]
        lives = []
        for number, tile in enumerate(tiles):
            first = chance.randrange(200)
            lives.append(_Lived(first, number, first + int(chance.expovariate(0.1)), tile, 0, 1, 1))
        found = _Lives(lives)
        for pc in range(-1, 300):
            assert _used(found.near(pc), pc) == [one.tile for one in lives if one.first <= pc <= one.last]


def test_a_region_lies_in_a_tile_in_use_where_one_of_all_holds_it():
    chance = random.Random(6)
    held = 0
    for count in (0, 1, 40, 200):
        lives = []
        for number in range(count):
            first, low, top = chance.randrange(60), chance.randrange(3 * _COLUMNS), chance.choice((0, 32, 64))
            nbytes, lanes = chance.choice((1, 512, 2 * _COLUMNS)), chance.choice((32, 64))
            tile = SimpleNamespace(space=chance.choice(("SBUF", "PSUM")), partition=top)
            lives.append(_Lived(first, number, first + chance.randrange(40), tile, low, low + nbytes, top + lanes))
        found = _Used(lives)
        for _ in range(400):
            pc, space = chance.randrange(-1, 100), chance.choice(("SBUF", "PSUM"))
            within = chance.choice(lives) if lives and chance.random() < 0.8 else None
            low = chance.randrange(5 * _COLUMNS) if within is None else within.low + chance.choice((0, 0, 1, 300))
            region = Region(
                space, 0, chance.choice((0, 16, 32, 64)), chance.choice((1, 32)), low, chance.choice((1, 200))
            )
            right = [
                one
                for one in lives
                if one.first <= pc <= one.last
                and one.tile.space == space
                and one.low <= region.byte
                and region.end <= one.high
                and one.tile.partition <= region.first
                and region.behind <= one.behind
            ]
            holder = found.holder(pc, region)
            assert holder in right if right else holder is None
            held += bool(right)
    assert held > 100


def test_numbers_told_apart_are_those_of_numpy():
    chance = np.random.default_rng(3)
    for most in (1, 2, 9, 500, 10**6):
        for _ in range(40):
            numbers = chance.integers(0, most, tuple(chance.integers(1, 9, 3))).astype(np.int32)[:, ::2]
            assert _distinct(numbers) == set(np.unique(numbers).tolist())
