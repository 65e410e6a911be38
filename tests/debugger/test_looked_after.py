"""What a screen needs of a session: looking in on a run, going back by engine, bytes touched."""

from __future__ import annotations

from pathlib import Path

import pytest

from formats.errors import NotFoundError
from neurontools.assembly.assemble_neff import to_neff
from neurontools.assembly.assembler import parse_program
from neurontools.debugger import Session
from neurontools.debugger.interrupt import looked_after
from neurontools.debugger.touched import touched

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def _deadlock() -> Session:
    session = Session(to_neff(parse_program((EXAMPLES / "deadlock.s").read_text(), "deadlock.s")))
    session.folders.append(EXAMPLES)
    return session


def test_a_run_can_be_looked_at_and_stopped_between_completions() -> None:
    session, seen = _deadlock(), []

    def look() -> bool:
        seen.append((session.events, session.time_ps, session.state().events))
        return len(seen) == 4

    with looked_after(look):
        stop = session.continue_()
    assert stop.reason == "interrupted" and stop.completions == 4
    assert [events for events, _, _ in seen] == [1, 2, 3, 4] == [events for _, _, events in seen]
    assert seen[-1][1] == session.time_ps


def test_looking_changes_nothing() -> None:
    alone, watched = _deadlock(), _deadlock()
    alone.continue_()

    def look() -> bool:
        watched.info_engines(), watched.info_semaphores(), watched.state(), watched.disassemble("dve")
        return False

    with looked_after(look):
        watched.continue_()
    assert (watched.events, watched.time_ps, watched.outcome) == (alone.events, alone.time_ps, alone.outcome)
    assert watched.info_engines() == alone.info_engines()


def test_nobody_looks_afterwards() -> None:
    session, seen = _deadlock(), []
    with looked_after(lambda: seen.append(0) or False):
        session.step()
    session.continue_()
    assert not seen


def test_reverse_stepi_goes_before_the_last_word_of_the_engine() -> None:
    session = _deadlock()
    session.continue_()
    done = next(row.completed for row in session.info_engines() if row.engine == "DVE")
    moved = session.reverse_stepi("dve")
    assert moved.reason == "step" and session.focus() == (0, "DVE")
    rows = {row.engine: row for row in session.info_engines()}
    assert rows["DVE"].completed == done - 1
    assert (moved.ahead.engine, moved.ahead.kind) == ("DVE", "instruction")
    while session.reverse_stepi("dve").reason == "step":
        pass
    assert session.events == 0


def test_a_listing_that_is_not_remembered_leaves_the_next_one_alone() -> None:
    session = _deadlock()
    first = session.list_source("deadlock.s:1", 5)
    session.list_source("deadlock.s:20", 5, remember=False)
    assert session.list_source().rows[0].number == first.rows[-1].number + 1


def test_touched_bytes_are_those_of_the_execution() -> None:
    session = Session(to_neff(parse_program((EXAMPLES / "race.s").read_text(), "race.s")))
    device, events = session.device, []

    class Observer:
        def on_event(self, event: object) -> None:
            events.append(event)

    device.observers.append(Observer())
    session.continue_()
    owners = {queue.name: queue.engine for queue in device.queues}
    seen = 0
    for event in events:
        if event.kind == "instruction" and any(w.pc == event.pc and w.transfer is None
                                               for w in device.cores[0].engines[event.engine].words):  # fmt: skip
            assert touched(device, 0, event.engine, event.pc) == (event.reads, event.writes)
            seen += bool(event.writes)
        elif event.kind == "dma":
            reads, writes = touched(device, 0, owners[event.engine], event.pc)
            assert set(event.reads) <= set(reads) and set(event.writes) <= set(writes)
            seen += 1
    assert seen > 2
    with pytest.raises(NotFoundError, match="no DVE pc 99"):
        touched(device, 0, "DVE", 99)
