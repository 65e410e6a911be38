"""The mouse: selecting and copying what panes show, and moving the lines between them."""

from __future__ import annotations

from typing import Any

from tests.tui.driving import Driver, drive


def test_what_is_selected_is_marked_and_copied(double: Any) -> None:
    async def script(driver: Driver) -> None:
        pane = driver.pane("disassembly")
        lines = driver.pane_text("disassembly").split("\n")
        row = next(at for at, line in enumerate(lines) if at > 0 and "SET_ORDERING_MODE" in line)
        x, y = pane.region.x, pane.region.y
        line = pane.lines[int(pane.scroll_offset.y) + row - 1]
        whole = "".join(text for text, _ in line)
        at = whole.index("SET_ORDERING_MODE")
        cursor = pane.cursor
        plain = pane.render_line(row - 1)
        await driver.pilot.mouse_down(offset=(x + at, y + row))
        await driver.pilot.hover(offset=(x + at + 5, y + row))
        await driver.pilot.hover(offset=(x + at + len("SET_ORDERING_MODE"), y + row))
        await driver.pilot.mouse_up(offset=(x + at + len("SET_ORDERING_MODE"), y + row))
        await driver.settle()
        assert driver.app.screen.get_selected_text() in ("SET_ORDERING_MODE", "SET_ORDERING_MODE ")
        assert [s.style.bgcolor for s in pane.render_line(row - 1)] != [s.style.bgcolor for s in plain]
        assert pane.cursor == cursor, "selecting chooses nothing"
        await driver.press("ctrl+c")
        assert driver.app.clipboard.strip() == "SET_ORDERING_MODE"

    drive(double, script)


def test_the_line_between_the_columns_can_be_moved(double: Any) -> None:
    async def script(driver: Driver) -> None:
        right = driver.app.query_one("#right")
        before = driver.pane("engines").size.width
        await driver.pilot.mouse_down(offset=(right.region.x, 20))
        await driver.pilot.hover(offset=(100, 20))
        await driver.pilot.mouse_up(offset=(100, 20))
        await driver.settle()
        assert driver.pane("engines").size.width == 100 != before
        assert driver.app._layout.left == 50, "and is remembered"

    drive(double, script)


def test_the_line_above_a_pane_can_be_moved(double: Any) -> None:
    async def script(driver: Driver) -> None:
        code, timeline = driver.pane("source"), driver.pane("sbuf")
        before = code.outer_size.height
        x, y = timeline.region.x + 30, timeline.region.y
        await driver.pilot.mouse_down(offset=(x, y))
        await driver.pilot.hover(offset=(x, y + 2))
        await driver.pilot.hover(offset=(x, y + 5))
        await driver.pilot.mouse_up(offset=(x, y + 5))
        await driver.settle()
        assert code.outer_size.height == before + 5
        await driver.press("s")
        assert code.outer_size.height == before + 5, "it stays"

    drive(double, script)
