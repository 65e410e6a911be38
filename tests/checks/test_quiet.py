"""Of a run in order only those checks are made that have something to say."""

from __future__ import annotations

import numpy as np
import pytest

from emulator.checks import again
from emulator.dma import rings
from emulator.runtime import run
from tests.checks.support import assembled

CLEAN = """
.target trn2
.name clean
.input  x float32 [128, 64]
.output y float32 [128, 64]
.queue qIn sp 8
.queue qOut act 24
.dma qIn  0 8  x+0[1,256][256,128] -> SB+0x4000[1,262144][256,128]
.dma qOut 0 24 SB+0x7000[1,262144][256,128] -> y+0[1,256][256,128]
.engine sp
    PSEUDO_DMA_TRIGGER qIn block_id=0
.engine dve
    COPY S[8]>=16 S[6]++@complete src=fp32@0x4000[1,1,1,1][64,1,1,1] dst=fp32@0x7000[1,1,1,1][64,1,1,1] channels=128
.engine act
    PSEUDO_DMA_TRIGGER S[6]>=1 qOut block_id=0
    NOP S[24]>=16 cycle=0
"""
STORE = ".dma qOut 0 24 SB+0x7000[1,262144][256,128] -> y+0[1,256][256,128]"
LAST = "NOP S[24]>=16 cycle=0"
TENTH = "COPY src=fp32@0x7000[1,1,1,1][64,1,1,1] dst=fp32@0x289000[1,1,1,1][64,1,1,1] channels=64"
LATER = "COPY src=fp32@0x4000[1,1,1,1][64,1,1,1] dst=fp32@0x7000[1,1,1,1][64,1,1,1] channels=128"
Planted = tuple[str, str, set[str], set[str]]  # a text and what stands in its place, who is made, what is found
PLANTED: dict[str, Planted] = {
    "clean": ("", "", set(), set()),
    "leftover": (".engine act", "    NOP S[6]++@complete cycle=0\n.engine act", {"synccheck"}, {"leftover"}),
    "never triggered": (".engine sp", STORE.replace("0 24", "1 24") + "\n.engine sp", {"synccheck"},
                        {"never-triggered"}),
    "part of a transfer": ("S[8]>=16", "S[8]>=8", {"synccheck"}, {"count-mismatch", "leftover"}),
    "unwritten": (STORE, STORE.replace("128]", "127]"), {"initcheck"}, {"output-unwritten"}),
    "rule": (LAST, f"{LAST}\n    {TENTH}", {"memcheck"}, {"rule"}),
    "race": (".engine act", f"    {LATER}\n.engine act", {"racecheck"}, {"read-write", "write-read"}),
}  # fmt: skip


X = {"x": np.ones((128, 64), np.float32)}


def found_and_made(text: str, patch: pytest.MonkeyPatch) -> tuple[set[str], list[str]]:
    """Return the kinds of what is found in a program, and which checks are made for that."""
    neff, made = assembled(text), []
    make = again.make_checks
    with patch.context() as here:
        here.setattr(again, "make_checks", lambda tools: made.extend(tools) or make(tools))
        found = run(neff, X, checks="all").findings
    with patch.context() as here:
        here.setattr(again, "order_of", lambda *_: None)  # all of them are, and look at everything
        assert run(assembled(text), X, checks="all").findings == found
    return {one.kind for one in found}, made


@pytest.mark.parametrize("name", PLANTED)
def test_only_those_with_something_to_say_are_made(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    old, new, tools, kinds = PLANTED[name]
    assert CLEAN.count(old) == 1 or not old
    found, made = found_and_made(CLEAN.replace(old, new) if old else CLEAN, monkeypatch)
    assert set(made) == tools
    assert found <= kinds and bool(found) == bool(kinds)


def test_rings_that_are_filled_too_far_when_the_program_is_loaded_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rings, "LARGEST_RING", 4)
    assert found_and_made(CLEAN, monkeypatch) == ({"ring-full"}, ["synccheck"])


def test_tools_that_were_not_asked_for_stay_silent() -> None:
    text = CLEAN.replace(".engine act", "    NOP S[6]++@complete cycle=0\n.engine act")
    assert [one.kind for one in run(assembled(text), X, checks=("race", "sync")).findings] == ["leftover"]
    assert run(assembled(text), X, checks=("race", "mem")).findings == ()
