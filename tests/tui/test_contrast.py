"""Every text of the screen can be read in every theme: 4.5 to 1 at least, and quiet text stands back behind plain."""

from __future__ import annotations

from pathlib import Path

import pytest
from rich.color import ColorType
from rich.style import Style

from neurontools.debugger import Session
from neurontools.tui.contrast import LEAST, contrast, quiet, readable
from tests.tui.driving import LARGE, Driver, drive

ROOT = Path(__file__).resolve().parents[2]


def triple(colour: object) -> tuple[int, int, int]:
    found = colour.get_truecolor()  # type: ignore[attr-defined]
    return found.red, found.green, found.blue


def unreadable(driver: Driver) -> list[tuple[str, float]]:
    """Return the words on the screen that are too near to their background, with their contrast."""
    found = []
    for strip in driver.app.screen._compositor.render_strips():
        for segment in strip:
            style = segment.style
            if style is None or not any(letter.isalnum() for letter in segment.text):
                continue
            if style.color is None or style.bgcolor is None or style.color.type is ColorType.DEFAULT:
                continue
            value = contrast(triple(style.color), triple(style.bgcolor))
            if value < LEAST - 0.05 or style.dim:  # the colours are rounded
                found.append((segment.text.strip(), round(value, 2)))
    return found


def test_every_word_can_be_read_in_every_theme(double: Session) -> None:
    bad: dict[str, list[tuple[str, float]]] = {}
    themes: list[str] = []

    async def script(driver: Driver) -> None:
        await driver.press("s", "s", "s", "s")
        themes.extend(name for name in driver.app.available_themes if "ansi" not in name)
        for name in themes:
            driver.app.theme = name
            await driver.settle()
            found = unreadable(driver)
            if found:
                bad[name] = found

    drive(double, script, size=LARGE)
    assert len(themes) > 10
    assert bad == {}


@pytest.mark.parametrize("ground", ["#000000", "#ffffff", "#1e1e2e", "#fbf1c7", "#808080", "#073642"])
@pytest.mark.parametrize("text", ["#777777", "#ffffff", "#ff0000", "#00ff00", "#0000ff", "#ffff00"])
def test_colours_are_moved_until_they_can_be_read(text: str, ground: str) -> None:
    made = readable(Style(color=text, bgcolor=ground))
    assert contrast(triple(made.color), triple(made.bgcolor)) >= LEAST - 0.05
    plain = readable(
        Style(color="#e0e0e0" if ground in ("#000000", "#1e1e2e", "#073642") else "#101010", bgcolor=ground)
    )
    still = quiet(plain)
    assert contrast(triple(still.color), triple(still.bgcolor)) >= LEAST - 0.05
    assert contrast(triple(still.color), triple(still.bgcolor)) <= contrast(triple(plain.color), triple(plain.bgcolor))


def test_a_terminals_own_colours_stay() -> None:
    style = Style(color="red", bgcolor="default")
    assert readable(style) == style and quiet(style).dim
