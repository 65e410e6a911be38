"""Events of a debug stream as rows: what was printed, from where, and the values in short."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

if TYPE_CHECKING:
    import numpy.typing as npt

    from formats.debug_events import DebugEvent

__all__ = ["EventRow", "array_of", "event_line", "event_row"]

_SHOWN = 8
_PIPES = {1: "output", 2: "error"}


class EventRow(NamedTuple):
    """One event; `values` are the first of the tensor, null where its element type is unknown or sizes do not fit."""

    number: int
    prefix: str
    core: int
    pipe: str
    dtype: str
    shape: tuple[int, ...]
    bytes: int
    values: Annotated[list[float | str] | None, "the first eight; infinities and NaN as text"]


def array_of(event: DebugEvent) -> npt.NDArray[Any] | None:
    """Return the tensor of an event, None where its type is unknown or its bytes are not those of its shape."""
    import numpy as np

    try:
        import ml_dtypes

        named = getattr(ml_dtypes, event.dtype, None)
        dtype = np.dtype(event.dtype) if named is None else np.dtype(named)
    except TypeError:
        return None
    if dtype.hasobject or not dtype.itemsize:
        return None
    count = 1
    for length in event.shape:
        count *= length
    if count * dtype.itemsize != len(event.data):
        return None
    return np.frombuffer(event.data, dtype).reshape(event.shape)


def event_row(number: int, event: DebugEvent) -> EventRow:
    """Return an event as a row."""
    array = array_of(event)
    first = () if array is None else array.reshape(-1)[:_SHOWN]
    values = None if array is None else [one if isfinite(one := float(each)) else str(one) for each in first]
    return EventRow(number, event.prefix, event.core, _PIPES.get(event.pipe, str(event.pipe)), event.dtype, event.shape,
                    len(event.data), values)  # fmt: skip


def event_line(row: EventRow) -> str:
    """Return a row as a line."""
    shape = "x".join(map(str, row.shape)) or "scalar"
    if row.values is None:
        values = f"{row.bytes:,} bytes"
    else:
        values = " ".join(one if isinstance(one, str) else f"{one:g}" for one in row.values)
        if row.bytes and len(row.values) == _SHOWN:
            values += " ..."
    return f"{row.number:>4}  nc{row.core} {row.pipe}  {row.prefix}{row.dtype}[{shape}]: {values}"
