"""How cells of a map look: a number for every look, a character for every number."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from formats.named_tuple import NamedTuple

__all__ = [
    "BLANK",
    "BOTH",
    "GLYPHS",
    "HEAT",
    "LETTERS",
    "NOT_A_NUMBER",
    "READ",
    "SHADE",
    "WRITTEN",
    "Look",
    "looks_of",
    "magnitude_levels",
]

Array = npt.NDArray[Any]

LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
SHADES = "░▒▓█"
HEAT = len(SHADES)

# Every look of a cell, by number; a map stores numbers, and a row becomes text by one look-up.
BLANK, UNNAMED, ZERO, NOT_A_NUMBER, INFINITE = range(5)
READ, WRITTEN, BOTH = range(5, 8)
SHADE = 8  # four shades, from the least to the most
TILE = SHADE + HEAT  # then a letter for every tile
EMPTY_TILE = TILE + len(LETTERS)  # and the same for bytes of a tile that nothing has written yet
GLYPHS = np.array(list("·:0N∞◂▸◆" + SHADES + LETTERS + LETTERS))


class Look(NamedTuple):
    """Looks of the cells of one map: `numbers` are (rows, columns) indexes into GLYPHS and the styles."""

    numbers: npt.NDArray[np.uint8]
    legend: tuple[tuple[int, str], ...]


def looks_of(mode: str, cells: Array, marked: Array, names: Sequence[str], events: int) -> Look:
    """Return the look of every cell of a map; see `neurontools.debugger.maps.MapCells`."""
    if mode == "tensor":
        letters = np.where(marked, TILE, EMPTY_TILE) + cells % len(LETTERS)
        numbers = np.where(cells >= 0, letters, np.where(marked, UNNAMED, BLANK))
        shown = np.unique(cells[cells >= 0]).tolist()
        tiles = [(TILE + number % len(LETTERS), names[number]) for number in shown]
        return Look(numbers.astype(np.uint8), (*tiles, (UNNAMED, "no tile"), (BLANK, "free")))
    if mode == "age":
        age = np.log2(np.maximum(events - cells, 1).astype(np.float64))
        level = np.clip(HEAT - 1 - (age / 3).astype(np.int64), 0, HEAT - 1)
        numbers = np.where(cells >= 0, SHADE + level, BLANK)
        ago = ("512 events ago or more", "64-511", "8-63", "the last 7")
        return Look(numbers.astype(np.uint8), (*_shades(ago), (BLANK, "never")))
    if mode == "unwritten":
        share = 1 - cells
        level = np.minimum((share * HEAT).astype(np.int64), HEAT - 2)
        numbers = np.where(share >= 1, SHADE + HEAT - 1, np.where(share > 0, SHADE + level, BLANK))
        parts = ("written to 1/4", "to 1/2", "in part", "whole")
        return Look(numbers.astype(np.uint8), (*_shades(parts), (BLANK, "unwritten")))
    if mode == "traffic":
        most = max(int(cells.max(initial=0)), 1)
        numbers = np.where(cells > 0, SHADE + np.minimum(cells * HEAT // (most + 1), HEAT - 1), BLANK)
        edges = [-(-level * (most + 1) // HEAT) for level in range(HEAT + 1)]
        counts = [_count_range(max(low, 1), high - 1) for low, high in pairwise(edges)]
        return Look(numbers.astype(np.uint8), (*(each for each in _shades(counts) if each[1]), (BLANK, "never")))
    levels, legend = magnitude_levels(cells, marked)
    return Look(levels, legend)


def magnitude_levels(values: Array, nan: Array) -> tuple[npt.NDArray[np.uint8], tuple[tuple[int, str], ...]]:
    """Return looks by magnitude, in powers of two between the least and the largest there are; NaN and inf stand out.

    `values` are NaN where there is nothing, which looks blank; `nan` tells where an element is NaN.
    """
    size = np.abs(values)
    finite = np.isfinite(size) & (size > 0)
    numbers = np.where(size == 0, ZERO, np.where(np.isinf(size), INFINITE, BLANK)).astype(np.uint8)
    legend: list[tuple[int, str]] = []
    if finite.any():
        powers = np.floor(np.log2(size[finite].astype(np.float64))).astype(np.int64)
        low, high = int(powers.min()), int(powers.max()) + 1
        numbers[finite] = SHADE + np.minimum((powers - low) * HEAT // (high - low), HEAT - 1)
        edges = [low + -(-(high - low) * part // HEAT) for part in range(HEAT + 1)]
        texts = [_power_range(*pair) for pair in pairwise(edges)]
        legend = [entry for entry in _shades(texts) if entry[1]]
    if np.isinf(size).any():
        legend.append((INFINITE, "inf"))
    numbers[nan] = NOT_A_NUMBER
    return numbers, (*legend, (ZERO, "0"), (NOT_A_NUMBER, "NaN"), (BLANK, "none"))


def _power_range(low: int, high: int) -> str:
    return f"2^{low}" if high == low + 1 else f"2^{low}-{high}" if high > low else ""


def _count_range(low: int, high: int) -> str:
    return f"{low} writes" if high == low else f"{low}-{high} writes" if high > low else ""


def _shades(texts: Sequence[str]) -> tuple[tuple[int, str], ...]:
    return tuple((SHADE + level, text) for level, text in enumerate(texts))
