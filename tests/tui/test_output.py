"""On a small terminal: what commands say is seen, Escape leads back, and the first line says what went wrong."""

from __future__ import annotations

from pathlib import Path

from neurontools.debugger import Session
from tests.tui.driving import LARGE, SMALL, Driver, drive, open_program

ROOT = Path(__file__).resolve().parents[2]


def test_output_lies_over_the_panes_until_escape(double: Session) -> None:
    async def script(driver: Driver) -> None:
        await driver.press("colon")
        driver.app.command_line.input.value = "info engines"
        await driver.press("enter")
        assert "OUTPUT  info engines" in driver.text and "waits for" in driver.text
        await driver.press("escape")
        assert "escape closes" not in driver.text
        await driver.press("s")
        assert driver.app.snapshot.state.events == 1, "the keyboard is the panes' again"

    drive(double, script, size=SMALL)


def test_where_the_log_is_seen_nothing_lies_over_it(double: Session) -> None:
    async def script(driver: Driver) -> None:
        await driver.press("colon")
        driver.app.command_line.input.value = "info engines"
        await driver.press("enter")
        assert "escape closes" not in driver.text and not driver.app.output.display

    drive(double, script, size=LARGE)


def test_a_block_says_what_it_waits_for_and_escape_drops_it(double: Session) -> None:
    async def script(driver: Driver) -> None:
        await driver.press("colon")
        for line in ("define twice", "commands 1", "step", "end"):
            driver.app.command_line.input.value = line
            await driver.press("enter")
        assert "end closes" in driver.text and double.scripting.names == ()
        driver.app.command_line.input.value = "end"
        await driver.press("enter")
        assert [one.name for one in double.scripting.names] == ["twice"]
        driver.app.command_line.input.value = "define other"
        await driver.press("enter", "escape")
        assert "end closes" not in driver.text
        await driver.press("s")
        assert driver.app.snapshot.state.events == 1
        assert [one.name for one in double.scripting.names] == ["twice"]

    drive(double, script, size=SMALL)


def test_the_first_line_says_what_went_wrong() -> None:
    seen: dict[str, str] = {}

    for name in ("out_of_bounds.s", "deadlock.s"):

        async def script(driver: Driver, name: str = name) -> None:
            await driver.press("c")
            seen[name] = driver.text.splitlines()[0]

        drive(open_program(ROOT / "examples" / name), script, size=SMALL)
    assert seen["out_of_bounds.s"].startswith(" ✗ fault · DVE pc 2 · out_of_bounds.s:")
    assert seen["deadlock.s"].startswith(" ✗ hang · ") and " pc " in seen["deadlock.s"]


def test_commands_of_ones_own_run_on_the_screen(double: Session, tmp_path: Path) -> None:
    (tmp_path / "lines").write_text("define twice\nstep\nstep\nend\ntwice\nalias again = twice\nagain\n")

    async def script(driver: Driver) -> None:
        await driver.type(f"source {tmp_path / 'lines'}")
        await driver.settle()
        assert driver.app.snapshot.state.events == 4

    drive(double, script, size=SMALL)
