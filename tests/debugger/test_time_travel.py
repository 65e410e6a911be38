"""Time travel: back and forward again gives the same states, on kernels, faults, hangs, real files, any budget."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from emulator.journal import Journal
from formats.errors import NotFoundError
from neurontools.assembly.assemble_neff import to_neff
from neurontools.assembly.assembler import parse_program
from neurontools.debugger import Session, UsageError
from neurontools.debugger.opening import open_session
from tests.corpus.files import MATMUL_SMALL, find

X = np.arange(128 * 64, dtype=np.float32).reshape(128, 64)
KERNELS = {"vector_add": 3, "softmax": 2, "rmsnorm": 4, "tiled_matmul": 9, "attention": 9}
STATE = """
.target trn2
.dialect extended
.output y int32 [4]
.queue qOut sp 24
.dma qOut 0 24 SB+0x5000[1,4][4,4] -> y+0[1,4][4,4]
.engine dve
    SET_ORDERING_MODE ordering_mode=relaxed
    SET_RNG_SEED src=int32@0x5000[1,1,1,1,1][1,1,1,1,1] channels=1
    RNG dst=uint32@0x5000[1,1,1,1,1][4,1,1,1,1] channels=128
    RNG dst=uint32@0x5000[1,1,1,1,1][4,1,1,1,1] channels=128
