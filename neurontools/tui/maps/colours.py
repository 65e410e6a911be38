"""The colours of maps: for dark themes, for light ones, and for terminals with sixteen."""

from __future__ import annotations

from functools import cache
from itertools import pairwise

from rich.style import Style

from neurontools.text.looks import LETTERS

__all__ = ["ramp_of", "styles_of"]

_RAMP = 6  # colours between two stops of a picture
_TILE_COLOURS = ("#5fafff", "#87d75f", "#ffaf5f", "#d787ff", "#5fd7d7", "#ffd75f", "#ff8787", "#afafff", "#87d7af",
                 "#ff87d7", "#d7af87", "#afd700")  # fmt: skip
_TILE_COLOURS_LIGHT = ("#005faf", "#3f7f00", "#af5f00", "#8700af", "#007f7f", "#876f00", "#af0000", "#5f5faf",
                       "#007f4f", "#af0087", "#875f2f", "#5f7f00")  # fmt: skip
_TILE_COLOURS_16 = ("bright_blue", "bright_green", "yellow", "bright_magenta", "bright_cyan", "bright_yellow", "red",
                    "blue", "green", "magenta", "cyan", "bright_red")  # fmt: skip
_SHADE_COLOURS = {
    "age": (("#4e4e6e", "#6f6fae", "#af87d7", "#ffd75f"), ("#b0b0d0", "#8787c7", "#8700af", "#af3f00"),
            ("blue", "cyan", "magenta", "bright_yellow")),
    "value": (("#3a5f8f", "#3f9f8f", "#d7af3f", "#ff6f4f"), ("#8fafd7", "#3f9f8f", "#af8700", "#c7270f"),
              ("blue", "cyan", "yellow", "bright_red")),
    "unwritten": (("#6f3f3f", "#9f5f3f", "#9f9f4f", "#4f9f5f"), ("#d7a7a7", "#c77f4f", "#8f8f2f", "#2f7f3f"),
                  ("red", "bright_red", "yellow", "green")),
}  # fmt: skip


@cache
def styles_of(mode: str, palette: int) -> tuple[Style, ...]:
    """Return the style of every look; `palette` is 0 for dark themes, 1 for light ones, 2 for 16 colours."""
    tiles = (_TILE_COLOURS, _TILE_COLOURS_LIGHT, _TILE_COLOURS_16)[palette]
    shades = _SHADE_COLOURS.get(mode, _SHADE_COLOURS["age"])[palette]
    dim = Style(color=("#5f5f5f", "#9f9f9f", "bright_black")[palette])
    good = Style(color=("#87d75f", "#3f7f00", "bright_green")[palette], bold=True)
    warm = Style(color=("#ff875f", "#af3f00", "bright_red")[palette], bold=True)
    both = Style(color=("#ffd75f", "#876f00", "bright_yellow")[palette], bold=True)
    bad = Style(color=("#ff5f5f", "#c70000", "bright_red")[palette], bold=True, reverse=True)
    return (dim, Style(), dim, bad, bad, good, warm, both, *(Style(color=shade) for shade in shades),
            *(Style(color=tiles[number % len(tiles)]) for number in range(len(LETTERS))),
            *(Style(color=tiles[number % len(tiles)], italic=True) for number in range(len(LETTERS))))  # fmt: skip


@cache
def ramp_of(palette: int) -> tuple[str, ...]:
    """Return colours of a picture from nothing to the largest magnitude."""
    if palette == 2:
        return ("black", "blue", "cyan", "yellow", "bright_red")
    stops = ((16, 16, 40), (50, 60, 140), (40, 140, 150), (200, 190, 60), (255, 110, 70), (255, 230, 220))
    if palette == 1:
        stops = ((250, 250, 245), (170, 200, 230), (80, 160, 160), (200, 160, 20), (190, 40, 20), (60, 0, 40))
    found = []
    for low, high in pairwise(stops):
        for part in range(_RAMP):
            mixed = (round(a + (b - a) * part / _RAMP) for a, b in zip(low, high, strict=True))
            found.append("#{:02x}{:02x}{:02x}".format(*mixed))
    return tuple(found)
