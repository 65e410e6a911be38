"""Who knows what: the short ways of plain lists against those that join everything."""

import random
from typing import Any

import pytest

from emulator.checks import again
from emulator.checks.knowledge import Knowledge, _meeting, joined
from emulator.checks.orderly import order_of
from emulator.runtime import run
from tests.checks.test_again import given, random_plan, two_cores

ENGINES, QUEUES, UNITS = 3, 3, 60


@pytest.mark.parametrize("seed", range(40))
def test_what_a_transfer_knows_is_all_that_those_who_triggered_its_queue_knew(seed: int) -> None:
    """Engines learn, and trigger transfers: queues of one engine, of several, of one behind another."""
    chance = random.Random(seed)
    everyone = ENGINES + QUEUES
    nothing = [0] * everyone
    knowledge: Any = object.__new__(Knowledge)  # a device has more to it than this looks at
    knowledge.known, knowledge._triggers = [nothing] * everyone, [-1] * everyone
    knowledge._latest, knowledge.is_unsure = {}, False
    known, count, units = [nothing] * everyone, [0] * everyone, []
    owners = [set(chance.sample(range(ENGINES), chance.choice((1, 1, 2)))) for _ in range(QUEUES)]
    for _ in range(UNITS):
        engine = chance.randrange(ENGINES)
        if units and chance.random() < 0.4:
            known[engine] = joined(known[engine], chance.choice(units))
        count[engine] += 1
        unit = engine, count[engine], known[engine], None, None
        units.append(unit)
        queue = ENGINES + chance.randrange(QUEUES)
        if engine not in owners[queue - ENGINES]:
            continue
        known[queue] = joined(known[queue], unit)
        assert knowledge.triggered(queue, unit) == known[queue]
        assert knowledge.known[queue] == known[queue]
        count[queue] += 1
        units.append((queue, count[queue], known[queue], None, None))
    assert sum(count[ENGINES:]) > 5


def test_two_engines_that_trigger_one_queue_are_joined_from_there_on() -> None:
    """The latest one knows nothing of the other, though its own earlier transfer does."""
    knowledge: Any = object.__new__(Knowledge)
    knowledge.known, knowledge._triggers = [[0, 0, 0]] * 3, [-1] * 3
    knowledge._latest, knowledge.is_unsure = {}, False
    assert knowledge.triggered(2, (0, 4, [3, 0, 0], None, None)) == [4, 0, 0] and not knowledge.is_unsure
    assert knowledge.triggered(2, (1, 7, [0, 6, 0], None, None)) == [4, 7, 0]
    assert knowledge.triggered(2, (1, 8, [0, 6, 0], None, None)) == [4, 8, 0]
    assert knowledge.triggered(2, (0, 5, [4, 0, 0], None, None)) == [5, 8, 0] and knowledge.is_unsure


@pytest.mark.parametrize("seed", range(40))
def test_what_is_joined_is_the_larger_of_each_two_numbers(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(100):
        width = chance.randint(2, 20)
        knew, clock = ([chance.choice((0, 0, chance.randrange(9))) for _ in range(width)] for _ in range(2))
        actor, number = chance.randrange(width), chance.randrange(1, 9)
        before = knew.copy(), clock.copy()
        expected = [max(pair) for pair in zip(knew, clock, strict=True)]
        expected[actor] = max(expected[actor], number)
        assert joined(knew, (actor, number, clock, (), None)) == expected
        assert (knew, clock) == before


@pytest.mark.parametrize("seed", range(6))
def test_words_that_come_to_core_barriers_are_those_that_the_notes_tell_of(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw = random.Random(seed)
    neff = two_cores((*random_plan(draw), *random_plan(draw)))
    told = []

    def looking(device: Any, notes: Any, doubles: Any) -> Any:
        knowledge = Knowledge(device, notes)
        ahead = knowledge._meeting
        knowledge._meeting = {}
        knowledge._foresee(_meeting(notes))
        told.append(sum(map(len, ahead.values())))
        assert ahead == knowledge._meeting
        assert knowledge.barriers == {(core, index) for _, index in ahead for core in range(2)}
        return order_of(device, notes, doubles)

    monkeypatch.setattr(again, "order_of", looking)
    run(neff, given(neff, True), checks="all")
    assert told and told[0] > 0
