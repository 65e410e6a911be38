"""A map as a picture: two cells in every character, one above the other, each with a colour of its own."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from rich.segment import Segment
from rich.style import Style

from formats.named_tuple import NamedTuple
from neurontools.debugger.maps import MapCells
from neurontools.text.looks import LETTERS
from neurontools.text.visible import visible_line
from neurontools.tui.contrast import quiet, readable
from neurontools.tui.maps.colours import scale_of, tile_colours
from neurontools.tui.maps.paint import NAN_BADGE

__all__ = ["FREE", "Heat", "Label", "by_value", "heat_of", "heat_row", "labels_of", "scale_bar"]

Keys = npt.NDArray[np.int16]
# Above any number of a colour, which are 32 of a scale or two for each of twelve tiles.
FREE, HOLE, ZERO, ENDLESS, NAMELESS = -1, 900, 901, 902, 903  # keys beside those of colours
_STRANGE = {HOLE: "#ff2fd0", ENDLESS: "#ff8f1f"}
_GREY = ("#4a4a52", "#c9c9cf")  # in dark and light themes
_BAR = 16  # characters of a scale bar
_MARKS = " ◂▸◆"  # reads, writes, both


class Label(NamedTuple):
    """A text on a line of cells; a `bad` one says that there is a NaN."""

    column: int
    text: str
    bad: bool = False


class Heat(NamedTuple):
    """Keys of the cells of a map, (rows, columns).

    A key is a number of `colours`, or one of FREE, HOLE, ZERO, ENDLESS, and NAMELESS: written bytes of no tile.
    `low` and `high` say in words what the ends of the scale are, "" by tensor; `names` are the tiles in sight.
    """

    keys: Keys
    colours: tuple[str, ...]
    low: str = ""
    high: str = ""
    names: tuple[tuple[int, str], ...] = ()

    def colour(self, key: int, light: bool) -> str | None:
        """Return the colour of a key, None for the background."""
        if key == FREE:
            return None
        return self.colours[key] if key < HOLE else _GREY[light] if key in (ZERO, NAMELESS) else _STRANGE[key]


def heat_of(found: MapCells, palette: int, ground: str) -> Heat:
    """Return the colours of a map's cells; `ground` is the colour behind them."""
    cells, mode = found.cells, found.mode
    if mode == "tensor":
        pairs = tile_colours(palette, ground)
        # Two keys a tile: even where its bytes are written, odd (in a sum, True is 1) where they are not.
        keys = np.where(cells >= 0, cells % len(pairs) * 2 + ~found.marked, np.where(found.marked, NAMELESS, FREE))
        shown = np.unique(cells[cells >= 0]).tolist()
        named = tuple((number, found.names[number]) for number in shown)
        return Heat(keys.astype(np.int16), tuple(colour for pair in pairs for colour in pair), names=named)
    colours = scale_of(mode, palette)
    last = len(colours) - 1
    if mode == "unwritten":
        share = 1 - cells
        keys = np.where(share > 0, np.rint(share * last), FREE)
        return Heat(keys.astype(np.int16), colours, "written in part", "whole")
    if mode == "age":
        known = cells >= 0
        first = int(cells[known].min()) if known.any() else 0
        level = (cells - first) / max(found.events - 1 - first, 1) * last
        return Heat(np.where(known, np.clip(np.rint(level), 0, last), FREE).astype(np.int16), colours,
                    f"#{first}", f"#{max(found.events - 1, first)}, the last event")  # fmt: skip
    if mode == "traffic":
        most = max(int(cells.max(initial=0)), 1)
        keys = np.where(cells > 0, np.rint((cells - 1) / max(most - 1, 1) * last), FREE)
        return Heat(keys.astype(np.int16), colours, "written once", f"{most} times" if most > 1 else "")
    return by_value(cells, found.marked, colours)


def by_value(values: Any, holes: Any, colours: tuple[str, ...]) -> Heat:
    """Return magnitudes on a logarithmic scale between the least and the largest; values that are NaN are none."""
    with np.errstate(all="ignore"):
        size = np.abs(values.astype(np.float64))
        finite = np.isfinite(size) & (size > 0)
        least, largest = (float(size[finite].min()), float(size[finite].max())) if finite.any() else (1.0, 1.0)
        # At least a little: where all magnitudes are the same, the scale has no length.
        level = np.log(size / least) / max(np.log(largest / least), 1e-9) * (len(colours) - 1)
    keys = np.full(values.shape, FREE, np.int16)
    keys[finite] = np.clip(np.rint(level[finite]), 0, len(colours) - 1)
    keys[size == 0] = ZERO
    keys[np.isinf(size)] = ENDLESS
    keys[holes] = HOLE
    if not finite.any():
        return Heat(keys, colours)
    return Heat(keys, colours, f"{least:.3g}", f"{largest:.3g}" if largest > least else "")


