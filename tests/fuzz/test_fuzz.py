"""A few hundred inputs of every target with a fixed seed, and every crash that was ever kept."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.fuzz.driver import fuzz
from tests.fuzz.libnrt import lacking
from tests.fuzz.mutation import mutated, mutated_text
from tests.fuzz.oracles import Broken, need_json, need_printable, tried
from tests.fuzz.targets import TARGETS

SEED, INPUTS = 20, 200
KEPT = sorted((Path(__file__).parent / "crashes").glob("*.input"))


@pytest.mark.parametrize("name", TARGETS)
def test_no_input_breaks_a_reader(name: str) -> None:
    tally = fuzz(TARGETS[name], seed=SEED, inputs=INPUTS)
    assert tally.inputs == INPUTS and not tally.found, [found.crash for found in tally.found.values()]


def test_libnrt_is_a_target_where_it_can_be_made() -> None:
    if lacking():
        pytest.skip(lacking())
    assert "libnrt" in TARGETS


@pytest.mark.parametrize("path", KEPT, ids=lambda path: path.stem)
def test_what_broke_a_reader_once_does_so_no_more(path: Path) -> None:
    assert tried(TARGETS[path.name.partition(".")[0]].run, path.read_bytes()) is None


@pytest.mark.parametrize("name", TARGETS)
def test_seeds_are_sound(name: str) -> None:
    """A target whose seeds are refused tries nothing behind the first check."""
    seeds = TARGETS[name].seeds()
    assert seeds
    TARGETS[name].run(seeds[0])


def test_oracles_see_what_they_are_for() -> None:
    def wrong(data: bytes) -> None:
        raise KeyError(data)

    crash = tried(wrong, b"x")
    assert crash is not None and crash.kind.startswith("KeyError")
    for broken in (lambda: need_printable(["a\x1b[0m"]), lambda: need_json(float("nan")), lambda: need_json(object())):
        with pytest.raises(Broken):
            broken()


def test_mutations_change_something() -> None:
    chance = random.Random(1)
    assert len({mutated(b"abcdefgh" * 8, [b"0123"], chance) for _ in range(200)}) > 150
    assert len({mutated_text("one two\nthree 4", ["five"], chance) for _ in range(200)}) > 100
