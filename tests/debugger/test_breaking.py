"""Conditions, catchpoints, values of counters, ignore counts, commands, and going on for a time."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from formats.errors import NotFoundError
from neurontools.assembly.assemble_neff import to_neff
from neurontools.assembly.assembler import parse_program
from neurontools.debugger import Session, UsageError
from neurontools.debugger.conditions import Condition
from neurontools.debugger.view import POINTS

X = np.arange(128 * 64, dtype=np.float32).reshape(128, 64)
POLLING = """
.target trn2
.dialect extended
.engine dve
    NOP S[9]>=1 cycle=0
.engine pool
here:
    NOP S[10]++@complete cycle=1000
    COMPARE_BRANCH cmp_op=ALWAYS label_id=%here
"""
ADD, OUT, END = 8, 10, 12  # events of the doubling program: the addition, the transfer behind it, and all


@pytest.fixture
def session(program_file: Path) -> Session:
    """Return a session at the beginning of the doubling program."""
    return Session(program_file, {"x": X}, timing=False)


def spoiled(program_file: Path, value: float, place: tuple[int, int]) -> Session:
    """Return the same with one element of its input replaced."""
    x = X.copy()
    x[place] = value
    return Session(program_file, {"x": x}, timing=False)


def example(root: Path, name: str) -> Session:
    """Return a session on an example in assembler text."""
    return Session(to_neff(parse_program((root / "examples" / name).read_text(), name)), timing=False)


def stops(session: Session) -> list[int]:
    """Return the positions where `continue` stops."""
    found = []
    while session.continue_().reason in POINTS:
        found.append(session.events)
    return found


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ("S[8] == 16", True),
        ("S[8] >= 16 and S[6] == 0", True),
        ("nc0.S[8] > 16 || E[3]", False),
        ("not E[3] && 1 <= S[8] < 17", True),
        ("DVE.R[0] == 0 and R[1] == 0", True),
        ("time < 1us", True),
        ("1ps < time < 0.5us", True),
        ("events == 8 and pc == 2 and core == 0", True),
        ("x[3, 4] == 196", True),
        ("max(x[3]) - min(x[3]) == 63", True),
        ("any(x == 8191) and all(isfinite(x))", True),
        ("abs(-3) * 2 + 7 % 4 - 1 == 8", True),
        ("'x'[127, -1] == 8191 or isnan(y[0, 0]) and 1 / 0", True),
        ("mean(x[0, 0:2]) > 0.5", False),
        ("-S[8] | 1 < 0", True),
    ],
)
def test_conditions(session: Session, condition: str, holds: bool) -> None:
    session.break_at("dve:2", condition=condition)
    stop = session.continue_()
    assert (stop.reason, session.events) == (("breakpoint", ADD) if holds else ("finished", END))


@pytest.mark.parametrize(
    ("condition", "error", "text"),
    [
        ("", UsageError, "condition"),
        ("S[5] >=", UsageError, "is not a condition"),
        ("S[5] = 3", UsageError, "is not a condition"),
        ("S[256] == 0", NotFoundError, "0 to 255"),
        ("S == 0", UsageError, "takes one number"),
        ("S[x] == 0", UsageError, "takes one number"),
        ("nc3.S[1] == 0", NotFoundError, "no core 3"),
        ("gone[1] == 0", NotFoundError, "no tensor 'gone'"),
        ("x[128] == 0", NotFoundError, "out of bounds"),
        ("x > 0", UsageError, "8192 values"),
        ("open('x')", UsageError, "no function"),
        ("__import__('os').system('true')", UsageError, "no function"),
        ("[1, 2]", UsageError, "cannot be part of an expression"),
        ("x is x", UsageError, "compare with"),
        ("lambda: 1", UsageError, "cannot be part of an expression"),
        ("1.5 | 2", UsageError, "cannot be computed"),
    ],
)
def test_bad_conditions_are_refused_at_once(session: Session, condition: str, error: type[Exception],
                                            text: str) -> None:  # fmt: skip
    with pytest.raises(error) as caught:
        Condition(condition) if not condition else session.break_at("dve:2", condition=condition)
    assert text in str(caught.value) and "\n" not in str(caught.value)
    assert list(session.breakpoints) == []


def test_a_condition_without_an_answer_stops_and_says_why(session: Session) -> None:
    made = session.break_at("dve:2", condition="1 / S[6] > 0")
    assert session.continue_().reason == "breakpoint" and "zero" in made.error
    assert session.condition(made.number, "S[6] == 1").error == ""
    session.goto("start")
    assert session.continue_().reason == "finished"
    session.condition(made.number)
    assert made.condition is None and session.reverse_continue().breakpoints == (made.number,)


@pytest.mark.parametrize(("where", "positions"), [("S[8] >= 16", [7]), ("S[8] == 3", []), ("S[6] > 0", [ADD + 1]),
                                                  ("nc0 s[24] != 0", [OUT + 1]), ("E[1] == 1", [])])  # fmt: skip
def test_values_of_counters(session: Session, where: str, positions: list[int]) -> None:
    assert session.break_at(where).kind == "value"
    assert stops(session) == positions


@pytest.mark.parametrize(("where", "error"), [("S[256] == 1", NotFoundError), ("S[1] == z", UsageError),
                                              ("nc4 S[1] == 1", NotFoundError)])  # fmt: skip
def test_values_that_cannot_be(session: Session, where: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        session.break_at(where)


@pytest.mark.parametrize(("what", "positions"), [("dma", [7, OUT + 1]), ("dma qOut", [OUT + 1]), ("fault", []),
                                                 ("nan", []), ("hang", [])])  # fmt: skip
def test_catching(session: Session, what: str, positions: list[int]) -> None:
    assert session.catch(what).after
    assert stops(session) == positions


@pytest.mark.parametrize(
    ("kind", "value", "place", "where", "positions"),
    [
        ("nan", np.nan, (3, 4), "", [7, ADD + 1, OUT + 1]),
        ("nan", np.inf, (3, 4), "", []),
        ("inf", np.inf, (3, 4), "", [7, ADD + 1, OUT + 1]),
        ("inf", 3e38, (3, 4), "", [ADD + 1, OUT + 1]),
        ("nan", np.nan, (3, 4), "y", [OUT + 1]),
        ("nan", np.nan, (3, 4), "y[3, 0:8]", [OUT + 1]),
        ("nan", np.nan, (3, 4), "y[4]", []),
        ("nan", np.nan, (3, 4), "3:0x5000, 64", [ADD + 1]),
    ],
)
def test_nan_and_inf_where_they_appear(program_file: Path, kind: str, value: float, place: tuple[int, int],
                                       where: str, positions: list[int]) -> None:  # fmt: skip
    session = spoiled(program_file, value, place)
    session.catch(f"{kind} {where}")
    assert stops(session) == positions


@pytest.mark.parametrize(("name", "kind"), [("out_of_bounds.s", "fault"), ("deadlock.s", "hang")])
def test_faults_and_hangs_are_stops(root: Path, name: str, kind: str) -> None:
    session = example(root, name)
    session.catch(kind)
    stop = session.continue_()
    assert (stop.reason, stop.breakpoints, session.breakpoints[0].hits) == (kind, (1,), 1)


@pytest.mark.parametrize(("what", "error"), [("", UsageError), ("rain", UsageError), ("fault now", UsageError),
                                             ("dma qGone", NotFoundError), ("nan gone", NotFoundError),
                                             ("finding", UsageError)])  # fmt: skip
def test_what_cannot_be_caught(session: Session, what: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        session.catch(what)
    assert list(session.breakpoints) == []


def test_ignore_counts_crossings(session: Session) -> None:
    made = session.catch("dma")
    session.ignore(made.number, 1)
    assert stops(session) == [OUT + 1] and (made.hits, made.ignore) == (2, 0)
    session.goto("end")
    session.ignore(made.number, 1)
    assert session.reverse_continue().events == 7, "in either direction"
    with pytest.raises(NotFoundError):
        session.ignore(9, 1)
    with pytest.raises(UsageError):
        session.ignore(made.number, -1)


def test_once_delete_and_temporary(session: Session) -> None:
    made = session.catch("dma")
    session.enable(made.number, once=True)
    assert stops(session) == [7] and not made.enabled
    session.goto("start")
    session.enable(made.number, delete=True)
    assert stops(session) == [7] and list(session.breakpoints) == []
    session.goto("start")
    gone = session.tbreak("S[6] >= 1", condition="time > 1ps")
    session.set_commands(gone.number, ["info semaphores", "continue"])
    assert stops(session) == [ADD + 1] and list(session.breakpoints) == []
    assert session.commands_of((gone.number,)) == ("info semaphores", "continue")


def test_going_on_for_a_time(session: Session) -> None:
    times = []
    while (stop := session.step()).completions:
        times.append(stop.time_ps)
    session.goto("start")
    stop = session.continue_("2ps")
    assert (stop.reason, session.events) == ("until", sum(time <= 2 for time in times))
    assert session.continue_("1ps").completions == times.count(3)
    again = Session(session.neff, {"x": X})
    places = []
    while (stop := again.continue_("100ns")).reason == "until":
        places.append(again.time_ps)
    assert stop.reason == "finished" and len(places) >= again.time_ps // 100_000 - 1, "empty spans pass as well"
    for bad in ("5", "soon", "0us"):
        with pytest.raises(UsageError):
            session.continue_(bad)


def test_hang_timeout_though_others_move() -> None:
    session = Session(to_neff(parse_program(POLLING, "polling.s")), hang_timeout_ps=2_000_000)
    stop = session.continue_()
    assert stop.reason == "hang" and stop.hang is not None
    assert stop.hang.reason == "hang timeout" and [wait.engine for wait in stop.hang.waits] == ["DVE"]
    assert session.device.now_ps == session.device.hang.waits[0].since_ps + 2_000_000
    before = session.device.state_hash(), session.events
    session.reverse_step(3)
    assert session.outcome == "running"
    again = session.continue_()
    assert (again.reason, (session.device.state_hash(), session.events)) == ("hang", before)
