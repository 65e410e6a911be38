"""Colours that can be read: text against its background as WCAG 2 measures it, at least 4.5 to 1, and what is quiet."""

from __future__ import annotations

from functools import lru_cache

from rich.color import Color, ColorType
from rich.style import Style

__all__ = ["LEAST", "code", "contrast", "mixed", "quiet", "readable", "triple"]

# WCAG 2.1, criterion 1.4.3, level AA; the formulas below are its definitions of luminance and contrast.
LEAST = 4.5
_QUIET = 0.55  # of the contrast of plain text, where that leaves enough
_STEPS = 24
Triple = tuple[int, int, int]


def _luminance(colour: Triple) -> float:
    parts = (each / 255 for each in colour)
    red, green, blue = (part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: Triple, other: Triple) -> float:
    """Return the contrast of two colours, from 1 to 21."""
    high, low = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@lru_cache(4096)
def readable(style: Style) -> Style:
    """Return a style whose text can be read on its background, in its own hue as far as that goes.

    A terminal's own colours stay: what they look like is not known here.
    """
    text, ground = triple(style.color), triple(style.bgcolor)
    if style.reverse or text is None or ground is None or contrast(text, ground) >= LEAST:
        return style
    return style + Style(color=code(_towards(text, ground)))


@lru_cache(256)
def quiet(style: Style) -> Style:
    """Return a style that stands back behind plain text, and can be read; on a terminal's own colours, its dim one."""
    text, ground = triple(style.color), triple(style.bgcolor)
    if text is None or ground is None:
        return style + Style(dim=True)
    whole = contrast(text, ground)
    wanted = max(LEAST, whole * _QUIET)
    best = text
    for step in range(_STEPS + 1):
        nearer = mixed(text, ground, step / _STEPS)
        if contrast(nearer, ground) < wanted:
            break
        best = nearer
    return readable(style + Style(color=code(best)))


def _towards(text: Triple, ground: Triple) -> Triple:
    """Return a colour as near to a text's as its background allows, on the way to black or white."""
    ends = sorted(((0, 0, 0), (255, 255, 255)), key=lambda end: -contrast(end, ground))
    for step in range(1, _STEPS + 1):
        nearer = mixed(text, ends[0], step / _STEPS)
        if contrast(nearer, ground) >= LEAST:
            return nearer
    return ends[0]


def mixed(one: Triple, other: Triple, share: float) -> Triple:
    """Return a colour on the way from one to another."""
    red, green, blue = (round(a + (b - a) * share) for a, b in zip(one, other, strict=True))
    return red, green, blue


def triple(colour: Color | None) -> Triple | None:
    """Return red, green and blue; None where only the terminal knows them."""
    if colour is None or colour.type is not ColorType.TRUECOLOR or colour.triplet is None:
        return None
    return colour.triplet.red, colour.triplet.green, colour.triplet.blue


def code(colour: Triple) -> str:
    """Return a colour as `#rrggbb`."""
    return "#{:02x}{:02x}{:02x}".format(*colour)
