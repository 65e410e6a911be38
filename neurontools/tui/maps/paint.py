"""From numbers of looks to strips: one segment for every run of one style."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from neurontools.text.looks import GLYPHS
from neurontools.text.visible import visible_line
from neurontools.tui.contrast import readable
from neurontools.tui.maps.colours import styles_of

__all__ = ["NAN_BADGE", "on", "paint_row", "palette_of", "text_strip"]

Numbers = npt.NDArray[np.uint8]
Parts = Sequence[tuple[str, Style]]
NAN_BADGE = Style(color="#ffffff", bgcolor="#b0005f", bold=True)  # 7.3 to 1
_REVERSE = Style(reverse=True)
_MARKED = Style(underline=True, bold=True)


def paint_row(before: Parts, numbers: Numbers, styles: Sequence[Style], base: Style, width: int,
              cursor: int = -1, marked: Any = None, labels: Sequence[tuple[int, str]] = ()) -> Strip:  # fmt: skip
    """Return a line: some texts, then a cell for every number, `width` in all; `styles` are complete, see `on`.

    `cursor` is the cell shown reversed, -1 for none; `marked` the cells that are underlined; `labels` (cell, text) are
    written over the cells from there on.
    """
    text = np.ascontiguousarray(GLYPHS[numbers]).tobytes().decode("utf-32-le")
    for at, words in labels:
        words = visible_line(words)
        text = text[:at] + words + text[at + len(words) :]
    keys = numbers.astype(np.int16)
    if marked is not None:
        keys += marked * np.int16(256)
    if 0 <= cursor < keys.size:
        keys[cursor] += 512
    edges = [0, *(np.flatnonzero(keys[1:] != keys[:-1]) + 1).tolist(), keys.size]
    before = [(visible_line(words), style) for words, style in before]
    segments = [Segment(words, style) for words, style in before]
    listed = keys.tolist()
    for start, end in pairwise(edges if listed else ()):
        key = listed[start]
        style = styles[key & 255]
        if key > 255:
            style += (_MARKED, _REVERSE, _MARKED + _REVERSE)[(key >> 8) - 1]
        segments.append(Segment(text[start:end], style))
    return _padded(segments, sum(len(words) for words, _ in before) + keys.size, width, base)


@lru_cache(64)
def on(base: Style, mode: str, palette: int) -> tuple[Style, ...]:
    """Return the styles of all looks on a background; adding them for every segment would cost more than painting."""
    return tuple(readable(base + style) for style in styles_of(mode, palette))


def text_strip(parts: Parts, width: int, base: Style) -> Strip:
    """Return a line of texts, cut or filled to a width; every character is one cell wide."""
    segments, left = [], width
    for words, style in parts:
        if left <= 0:
            break
        words = visible_line(words)
        segments.append(Segment(words[:left], style))
        left -= len(words)
    return _padded(segments, width - max(left, 0), width, base)


def palette_of(app: Any) -> int:
    """Return the palette that a terminal and a theme call for: 0 dark, 1 light, 2 for 16 colours."""
    if app.console.color_system in ("standard", "windows"):
        return 2
    return 0 if app.current_theme.dark else 1


def _padded(segments: list[Segment], have: int, width: int, base: Style) -> Strip:
    if have < width:
        segments.append(Segment(" " * (width - have), base))
        have = width
    strip = Strip(segments, have)
    return strip.crop(0, width) if have > width else strip
