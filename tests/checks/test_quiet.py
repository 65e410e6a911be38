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


# The GpSimd engine goes on where a flag is 0, which it is, over words that nothing ever comes to.
BRANCHING = (
    CLEAN.replace(".name clean", ".name branching\n.dialect extended\n.constant zero int32 [1, 1] 0").replace(
        ".engine sp\n",
        """
.queue qFlag sp 40
.dma qFlag 0 40 zero+0[1,4][4,1] -> SB+0x1000[1,262144][4,1]
.engine sp
    PSEUDO_DMA_TRIGGER qFlag block_id=0
""",
    )
    + """
.engine pool
    NOP S[40]>=16 cycle=0
    REGISTER_LOAD register=7 src=int32@0x1000[1,1,1,1,1][1,1,1,1,1] channels=1
    COMPARE_BRANCH cmp_op=EQ dtype=int32 cmp0=$R[7] cmp1=0 label_id=%on
    NOP cycle=0
on:
    NOP cycle=0
"""
)
SKIPPED = "    NOP cycle=0\non:"
BEYOND = "    COPY src=fp32@0x7000[1,1,1,1][64,1,1,1] dst=fp32@0x37ff0[1,1,1,1][64,1,1,1] channels=128\non:"
BRANCHES: dict[str, Planted] = {
    "a word that nothing comes to": ("", "", {"memcheck", "initcheck"}, set()),
    "all come to their ends": (SKIPPED, "on:", {"initcheck"}, set()),
    "beyond its memory": (SKIPPED, BEYOND, {"memcheck", "initcheck"}, {"oob"}),
    "beyond its memory, in reach of all rules": (
        SKIPPED, BEYOND.replace("0x37ff0", "0x2000000"), {"memcheck", "initcheck"}, {"access"}),
    "awaited by nobody": (SKIPPED, "    NOP S[41]++@complete cycle=0\non:\n    NOP S[42]++@complete cycle=0",
                          {"memcheck", "initcheck"}, set()),
    "awaited for less": (SKIPPED, "on:\n    NOP S[42]++@complete cycle=0\n    NOP S[42]++@complete cycle=0\n"
                         "    NOP S[42]>=1 cycle=0", {"initcheck", "synccheck"}, {"leftover"}),
    "awaited where nothing comes to": (
        SKIPPED, "    NOP S[42]>=2 cycle=0\non:\n    NOP S[42]++@complete cycle=0\n    NOP S[42]++@complete cycle=0\n"
        "    NOP S[42]>=1 cycle=0", {"memcheck", "initcheck"}, set()),
    "a part of a transfer where nothing comes to": (
        SKIPPED, "    NOP S[8]>=8 cycle=0\non:", {"memcheck", "initcheck", "synccheck"}, {"count-mismatch"}),
}  # fmt: skip


@pytest.mark.parametrize("name", BRANCHES)
def test_words_that_nothing_came_to_are_looked_at(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    old, new, tools, kinds = BRANCHES[name]
    assert BRANCHING.count(old) == 1 or not old
    found, made = found_and_made(BRANCHING.replace(old, new) if old else BRANCHING, monkeypatch)
    assert (set(made), found) == (tools, kinds)


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
