"""Watchpoints stop where bytes were written and nowhere else; conditions that have no answer say so."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from neurontools.debugger import Session
from neurontools.debugger.commands.carry_out import carry_out
from neurontools.nki.launch import build_neff
from tests.debugger import products

X = np.arange(128 * 64, dtype=np.float32).reshape(128, 64)


@pytest.fixture(scope="module")
def matmul() -> Session:
    """Return a session on products in fp32, whose LOW passes wait for the HIGH ones."""
    a, b = (np.random.default_rng(seed).standard_normal((128, 128), np.float32) for seed in (0, 1))
    return Session(build_neff(products.products, (a, b), {}), {"a": a, "b": b}, timing=False)


def test_a_watchpoint_stops_only_at_words_that_changed_the_bytes(matmul: Session) -> None:
    """Against the bytes themselves, before and after every completion."""
    matmul.goto("start")
    matmul.delete()
    changed = []
    before = matmul.tensor("total").array.copy()
    while (stop := matmul.step()).completions:
        now = matmul.tensor("total").array.copy()
        if now.tobytes() != before.tobytes():
            changed.append(stop.steps[0].number)
        before = now
    matmul.goto("start")
    matmul.watch("total")
    seen = []
    while (stop := matmul.continue_()).reason == "watchpoint":
        seen.append(stop.steps[-1].number)
    assert seen == changed and len(seen) >= 2
    back = []
    while (moved := matmul.reverse_continue()).reason == "watchpoint":
        back.append(moved.events - 1)
    assert back == seen[-2::-1] or back == seen[::-1]


def test_who_wrote_last_is_who_wrote(matmul: Session) -> None:
    matmul.delete()
    matmul.goto("end")
    found = matmul.last_write("total[0, 0]")
    assert found.engine == "PE" and found.text.startswith("MATMUL")


def test_a_condition_that_has_no_answer_says_so(program_file: Path) -> None:
    session = Session(program_file, {"x": X}, timing=False)
    session.break_at("dve:2", condition="1 // (S[8] - S[8]) == 0 and S[8] == 16")
    answer = carry_out(session, "continue")
    assert answer.reason == "breakpoint"
    assert any("could not be computed" in line and "zero" in line for line in answer.lines)
    session.delete()
    session.goto("end")
    session.break_at("dve:2", condition="1 // (S[8] - S[8]) == 0 and S[8] == 16")
    back = carry_out(session, "reverse-continue")
    assert back.reason == "breakpoint" and any("could not be computed" in line for line in back.lines)
    session.condition(2, "S[8] == 16")
    session.goto("start")
    assert not carry_out(session, "continue").value.errors