"""


def test_a_place_where_the_run_failed_says_so(root: Path) -> None:
    for name, reason in (("out_of_bounds", "fault"), ("deadlock", "hang")):
        path = root / "examples" / f"{name}.s"
        session = Session(to_neff(parse_program(path.read_text(), name)), timing=False)
        session.goto("end")
        last = session.events - 1
        session.goto("start")
        found = session.goto(f"#{last}")
        assert (found.reason, getattr(found, reason) is None) == (reason, False)
        assert session.goto(f"#{last - 1}").reason == "goto"


def test_what_has_passed_is_not_run_to(session: Session) -> None:
    session.goto("end")
    with pytest.raises(UsageError, match="has passed already"):
        session.until("1ps")
    assert session.until(f"{session.time_ps}ps").reason == "finished"


@pytest.fixture
def session(program_file: Path) -> Session:
    """Return a session at the beginning of the doubling program."""
    return Session(program_file, {"x": X}, timing=False)


@pytest.fixture(scope="module")
def kernels(root: Path) -> dict[str, tuple[Any, dict[str, Any]]]:
    """Return file and inputs of the first launch of every example."""
    found = {}
    for name in KERNELS:
        opened = open_session(root / "examples" / f"{name}.py")
        found[name] = opened.neff, opened.inputs
    return found


def there_and_back(session: Session, stride: int = 1) -> None:
    """Go to the end, back in strides and forward again, and compare the state at every halt."""
    states = [(session.events, session.time_ps, session.device.state_hash())]
    while session.step(stride).completions:
        states.append((session.events, session.time_ps, session.device.state_hash()))
    outcome, ahead = session.outcome, session.ahead()
    for events, time_ps, state in reversed(states[:-1]):
        session.goto(f"#{events - 1}" if events else "start")
        assert (session.events, session.time_ps) == (events, time_ps)
        assert session.device.state_hash() == state, f"back at {events}"
    while session.step(stride).completions:
        pass
    assert (session.outcome, session.ahead()) == (outcome, ahead)
    assert (session.events, session.time_ps, session.device.state_hash()) == states[-1]


@pytest.mark.parametrize("name", KERNELS)
def test_kernels_there_and_back(kernels: dict[str, Any], name: str) -> None:
    there_and_back(Session(*kernels[name]), KERNELS[name])


@pytest.mark.parametrize("budget", [20_000, 1_500_000])
def test_what_the_window_lost_is_run_again(kernels: dict[str, Any], budget: int) -> None:
    session = Session(*kernels["attention"], seed=3, journal_bytes=budget)
    there_and_back(session, 17)
    assert session.when().undoable < session.events
    assert session.journal.nbytes + session.journal.checkpoint_bytes <= budget


def test_checkpoints_are_where_running_again_begins(kernels: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("emulator.journal.journal._MOST", 10)
    session = Session(*kernels["vector_add"], journal_bytes=100_000_000)
    there_and_back(session, 7)
    assert session.when().checkpoints >= 2
    journal = session.journal
    journal._records.clear()  # as if the budget had been small
    before = session.device.state_hash()
    session.reverse_step()
    assert len(journal._records) < 10, "not from the beginning"
    session.step()
    assert session.device.state_hash() == before


def test_a_real_file_there_and_back(corpus: Path) -> None:
    path = find(corpus, MATMUL_SMALL)
    rng = np.random.default_rng(1)
    inputs = {"x": rng.standard_normal((128, 256)), "y": rng.standard_normal((256, 128))}
    there_and_back(Session(path, {name: a.astype(np.float16) for name, a in inputs.items()}, seed=5), 6)


@pytest.mark.parametrize("name", ["deadlock.s", "out_of_bounds.s"])
def test_ends_that_are_none_can_be_left_backwards(root: Path, name: str) -> None:
    session = Session(to_neff(parse_program((root / "examples" / name).read_text(), name)), timing=False)
    end = session.continue_()
    assert end.reason in ("hang", "fault")
    moved = session.reverse_step()
    assert (session.outcome, moved.completions) == ("running", -1), "what ended it has not been reported again"
    again = session.continue_()
    assert (again.reason, again.time_ps, again.fault) == (end.reason, end.time_ps, end.fault)
    there_and_back(Session(session.neff, timing=False))


def test_random_numbers_come_again() -> None:
    session = Session(to_neff(parse_program(STATE, "state.s")), timing=False)
    there_and_back(session)


def test_one_step_back_undoes_bytes_and_the_plane(session: Session) -> None:
    session.break_at("dve:2")
    session.continue_()
    core = session.device.cores[0]
    before = core.sbuf.copy()
    session.step()
    assert core.sbuf_written[:, 0x5000:0x5100].all() and core.semaphores[6] == 1
    moved = session.reverse_step()
    assert (moved.reason, moved.completions, moved.events) == ("step", -1, session.events)
    assert moved.ahead is not None and (moved.ahead.engine, moved.ahead.pc) == ("DVE", 2)
    assert np.array_equal(core.sbuf, before) and not core.sbuf_written[:, 0x5000].any() and core.semaphores[6] == 0


def test_the_beginning_is_a_stop_and_no_end(session: Session) -> None:
    assert session.reverse_step(3).reason == "start" == session.reverse_continue().reason
    assert session.reverse_next().reason == "start"
    session.step(2)
    moved = session.reverse_step(5)
    assert (moved.reason, moved.completions, session.events) == ("start", -2, 0)
    assert session.continue_().reason == "finished"


@pytest.mark.parametrize("where", ["dve", "qOut", "SET_ORDERING_MODE", "double.s:20", "pe:0"])
def test_reverse_continue_finds_the_stops_of_continue(session: Session, where: str) -> None:
    session.break_at(where)
    forwards = []
    while (stop := session.continue_()).reason == "breakpoint":
        forwards.append((session.events, session.time_ps, stop.ahead))
    backwards = []
    while (moved := session.reverse_continue()).reason == "breakpoint":
        assert moved.breakpoints == (1,)
        backwards.append((session.events, session.time_ps, moved.ahead))
    assert forwards and backwards == forwards[::-1]
    assert moved.reason == "start" and session.breakpoints[0].hits == 2 * len(forwards)


def test_a_breakpoint_on_a_refused_word_stops_backwards_too(root: Path) -> None:
    text = (root / "examples" / "out_of_bounds.s").read_text()
    session = Session(to_neff(parse_program(text, "out_of_bounds.s")), timing=False)
    session.break_at("dve:2")
    there = session.continue_()
    assert there.reason == "breakpoint" and session.continue_().reason == "fault"
    moved = session.reverse_continue()
    assert (moved.reason, moved.ahead, session.events) == ("breakpoint", there.ahead, moved.events)
    assert session.continue_().reason == "fault"


def test_reverse_step_stops_at_breakpoints_on_the_way(session: Session) -> None:
    session.continue_()
    session.break_at("dve:2")
    moved = session.reverse_step(10)
    assert moved.reason == "breakpoint" and moved.ahead is not None and moved.ahead.engine == "DVE"


def test_next_and_reverse_next_meet(session: Session) -> None:
    session.focus(engine="dve")
    places = [0]
    while not session.device.cores[0].engines["DVE"].done:
        assert session.next().reason == "line"
        places.append(session.events)
    assert len(places) == 4
    for place in reversed(places[:-1]):
        session.reverse_next()
        assert session.events == place


def test_goto_marks_times_and_events(program_file: Path) -> None:
    session = Session(program_file, {"x": X})
    session.step(4)
    assert session.mark("here") == ("here", 4, session.time_ps)
    session.continue_()
    end = session.events, session.time_ps
    assert session.goto("here").completions == 4 - end[0] and session.events == 4
    half = session.device.now_ps
    assert session.goto("1us").time_ps <= 10**6
    at = session.events
    fresh = Session(program_file, {"x": X})
    fresh.until("1us")
    assert fresh.events == at and fresh.device.state_hash() == session.device.state_hash()
    assert session.goto("#6").events == 7 and session.goto("#2").events == 3
    assert session.goto(f"{half}ps").time_ps <= half
    assert session.goto("end").reason == "finished" and (session.events, session.time_ps) == end
    assert session.goto("0ps").events == 0
    assert [mark.name for mark in session.when().marks] == []
    session.goto("here")
    assert [mark.events for mark in session.when().marks] == [4]
    session.restart()
    assert session.goto("here").events == 4


@pytest.mark.parametrize(
    ("where", "error"), [("there", NotFoundError), ("#x", UsageError), ("#-1", UsageError), ("5 o'clock", UsageError)]
)
def test_goto_nowhere(session: Session, where: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        session.goto(where)


@pytest.mark.parametrize("name", ["", "start", "end", "1st", "a b"])
def test_names_that_marks_cannot_have(session: Session, name: str) -> None:
    with pytest.raises(UsageError):
        session.mark(name)


def test_last_write(session: Session) -> None:
    assert session.last_write("y").number is None
    session.continue_()
    found = session.last_write("y[3, 4]")
    assert (found.engine, found.kind, found.text) == ("qOut", "dma", "PSEUDO_DMA_TRIGGER S[6]>=1 qOut block_id=0")
    assert found.source is not None and found.source.line == 20
    add = session.last_write("sbuf:127:0x50ff")
    assert (add.engine, add.pc, add.number) == ("DVE", 2, 8) and add.writes[0].byte == 0x5000
    assert session.last_write("0:0x5100").number is None
    assert session.last_write("0:0x50fc, 64").number == 8, "any byte of the range counts"
    assert session.last_write("x").number is None, "an input"
    session.goto("#7")
    assert session.last_write("sbuf:127:0x50ff").number is None, "not yet"
    assert session.last_write("0:0x4000").engine == "qIn"


@pytest.mark.parametrize(
    ("where", "error"),
    [("y[", UsageError), ("y[5:2]", UsageError), ("z", NotFoundError), ("0:0, 0", NotFoundError), ("y, 4", UsageError),
     ("y[128]", NotFoundError), ("0:0x37fff, 2", NotFoundError)],
)  # fmt: skip
def test_places_that_nothing_can_write(session: Session, where: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        session.last_write(where)


WATCHED = [
    ("sbuf:3:0x5000", "write", [9]),
    ("sbuf:3:0x5000", "read", [11]),
    ("0:0x4000, 64", "access", [7, 9]),
    ("y[3, 4]", "write", [11]),
    ("y", "read", []),
    ("x[5]", "access", [7]),
    ("S[6]", "write", [9]),
    ("nc0 s[8]", "write", [7]),
]


@pytest.mark.parametrize(("where", "kind", "events"), WATCHED)
def test_watchpoints_stop_behind_what_they_watch_both_ways(
    session: Session, where: str, kind: str, events: list[int]
) -> None:
    made = session.watch(where, kind)
    assert made.watches and made.number == 1
    seen = []
    while (stop := session.continue_()).reason == "watchpoint":
        assert stop.breakpoints == (1,)
        seen.append(session.events)
    assert (seen, stop.reason) == (events, "finished")
    while (moved := session.reverse_continue()).reason == "watchpoint":
        assert seen.pop() == session.events
    assert not seen and moved.reason == "start" and session.breakpoints[0].hits == 2 * len(events)
    session.disable(1)
    assert session.continue_().reason == "finished"


def test_a_step_over_a_watched_write_says_so(session: Session) -> None:
    session.watch("0:0x5000")
    session.break_at("dve:2")
    assert session.continue_().reason == "breakpoint"
    stop = session.step(3)
    assert (stop.reason, stop.breakpoints, stop.completions) == ("watchpoint", (1,), 1)


@pytest.mark.parametrize(
    ("where", "kind", "error"),
    [("S[256]", "write", NotFoundError), ("S[1]", "read", UsageError), ("nc1 S[1]", "write", NotFoundError),
     ("z", "write", NotFoundError), ("y", "touch", UsageError)],
)  # fmt: skip
def test_what_cannot_be_watched(session: Session, where: str, kind: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        session.watch(where, kind)


def test_why(root: Path, session: Session) -> None:
    text = (root / "examples" / "deadlock.s").read_text()
    stuck = Session(to_neff(parse_program(text, "deadlock.s")), timing=False)
    stuck.continue_()
    found = stuck.why("dve")
    assert found.state == "wait" and found.report is not None
    assert [wait.engine for wait in found.report.waits] == ["DVE"] and len(found.report.cycles) == 1
    assert session.why("pe").report is None
    session.step(6)
    early = session.why("act")
    assert early.report is not None and not early.report.cycles
    assert [signal.state for signal in early.report.waits[0].pending] == ["queued"]
    with pytest.raises(NotFoundError):
        session.why("gpu")


def test_ctrl_c_ends_running_again(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    session.continue_()
    session.journal._records.clear()
    seen = 0

    def interrupt(journal: Journal, event: Any) -> None:
        nonlocal seen
        seen += 1
        if seen == 3:
            os.kill(os.getpid(), signal.SIGINT)
        Journal.on_event(journal, event)

    monkeypatch.setattr(session.journal, "on_event", interrupt.__get__(session.journal))
    moved = session.reverse_step()
    assert moved.reason == "interrupted" and session.events == 3
    assert session.continue_().reason == "finished"


def test_without_a_journal_there_is_no_way_back(program_file: Path) -> None:
    session = Session(program_file, {"x": X}, journal_bytes=0)
    session.step()
    assert session.device.observers == []
    with pytest.raises(UsageError, match="no journal"):
        session.reverse_step()
