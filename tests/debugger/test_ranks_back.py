"""Ranks that go back together: the same places, the same stops, the same bits, whichever rank is stepped."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import neurontools
import neurontools.nki.collectives as ncc
import neurontools.nki.isa as nisa
import neurontools.nki.language as nl
from emulator.runtime.ranks import Ranks, execute_ranks
from emulator.settings import Settings
from formats.neff import Neff
from neurontools.debugger.commands.carry_out import Answer, carry_out
from neurontools.debugger.interrupt import looked_after
from neurontools.debugger.ranks import RankSessions
from neurontools.debugger.view import POINTS
from tests.emulator.machine.test_ranks_hang import HUNG, X, add, program

GROUP = [[0, 1, 2]]
GIVEN = [np.random.default_rng(rank).integers(-9, 9, (16, 8)).astype(np.float32) for rank in range(3)]


def twice(x: Any) -> Any:
    """Add up over the ranks twice, with work of one's own between."""
    first, own, out = (nl.ndarray(x.shape, x.dtype, nl.shared_hbm) for _ in range(3))
    ncc.all_reduce([x], [first], GROUP, nl.add)
    tile = nl.ndarray(x.shape, x.dtype, nl.sbuf)
    nisa.dma_copy(tile, first)
    for _ in range(3):
        nisa.tensor_tensor(tile, tile, tile, nl.add)
    nisa.dma_copy(own, tile)
    ncc.all_reduce([own], [out], GROUP, nl.max)
    return out


@pytest.fixture(scope="module")
def neff() -> Neff:
    return neurontools.build(twice, GIVEN[0], target="trn2", lnc=1)


def opened(neff: Neff, seed: int | None = None, journal: int = 60_000_000) -> RankSessions:
    inputs = [{neff.inputs[0].name: x} for x in GIVEN]
    return RankSessions([neff] * 3, inputs, Ranks(3), Settings(seed=seed), journal)


@pytest.fixture
def ranks(neff: Neff) -> RankSessions:
    return opened(neff)


def do(ranks: RankSessions, *lines: str) -> Any:
    answer = Answer("")
    for line in lines:
        answer = carry_out(ranks.session, line)
        assert answer.error is None, (line, answer.error)
        assert all(isinstance(text, str) for text in answer.lines)
    return answer.value


def place(ranks: RankSessions) -> tuple[int, ...]:
    return tuple(ranks.replay.counts().values())


def seen(ranks: RankSessions) -> tuple[Any, ...]:
    """Return what every rank is like: times, counters, the bytes of its tiles and of its tensors."""
    found = []
    for session in ranks.sessions.values():
        session.state()  # what has issued by then has issued in every case
        device = session.device
        memory = device.cores[0].memory
        counters = tuple((row.kind, row.number, row.value) for row in session.info_semaphores())
        tensors = tuple(bytes(each.data.tobytes()) for each in device.hbm.allocations.values() if each.touched)
        found.append(
            (session.events, session.time_ps, counters, memory.array("SBUF")[:, 0x4000:0x4800].tobytes(), tensors)
        )
    return tuple(found)


def whole(neff: Neff, ranks: RankSessions) -> None:
    wanted = execute_ranks(neff, [{neff.inputs[0].name: x} for x in GIVEN], Ranks(3), Settings(seed=None))
    for rank, result in enumerate(wanted.results):
        session = ranks.sessions[rank]
        assert session.outcome == "finished" and session.device.now_ps == result.time_ps
        assert all(np.array_equal(session.device.outputs()[name], out) for name, out in result.outputs.items())


def test_stepping_any_rank_gives_one_order(neff: Neff) -> None:
    """Places that are reached by steps of rank 0 are the prefixes of one order; those of others are prefixes too."""
    orders: list[list[tuple[int, ...]]] = []
    for rank in range(3):
        ranks = opened(neff)
        do(ranks, f"rank {rank}")
        found = [place(ranks)]
        while do(ranks, "step").reason == "step":
            found.append(place(ranks))
        orders.append(found)
    every = {sum(each): each for each in orders[0]}
    for order in orders[1:]:
        assert all(every.get(sum(each), each) == each for each in order)
        every |= {sum(each): each for each in order}
    chain = [each for _, each in sorted(every.items())]
    assert all(a <= b for one, two in pairwise(chain) for a, b in zip(one, two, strict=True))


