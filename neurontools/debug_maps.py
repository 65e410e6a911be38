"""The `info` topics behind the maps, the tensor and the timeline of the screen: the same values at the prompt."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from neurontools.debug_breaking import usage

if TYPE_CHECKING:
    from emulator.session import Session

__all__ = ["map_topic", "timeline_topic", "values_topic", "variables_topic"]

_ROWS, _COLUMNS = 16, 64    # cells of a map, columns of a timeline
_RANGE = re.compile(r"(\w*):(\w*)")
MAP = "info map [ncN] [sbuf|psum] [tensor|age|value|unwritten] [DTYPE] [mean] [P0:P1 [BYTE0:BYTE1]]"
VALUES = "info values TENSOR[slice] [as DTYPE]"
TIMELINE = "info timeline [FROM TO]"


def map_topic(session: Session, rest: str) -> Any:
    """Return a map of SBUF or PSUM: of a range of partitions and bytes, else of what the program's tiles lie in."""
    from emulator.session.last_writes import BLOCK
    from emulator.session.maps import MODES, Window, maps_of
    from emulator.session.names import parse_core, parse_dtype
    from formats.dtypes import Dtype

    core, words = parse_core(rest)[0], parse_core(rest)[1].split()
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
            raise usage(MAP)
    window = Window(space, core, 0, 0, 1, 1, 1, 1)
    maps = maps_of(session)
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
    from emulator.session.names import parse_number

    first = parse_number(low, "the beginning of a range") if low else 0
    behind = parse_number(high, "the end of a range") if high else size
    if not 0 <= first < behind <= size:
        raise usage(f"{low}:{high} is no range in 0:{size:#x}")
    return first, behind


def values_topic(session: Session, rest: str) -> Any:
    """Return figures, histogram and first elements of a tensor."""
    from emulator.session.names import parse_dtype
    from emulator.session.tile_view import view_tile

    text, _, name = rest.partition(" as ")
    dtype = parse_dtype(name.strip()) if name.strip() else None
    if not text.strip() or (name.strip() and dtype is None):
        raise usage(VALUES)
    return view_tile(session, text.strip(), dtype, (0, 0, 8, 8))


def variables_topic(session: Session, rest: str) -> Any:
    """Return what HBM holds, with the written-ness of its parts."""
    from emulator.session.byte_facts import variables_of

    if rest:
        raise usage("info variables takes no argument")
    return variables_of(session, 12)


def timeline_topic(session: Session, rest: str) -> Any:
    """Return how busy engines and queues were; from the journal's beginning, or between two times."""
    from emulator.session.names import parse_time
    from emulator.session.spans import known_ps, spans_of

    words = rest.split()
    ends = [parse_time(word) for word in words] or [0, max(known_ps(session), 1)]
    if len(ends) != 2 or ends[0] is None or ends[1] is None or ends[0] >= ends[1]:
        raise usage(f"{TIMELINE}, such as 0us 2.5us")
    step = -(-(ends[1] - ends[0]) // _COLUMNS)
    return spans_of(session, ends[0], step, -(-(ends[1] - ends[0]) // step))
