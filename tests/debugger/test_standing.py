"""Engines stand where a reader at this time sees them: at the word that faulted, and not in waits of the future."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from emulator.diagnosis.explain import waiting_of
from emulator.semaphores import holds
from neurontools.debugger.opening import open_session


def _satisfied(session: Any, waiting: Any) -> bool:
    core = session.device.cores[waiting.core]
    value = (core.events if waiting.kind == "event" else core.semaphores)[waiting.number]
    return holds(waiting.mode, value, waiting.value)


@pytest.mark.parametrize("name", ["deadlock.s", "race.s", "attention.py"])
def test_no_wait_of_the_future_and_none_that_holds(root: Path, name: str) -> None:
    session = open_session(root / "examples" / name)
    early = over = waits = 0
    for _ in range(60):
        session.step()
        if session.state().outcome != "running":
            break
        for row in session.info_engines():
            waiting = waiting_of(session.device.cores[row.core].engines[row.engine])
            if waiting is None:
                assert row.state != "wait" and row.waits_for is None and row.since_ps is None
            elif waiting.since_ps > session.time_ps or _satisfied(session, waiting):
                early += waiting.since_ps > session.time_ps
                over += _satisfied(session, waiting)
                assert (row.state, row.waits_for, row.since_ps) == ("run", None, None)
            else:
                waits += 1
                assert row.state == "wait" and row.since_ps is not None and row.since_ps <= session.time_ps
                assert row.waits_for is not None and row.waits_for.startswith(waiting.text)
    assert early and (waits or name != "attention.py")
    assert over or name != "attention.py", "the example no longer has a wait that holds: take another one"


def test_where_the_fault_is(root: Path) -> None:
    session = open_session(root / "examples" / "out_of_bounds.s")
    session.continue_()
    fault = session.device.fault
    assert fault is not None and session.outcome == "fault"
    row = next(row for row in session.info_engines() if row.state == "fault")
    assert (row.engine, row.pc) == (fault.engine, fault.pc) and (row.text or "").startswith("TENSOR_TENSOR")
    assert row.source is not None and row.source.line == 15 and row.in_flight == 1
    states = {each.pc: each.state for each in session.disassemble().rows}
    assert states[fault.pc] == "fault" and states[fault.pc - 1] == "flying" and states[0] == "done"
    listed = session.list_source(None, 1)
    assert [(each.number, each.engines) for each in listed.rows] == [(15, ("dve",))]
    session.reverse_step()
    session.reverse_step()
    assert "fault" not in {row.state for row in session.disassemble("dve").rows}


def test_a_dump_stands_where_the_fault_is_too(root: Path, tmp_path: Path) -> None:
    session = open_session(root / "examples" / "out_of_bounds.s")
    session.continue_()
    session.save_core(str(tmp_path / "fault.core"))
    dump = open_session(tmp_path / "fault.core")
    alive, dead = session.info_engines(), dump.info_engines()
    assert [(row.engine, row.state, row.pc, row.text) for row in dead] == [
        (row.engine, row.state, row.pc, row.text) for row in alive
    ]
    assert [row.pc for row in dead if row.state == "fault"] == [2]
    assert [row.pc for row in dump.disassemble("dve").rows if row.state == "fault"] == [2]
