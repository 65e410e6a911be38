"""The maps of SBUF and PSUM: what they paint, and what every key does."""

from __future__ import annotations

from typing import Any

import pytest

from formats.dtypes import Dtype
from formats.regions import Region
from neurontools.debugger.maps import MODES
from neurontools.tui.maps import PsumMap, SbufMap
from neurontools.tui.pane import Selection
from tests.tui.maps.alone import Alone, alone, check_golden, press


@pytest.fixture
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let cells be characters, as where there are no colours."""
    monkeypatch.setenv("NO_COLOR", "1")


@pytest.mark.usefixtures("plain")
@pytest.mark.parametrize("mode", MODES)
def test_sbuf_golden(attention: Any, mode: str) -> None:
    pane = SbufMap()
    pane.mode = mode

    async def script(app: Alone, pilot: Any) -> None:
        check_golden(f"sbuf_{mode}", app.text)

    alone(attention, pane, script)


@pytest.mark.usefixtures("plain")
@pytest.mark.parametrize(("lines", "name"), [(16, "psum"), (5, "psum_low")])
def test_psum_golden(attention: Any, lines: int, name: str) -> None:
    async def script(app: Alone, pilot: Any) -> None:
        check_golden(name, app.text)

    alone(attention, PsumMap(), script, (80, lines))


@pytest.mark.usefixtures("plain")
def test_wide_golden_with_names(attention: Any) -> None:
    async def script(app: Alone, pilot: Any) -> None:
        check_golden("sbuf_wide", app.text)

    alone(attention, SbufMap(), script, (140, 40))


def test_the_cursor_tells_of_its_cell(attention: Any) -> None:
    pane = SbufMap()

    async def script(app: Alone, pilot: Any) -> None:
        assert "queries[0, 0] float32 1.1176" in app.text and "qSPDynamicHW pc 2 attention.py:23" in app.text
        await press(pilot, "right", "down")
        assert pane.view is not None
        step = pane.view.byte_step
        rows = pane.view.row_step
        assert f"p{rows}-{2 * rows - 1} {0x4000 + step:#x}  queries[{rows}, {step // 4}]" in app.text
        await press(pilot, "end")
        assert app.text.split("\n")[-3].endswith("unwritten")
        await press(pilot, "home")
        assert f"p{rows}-{2 * rows - 1} 0x0  unwritten" in app.text and "0x0:" in app.text.split("\n")[1]

    alone(attention, pane, script, (140, 16))


def test_zoom_scroll_and_fit(attention: Any) -> None:
    pane = SbufMap()

    async def script(app: Alone, pilot: Any) -> None:
        first = pane.view
        assert first is not None
        await press(pilot, "plus", "plus")
        assert pane.view.byte_step < first.byte_step and pane.view.cursor_byte == first.cursor_byte
        await press(pilot, "minus", "minus")
        assert pane.view.byte_step == first.byte_step
        await press(pilot, "x")
        assert pane.view.row_step < first.row_step
        await press(pilot, "X", "pagedown", "shift+right")
        assert pane.view.cursor_partition == 127 and pane.view.byte > first.byte
        await press(pilot, "pageup", "shift+left", "plus", "0", "0")
        assert pane.view.byte == 0 and pane.view.byte_step * pane.view.columns >= pane.view.nbytes, "everything"
        assert "0x0:0x40000 of 0x40000" in app.text
        await press(pilot, "0")
        assert pane.view.byte_step == first.byte_step
        for _ in range(30):
            await press(pilot, "plus")
        assert pane.view.byte_step == 1 and pane.cells is not None and pane.cells.cells.shape[1] == pane.view.columns
        for _ in range(30):
            await press(pilot, "minus")
        assert pane.view.byte_step * pane.view.columns >= pane.view.nbytes

    alone(attention, pane, script)


def test_modes_and_element_types(attention: Any) -> None:
    pane = SbufMap()

    async def script(app: Alone, pilot: Any) -> None:
        seen, titles = [], {"value": "absmax", "unwritten": "written share", "traffic": "writes"}
        for _ in MODES:
            seen.append(pane.mode)
            assert app.text.split("\n")[1].startswith(f"by {titles.get(pane.mode, pane.mode)}")
            await press(pilot, "v")
        assert seen == list(MODES) and pane.mode == MODES[0]
        await press(pilot, "V")
        assert pane.mode == MODES[-1]
        await press(pilot, "d")
        assert (pane.mode, pane.dtype) == ("value", Dtype.FLOAT32), "the first press only shows values"
        await press(pilot, "d")
        assert "by absmax of bfloat16" in app.text
        await press(pilot, "a")
        assert "by mean of bfloat16" in app.text
        await press(pilot, "D")
        assert "by mean of fp32" in app.text

    alone(attention, pane, script)


def test_choosing_bytes_and_their_tensor(attention: Any) -> None:
    pane = SbufMap()

    async def script(app: Alone, pilot: Any) -> None:
        await press(pilot, "enter")
        assert pane.view is not None
        assert app.selected == [("bytes", ("SBUF", 0, 0, pane.view.row_step, 0x4000, pane.view.byte_step))]
        await press(pilot, "o")
        assert app.selected[-1] == ("tensor", "queries")
        await press(pilot, "l")
        assert app.commands == [f"last-write nc0 sbuf:0:0x4000, {pane.view.byte_step}"]

    alone(attention, pane, script)


@pytest.mark.usefixtures("plain")
def test_the_mouse_moves_and_chooses(attention: Any) -> None:
    pane = SbufMap()

    async def script(app: Alone, pilot: Any) -> None:
        assert pane.view is not None
        await pilot.click(SbufMap, offset=(4 + 6, 3 + 2))
        await pilot.pause()
        assert pane.view.cursor == (2, 6)
        await pilot.click(SbufMap, offset=(4 + 6, 3 + 2))
        await pilot.pause()
        assert app.selected[0][0] == "bytes" and app.selected[0][1][2] == 2 * pane.view.row_step

    alone(attention, pane, script)


@pytest.mark.usefixtures("plain")
def test_bytes_of_an_instruction_stand_out(attention: Any) -> None:
    pane = SbufMap()
    reads = (Region("SBUF", 0, 0, 64, 0x4000, 1024),)
    writes = (Region("SBUF", 0, 0, 128, 0x5000, 512), Region("PSUM", 0, 0, 128, 0, 512))

    async def script(app: Alone, pilot: Any) -> None:
        before = app.text
        app.choose(Selection("instruction", (0, "PE", 3), reads, writes))
        await pilot.pause()
        rows = app.text.split("\n")[3:14]
        assert all("◂" in row for row in rows[:6]) and not any("◂" in row for row in rows[6:])
        assert all("▸" in row for row in rows)
        app.choose(Selection("instruction", (0, "PE", 3), reads, reads))
        await pilot.pause()
        assert "◆" in app.text.split("\n")[3] and "▸" not in app.text.split("\n")[3]
        app.choose(Selection())
        await pilot.pause()
        assert app.text == before

    alone(attention, pane, script)


def test_chosen_bytes_are_gone_to(attention: Any) -> None:
    pane = SbufMap()

    async def script(app: Alone, pilot: Any) -> None:
        app.choose(Selection("bytes", ("SBUF", 0, 100, 1, 0x20000, 4)))
        await pilot.pause()
        assert pane.view is not None and (pane.view.cursor_partition, pane.view.cursor_byte) == (100, 0x20000)
        here = pane.view
        app.choose(Selection("bytes", ("PSUM", 0, 3, 1, 0, 4)))
        assert pane.view == here, "another memory"

    alone(attention, pane, script)


def test_only_changed_lines_are_painted_while_stepping(attention: Any) -> None:
    pane = SbufMap()

    async def script(app: Alone, pilot: Any) -> None:
        log = [entry for entry in attention.journal.log if entry.number > 30]
        quiet = next(entry.number for entry in log if not entry.regions)
        app.do(f"goto #{quiet - 1}")
        await pilot.pause()
        painted = dict(pane._lines)
        app.do("step")
        await pilot.pause()
        same = [y for y, strip in pane._lines.items() if painted.get(y) is strip]
        assert len(same) >= len(pane._lines) - 1, "a step that writes nothing paints at most the last line"
        app.do("goto end")
        await pilot.pause()
        moved = app.text
        app.do("goto #40")
        await pilot.pause()
        assert app.text != moved

    alone(attention, pane, script)


@pytest.mark.usefixtures("plain")
def test_a_resized_pane_shows_what_fits(attention: Any) -> None:
    pane = SbufMap()

    async def script(app: Alone, pilot: Any) -> None:
        for size in ((40, 8), (200, 60), (20, 4), (80, 16)):
            await pilot.resize_terminal(*size)
            await pilot.pause()
            assert pane.view is not None
            above, below = pane.chrome
            assert pane.view.rows == max(pane.size.height - above - below, 1)
            assert pane.cells is not None and pane.cells.window.columns <= pane.size.width - 4
        check_golden("sbuf_tensor", app.text)

    alone(attention, pane, script)


def test_without_colours_the_characters_say_it(attention: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")

    async def script(app: Alone, pilot: Any) -> None:
        assert app.no_color
        check_golden("sbuf_tensor", app.text)

    alone(attention, SbufMap(), script)


def test_light_themes_paint_the_same_characters_and_sixteen_colours_letters(attention: Any) -> None:
    pane = SbufMap()

    async def script(app: Alone, pilot: Any) -> None:
        before = app.text
        app.theme = "textual-light"
        await pilot.pause()
        assert app.text == before
        light = pane.render_line(4)
        assert pane.halves
        app.console._color_system = type(app.console._color_system)(1)  # as a terminal with 16 colours has it
        pane.notify_style_update()
        await pilot.pause()
        sixteen = pane.render_line(4)
        assert not pane.halves and sixteen.text[4:20] == "aaaaaaaabbbbbbbb" != light.text[4:20]

    alone(attention, pane, script)
