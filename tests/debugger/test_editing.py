"""Changing state by hand: it changes the run, and going back undoes it, also far back."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from formats.errors import NeuronError
from neurontools.assembly.assemble_neff import to_neff
from neurontools.assembly.assembler import parse_program
from neurontools.debugger import Session, UsageError
from neurontools.debugger.commands.carry_out import carry_out

X = np.arange(128 * 64, dtype=np.float32).reshape(128, 64)


@pytest.fixture
def session(program_file: Path) -> Session:
    """Return a session before the word that doubles, whose input has arrived."""
    made = Session(program_file, {"x": X}, timing=False)
    made.until("dve:2")
    return made


def test_what_is_set_is_computed_with_and_undone(session: Session) -> None:
    start, before = session.events, session.device.state_hash()
    assert carry_out(session, "set 0:0x4000/f = 1000").error is None
    assert carry_out(session, "set S[100] = 7").value.old == "0"
    assert carry_out(session, "set E[3] = 1").error is None
    assert carry_out(session, "set DVE.R[5] = 0x10").error is None
    assert session.events == start + 4
    assert [session.evaluate(one).value for one in ("S[100]", "E[3]", "DVE.R[5]")] == [7, 1, 16]  # type: ignore[union-attr]
    session.goto("end")
    y = session.tensor("y").array
    assert y[0, 0] == 2000 and (y.reshape(-1)[1:] == 2 * X.reshape(-1)[1:]).all()
    session.goto(f"#{start + 3}")
    assert session.events == start + 4 and session.evaluate("S[100]").value == 7  # type: ignore[union-attr]
    session.reverse_step(4)
    assert session.device.state_hash() == before and session.events == start
    session.goto("end")
    np.testing.assert_array_equal(session.tensor("y").array, 2 * X)


def test_a_tensor_is_set_by_slices(session: Session) -> None:
    session.goto("start")
    assert carry_out(session, "set x[0:2, ::2] = -1").error is None
    assert carry_out(session, "set x[5] = x[6] * 2").error is None
    session.goto("end")
    wanted = X.copy()
    wanted[0:2, ::2] = -1
    wanted[5] = X[6] * 2
    np.testing.assert_array_equal(session.tensor("y").array, 2 * wanted)
    session.goto("start")
    np.testing.assert_array_equal(session.tensor("x").array, X)


def test_running_again_from_a_checkpoint_does_it_again(program_file: Path) -> None:
    """With a budget of nothing everything further back than one completion is run again."""
    session = Session(program_file, {"x": X}, timing=False, journal_bytes=2000)
    session.until("dve:2")
    carry_out(session, "set 3:0x4000/f = 5000")
    here = session.events
    session.goto("end")
    end = session.device.state_hash()
    assert session.journal.records < 3
    session.goto(f"#{here}")
    session.goto("end")
    assert session.device.state_hash() == end and session.tensor("y").array[3, 0] == 10_000
    session.goto("start")
    session.goto("end")
    assert session.tensor("y").array[3, 0] == 2 * X[3, 0], "going back past it forgets it"


def test_a_semaphore_that_is_set_wakes_who_waits(tmp_path: Path) -> None:
    """The example that hangs goes on where its first wait is satisfied by hand."""
    path = Path(__file__).parents[2] / "examples" / "deadlock.s"
    session = Session(to_neff(parse_program(path.read_text(), path.name)), timing=False)
    assert session.continue_().reason == "hang"
    session.goto("start")
    while session.why("DVE").report is None:
        session.step()
    assert session.set("S[4] = 1").old == "0"
    assert session.continue_().reason == "finished"
    assert session.evaluate("S[6]").value == 1  # type: ignore[union-attr]
    session.goto("start")
    assert session.continue_().reason == "hang", "what was set is forgotten"


def test_who_wrote_last_is_the_hand(session: Session) -> None:
    carry_out(session, "set 0:0x4000/w = 1")
    answer = carry_out(session, "last-write 0:0x4000, 4")
    assert answer.value.kind == "edit" and any("set by hand" in line for line in answer.lines)


def test_watchpoints_are_not_for_what_is_done_by_hand(session: Session) -> None:
    session.watch("0:0x4000, 4")
    carry_out(session, "set 0:0x4000/w = 1")
    assert session.reverse_continue().reason == "watchpoint"
    assert session.last_write("0:0x4000, 4").kind == "dma", "the input that arrived, not the hand"


def test_checks_see_what_was_set(program_file: Path) -> None:
    session = Session(program_file, {"x": X}, timing=False)
    session.enable_checks("initcheck")
    session.step(2)
    carry_out(session, "set S[100] = 1")
    assert session.findings() == ()
    session.goto("end")
    assert session.findings() == () and session.execution.events >= 12


@pytest.mark.parametrize(
    "line",
    ["set", "set S[6]", "set S[6] = ", "set S[300] = 1", "set S[6] = 1.5", "set S[6] = x", "set E[3] = 2",
     "set E[3] = -1", "set PE.R[3] = 1 << 40", "set PE.S[3] = 1", "set XX.R[3] = 1", "set nothing = 1",
     "set x[999] = 1", "set x[0, 0:2] = x[0, 0:3]", "set 0:0x4000/b = 300", "set 0:0x4000/q = 3", "set S[6] == 1",
     "set 0:0x4000/dg = 1 << 63", "set 0:0x4000/g = 1 << 64", "set 999:0 = 1", "set S[6] = 1 // 0", "set x = y = 1"],
)  # fmt: skip
def test_what_cannot_be_set_is_refused_and_changes_nothing(session: Session, line: str) -> None:
    events, before = session.events, session.device.state_hash()
    assert isinstance(carry_out(session, line).error, NeuronError), line
    assert (session.events, session.device.state_hash()) == (events, before)


def test_the_largest_and_negative_numbers_of_a_type(session: Session) -> None:
    for given, shown in (("/g = (1 << 64) - 1", 2**64 - 1), ("/dg = -(1 << 63)", -(2**63)), ("/b = -1.0", 255)):
        assert carry_out(session, f"set 0:0x4000{given}").error is None
        assert session.examine("0:0x4000", 1, given[1:].split()[0]).values.tolist() == [shown]


def test_without_a_journal_nothing_is_set(program_file: Path) -> None:
    session = Session(program_file, {"x": X}, journal_bytes=0)
    with pytest.raises(UsageError, match="no journal"):
        session.set("S[6] = 1")


@pytest.mark.parametrize("first", [True, False])
def test_checkpoints_of_a_run_without_the_edit_or_with_it_are_no_checkpoints_of_the_other(
    program_file: Path, monkeypatch: pytest.MonkeyPatch, first: bool
) -> None:
    monkeypatch.setattr("emulator.journal.journal._MOST", 1)
    session = Session(program_file, {"x": X}, timing=False, journal_bytes=100_000_000)
    session.until("dve:2")
    here = session.events
    if first:
        carry_out(session, "set S[100] = 7")
    session.goto("end")
    assert session.journal.checkpoints[-1].events > here
    session.goto(f"#{here - 2}")  # completions are undone, and an edit is forgotten
    if not first:
        carry_out(session, "set S[100] = 7")
    session.goto("end")
    session.journal._records.clear()  # as if the budget had been small
    session.reverse_step(2)
    assert session.evaluate("S[100]").value == (0 if first else 7)  # type: ignore[union-attr]
