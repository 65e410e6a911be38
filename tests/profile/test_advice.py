"""Advice: what was planted is found, with the time that the twin without it really saves; the twins are left alone."""

from __future__ import annotations

from functools import cache

import pytest

from emulator.timeline.measure import measure
from neurontools.profile.advice import RULES, advise
from neurontools.profile.results import Advice
from neurontools.profile.rows import Timeline
from neurontools.program.opening import Program
from tests.profile.planted import PLANTED, program, waits


@cache
def advised(rule: str, flawed: bool) -> tuple[int, tuple[Advice, ...]]:
    one: Program = waits(flawed) if rule == "serialising-wait" else program(rule, flawed)
    measured = measure(one.neff, one.inputs)
    assert measured.device.outcome == "finished"
    return measured.end_ps, advise(one, Timeline(measured))


def test_every_rule_is_planted() -> None:
    assert {*PLANTED, "serialising-wait"} == set(RULES)


@pytest.mark.parametrize("rule", RULES)
def test_a_planted_flaw_is_found(rule: str) -> None:
    bad, found = advised(rule, True)
    mine = [one for one in found if one.rule == rule]
    assert mine
    best = mine[0]
    assert best.line.split(":")[0] in ("planted.py", "waits.s") and best.source and best.proof
    assert 0 < best.saves_ns * 1000 < bad
    # The order of magnitude is that of the repair: the twin saves from a third of it to three times as much.
    good, _ = advised(rule, False)
    if rule != "serialising-wait":  # whose twin needs the wait, and takes as long
        assert (bad - good) / 3 < best.saves_ns * 1000 < (bad - good) * 3


@pytest.mark.parametrize("rule", RULES)
def test_a_clean_twin_is_left_alone(rule: str) -> None:
    _, found = advised(rule, False)
    assert rule not in {one.rule for one in found}


def test_what_saves_most_comes_first() -> None:
    _, found = advised("partitions", True)
    saves = [one.saves_ns for one in found]
    assert saves == sorted(saves, reverse=True)


def test_a_needless_wait_is_needless() -> None:
    _, found = advised("serialising-wait", True)
    best = next(one for one in found if one.rule == "serialising-wait")
    assert "S[5]" in best.message and "racecheck" in best.proof
