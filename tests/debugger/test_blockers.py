"""Who could end a wait: the same as the whole report says, wherever the program stands."""

from __future__ import annotations

from pathlib import Path

import pytest

from emulator.diagnosis.explain import explain
from neurontools.assembly.assemble_neff import to_neff
from neurontools.assembly.assembler import parse_program
from neurontools.debugger import Session
from neurontools.debugger.blockers import blocker_of, blocker_of_wait

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.mark.parametrize(("name", "waits"), [("deadlock.s", 11), ("race.s", 10), ("out_of_bounds.s", 1)])
def test_every_wait_of_a_run_agrees_with_the_report(name: str, waits: int) -> None:
    text = (EXAMPLES / name).read_text()
    session = Session(to_neff(parse_program(text, name)))
    seen = 0
    while True:
        session.ahead()
        for wait in explain(session.device, "now").waits:
            found = blocker_of(session.device, wait.core, wait.engine)
            report = blocker_of_wait(wait)
            assert found is not None
            assert (found.at, found.pending, found.done, found.overshoot) == (
                report.at, report.pending, report.done, report.overshoot)  # fmt: skip
            assert (found.core, found.engine, found.pc, found.state) == (
                report.core, report.engine, report.pc, report.state)  # fmt: skip
            assert found.cause is report.cause is wait.cause
            seen += 1
        if session.step().reason != "step":
            break
    assert seen == waits


def test_an_engine_that_does_not_wait_has_none() -> None:
    session = Session(to_neff(parse_program((EXAMPLES / "deadlock.s").read_text(), "deadlock.s")))
    assert blocker_of(session.device, 0, "PE") is None
