"""Panes take what they need: finished engines a line, empty panes their title, what is left goes to code and source."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neurontools.tui.labels import number_ranges, sparkline
from neurontools.tui.layout import Wish, heights
from neurontools.tui.panes.reports import wrapped
from neurontools.tui.syntax import source_parts, word_parts
from tests.tui.driving import LARGE, SMALL, Driver, drive, open_program

_WISH = st.tuples(st.one_of(st.none(), st.integers(0, 30)), st.sampled_from([0.8, 1.0, 1.4]), st.integers(1, 20))
_WISHES = st.lists(_WISH.map(lambda of: Wish(*of)), min_size=1, max_size=7)


@given(_WISHES, st.integers(14, 60))
def test_heights_fill_the_room(wishes: list[Wish], room: int) -> None:
    found = heights(wishes, room)
    assert sum(found) == max(room, sum(found)) and sum(found) <= max(room, 3 * len(wishes))
    needed = sum(min(wish.lines, wish.most) + 1 if wish.lines is not None else 3 for wish in wishes)
    if needed <= room:
        for wish, height in zip(wishes, found, strict=True):
            assert height >= (3 if wish.lines is None else min(wish.lines, wish.most) + 1)
        if any(wish.lines is None for wish in wishes):
            fixed = [height for wish, height in zip(wishes, found, strict=True) if wish.lines is not None]
            assert fixed == [min(wish.lines, wish.most) + 1 for wish in wishes if wish.lines is not None]


def test_what_a_person_gave_comes_first() -> None:
    assert heights([Wish(2, given=9), Wish(None), Wish(0)], 30) == [9, 20, 1]


def test_finished_engines_take_one_line_and_the_rest_goes_to_the_code(deadlock: Any) -> None:
    async def script(driver: Driver) -> None:
        code = driver.pane("disassembly").size.height
        before = driver.pane("engines").size.height
        await driver.press("c")
        lines = driver.pane_text("engines").split("\n")[1:]
        done = [line for line in lines if "✓ done" in line]
        assert len(done) == 2 and len(lines) == driver.pane("engines").size.height == 2 * 3 + len(done)
        assert driver.pane("engines").size.height != before or code

    drive(deadlock, script)


def test_empty_panes_keep_their_title_only(double: Any, tmp_path: Path) -> None:
    file = tmp_path / "alone.s"
    file.write_text(
        ".target trn2\n.dialect extended\n.engine dve\n"
        + "    MEMSET dst=fp32@0x6000[1,1,1,1][8,1,1,1] count=8 channels=4\n" * 3
    )
    heights = []

    async def script(driver: Driver) -> None:
        assert driver.pane("findings").size.height == 0 and "FINDINGS none" in driver.text
        assert driver.pane("semaphores").size.height == 0 and "SEMAPHORES all zero" in driver.text
        heights.append(driver.pane("disassembly").size.height + driver.pane("log").size.height)

    async def waiting(driver: Driver) -> None:
        await driver.press("s", "s", "s", "s", "s")
        assert driver.pane("semaphores").size.height > 0 and "S[" in driver.pane_text("semaphores")
        heights.append(driver.pane("disassembly").size.height + driver.pane("log").size.height)

    drive(open_program(file), script)
    drive(double, waiting)
    assert heights[0] != heights[1]


def test_without_source_the_words_have_the_room(tmp_path: Path, root: Path) -> None:
    text = (root / "examples" / "deadlock.s").read_text()
    (tmp_path / "gone.s").write_text(text)
    session = open_program(tmp_path / "gone.s")
    (tmp_path / "gone.s").unlink()

    async def script(driver: Driver) -> None:
        await driver.press("2")
        assert "SOURCE none: " in driver.text and driver.pane("source").size.height == 0
        assert driver.pane("disassembly").size.height > 15 and "SET_ORDERING_MODE" in driver.pane_text("disassembly")

    drive(session, script, SMALL)


@pytest.mark.parametrize("size", [LARGE, SMALL])
def test_findings_are_whole_sentences_and_say_the_cause_first(deadlock: Any, size: tuple[int, int]) -> None:
    async def script(driver: Driver) -> None:
        await driver.press("c")
        lines = [line.rstrip(" │") for line in driver.pane_text("findings").split("\n")]
        assert lines[1].startswith("■ deadlock at ") and "cycle: nc0 Activation waits for nc0 DVE" in lines[2]
        assert "hint: " in lines[3]

    drive(deadlock, script, size)


@given(st.text("abcdefg hijk", max_size=200), st.integers(10, 60))
def test_wrapping_loses_no_word(text: str, width: int) -> None:
    assert " ".join(wrapped(text, width)).split() == text.split() or max(map(len, text.split()), default=0) > width - 4


def test_semaphores_of_a_queue_stand_together(root: Path) -> None:
    session = open_program(root / "examples" / "attention.py")

    async def script(driver: Driver) -> None:
        await driver.type("goto end")
        rows = [row for row in session.info_queues() if len(row.semaphores) > 1]
        text = driver.pane_text("semaphores")
        assert rows and all(f"{row.name} S[{row.semaphores[0]}-" in text for row in rows)
        assert "S[9]=" not in text
        driver.pane("semaphores").focus()
        await driver.settle()
        for _ in range(12):
            if driver.app.panes["semaphores"]._chosen not in {(0, "semaphore", row.semaphores[0]) for row in rows}:
                await driver.press("right")
        await driver.press("enter")
        assert "S[9]=" in driver.pane_text("semaphores"), "opened"
        await driver.press("enter")
        assert "S[9]=" not in driver.pane_text("semaphores")

    drive(session, script)


@given(st.sets(st.integers(0, 40)))
def test_number_ranges_name_every_number(numbers: set[int]) -> None:
    found: set[int] = set()
    for part in filter(None, number_ranges(numbers).split(",")):
        low, _, high = part.partition("-")
        found |= set(range(int(low), int(high or low) + 1))
    assert found == numbers


def test_sparklines_follow_the_run(root: Path) -> None:
    session = open_program(root / "examples" / "attention.py")

    async def script(driver: Driver) -> None:
        await driver.type("goto end")
        owners = {owner.name: shares for owner, shares in session.inspector.timeline.utilisation(8).items()}
        line = next(line for line in driver.pane_text("engines").split("\n") if line[1:4] == "PE ")
        assert sparkline(owners["PE"]) in line and f"{sum(owners['PE']) / len(owners['PE']) * 100:.0f}%" in line
        queue = next(line for line in driver.pane_text("queues").split("\n") if line.startswith("qSPDynamicHW"))
        assert sparkline(owners["qSPDynamicHW"]) in queue

    drive(session, script)


def test_utilisation_is_what_completed_by_then(root: Path) -> None:
    session, fresh = (open_program(root / "examples" / "attention.py") for _ in range(2))
    session.record()
    fresh.record()
    session.goto("end")
    session.inspector.timeline.utilisation(8)
    session.goto("#30")
    fresh.goto("#30")
    after, alone = (each.inspector.timeline.utilisation(8) for each in (session, fresh))
    assert after.keys() == alone.keys()
    for owner, busy in after.items():
        assert busy == pytest.approx(alone[owner], abs=1e-6), owner


@pytest.mark.parametrize(("text", "roles"), [
    ("COPY S[6]>=1 S[4]++@complete src=fp32@0x5000[1,1][64,1] channels=128",
     {"COPY": "opcode", "S[6]>=1": "semaphore", "S[4]++@complete": "semaphore", "src=": "dim",
      "fp32@0x5000[1,1][64,1]": "operand", "128": ""}),
    ("NOP E[3]>=1 cycle=0", {"NOP": "opcode", "E[3]>=1": "semaphore", "cycle=": "dim"}),
])  # fmt: skip
def test_parts_of_an_instruction(text: str, roles: dict[str, str]) -> None:
    parts = word_parts(text)
    assert "".join(part for part, _ in parts) == text
    for wanted, role in roles.items():
        assert any(part.strip() == wanted and found == role for part, found in parts), (wanted, parts)


def test_parts_of_python() -> None:
    last = '    return nl.exp(x) + 2.5 if x else "no # one"'
    lines = ("def f(x):  # a comment", '    """Say', '    it."""', last, "")
    parts = source_parts(lines, True)
    assert ["".join(text for text, _ in line) for line in parts] == list(lines)
    flat = [[(text.strip(), role) for text, role in line if text.strip()] for line in parts]
    assert ("def", "keyword") in flat[0] and ("# a comment", "dim") in flat[0]
    assert flat[1] == [('"""', "text"), ("Say", "text")] and flat[2] == [('it."""', "text")]
    assert ('"no # one"', "text") in flat[3]
    assert ("return", "keyword") in flat[3] and ("nl.exp", "call") in flat[3] and ("2.5", "number") in flat[3]


@given(st.text("ab#'\"( \\=[]@0x1S{}", max_size=40), st.booleans())
def test_no_letter_is_lost(text: str, python: bool) -> None:
    assert "".join(part for part, _ in source_parts((text,), python)[0]) == text
