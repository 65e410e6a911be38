"""`why` of an engine that goes on: who satisfied its wait, followed to queue, block and the word that triggered it."""

from __future__ import annotations

from pathlib import Path

import pytest

from neurontools.assembly.assemble_neff import to_neff
from neurontools.assembly.assembler import parse_program
from neurontools.debugger.opening import open_session
from neurontools.debugger.session import Session
from neurontools.debugger.view import why_lines
from neurontools.program.configuration import RunConfiguration
from tests.faults.assembled import BASE, INPUTS, line_of


@pytest.fixture
def session() -> Session:
    return Session(to_neff(parse_program(BASE, "base.s")), INPUTS)


def test_a_transfer_is_followed_to_its_trigger(session: Session) -> None:
    session.continue_()
    (met,) = session.why("pe").met
    assert (met.condition, met.kind, met.engine, met.trigger, met.by_pc, met.block) == (
        "S[8]>=16", "dma", "qIn", "SP", 0, 0)  # fmt: skip
    assert met.source is not None and met.source.line == line_of(BASE, "SP", 0)
    assert "transfer of queue qIn, block 0, triggered by SP pc 0 (base.s:" in "\n".join(why_lines(session.why("pe")))


def test_a_word_is_named_with_its_line(session: Session) -> None:
    session.continue_()
    (met,) = session.why("dve").met
    assert (met.kind, met.engine, met.by_pc, met.trigger, met.block) == ("instruction", "PE", 1, None, None)
    assert met.text.startswith("MATMUL") and met.source is not None and met.source.line == line_of(BASE, "PE", 1)


def test_two_waits_of_one_word_have_two_answers(session: Session) -> None:
    session.break_at("dve:0")
    session.continue_()
    assert [(one.condition, one.engine) for one in session.why("dve").met] == [("S[8]>=16", "qIn"), ("S[40]>=16", "qW")]


def test_only_what_has_happened_up_to_here_counts(session: Session) -> None:
    session.continue_()
    last = session.why("act").met[0].number
    session.goto("start")
    assert all(session.why(name).met == () for name in ("pe", "act", "pool"))
    session.continue_()
    assert session.why("act").met[0].number == last


COPIED = """
import numpy as np
import nki, nki.isa as nisa, nki.language as nl


@nki.jit
def kernel(a):
    out = nl.ndarray((128, 64), dtype=a.dtype, buffer=nl.shared_hbm)
    t = nl.ndarray((128, 64), dtype=a.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=t, src=a)
    nisa.dma_copy(dst=out, src=t)
    return out


kernel(np.ones((128, 64), np.float32))
"""


def test_a_word_under_way_is_asked_about_before_the_wait_behind_it(tmp_path: Path) -> None:
    # The engine makes descriptors for half a microsecond, and what it waits for then begins in the future.
    script = tmp_path / "copied.py"
    script.write_text(COPIED)
    session = open_session(script, RunConfiguration(target="trn2"))
    session.break_at("copied.py:11")
    session.continue_()
    (standing,) = (row for row in session.info_engines() if row.engine == session.focus()[1])
    found = session.why()
    assert (found.state, found.pc, found.report) == ("run", standing.pc, None) and standing.state == "run"
    assert [one.kind for one in found.met] == ["dma"] and found.met[0].source is not None
    assert found.met[0].source.line == 10
    session.step()
    later = session.why(found.engine)
    assert later.report is not None and later.report.waits[0].since_ps <= session.state().time_ps
