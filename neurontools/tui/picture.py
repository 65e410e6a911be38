"""The screen as an SVG that looks the same everywhere: blocks and lines are drawn, and no font is fetched."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from rich.cells import cell_len
from rich.color import Color, ColorType
from rich.style import Style
from rich.terminal_theme import DIMMED_MONOKAI

if TYPE_CHECKING:
    from textual.app import App
    from textual.strip import Strip

__all__ = ["picture_of", "strips_of"]

WIDE, HIGH = 8, 17  # of a cell
_BASE = 13  # from the top of a cell down to the line that letters stand on
_EDGE = 12  # around the cells
_FONT = "ui-monospace,'DejaVu Sans Mono',Menlo,Consolas,monospace"
_EIGHTHS = " ▁▂▃▄▅▆▇█"
_SHADES = {"░": 0.25, "▒": 0.5, "▓": 0.75}
# Lines through a cell: how thick, and whether they go left, right, up and down from its middle.
_LINES = {
    "─": (1, "lr"), "━": (3, "lr"), "│": (1, "ud"), "┃": (3, "ud"), "╭": (1, "rd"), "╮": (1, "ld"), "╰": (1, "ru"),
    "╯": (1, "lu"), "┌": (1, "rd"), "┐": (1, "ld"), "└": (1, "ru"), "┘": (1, "lu"),
}  # fmt: skip
Rectangle = tuple[float, float, float, float, float]  # x, y, width, height, opacity


def strips_of(app: App[Any]) -> list[Strip]:
    """Return what is on the screen, a strip each line."""
    # The one private name of Textual: `App.export_screenshot` makes its SVG of the same.
    return app.screen._compositor.render_strips()


def picture_of(app: App[Any], title: str) -> str:
    """Return the screen as the text of an SVG file; `title` is what a reader of the page is told."""
    colours = app.theme_variables
    plain = Style(color=_parsed(colours["foreground"]), bgcolor=_parsed(colours["background"]))
    return _svg([list(strip) for strip in strips_of(app)], app.size.width, plain, title)


def _parsed(name: str) -> Color | None:
    """Return a colour of a theme, None for what the terminal chooses."""
    return None if name == "ansi_default" else Color.parse(name.removeprefix("ansi_"))


def _svg(lines: Sequence[Sequence[Any]], columns: int, plain: Style, title: str) -> str:
    fills: dict[str, list[str]] = {}
    texts: list[str] = []
    ground = _code(plain.bgcolor, "#000000")
    for row, segments in enumerate(lines):
        left = 0
        for segment in segments:
            style = plain + segment.style if segment.style is not None else plain
            fore, back = _code(style.color, _code(plain.color, "#ffffff")), _code(style.bgcolor, ground)
            if style.reverse:
                fore, back = back, fore
            wide = cell_len(segment.text)
            if back != ground:
                fills.setdefault(back, []).append(_rectangle(left * WIDE, row * HIGH, wide * WIDE, HIGH))
            for start, text in _runs(segment.text):
                x = left + cell_len(segment.text[:start])
                _draw(text, x, row, fore, style, fills, texts)
            left += wide
    width, height = columns * WIDE + 2 * _EDGE, len(lines) * HIGH + 2 * _EDGE
    shapes = [f'<path fill="{colour}" d="{"".join(paths)}"/>' for colour, paths in fills.items()]
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'role="img" aria-label="{escape(title)}">',
        f"<title>{escape(title)}</title>",
        f'<rect width="{width}" height="{height}" rx="8" fill="{ground}"/>',
        f'<g transform="translate({_EDGE} {_EDGE})">',
        f'<g shape-rendering="crispEdges">{"".join(shapes)}</g>',
        f'<g font-family="{_FONT}" font-size="13.3" xml:space="preserve">',
        *texts,
        "</g></g></svg>",
        "",
    ])  # fmt: skip


def _runs(text: str) -> Iterator[tuple[int, str]]:
    """Yield pieces of a text with where they begin: what is drawn apart from what is written, blanks left out."""
    kinds = [0 if each == " " else 1 if each in _DRAWN else 2 for each in text]
    # Blanks between words stay in a run: fewer of them make a smaller file.
    for at in range(1, len(kinds) - 1):
        if kinds[at] == 0 and kinds[at - 1] == 2 and kinds[at + 1] == 2:
            kinds[at] = 2
    edges = [0, *(at for at in range(1, len(kinds)) if kinds[at] != kinds[at - 1]), len(kinds)]
    for start, end in pairwise(edges if kinds else ()):
        if kinds[start]:
            yield start, text[start:end]


_DRAWN = frozenset((*_EIGHTHS[1:], *_SHADES, *_LINES, "▀", "▌", "▐", "▎", "▍", "▏", "▊", "┄"))


def _draw(text: str, column: int, row: int, fore: str, style: Style, fills: dict[str, list[str]],
          texts: list[str]) -> None:  # fmt: skip
    if text[0] not in _DRAWN:
        x, y, wide = column * WIDE, row * HIGH + _BASE, cell_len(text) * WIDE
        look = (' font-weight="bold"' if style.bold else "") + (' font-style="italic"' if style.italic else "")
        look += ' text-decoration="underline"' if style.underline else ""
        look += ' opacity="0.6"' if style.dim else ""
        texts.append(f'<text x="{x}" y="{y}" textLength="{wide}" lengthAdjust="spacingAndGlyphs" fill="{fore}"{look}>'
                     f"{escape(text, quote=False)}</text>")  # fmt: skip
        return
    at = 0
    while at < len(text):
        behind = at + 1
        while behind < len(text) and text[behind] == text[at]:
            behind += 1
        x, y, wide = (column + at) * WIDE, row * HIGH, (behind - at) * WIDE
        for left, top, width, height, share in _shape(text[at], x, y, wide):
            if share < 1:
                texts.append(f'<rect x="{left:g}" y="{top:g}" width="{width:g}" height="{height:g}" fill="{fore}" '
                             f'opacity="{share:g}"/>')  # fmt: skip
            else:
                fills.setdefault(fore, []).append(_rectangle(left, top, width, height))
        at = behind


def _shape(sign: str, x: float, y: float, wide: float) -> Iterator[Rectangle]:
    """Yield the rectangles of one sign, repeated over a width; lines with corners come one at a time."""
    if sign in _SHADES:
        yield x, y, wide, HIGH, _SHADES[sign]
    elif sign == "▀":
        yield x, y, wide, HIGH / 2, 1
    elif sign in _EIGHTHS:
        tall = HIGH * _EIGHTHS.index(sign) / 8
        yield x, y + HIGH - tall, wide, tall, 1
    elif sign == "┄":
        for part in range(round(wide / 4)):
            yield x + part * 4 + 1, y + HIGH // 2, 2, 1, 1
    elif sign in "▌▐▎▍▏▊":
        share = {"▊": 0.75, "▌": 0.5, "▐": 0.5, "▍": 0.375, "▎": 0.25, "▏": 0.125}[sign]
        for at in range(round(wide / WIDE)):
            yield x + at * WIDE + (WIDE / 2 if sign == "▐" else 0), y, WIDE * share, HIGH, 1
    else:
        thick, ways = _LINES[sign]
        if ways == "lr":
            yield x, y + (HIGH - thick) // 2, wide, thick, 1
            return
        for at in range(round(wide / WIDE)):
            left, top = x + at * WIDE + (WIDE - thick) / 2, y + (HIGH - thick) / 2
            if "l" in ways or "r" in ways:
                yield (x + at * WIDE if "l" in ways else left), top, (WIDE + thick) / 2, thick, 1
            if "u" in ways or "d" in ways:
                high = HIGH if {"u", "d"} <= set(ways) else (HIGH + thick) / 2
                yield left, (y if "u" in ways else top), thick, high, 1


def _rectangle(x: float, y: float, wide: float, high: float) -> str:
    return f"M{x:g} {y:g}h{wide:g}v{high:g}h{-wide:g}z"


def _code(colour: Color | None, otherwise: str) -> str:
    if colour is None or colour.type is ColorType.DEFAULT:
        return otherwise
    return colour.get_truecolor(DIMMED_MONOKAI).hex
