"""A core dump on the screen: everything that can be looked at, nothing that moves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from emulator.dump import write_core
from neurontools.debugger import Session
from tests.tui.driving import LARGE, SMALL, Driver, drive, open_program


@pytest.fixture
def dump(deadlock: Session, tmp_path: Path) -> Any:
    """Return a session on the dump of a deadlock, opened as `neurontools debug` opens it."""
    deadlock.continue_()
    path = tmp_path / "deadlock.core"
    write_core(deadlock.device, path, neff=deadlock.neff, journal=deadlock.journal)
    return open_program(path)


@pytest.mark.parametrize("size", [LARGE, SMALL])
def test_a_deadlock_is_understood_without_a_key(dump: Any, size: tuple[int, int]) -> None:
    async def script(driver: Driver) -> None:
        lines = driver.text.split("\n")
        assert "✗ core dump, hang" in lines[0]
        for engine, wait in (
            ("ACT", "waits S[6]>=1, is 0  ← DVE pc 2 (deadlock)"),
            ("DVE", "waits S[4]>=1, is 0  ← ACT pc 1 (deadlock)"),
        ):
            at = next(number for number, line in enumerate(lines) if line[1:5].strip() == engine)
            assert "⏸ wait" in lines[at] and wait in lines[at + 1]
        assert "S[4]=0⏳" in driver.text and "S[6]=0⏳" in driver.text
        assert "c continue" not in driver.text

    drive(dump, script, size)


def test_a_signal_that_never_comes_is_said(tmp_path: Path) -> None:
    source = tmp_path / "alone.s"
    source.write_text(".target trn2\n.name alone\n.engine dve\n    NOP S[40]>=1 cycle=0\n")
    session = open_program(source)
    session.continue_()
    write_core(session.device, tmp_path / "alone.core")

    async def script(driver: Driver) -> None:
        assert "waits S[40]>=1, is 0  ← never-signalled: nothing in the program signals S[40]" in driver.text

    drive(session, script)
    drive(open_program(tmp_path / "alone.core"), script)


def test_looking_works_and_moving_does_not(dump: Any) -> None:
    async def script(driver: Driver) -> None:
        driver.pane("semaphores").focus()
        await driver.press("right", "z")
        assert "posts   +1 ACT pc 1 (blocked)" in driver.pane_text("semaphores")
        await driver.press("z")
        before = driver.text
        await driver.press("s", "n", "c", "S", "C")
        assert driver.text == before
        await driver.type("step")
        assert "a core dump does not move" in driver.pane_text("log")
        await driver.type("last-write sbuf:0:0x4000")
        assert "written last by #" in driver.pane_text("log")

    drive(dump, script)
