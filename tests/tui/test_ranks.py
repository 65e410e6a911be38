"""The screen over several ranks: one is shown, all are listed, and the verdict is of all of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from emulator.runtime.ranks import Ranks
from emulator.settings import Settings
from neurontools.debugger.opening_ranks import open_ranks
from neurontools.debugger.ranks import RankSessions
from neurontools.program.configuration import RunConfiguration
from tests.emulator.machine.test_ranks_hang import X, add, program
from tests.tui.driving import LARGE, SMALL, Driver, drive

ON = RunConfiguration(target="trn2", lnc=1)


def opened(file: Path, ranks: int) -> RankSessions:
    found = open_ranks(file, ON, Ranks(ranks), journal_bytes=50_000_000)
    for session in found.sessions.values():
        session.record()
    return found


@pytest.fixture
def parallel(root: Path) -> RankSessions:
    return opened(root / "examples/ranks/data_parallel.py", 4)


@pytest.fixture
def circle(root: Path) -> RankSessions:
    return opened(root / "examples/ranks/deadlock.py", 3)


@pytest.mark.parametrize("size", [LARGE, SMALL])
def test_every_rank_is_on_the_first_screen(parallel: RankSessions, size: tuple[int, int]) -> None:
    async def script(driver: Driver) -> None:
        lines = driver.pane_text("ranks").split("\n")
        assert "RANKS 4" in lines[0] and [line.split()[0] for line in lines[1:5]] == ["›0", "1", "2", "3"]
        assert " · rank 0 of 4 · " in driver.status and "(rank 0 nc0 pe)" in driver.text

    drive(parallel.session, script, size)


def test_keys_and_enter_choose_the_rank_of_all_panes(parallel: RankSessions) -> None:
    async def script(driver: Driver) -> None:
        await driver.press("right_curly_bracket")
        assert parallel.selected == 1 and " · rank 1 of 4 · " in driver.status and "(rank 1 " in driver.text
        await driver.press("left_curly_bracket", "left_curly_bracket")
        assert parallel.selected == 3
        driver.pane("ranks").focus()
        await driver.press("home", "down", "enter")
        assert parallel.selected == 1
        await driver.type("step 30")
        mine = driver.pane_text("engines"), driver.pane_text("queues"), driver.pane_text("sbuf")
        await driver.press("right_curly_bracket")
        other = driver.pane_text("engines"), driver.pane_text("queues"), driver.pane_text("sbuf")
        assert mine[0] != other[0] and mine[2] != other[2]  # rank 1 has more words and other values
        assert not driver.app.output.display and "› rank" not in driver.pane_text("log")

    drive(parallel.session, script)


def test_the_collective_that_each_is_in_and_whom_it_waits_for(parallel: RankSessions) -> None:
    async def script(driver: Driver) -> None:
        await driver.type("break data_parallel.py:29 rank 1")
        await driver.press("c")
        lines = driver.pane_text("ranks").split("\n")
        assert parallel.selected == 1 and "3 in collectives" in lines[0]
        for line in (lines[1], lines[3], lines[4]):
            assert "⏸ coll" in line and "← rank" in line and "all_reduce add of 65536 FLOAT32" in line
            assert "← rank 1 " in line and "data_parallel.py:29" in line
        await driver.type("step 3")
        assert "under way" in driver.pane_text("ranks").split("\n")[1]
        await driver.press("c")
        assert "4 done" in driver.pane_text("ranks") and "✓ finished" in driver.status

    drive(parallel.session, script)


@pytest.mark.parametrize("size", [LARGE, SMALL])
def test_a_circle_of_ranks_is_the_verdict(circle: RankSessions, size: tuple[int, int]) -> None:
    async def script(driver: Driver) -> None:
        await driver.press("c")
        assert driver.status.startswith(" ✗ hang · cycle · ranks 0 → 1 → 2 → 0 · ranks wait for each other")
        lines = driver.pane_text("ranks").split("\n")
        assert "3 hang" in lines[0]
        assert [line.split("←")[1].split()[:2] for line in lines[1:4]] == [["rank", "1"], ["rank", "2"], ["rank", "0"]]
        assert "■ ranks wait for each other: rank 0 in all_reduce" in driver.pane_text("findings")

    drive(circle.session, script, size)


def test_a_fault_of_a_rank_that_is_not_shown(capsys: Any) -> None:
    programs = program(add([0, 1])), program(add([0, 1]), fault=True)
    ranks = RankSessions(programs, [{one.inputs[0].name: X} for one in programs], Ranks(2), Settings(), 50_000_000)

    async def script(driver: Driver) -> None:
        await driver.press("c", "left_curly_bracket")
        assert parallel_rank(driver) == 0
        assert driver.status.startswith(" ✗ fault · rank 1 ")
        assert "✗ fault" in driver.pane_text("ranks") and "rank 1: fault" in driver.pane_text("findings")

    drive(ranks.session, script)


def parallel_rank(driver: Driver) -> int | None:
    assert driver.app.snapshot is not None
    return driver.app.snapshot.state.rank


def test_one_program_has_no_pane_of_ranks(double: Any) -> None:
    async def script(driver: Driver) -> None:
        assert "ranks" not in driver.app.panes and "RANKS" not in driver.text and "rank" not in driver.status
        await driver.press("right_curly_bracket")
        assert "rank" not in driver.status

    drive(double, script)


def test_the_timeline_of_a_rank_that_is_looked_at_later_is_whole(parallel: RankSessions) -> None:
    async def script(driver: Driver) -> None:
        await driver.press("c", "right_curly_bracket")
        text = driver.pane_text("timeline")
        assert "MATMUL" in text and "DMA_D" in text
        await driver.type("run")
        await driver.press("c", "right_curly_bracket")
        assert driver.pane_text("timeline") == text or "MATMUL" in driver.pane_text("timeline")

    drive(parallel.session, script)
