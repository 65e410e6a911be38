"""What has not changed is not painted again, and what is kept is what would be painted."""

from __future__ import annotations

from typing import Any

import pytest
from textual._styles_cache import StylesCache

from tests.tui.driving import Driver, drive


def painted(driver: Driver) -> list[str]:
    return driver.text.split("\n")


def test_what_is_kept_is_what_is_painted(double: Any) -> None:
    """Behind steps, a command, another theme and another pane with the focus."""

    async def script(driver: Driver) -> None:
        async def compare() -> None:
            kept = painted(driver)
            for pane in driver.app.panes.values():
                pane._painted = None
                pane._styles_cache.clear()
            driver.app.screen.refresh()
            await driver.settle()
            assert painted(driver) == kept

        await compare()
        for keys in (("s", "s"), ("tab",), ("n",), ("S",), ("c",)):
            await driver.press(*keys)
            await compare()
        driver.app.theme = "textual-light"
        await driver.settle()
        await compare()

    drive(double, script)


def test_a_textual_of_other_names_paints_everything_again(double: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it remembers is its own matter; without it the screen is slower, and the same."""

    async def script(driver: Driver) -> None:
        before = painted(driver)
        pane = driver.app.panes["engines"]
        cache = pane._styles_cache
        monkeypatch.setattr(pane, "_styles_cache", _Renamed(cache))
        pane.refresh()
        await driver.settle()
        assert painted(driver) == before

    drive(double, script)


class _Renamed:
    """A cache of lines that keeps to itself what it remembers."""

    def __init__(self, cache: StylesCache) -> None:
        self.__cache = cache

    def __getattr__(self, name: str) -> Any:
        if name in ("_dirty_lines", "_cache"):
            raise AttributeError(name)
        return getattr(self.__cache, name)


def test_panes_without_changes_are_not_worked_out_again(double: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    worked: list[str] = []
    render = StylesCache.render_widget

    def counted(self: StylesCache, widget: Any, crop: Any) -> Any:
        worked.append(widget.id or "")
        return render(self, widget, crop)

    monkeypatch.setattr(StylesCache, "render_widget", counted)

    async def script(driver: Driver) -> None:
        worked.clear()
        engines, log = driver.pane("engines"), driver.pane("source")
        engines.set_lines(((("changed", ""),), *engines.lines[1:]))
        await driver.settle()
        assert "changed" in driver.pane_text("engines") and engines.id in worked
        assert log.id not in worked

    drive(double, script)


def test_places_in_the_text_are_for_the_mouse_alone(double: Any) -> None:
    async def script(driver: Driver) -> None:
        pane = driver.pane("disassembly")
        assert any("offset" in (s.style.meta or {}) for s in pane.render_line(0) if s.style)
        assert pane._painted is not None
        assert not any("offset" in (s.style.meta or {}) for strip in pane._painted[1][1:3] for s in strip if s.style)

    drive(double, script)


def test_the_title_says_that_no_checks_run(double: Any) -> None:
    async def script(driver: Driver) -> None:
        assert "FINDINGS none (checks are off, :checks on)" in driver.text
        await driver.type("checks race")
        assert "FINDINGS none" in driver.text and "checks are off" not in driver.text

    drive(double, script)