def heat_row(heat: Heat, row: int, base: Style, width: int, *, light: bool, cursor: tuple[int, int] = (-1, -1),
             marks: Any = None, labels: tuple[Label, ...] = ()) -> list[Segment]:  # fmt: skip
    """Return a line of two rows of cells from `row` on; `cursor` is a cell, `marks` (2, columns) reads and writes."""
    rows, columns = heat.keys.shape
    upper = heat.keys[row]
    lower = heat.keys[row + 1] if row + 1 < rows else np.full_like(upper, FREE)
    columns = min(columns, width)
    signs, looks = [" "] * columns, [0] * columns
    marked = np.zeros(columns, np.int16) if marks is None else (marks[0] | marks[1])[:columns]
    for column in np.flatnonzero(marked).tolist():
        signs[column], looks[column] = _MARKS[marked[column]], 1
    for label in labels:
        for at, letter in enumerate(visible_line(label.text)[: columns - label.column], label.column):
            signs[at], looks[at] = letter, 3 if label.bad else 2
    for at in np.flatnonzero(np.isin(upper[:columns], (HOLE, ENDLESS))).tolist():
        signs[at], looks[at] = ("N" if upper[at] == HOLE else "∞"), 2
    place = cursor[1] if cursor[0] in (row, row + 1) and 0 <= cursor[1] < columns else -1
    keyed = list(zip(upper[:columns].tolist(), lower[:columns].tolist(), looks, strict=True))
    edges = [0, *(at for at in range(1, columns) if keyed[at] != keyed[at - 1] or place in (at, at - 1)), columns]
    found = []
    for start, end in pairwise(edges if columns else ()):
        above, below, look = keyed[start]
        text = "".join(signs[start:end])
        fore, back = heat.colour(above, light), heat.colour(below, light)
        if start == place:
            found.append(_cursor(fore, back, cursor[0] - row, base))
        elif look:
            found.append(Segment(text, _written(base, fore or back, look)))
        elif above == below:
            style = Style(bgcolor=fore) if fore is not None else quiet(base)
            found.append(Segment(text if fore is not None else "·" * len(text), base + style))
        elif fore is None:
            found.append(Segment("▄" * (end - start), base + Style(color=back)))
        else:
            found.append(Segment("▀" * (end - start), base + Style(color=fore, bgcolor=back)))
    return found


def _written(base: Style, colour: str | None, look: int) -> Style:
    ground = base + Style(bgcolor=colour) if colour is not None else base
    if look == 3:
        return NAN_BADGE
    return readable(ground + Style(color="#ffffff", bold=look == 1))


def _cursor(fore: str | None, back: str | None, half: int, base: Style) -> Segment:
    """Return the cell under the cursor in the colour of text, and its neighbour in its own."""
    other = back if half == 0 else fore
    style = base if other is None else base + Style(bgcolor=other)
    return Segment("▀" if half == 0 else "▄", style)


def scale_bar(heat: Heat, base: Style, light: bool) -> list[tuple[str, Style]]:
    """Return the scale of a map with what its ends are, and what stands beside it; nothing by tensor."""
    parts: list[tuple[str, Style]] = []
    if heat.low:
        steps = _BAR if heat.high else 1
        parts.append((heat.low + " ", base))
        parts += [(" ", base + Style(bgcolor=heat.colours[at * (len(heat.colours) - 1) // max(steps - 1, 1)]))
                  for at in range(steps)]  # fmt: skip
        parts.append((f" {heat.high}  ", base))
    for key, text in ((ZERO, "0"), (NAMELESS, "no tile"), (ENDLESS, "inf"), (HOLE, "NaN")):
        if (heat.keys == key).any():
            parts += [("N" if key == HOLE else " ", _written(base, heat.colour(key, light), 2)),
                      (f" {text}  ", base)]  # fmt: skip
    return parts


def labels_of(found: MapCells, bad: frozenset[str]) -> tuple[dict[int, tuple[Label, ...]], tuple[str, ...]]:
    """Return the labels of every line by tensor, and what letters on tiles too small for a name stand for.

    A name stands on the first line of its block, with NaN behind it where the tile holds one.
    """
    if found.mode != "tensor":
        return {}, ()
    cells, lines, letters, named = found.cells, {}, {}, set()
    above: set[tuple[int, int]] = set()
    for row in range(0, cells.shape[0], 2):
        upper, lower = cells[row], cells[min(row + 1, cells.shape[0] - 1)]
        edges = (0, *(np.flatnonzero((upper[1:] != upper[:-1]) | (lower[1:] != lower[:-1])) + 1).tolist(), upper.size)
        here, labels = set(), []
        for start, end in pairwise(edges):
            number = int(upper[start])
            if number < 0 or lower[start] != number:
                continue
            here.add((start, number))
            if (start, number) not in above:
                name = found.names[number]
                label = _label(start, end - start, name, number, name in bad)
                labels.append(label)
                if len(label.text) == 1:
                    letters[number] = f"{label.text} {name}"
                else:
                    named.add(number)
        above = here
        if labels:
            lines[row] = tuple(labels)
    missing = (number for number in np.unique(cells[cells >= 0]).tolist() if number not in named)
    return lines, tuple(letters.get(number, found.names[number]) for number in missing)


def _label(start: int, width: int, name: str, number: int, bad: bool) -> Label:
    text = name + (" NaN" if bad else "")
    if len(text) > width:
        short = name[: width - 1] + "…" if width >= 4 else LETTERS[number % len(LETTERS)]
        text = "NaN" if bad and width >= 3 else short
    return Label(start + (width - len(text) + 1) // 2, text, bad)
