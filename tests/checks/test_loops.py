"""Loops that a budget ends: a check says which come no nearer to their end, and of others nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import neurontools.nki.isa as nisa
import neurontools.nki.language as nl
from emulator.checks import Finding
from emulator.runtime import run
from neurontools.nki.launch import build_neff
from tests.checks.support import assembled

X = np.ones((128, 16), np.float32)


def counts(x: Any, turns: Any, step: int) -> Any:
    """Double a tile while a number, changed by `step` each turn, is not 0."""
    out, tile = nl.ndarray(x.shape, x.dtype, nl.shared_hbm), nl.ndarray(x.shape, x.dtype, nl.sbuf)
    number = nl.ndarray((1, 1), nl.int32, nl.sbuf)
    nisa.dma_copy(tile, x)
    nisa.dma_copy(number, turns)
    left = nisa.register_alloc()
    nisa.register_load(left, number)
    while left:  # the loop
        nisa.tensor_scalar(tile, tile, nl.multiply, 1.0)
        nisa.tensor_scalar(number, number, nl.add, step)
        nisa.register_load(left, number)
    nisa.dma_copy(out, tile)
    return out


def found(turns: int, step: int, budget: int) -> tuple[list[Finding], bool]:
    given = np.array([[turns]], np.int32)
    neff = build_neff(counts, (X, given, step), {}, target="trn2")
    result = run(neff, {"x": X, "turns": given}, checks="all", max_steps=budget)
    return [one for one in result.findings if one.serious], result.ok


@pytest.mark.parametrize(("turns", "step", "says"), [
    (3, 0, "was 3 in each of the last"), (-1, -1, "went from -1 to -"),
    (1 << 30, -1, "was 1073741824 in each")])  # fmt: skip
def test_a_loop_that_comes_no_nearer_to_its_end_is_named(turns: int, step: int, says: str) -> None:
    """The last one counts by fp32, as the Vector engine does, which has no number between 2**30 - 64 and 2**30."""
    findings, ok = found(turns, step, 12000)
    assert not ok
    (one,) = findings
    assert (one.tool, one.kind) == ("synccheck", "livelock") and says in one.message
    line = counts.__code__.co_firstlineno + 8
    assert getattr(one.site.source, "line", 0) == line


def test_a_loop_that_the_budget_cuts_short_is_not() -> None:
    """It counts down to 0, and would have got there."""
    findings, ok = found(1 << 20, -1, 12000)
    assert findings == [] and not ok


def test_a_loop_that_ends_is_clean() -> None:
    assert found(5, -1, 12000) == ([], True)


IDLE = """
.target trn2
.name idle
.output y float32 [128, 64]
.queue qOut act 24
.dma qOut 0 24 SB+0x7000[1,262144][256,128] -> y+0[1,256][256,128]
.engine act
    PSEUDO_DMA_TRIGGER qOut block_id=0
    NOP S[24]>=16 cycle=0
.engine dve
"""


def test_an_engine_without_words_is_in_no_loop_when_the_budget_ends() -> None:
    neff = assembled(IDLE)
    assert not neff.subgraphs[0].streams["DVE"]
    result = run(neff, {}, checks="all", max_steps=1)
    assert result.hang is not None
    assert result.findings == ()


def test_words_that_load_and_compare_registers_are_described_for_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each turn of a loop loads and tests one; who is told of none needs no text of them."""
    made = []
    monkeypatch.setattr("emulator.checks.initcheck.site_of_event", lambda *given: made.append(given))
    assert found(5, -1, 12000) == ([], True) and not made
