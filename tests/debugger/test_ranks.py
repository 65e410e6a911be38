"""The debugger over ranks: one is chosen, all move, breakpoints stop any of them, and what comes out is as of `run`."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import neurontools
from emulator.runtime.ranks import Ranks, execute_ranks
from emulator.settings import Settings
from formats.neff import Neff
from neurontools.debugger.commands.carry_out import Answer, carry_out
from neurontools.debugger.ranks import RankSessions
from neurontools.debugger.results import State, Stop
from tests.emulator.machine.test_ranks import arrays, reduced
from tests.emulator.machine.test_ranks_hang import HUNG, X, add, program

INPUTS = arrays(2, 16, 4)


@pytest.fixture(scope="module")
def neff() -> Neff:
    return neurontools.build(reduced, INPUTS[0][0], target="trn2", lnc=1)


@pytest.fixture
def ranks(neff: Neff) -> RankSessions:
    return opened(neff, neff)


def opened(*programs: Neff | None) -> RankSessions:
    given = [{} if one is None else {one.inputs[0].name: INPUTS[rank % 2][0] if one.inputs[0].shape == (16, 4) else X}
             for rank, one in enumerate(programs)]  # fmt: skip
    return RankSessions(programs, given, Ranks(len(programs)), Settings(), 50_000_000)


def do(ranks: RankSessions, *lines: str) -> Any:
    """Run lines where they go; return the value of the last."""
    answer = Answer("")
    for line in lines:
        answer = carry_out(ranks.session, line)
        assert answer.error is None, answer.error
        assert all(isinstance(text, str) for text in answer.lines)
    return answer.value


def whole(neff: Neff, ranks: RankSessions) -> None:
    """Compare what came out with what a run without the debugger gives: bits and times."""
    wanted = execute_ranks(neff, [{neff.inputs[0].name: x} for (x,) in INPUTS], Ranks(2))
    for rank, result in enumerate(wanted.results):
        session = ranks.sessions[rank]
        assert session.outcome == "finished" and session.device.now_ps == result.time_ps
        assert np.array_equal(session.device.outputs()["out"], result.outputs["out"])
        assert session.events == session.device.next_number()


def test_continue_ends_as_a_run_does(neff: Neff, ranks: RankSessions) -> None:
    stop = do(ranks, "continue")
    assert stop.reason == "finished" and stop.rank in (0, 1)
    whole(neff, ranks)


@pytest.mark.parametrize("seed", range(3))
def test_moving_and_looking_anywhere_changes_nothing(neff: Neff, ranks: RankSessions, seed: int) -> None:
    """Whichever rank is moved how, and whatever is asked in between, bits and times are those of a run."""
    chance = random.Random(seed)
    for _ in range(60):
        line = chance.choice(["step", "step 2", "stepi", "continue 300ns", "next"])
        do(ranks, f"rank {chance.randrange(2)}", line, chance.choice(["why", "state", "info ranks", "info engines"]))
    do(ranks, "continue")
    whole(neff, ranks)


def test_looking_at_a_rank_completes_nothing_on_any(ranks: RankSessions) -> None:
    do(ranks, "rank 0", "step 7")
    before = [device.steps for device in ranks.machine.devices]
    for rank in (1, 0, 1):
        do(ranks, f"rank {rank}", "state", "why", "info ranks", "info queues", "last-write out", "print out[0]")
    assert [device.steps for device in ranks.machine.devices] == before


def test_a_breakpoint_stops_every_rank_and_the_stop_names_it(ranks: RankSessions) -> None:
    made = do(ranks, "break dve:2")
    assert made.ranks == (0, 1)
    stops = [do(ranks, "continue") for _ in range(2)]
    assert [(stop.reason, stop.breakpoints, stop.ahead.engine, stop.ahead.pc) for stop in stops] == [
        ("breakpoint", (1,), "DVE", 2)
    ] * 2
    assert sorted(stop.rank for stop in stops) == [0, 1] and ranks.selected == stops[1].rank
    assert stops[0].ahead.time_ps == stops[1].ahead.time_ps
    assert do(ranks, "continue").reason == "finished"


def test_a_breakpoint_on_one_rank_stops_that_one(ranks: RankSessions) -> None:
    made = do(ranks, "break dve:2 rank 1 if time >= 0ps")
    assert made.ranks == (1,) and made.condition is not None
    assert do(ranks, "rank 0", "break dve:3").number == 2  # numbers are common
    do(ranks, "delete 2")
    stop = do(ranks, "continue")
    assert (stop.rank, stop.breakpoints) == (1, (1,)) and ranks.selected == 1
    assert ranks.sessions[0].info_breakpoints()[0].number == 1  # shown on the other one as well
    assert do(ranks, "rank 0", "continue").reason == "finished"


def test_what_happens_to_a_breakpoint_on_one_rank_happens_on_all(ranks: RankSessions) -> None:
    do(ranks, "tbreak dve:2")
    assert do(ranks, "continue").reason == "breakpoint"
    assert all(not session.info_breakpoints() for session in ranks.sessions.values())
    do(ranks, "run", "break dve:2", "enable once 2")
    assert do(ranks, "continue").breakpoints == (2,)
    assert all(not session.info_breakpoints()[0].enabled for session in ranks.sessions.values())
    do(ranks, "run", "enable", "ignore 2 1", "commands 2\nstate\nend")
    assert do(ranks, "continue", "delete 2") and do(ranks, "continue").reason == "finished"


def test_a_watchpoint_of_a_rank_that_is_moved_along(ranks: RankSessions) -> None:
    do(ranks, "watch out rank 1")
    stop = do(ranks, "rank 0", "continue")
    assert (stop.reason, stop.rank) == ("watchpoint", 1) and stop.steps[-1].writes


def test_run_begins_all_of_them_again(neff: Neff, ranks: RankSessions) -> None:
    do(ranks, "step 5", "rank 1", "step 9")
    state = do(ranks, "run")
    assert isinstance(state, State) and state.rank == 1
    assert [session.events for session in ranks.sessions.values()] == [0, 0]
    do(ranks, "continue")
    whole(neff, ranks)


@pytest.mark.parametrize("cause", ["mismatch", "cycle", "group", "missing"])
def test_why_explains_over_ranks_as_a_run_does(cause: str) -> None:
    programs = HUNG[cause][0]()
    ranks = opened(*programs)
    stop: Stop = do(ranks, "continue")
    inputs = [{one.inputs[0].name: X} for one in programs]
    wanted = execute_ranks(programs, inputs, Ranks(len(programs))).hang
    assert stop.reason == "hang" and stop.ranks is not None and wanted is not None
    assert (stop.ranks.cause, stop.ranks.sentence, stop.ranks.cycle) == (cause, wanted.sentence, wanted.cycle)
    lines = carry_out(ranks.session, "why").lines
    assert wanted.sentence in lines
    waiting = [row for row in do(ranks, "info ranks") if row.outcome == "hang"]
    assert waiting and all("all_" in row.waits_for and "rank" in row.waits_for for row in waiting)


def test_a_fault_of_another_rank_stops_and_is_named() -> None:
    ranks = opened(program(add([0, 1])), program(add([0, 1]), fault=True))
    stop = do(ranks, "continue")
    assert (stop.reason, stop.rank) == ("fault", 1) and stop.fault is not None
    stop = do(ranks, "rank 0", "continue")
    assert stop.reason == "hang" and stop.ranks.cause == "fault" and "rank 1, which stopped" in stop.ranks.sentence


@pytest.mark.parametrize(("line", "message"), [
    ("rank 2", "no rank 2; there are 0 to 1"),
    ("rank -1", "no rank -1"),
    ("rank x", "'x' is not the number of a rank"),
    ("break dve:2 rank 5", "no rank 5 that runs a program; there are 0, 1"),
    ("break dve:99999", "99999"),
    ("goto nowhere", "no mark 'nowhere'; there is start, end"), ("goto x-", "no mark"),
    ("mark 3", "cannot name a mark"),
    ("checks on nothing", "nothing"), ("delete 3", "no breakpoint 3"),
])  # fmt: skip
def test_what_makes_no_sense_is_refused(ranks: RankSessions, line: str, message: str) -> None:
    do(ranks, "step")
    answer = carry_out(ranks.session, line)
    assert message in str(answer.error)
    assert do(ranks, "continue").reason == "finished"
