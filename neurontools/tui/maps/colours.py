"""The colours of maps: for dark themes, for light ones, and for terminals with sixteen."""

from __future__ import annotations

from functools import cache

from rich.style import Style

from neurontools.text.looks import LETTERS
from neurontools.tui.contrast import code, mixed

__all__ = ["scale_of", "styles_of", "tile_colours"]

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
    "traffic": (("#6f3f5f", "#af4f4f", "#df8f3f", "#ffd75f"), ("#e0af7f", "#d77f4f", "#af3f3f", "#6f0f3f"),
                ("blue", "magenta", "bright_red", "bright_yellow")),
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


_SCALES = {
    "value": (("#2d1e5a", "#6b2a86", "#b5367a", "#f0605d", "#feae76", "#fcf3b0"),
              ("#dceaf5", "#9ecae1", "#5a9bd4", "#3d6cb9", "#3a3d94", "#2a0a4a")),
    "age": (("#32404f", "#2f6f8f", "#4fb3a5", "#f6e96b"), ("#d5dbe3", "#9fb4d8", "#7a5ab5", "#5f0f6f")),
    "unwritten": (("#9a5a2a", "#b99a58", "#7fa8a0", "#4a9fd8"), ("#f3d9b8", "#d9c48f", "#8fb0b0", "#2f6fb0")),
    "traffic": (("#3a2b4f", "#8f2a4f", "#e0602f", "#fbc850", "#fff6d0"),
                ("#fbe3c0", "#f5ad5c", "#dd5b33", "#98153a", "#460040")),
}  # fmt: skip
_SHADES = 32  # colours of a scale


@cache
def scale_of(mode: str, palette: int) -> tuple[str, ...]:
    """Return the colours of a scale from least to most: ever brighter, or in light themes darker."""
    stops = [_triple(stop) for stop in _SCALES[mode][palette]]
    found = []
    for number in range(_SHADES):
        at = number / (_SHADES - 1) * (len(stops) - 1)
        index = min(int(at), len(stops) - 2)
        found.append(code(mixed(stops[index], stops[index + 1], at - index)))
    return tuple(found)


@cache
def tile_colours(palette: int, ground: str) -> tuple[tuple[str, str], ...]:
    """Return a colour for every tile in turn: where its bytes are written, and where they are not yet."""
    colours = (_TILE_COLOURS, _TILE_COLOURS_LIGHT)[palette]
    behind = _triple(ground)
    return tuple(
        (code(mixed(_triple(colour), behind, 0.25)), code(mixed(_triple(colour), behind, 0.72))) for colour in colours
    )


def _triple(colour: str) -> tuple[int, int, int]:
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)
