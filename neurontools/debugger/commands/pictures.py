"""What `info map`, `info values` and `info timeline` take: the pictures of the screen, at the prompt."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from formats.dtypes import Dtype
from neurontools.debugger.commands.arguments import core_and_words
from neurontools.debugger.errors import UsageError
from neurontools.debugger.last_writes import BLOCK
from neurontools.debugger.maps import MODES, MapCells
from neurontools.debugger.names import parse_dtype, parse_number, parse_time
from neurontools.debugger.spans import Spans
from neurontools.debugger.tile_view import TileView
from neurontools.debugger.window import Window

if TYPE_CHECKING:
    from neurontools.debugger.session import Session

__all__ = ["MAP", "TIMELINE", "VALUES", "map_cells", "timeline", "values"]

_ROWS, _COLUMNS = 16, 64  # cells of a map, columns of a timeline
_RANGE = re.compile(r"(\w*):(\w*)")
MAP = "[ncN] [sbuf|psum] [tensor|age|value|unwritten|traffic] [DTYPE] [mean] [P0:P1 [BYTE0:BYTE1]]"
VALUES = "TENSOR[slice] [as DTYPE]"
TIMELINE = "[FROM TO]"


def map_cells(session: Session, rest: str) -> MapCells:
    """Return a map of SBUF or PSUM: of a range of partitions and bytes, else of what the program's tiles lie in."""
    core, words = core_and_words(rest)
    core = session.focus()[0] if core is None else core
    space, mode, dtype, figure = "SBUF", MODES[0], Dtype.FLOAT32, "absmax"
    ranges: list[tuple[str, str]] = []
    for word in words:
        found = parse_dtype(word)
        pair = _RANGE.fullmatch(word)
        if word.lower() in ("sbuf", "psum"):
            space = word.upper()
        elif word in MODES:
            mode = word
        elif word in ("absmax", "mean"):
            mode, figure = "value", word
        elif found is not None:
            mode, dtype = "value", found
        elif pair is not None and len(ranges) < 2:
            ranges.append((pair[1], pair[2]))
        else:
            raise UsageError(f"info map {MAP}")
    window = Window(space, core, 0, 0, 1, 1, 1, 1)
    maps = session.inspector.maps
    partitions, width = maps.size(space, core)
    ends = [_ends(*pair, size) for pair, size in zip(ranges, (partitions, width), strict=False)]
    used = maps.used(space, core) if len(ranges) < 2 else (0, width)
    (p0, p1), (b0, b1) = [*ends, *((0, partitions), used)[len(ends) :]]
    rows, columns = min(_ROWS, p1 - p0), min(_COLUMNS, b1 - b0)
    row_step, byte_step = -(-(p1 - p0) // rows), -(-(b1 - b0) // columns)
    byte_step = -(-byte_step // BLOCK) * BLOCK if byte_step > BLOCK else byte_step
    window = Window(space, core, p0, b0, -(-(p1 - p0) // row_step), -(-(b1 - b0) // byte_step), row_step, byte_step)
    return maps.cells(window, mode, dtype, figure)


def _ends(low: str, high: str, size: int) -> tuple[int, int]:
    first = parse_number(low, "the beginning of a range") if low else 0
    behind = parse_number(high, "the end of a range") if high else size
    if not 0 <= first < behind <= size:
        raise UsageError(f"{low}:{high} is not a range in 0:{size:#x}")
    return first, behind


def values(session: Session, rest: str) -> TileView:
    """Return figures, histogram and first elements of a tensor."""
    text, _, name = rest.partition(" as ")
    dtype = parse_dtype(name.strip()) if name.strip() else None
    if not text.strip() or (name.strip() and dtype is None):
        raise UsageError(f"info values {VALUES}")
    return session.inspector.view_tensor(text.strip(), dtype, (0, 0, 8, 8))


def timeline(session: Session, rest: str) -> Spans:
    """Return how busy engines and queues were; from the journal's beginning, or between two times."""
    words = rest.split()
    ends = [parse_time(word) for word in words] or [0, max(session.inspector.timeline.known_ps, 1)]
    if len(ends) != 2 or ends[0] is None or ends[1] is None or ends[0] >= ends[1]:
        raise UsageError(f"info timeline {TIMELINE}, such as 0us 2.5us")
    step = -(-(ends[1] - ends[0]) // _COLUMNS)
    return session.inspector.timeline.spans(ends[0], step, -(-(ends[1] - ends[0]) // step))
