"""The inspector of one tensor, and HBM by variables."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from neurontools.debugger.tile_view import statistics_of
from neurontools.debugger.view_maps import bar_rows, figure_lines, hex_cells, number_cells, shade
from neurontools.tui.maps import HbmVariables, TileInspector
from neurontools.tui.maps.tile import MODES
from neurontools.tui.pane import Selection
from tests.tui.maps.alone import Alone, alone, check_golden, press


@pytest.mark.parametrize("mode", MODES)
def test_golden(attention: Any, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if mode == "picture":  # colours carry it otherwise, and are not in the text
        monkeypatch.setenv("NO_COLOR", "1")
    pane = TileInspector()
    pane.mode, pane.text = mode, "queries"

    async def script(app: Alone, pilot: Any) -> None:
        check_golden(f"tile_{mode}", app.text)

    alone(attention, pane, script)


def test_it_follows_what_is_chosen(attention: Any) -> None:
    pane = TileInspector()

    async def script(app: Alone, pilot: Any) -> None:
        assert app.text.split("\n")[1].startswith("written last: ")
        app.choose(Selection("tensor", "keys"))
        await pilot.pause()
        assert app.text.split("\n")[1].startswith("keys nc0 SBUF float32[64, 256]")
        app.choose(Selection("bytes", ("SBUF", 0, 5, 1, 0x4010, 4)))
        await pilot.pause()
        assert app.text.split("\n")[1].startswith("queries nc0")
        app.choose(Selection("bytes", ("SBUF", 0, 5, 1, 0x30000, 4)))
        await pilot.pause()
        assert app.text.split("\n")[1].startswith("queries nc0"), "no tensor there"
        app.choose(Selection("tensor", "out"))
        await pilot.pause()
        assert "out HBM float32[256, 64]" in app.text and "--" in app.text and "16,384 unwritten" in app.text
        await press(pilot, "o")
        assert app.text.split("\n")[1].startswith("written last: ")
        app.choose(Selection("tensor", "nothing_of_that_name"))
        await pilot.pause()
        assert "no tensor 'nothing_of_that_name'" in app.text

    alone(attention, pane, script)


def test_it_shows_the_present(attention: Any) -> None:
    pane = TileInspector()
    pane.text = "scores"

    async def script(app: Alone, pilot: Any) -> None:
        now = app.text
        app.do("goto start")
        await pilot.pause()
        assert "--" in app.text.split("\n")[2] and app.text != now
        app.do("goto #40")
        await pilot.pause()
        assert app.text == now

    alone(attention, pane, script)


def test_scrolling_and_element_types(attention: Any) -> None:
    pane = TileInspector()
    pane.text = "queries"
    queries = attention.print_tensor("queries")

    async def script(app: Alone, pilot: Any) -> None:
        await press(pilot, "down", "right", "right")
        assert "row 1 of 64, column 2 of 256" in app.text
        assert app.text.split("\n")[2].split()[:2] == ["1", f"{queries[1, 2]:.4g}"]
        rows, columns = pane.part
        await press(pilot, "pagedown", "shift+right")
        assert (pane.row, pane.column) == (1 + rows, 2 + columns)
        await press(pilot, "home", "left", "up", "shift+left", "pageup")
        assert (pane.row, pane.column) == (0, 0)
        for _ in range(20):
            await press(pilot, "pagedown")
        assert pane.row == 63 and "   63 " in app.text.split("\n")[2]
        await press(pilot, "d", "d")
        assert "bfloat16[64, 512]" in app.text
        await press(pilot, "D", "D")
        assert "float32[64, 256]" in app.text

    alone(attention, pane, script)


def test_every_view_at_every_size(attention: Any) -> None:
    pane = TileInspector()

    async def script(app: Alone, pilot: Any) -> None:
        for size in ((30, 5), (12, 3), (200, 50)):
            await pilot.resize_terminal(*size)
            await pilot.pause()
            for text in ("queries", "bias", "largest[0:1]", "out"):
                app.choose(Selection("tensor", text))
                for _ in MODES:
                    await press(pilot, "v")
                    assert all(strip.cell_length == pane.size.width for strip in pane._lines)

    alone(attention, pane, script)


def test_a_picture_has_a_colour_for_every_magnitude(attention: Any) -> None:
    pane = TileInspector()
    pane.mode, pane.text = "picture", "powers"

    async def script(app: Alone, pilot: Any) -> None:
        colours = {s.style.color for strip in pane._lines[1:-1] for s in strip if s.style and "▀" in s.text}
        assert len(colours) > 4

    alone(attention, pane, script)


def test_variables_golden_and_choice(attention: Any) -> None:
    async def script(app: Alone, pilot: Any) -> None:
        check_golden("hbm", app.text)
        await press(pilot, "down", "enter")
        assert app.selected == [("tensor", "k_t")]
        await press(pilot, "l")
        assert app.commands[0].startswith("last-write hbm:0x")
        await press(pilot, "end", "enter")
        assert app.selected[-1][0] == "bytes" and app.selected[-1][1][0] == "HBM"
        app.do("goto end")
        await pilot.pause()
        assert "· " not in next(line for line in app.text.split("\n") if " out " in line)

    alone(attention, HbmVariables(), script)


def test_texts() -> None:
    part, written = np.array([[1.5, -2e10], [np.nan, 0]], np.float32), np.array([[True, True], [True, False]])
    assert number_cells(part, written, 10) == ["      1.5    -2e+10 ", "      nan        -- "]
    assert hex_cells(part, written, 10) == ["3fc00000 d09502f9", "7fc00000 --------"]
    assert number_cells(np.array([[7, -8]], np.int8), np.ones((1, 2), np.bool_), 5) == ["   7   -8 "]
    assert bar_rows((0, 1, 8), 1, 2) == ["  ▁▁██"] and bar_rows((0, 1, 16), 2, 1) == ["  █", " ▁█"]
    assert bar_rows((0, 0), 1, 1) == ["  "]
    assert shade((0, 0.1, 0.5, 0.99, 1)) == "·░▒▓█"
    found = statistics_of(part, written)
    assert figure_lines(found, brief=True) == ["min -2e+10", "max 1.5", "mean -1e+10", "std 1e+10", "1 NaN",
                                               "1 unwritten", "4 elements"]  # fmt: skip
    assert "0 zeros" in figure_lines(found)
