"""Maps as pictures: the colour of every half cell, names on blocks, scales in plain numbers, NaN, writer and reader."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.style import Style

from neurontools.debugger.maps import MODES
from neurontools.debugger.opening import open_session
from neurontools.debugger.touched import touched
from neurontools.tui.contrast import LEAST, contrast, triple
from neurontools.tui.maps import PsumMap, SbufMap
from neurontools.tui.maps.colours import scale_of, tile_colours
from neurontools.tui.maps.heat import FREE, HOLE, Heat, Label, heat_of, heat_row
from neurontools.tui.maps.map_lines import GUTTER
from neurontools.tui.maps.tile import TileInspector
from neurontools.tui.pane import Selection
from tests.tui.maps.alone import Alone, alone, press

BASE = Style(color="#e0e0e0", bgcolor="#121212")
NAN = """
import numpy as np
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    logs = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.activation(dst=logs, data=tile, op=nl.log)
    nisa.dma_copy(dst=out, src=logs)
    return out


kernel(-np.ones((128, 64), np.float32))
"""


def colours_of(segments: list[Any], columns: int) -> tuple[list[str | None], list[str | None]]:
    """Return what is seen in the upper and the lower half of every column."""
    ground = BASE.bgcolor.name
    upper, lower = [], []
    for segment in segments:
        style = segment.style
        for letter in segment.text:
            fore, back = style.color.name, style.bgcolor.name
            halves = {"▀": (fore, back), "▄": (back, fore)}.get(letter, (back, back))
            upper.append(None if halves[0] == ground else halves[0])
            lower.append(None if halves[1] == ground else halves[1])
    return upper[:columns], lower[:columns]


@pytest.mark.parametrize("seed", range(20))
def test_every_half_cell_has_the_colour_of_its_key(seed: int) -> None:
    chance = np.random.default_rng(seed)
    colours = scale_of("value", seed % 2)
    keys = chance.choice([FREE, 0, 3, 17, 31], (7, 23)).astype(np.int16)
    heat = Heat(keys, colours)
    for row in range(0, 7, 2):
        segments = heat_row(heat, row, BASE, 23, light=bool(seed % 2))
        assert sum(len(segment.text) for segment in segments) == 23
        upper, lower = colours_of(segments, 23)
        assert upper == [heat.colour(int(key), False) for key in keys[row]]
        below = keys[row + 1] if row + 1 < 7 else np.full(23, FREE)
        assert lower == [heat.colour(int(key), False) for key in below]


def test_the_cursor_changes_its_half_cell_only() -> None:
    heat = Heat(np.full((4, 9), 5, np.int16), scale_of("age", 0))
    for half in (0, 1):
        upper, lower = colours_of(heat_row(heat, 2, BASE, 9, light=False, cursor=(2 + half, 4)), 9)
        mine, other = (upper, lower) if half == 0 else (lower, upper)
        assert mine[4] == "#e0e0e0" and other[4] == heat.colours[5]
        assert {*mine[:4], *mine[5:], *other} == {heat.colours[5]}


def test_names_on_blocks_can_be_read_on_every_colour() -> None:
    for palette, ground in ((0, "#121212"), (1, "#f5f5f5")):
        colours = tuple(colour for pair in tile_colours(palette, ground) for colour in pair)
        for number in range(len(colours)):
            heat = Heat(np.full((2, 8), number, np.int16), colours)
            found = heat_row(heat, 0, BASE, 8, light=bool(palette), labels=(Label(1, "queries"),))
            named = next(segment for segment in found if segment.text == "queries")
            assert contrast(triple(named.style.color), triple(named.style.bgcolor)) >= LEAST - 0.05


@pytest.mark.parametrize("mode", ["value", "age", "unwritten", "traffic"])
@pytest.mark.parametrize("palette", [0, 1])
def test_a_scale_grows_in_one_direction(mode: str, palette: int) -> None:
    """So that it is understood without seeing hues."""
    found = [contrast(triple(Style(color=colour).color), (0, 0, 0)) for colour in scale_of(mode, palette)]
    steps = np.diff(found)
    assert (steps > -0.15).all() if palette == 0 else (steps < 0.15).all()
    assert abs(found[-1] - found[0]) > 3 and len(set(scale_of(mode, palette))) == 32


def test_the_picture_agrees_with_the_cells(attention: Any) -> None:
    pane = SbufMap()

    async def script(app: Alone, pilot: Any) -> None:
        for mode in MODES:
            pane.mode = mode
            pane._changed()
            await pilot.pause()
            assert pane.cells is not None and pane.cells.mode == mode
            heat = heat_of(pane.cells, 0, "#121212")
            nothing = {"tensor": pane.cells.cells < 0, "age": pane.cells.cells < 0, "unwritten": pane.cells.cells >= 1,
                       "traffic": pane.cells.cells == 0, "value": np.isnan(pane.cells.cells)}[mode]  # fmt: skip
            np.testing.assert_array_equal((heat.keys == FREE), nothing & ~(pane.cells.marked & (mode == "tensor")))
            if mode in ("age", "traffic"):
                known = ~nothing
                order = np.argsort(pane.cells.cells[known], kind="stable")
                assert (np.diff(heat.keys[known][order]) >= 0).all(), "more is further up the scale"

    alone(attention, pane, script, (100, 20))


def test_twice_the_rows_names_on_blocks_and_a_scale_in_plain_numbers(attention: Any) -> None:
    pane = SbufMap()

    async def script(app: Alone, pilot: Any) -> None:
        above, below = pane.chrome
        assert pane.view is not None and pane.view.rows == 2 * (pane.size.height - above - below)
        first = app.text.split("\n")[3]
        assert "queries" in first and "powers" in first and "keys" in first
        await press(pilot, "v", "v")
        legend = app.text.split("\n")[-4]
        low, high = pane._heat.low, pane._heat.high
        finite = np.abs(pane.cells.cells[np.isfinite(pane.cells.cells) & (pane.cells.cells != 0)])
        assert float(low) == pytest.approx(finite.min(), rel=5e-3)
        assert float(high) == pytest.approx(finite.max(), rel=5e-3)
        assert legend.startswith(low) and high in legend and "2^" not in legend
        await press(pilot, "v", "v")
        assert "by writes" in app.text and "written once" in app.text

    alone(attention, pane, script, (140, 20))


def test_the_cursor_names_writer_and_reader(attention: Any) -> None:
    pane = SbufMap()

    async def script(app: Alone, pilot: Any) -> None:
        assert "▼" in app.text.split("\n")[2]
        told = app.text.split("\n")[-2]
        assert "← #7 qSPDynamicHW pc 2 attention.py:23" in told and "→ read by PE pc 4 attention.py:33" in told
        app.do("goto #8")
        await pilot.pause()
        assert "→ read next by PE pc 4" in app.text.split("\n")[-2]

    alone(attention, pane, script, (120, 20))


def test_a_click_finds_the_cell_under_the_mouse(attention: Any) -> None:
    pane = SbufMap()

    async def script(app: Alone, pilot: Any) -> None:
        await pilot.click(SbufMap, offset=(GUTTER + 6, 3 + 2))
        await pilot.pause()
        assert pane.view is not None and pane.view.cursor == (4, 6)

    alone(attention, pane, script)


def test_bytes_of_an_instruction_are_marked(attention: Any) -> None:
    pane = SbufMap()
    reads, writes = touched(attention.device, 0, "PE", 4)

    async def marked(app: Alone, pilot: Any) -> None:
        before = app.text
        app.choose(Selection("instruction", (0, "PE", 4), reads, writes))
        await pilot.pause()
        assert "◂" in app.text and "◂ read  ▸ written" in app.text
        app.choose(Selection())
        await pilot.pause()
        assert app.text == before

    alone(attention, pane, marked, (120, 20))


def test_a_nan_is_seen_in_maps_and_tensors(tmp_path: Path) -> None:
    (tmp_path / "logs.py").write_text(NAN)
    session = open_session(tmp_path / "logs.py")
    session.continue_()
    pane = SbufMap()

    async def script(app: Alone, pilot: Any) -> None:
        assert app.text.split("\n")[0].startswith("─SBUF NaN in logs─")
        assert "logs NaN" in app.text and "tile NaN" not in app.text
        await press(pilot, "v", "v")
        assert pane._heat is not None and (pane._heat.keys == HOLE).any() and "NNN" in app.text

    alone(session, pane, script, (120, 20))

    async def psum(app: Alone, pilot: Any) -> None:
        assert "NaN" not in app.text

    alone(session, PsumMap(), psum, (120, 20))

    async def tensor(app: Alone, pilot: Any) -> None:
        app.choose(Selection("tensor", "logs"))
        await pilot.pause()
        assert " NaN " in app.text.split("\n")[1]

    alone(session, TileInspector(), tensor, (100, 16))