@pytest.mark.parametrize("seed", [0, 2, 3])
def test_a_place_that_is_met_again_is_the_same_place(neff: Neff, seed: int) -> None:
    """Forwards and backwards at random, on any rank, with a shaken schedule or none: bytes, counters, times agree."""
    ranks, chance = opened(neff, seed or None), random.Random(seed)
    known = {place(ranks): seen(ranks)}
    met = 0
    for _ in range(20):
        back = chance.choice(["reverse-step", "reverse-step 3", "reverse-stepi", "reverse-next"])
        line = chance.choice(["step", "step 4", "stepi", "continue 700ns", "next", back, back])
        do(ranks, f"rank {chance.randrange(3)}", line)
        here, what = place(ranks), seen(ranks)
        met += here in known
        assert known.setdefault(here, what) == what, (line, here)
    for _ in range(3):
        wanted = chance.choice(list(known))
        ranks.replay.marks["again"] = dict(enumerate(wanted))
        do(ranks, "goto again")
        assert place(ranks) == wanted and seen(ranks) == known[wanted]
    assert met
    do(ranks, "continue")
    if not seed:
        whole(neff, ranks)


def test_a_step_back_takes_back_one_completion_of_the_rank(neff: Neff, ranks: RankSessions) -> None:
    do(ranks, "rank 1", "step 9")
    before, there = place(ranks), ranks.session.events
    moved = do(ranks, "reverse-step 2")
    assert (moved.reason, moved.rank, moved.completions, moved.events) == ("step", 1, -2, there - 2)
    assert sum(place(ranks)) < sum(before)
    do(ranks, "step 2")
    assert place(ranks) == before and ranks.selected == 1
    assert do(ranks, "reverse-step 9999").reason == "start" and place(ranks) == (0, 0, 0)
    assert do(ranks, "reverse-step").completions == 0
    do(ranks, "continue")
    whole(neff, ranks)


STOPS: list[tuple[str, ...]] = [
    ("break dve:3",), ("break dve:3 rank 2",), ("watch gradient", ), ("catch dma rank 1",),
    ("break dve if time > 3us", "catch dma rank 0"), ("break S[6] >= 2",),
]  # fmt: skip


@pytest.mark.parametrize("lines", STOPS, ids=" ".join)
def test_reverse_continue_meets_the_stops_of_continue(neff: Neff, lines: tuple[str, ...]) -> None:
    ranks = opened(neff)
    output = ranks.session.neff.outputs[0].name
    do(ranks, *(line.replace("gradient", output) for line in lines))
    forwards = []
    while (stop := do(ranks, "continue")).reason in POINTS:
        forwards.append((place(ranks), stop.rank))
    assert len(forwards) == (1 if "rank 2" in lines[0] else len(forwards)) and forwards
    assert [sum(at) for at, _ in forwards] == sorted(sum(at) for at, _ in forwards)
    backwards = []
    while (moved := do(ranks, "reverse-continue")).reason in POINTS:
        assert moved.breakpoints and ranks.selected == moved.rank
        backwards.append((place(ranks), moved.rank))
    assert moved.reason == "start" and place(ranks) == (0, 0, 0)
    assert backwards == forwards[::-1]
    again = []
    while (stop := do(ranks, "continue")).reason in POINTS:
        again.append((place(ranks), stop.rank))
    assert again == forwards


def test_ignore_counts_and_temporary_ones_count_backwards_too(ranks: RankSessions) -> None:
    do(ranks, "break dve", "continue", "continue", "continue", "continue", "ignore 1 2")
    hits = [session.info_breakpoints()[0].hits for session in ranks.sessions.values()]
    there = place(ranks)
    moved = do(ranks, "reverse-continue")
    assert moved.reason in ("breakpoint", "start") and sum(place(ranks)) < sum(there)
    assert sum(session.info_breakpoints()[0].hits for session in ranks.sessions.values()) > sum(hits)
    do(ranks, "delete", "continue", "tbreak dve:3", "rc")
    assert all(not session.info_breakpoints() for session in ranks.sessions.values())


