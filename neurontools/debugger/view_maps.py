"""Maps of memory, figures of a tensor and the timeline as lines."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from neurontools.text.table import bold, bytes_text, count, duration, table

if TYPE_CHECKING:
    from emulator.timeline import Owner
    from neurontools.debugger.byte_facts import Variable
    from neurontools.debugger.maps import MapCells
    from neurontools.debugger.results import Array
    from neurontools.debugger.spans import Spans
    from neurontools.debugger.tile_view import Statistics, TileView

__all__ = ["bar_rows", "figure_lines", "hex_cells", "map_lines", "number_cells", "row_name", "shade", "spans_lines",
           "tile_lines", "timeline_blocks", "variable_lines"]  # fmt: skip

_EIGHTHS = " ▁▂▃▄▅▆▇█"
_SHADES = "·░▒▓█"
_UNWRITTEN = "--"
_WAITS, _DONE = "┄", "╷"


# --- maps -----------------------------------------------------------------------------------------------------------


def map_lines(found: MapCells) -> Iterator[str]:
    """Return a map: a line for every row of cells, and what the characters mean."""
    from neurontools.text.looks import GLYPHS, looks_of  # deferred: start-up

    window = found.window
    end = window.byte + window.columns * window.byte_step
    cell = f"a cell is {count(window.row_step, 'partition')} × {bytes_text(window.byte_step)}"
    yield bold(f"nc{window.core} {window.space} by {found.mode}, bytes {window.byte:#x} to {end - 1:#x}; {cell}")
    look = looks_of(found.mode, found.cells, found.marked, found.names, found.events)
    for row, numbers in enumerate(look.numbers):
        yield f"{window.partition + row * window.row_step:>3} {''.join(GLYPHS[numbers].tolist())}"
    yield "  ".join(f"{GLYPHS[number]} {text}" for number, text in look.legend)
    if found.mode == "age" and not found.kept:
        yield "this session keeps no journal: when bytes were written is not known"


# --- tensors --------------------------------------------------------------------------------------------------------


def number_cells(part: Array, written: Array, width: int) -> list[str]:
    """Return a line of numbers for every row, each to the right in `width` columns."""
    if part.dtype.kind in "iub":
        texts = [[str(value) for value in row] for row in part.tolist()]
    else:
        texts = [[f"{value:.4g}" for value in row] for row in part.astype("float64").tolist()]
    return [
        "".join(f"{text if done else _UNWRITTEN:>{width - 1}} " for text, done in zip(*pair, strict=True))
        for pair in zip(texts, written.tolist(), strict=True)
    ]


def hex_cells(part: Array, written: Array, width: int) -> list[str]:
    """Return a line of elements in hexadecimal for every row."""
    size = part.dtype.itemsize
    raw = part.copy().view(f"u{size}")
    return [
        " ".join(f"{value:0{2 * size}x}" if done else "-" * (2 * size) for value, done in zip(*pair, strict=True))
        for pair in zip(raw.tolist(), written.tolist(), strict=True)
    ]


def figure_lines(found: Statistics, brief: bool = False) -> list[str]:
    """Return the figures of a tensor, one in each string; `brief` leaves out what is zero."""
    named = (("min", found.least), ("max", found.largest), ("mean", found.mean), ("std", found.deviation))
    lines = [f"{label} {value:.5g}" for label, value in named if value is not None]
    odd = [
        f"{number:,} {label}"
        for number, label in ((found.nan, "NaN"), (found.infinite, "inf"), (found.unwritten, "unwritten"))
        if number or not brief
    ]
    zeros = [] if brief else [f"{found.zeros:,} {'zero' if found.zeros == 1 else 'zeros'}"]
    return [*lines, *odd, *zeros, count(found.elements, "element")]


def bar_rows(bins: tuple[int, ...], height: int, width: int) -> list[str]:
    """Return bars, `width` columns each, in `height` lines from the top; a bar that is not empty is visible."""
    most = max(bins, default=0) or 1
    eighths = [-(-number * height * 8 // most) for number in bins]
    return [
        "".join(_EIGHTHS[min(max(tall - 8 * below, 0), 8)] * width for tall in eighths)
        for below in range(height - 1, -1, -1)
    ]


def tile_lines(found: TileView) -> Iterator[str]:
    """Return a tensor: its figures, its histogram, the elements in its window."""
    shape = ", ".join(map(str, found.shape))
    yield bold(f"{found.name}{found.selection} {found.space} {found.dtype}[{shape}]")
    yield ", ".join(figure_lines(found.statistics))
    if found.statistics.least is not None:
        yield from (line.rstrip() for line in bar_rows(found.statistics.bins, 4, 2))
        least, largest = f"{found.statistics.least:.4g}", f"{found.statistics.largest:.4g}"
        yield least.ljust(2 * len(found.statistics.bins) - len(largest)) + largest
    shown = f"rows {found.row} to {found.row + found.part.shape[0] - 1} of {found.rows}"
    yield f"{shown}, columns {found.column} to {found.column + found.part.shape[1] - 1} of {found.columns}:"
    yield from (line.rstrip() for line in number_cells(found.part, found.written, 12))


def variable_lines(rows: tuple[Variable, ...]) -> Iterator[str]:
    """Return what HBM holds as a table."""
    yield from table(
        ("address", "name", "kind", "type", "bytes", "written", "parts"),
        (
            (f"{v.address:#x}", v.name, v.kind or "-", f"{v.dtype}{list(v.shape)}" if v.dtype else "bytes", v.nbytes,
             f"{v.written * 100 // max(v.nbytes, 1)}%", shade(v.strip))
            for v in rows
        ),
    )  # fmt: skip


def shade(shares: tuple[float, ...]) -> str:
    """Return a character for every share: a dot for nothing, a full block for all of it."""
    return "".join(_SHADES[int(share * 3) + 1 if 0 < share < 1 else 4 * (share >= 1)] for share in shares)


# --- time -----------------------------------------------------------------------------------------------------------


def timeline_blocks(busy: Array, waiting: Array, completed: Array) -> str:
    """Return one character per column: eighths of it that were busy, a line where a word waited most of it.

    Where something completed and its beginning is not known, there is a tick.
    """
    import numpy as np

    # A share that is not quite an eighth more for the sake of its last bits is not one.
    tall = np.clip(np.ceil(busy * 8 - 0.0005), 0, 8).astype(np.intp)
    marks = np.where(completed > 0, ord(_DONE), np.where(waiting > 0.5, ord(_WAITS), ord(" ")))
    codes = np.where(tall > 0, np.array([*map(ord, _EIGHTHS)])[tall], marks)
    return codes.astype("<u4").tobytes().decode("utf-32-le")


def row_name(owner: Owner, cores: int) -> str:
    """Return the name of a row; the core belongs to it where there are several."""
    from neurontools.debugger.names import short_engine  # deferred: start-up

    name = short_engine(owner.name).upper() if owner.kind == "engine" else owner.name
    return name if cores < 2 else f"{owner.core}:{name}"


def spans_lines(found: Spans) -> Iterator[str]:
    """Return engines and queues, a line each, in columns of time."""
    end = found.start_ps + found.busy.shape[1] * found.step_ps
    yield bold(f"{duration(found.start_ps)} to {duration(end)}, a column is {duration(found.step_ps)}; "
               f"now {duration(found.now_ps)}")  # fmt: skip
    cores = 1 + max((owner.core for owner in found.owners), default=0)
    names = [row_name(owner, cores) for owner in found.owners]
    wide = max(map(len, names), default=0)
    for name, busy, *rest in zip(names, found.busy, found.waiting, found.completed, strict=True):
        text = timeline_blocks(busy, *rest)
        yield f"{name:<{wide}} {text} {float(busy.mean()) * 100:5.1f}%"
