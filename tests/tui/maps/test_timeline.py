"""The timeline pane: rows, the cursor, travelling and zooming."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from neurontools.debugger.opening import open_session
from neurontools.tui.timeline import Timeline
from neurontools.tui.timeline_view import TimeView
from tests.tui.maps.alone import Alone, alone, check_golden, press


@pytest.fixture
def timed(root: Path) -> Any:
    """Return a session whose times are those of the cost model."""
    return open_session(root / "examples" / "attention.py")


def rows_of(app: Alone) -> dict[str, str]:
    """Return the blocks of every row by its name."""
    lines = app.text.split("\n")[2:-2]
    return {line[1:11].strip(): line[12:] for line in lines if line.strip()}


def test_golden(attention: Any) -> None:
    async def script(app: Alone, pilot: Any) -> None:
        check_golden("timeline", app.text)

    alone(attention, Timeline(), script, (90, 11))


def test_rows_are_as_busy_as_the_run_was(attention: Any) -> None:
    pane = Timeline()

    async def script(app: Alone, pilot: Any) -> None:
        app.do("goto end")
        await pilot.pause()
        rows = rows_of(app)
        assert list(rows) == ["PE", "ACT", "POOL", "DVE", "SP", "qPoolDynam", "qSPDynamic"]
        assert pane.spans is not None
        for blocks, busy in zip(rows.values(), pane.spans.busy, strict=True):
            shown = sum(character in "▁▂▃▄▅▆▇█" for character in blocks)
            assert shown == int((busy > 0).sum())

    alone(attention, pane, script, (100, 12))


def test_arrows_travel_and_come_back(timed: Any) -> None:
    pane, attention = Timeline(), timed

    async def script(app: Alone, pilot: Any) -> None:
        app.do("goto end")
        await pilot.pause()
        end, whole = attention.time_ps, pane.spans.busy.copy()
        for _ in range(3):
            before = attention.time_ps
            await press(pilot, "shift+left")
            assert attention.time_ps <= before
        assert attention.time_ps < end and app.commands[-1].startswith("goto ") and app.commands[-1].endswith("ps")
        assert pane.spans is not None and (pane.spans.busy == whole).all(), "what was taken back is still known"
        for _ in range(4):
            await press(pilot, "shift+right")
        assert attention.time_ps == end == pane._cursor_ps, "there is nothing behind the end"
        await press(pilot, "home")
        assert attention.events == 0
        await press(pilot, "end")
        assert attention.time_ps == end and app.commands[-2:] == ["goto start", "goto end"]

    alone(attention, pane, script, (100, 12))


def test_empty_columns_do_not_stop_the_cursor(timed: Any) -> None:
    pane, attention = Timeline(), timed

    async def script(app: Alone, pilot: Any) -> None:
        app.do("step 5")
        await pilot.pause()
        target = attention.time_ps
        await press(pilot, "shift+right")
        assert attention.time_ps == target and pane._cursor_ps > target, "nothing completes there"
        pressed = 0
        while attention.time_ps == target:
            await press(pilot, "shift+right")
            pressed += 1
            assert pressed < 100, "it gets past columns in which nothing completes"
        assert pane._cursor_ps >= attention.time_ps
        app.do("step")
        await pilot.pause()
        assert pane._cursor_ps == attention.time_ps

    alone(attention, pane, script, (60, 12))


def test_a_click_travels_and_chooses_a_row(timed: Any) -> None:
    pane, attention = Timeline(), timed

    async def script(app: Alone, pilot: Any) -> None:
        app.do("goto end")
        await pilot.pause()
        await pilot.click(Timeline, offset=(12 + 20, 3))
        await pilot.pause()
        assert app.commands == [f"goto {20 * pane.view.step_ps}ps"] and pane.row == 1
        assert attention.time_ps <= 20 * pane.view.step_ps
        await press(pilot, "enter")
        kind, value = app.selected[0]
        assert kind == "instruction" and value[:2] == (0, "Activation")
        await press(pilot, *["down"] * 9, "enter")
        assert app.selected[1] == ("queue", (0, "qSPDynamicHW"))
        await press(pilot, *["up"] * 9)
        assert pane.row == 0

    alone(attention, pane, script, (100, 12))


def test_a_low_pane_scrolls_to_the_row(attention: Any) -> None:
    async def script(app: Alone, pilot: Any) -> None:
        assert list(rows_of(app)) == ["PE", "ACT"]
        await press(pilot, *["down"] * 3)
        assert list(rows_of(app)) == ["POOL", "DVE"]

    alone(attention, Timeline(), script, (60, 5))


def test_zoom_page_and_fit(timed: Any) -> None:
    pane, attention = Timeline(), timed

    async def script(app: Alone, pilot: Any) -> None:
        app.do("step 40")
        await pilot.pause()
        fit = pane.view
        await press(pilot, "plus")
        assert pane.view.step_ps < fit.step_ps and pane.view.start_ps <= attention.time_ps < pane.view.end_ps
        start = pane.view.start_ps
        await press(pilot, "pagedown")
        assert pane.view.start_ps > start and not app.commands, "paging does not travel"
        await press(pilot, "minus", "0")
        assert (pane.view.start_ps, pane.view.fits) == (0, True) and pane.view.end_ps > attention.time_ps

    alone(attention, pane, script, (100, 12))


def test_a_view_that_fits_grows_with_the_run_only() -> None:
    view = TimeView(100).following(0, 0)
    steps = [view.step_ps]
    for known in (50_000, 99_999, 500_000, 400_000, 3_000_000):
        view = view.following(known, known)
        steps.append(view.step_ps)
        assert view.start_ps == 0 and known < view.end_ps
    assert steps == sorted(steps) and steps[-1] > steps[0]
    assert view.following(10, 3_000_000) == view.following(10, 3_000_000).following(10, 3_000_000)


def test_a_growing_view_does_not_depend_on_when_it_was_looked_at() -> None:
    often, seldom = TimeView(100), TimeView(100)
    for known in range(0, 5_000_000, 3_001):
        often = often.following(known, known)
        if known % 7 == 0 or known > 4_999_000:
            seldom = seldom.following(known, known)
        assert often.end_ps > known
    assert (often.start_ps, often.step_ps) == (seldom.start_ps, seldom.step_ps)
    over = often.following(5_000_000, 5_000_000, True)
    assert over.step_ps * (over.columns - 2) <= 5_000_000 < over.end_ps, "a run that is over is fitted"


def test_a_zoomed_view_follows_only_what_leaves_it() -> None:
    view = TimeView(100, 0, 1000, False)
    assert view.following(50_000, 50_000).start_ps == 0
    moved = view.following(150_000, 150_000)
    assert moved.start_ps <= 150_000 < moved.end_ps and moved.start_ps % 1000 == 0
    assert view.zoomed(1, 50_000).step_ps == 500 and view.zoomed(-1, 50_000).step_ps == 2000
    for by in (1, -1):
        again = view.zoomed(by, 50_000)
        assert (50_000 - again.start_ps) // again.step_ps in (50, 25, 49), "the cursor stays where it is on the screen"