def test_goto_times_events_marks_and_ends(neff: Neff, ranks: RankSessions) -> None:
    do(ranks, "rank 2", "step 6", "mark here")
    here, what = place(ranks), seen(ranks)
    assert do(ranks, "goto end").reason == "finished" and ranks.still_running() is None
    whole(neff, ranks)
    end = place(ranks)
    assert do(ranks, "rank 0", "goto here").reason == "goto" and (place(ranks), seen(ranks)) == (here, what)
    assert do(ranks, "goto 3us").reason == "goto"
    assert all(session.time_ps <= 3_000_000 for session in ranks.sessions.values())
    at = place(ranks)
    do(ranks, "goto end", "goto 3us")
    assert place(ranks) == at
    moved = do(ranks, "rank 1", "goto #5")
    assert moved.events == 6 and moved.rank == 1
    assert do(ranks, "goto #2").events == 3 and do(ranks, "goto #5").events == 6
    assert [mark.name for mark in do(ranks, "rank 2", "goto end", "when").marks] == ["here"]
    assert do(ranks, "goto start").reason == "goto" and place(ranks) == (0, 0, 0)
    do(ranks, "goto end")
    assert place(ranks) == end


def test_reverse_next_and_finish_follow_the_lines(ranks: RankSessions) -> None:
    do(ranks, "rank 1", "focus dve", "break dve:4", "continue", "delete")
    lines = []
    while do(ranks, "reverse-next").reason == "line":
        lines.append(ranks.session.state().events)
    assert lines == sorted(lines, reverse=True) and lines


def test_going_back_over_what_a_person_changed(ranks: RankSessions) -> None:
    do(ranks, "rank 1", "step 4", "set 0:0x4000/w = 77", "step 3")
    assert do(ranks, "x/1w 0:0x4000") is not None
    with_edit, there = seen(ranks), place(ranks)
    do(ranks, "reverse-step 2", "step 2")
    assert place(ranks) == there and seen(ranks) == with_edit
    do(ranks, "reverse-step 5", "step 4")
    assert seen(ranks)[1][3] != with_edit[1][3]  # before the change: it is forgotten


@pytest.mark.parametrize("cause", ["mismatch", "cycle", "missing"])
def test_back_from_a_hang_of_ranks_and_there_again(cause: str) -> None:
    programs = HUNG[cause][0]()
    inputs = [{one.inputs[0].name: X} for one in programs]
    ranks = RankSessions(programs, inputs, Ranks(len(programs)), Settings(), 60_000_000)
    stop = do(ranks, "continue")
    assert stop.reason == "hang"
    moved = do(ranks, "reverse-step")
    assert moved.reason == "step" and ranks.session.outcome == "running" and moved.hang is None
    again = do(ranks, "step")
    assert again.reason == "hang" and again.ranks.sentence == stop.ranks.sentence
    do(ranks, "goto start")
    end = do(ranks, "goto end")
    assert end.reason in ("hang", "finished") and end.ranks is not None and end.ranks.sentence == stop.ranks.sentence


def test_back_from_a_fault() -> None:
    programs = [program(add([0, 1])), program(add([0, 1]), fault=True)]
    ranks = RankSessions(programs, [{one.inputs[0].name: X} for one in programs], Ranks(2), Settings(), 60_000_000)
    stop = do(ranks, "continue")
    assert (stop.reason, stop.rank) == ("fault", 1)
    assert do(ranks, "reverse-step").rank == 1 and ranks.session.outcome == "running"
    again = do(ranks, "continue")
    assert (again.reason, again.rank, again.time_ps) == ("fault", 1, stop.time_ps)


def test_without_a_journal_nothing_goes_back(neff: Neff) -> None:
    ranks = opened(neff, journal=0)
    do(ranks, "step 3")
    for line in ("reverse-step", "rc", "goto start", "mark here", "when"):
        assert "keeps no journal" in str(carry_out(ranks.session, line).error)


@contextmanager
def pressed_after(looks: int) -> Iterator[None]:
    left = looks

    def look() -> bool:
        nonlocal left
        left -= 1
        return left < 0

    with looked_after(look):
        yield


@pytest.mark.parametrize("looks", [0, 1, 3])
@pytest.mark.parametrize("line", ["goto end", "reverse-step", "rc", "goto start", "continue"])
def test_an_interrupted_move_leaves_ranks_that_go_on(neff: Neff, line: str, looks: int) -> None:
    ranks = opened(neff)
    do(ranks, "break dve:3", "step 3") if line != "continue" else None
    if line != "goto end":
        do(ranks, "continue" if line != "continue" else "step 2")
    with pressed_after(looks):
        moved = do(ranks, line)
    assert moved.reason in ("interrupted", "step", "start", "goto", "breakpoint", "finished")
    do(ranks, "delete", "continue")
    whole(neff, ranks)


def test_what_goes_back_says_so_as_text(ranks: RankSessions) -> None:
    do(ranks, "step 5")
    answer = carry_out(ranks.session, "reverse-step")
    assert list(answer.lines)[1].startswith("back 1 completion: 4 events until ")
