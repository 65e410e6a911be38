"""Events of a debug stream as rows: what was printed, from where, and the values in short."""

from __future__ import annotations

from math import isfinite, prod
from typing import TYPE_CHECKING, Annotated, Any

from formats.named_tuple import NamedTuple

if TYPE_CHECKING:
    import numpy.typing as npt

    from formats.debug_events import DebugEvent

__all__ = ["EventRow", "array_of", "event_line", "event_row"]

_SHOWN = 8
_PIPES = {1: "output", 2: "error"}
_REGISTERED = 2  # what NumPy calls types that others bring, as bfloat16


class EventRow(NamedTuple):
    """One event; `values` are the first of the tensor, null where its element type is unknown or sizes do not fit."""

    number: int
    prefix: str
    core: int
    pipe: str
    dtype: str
    shape: tuple[int, ...]
    bytes: int
    values: Annotated[list[int | float | str] | None, "the first eight; infinities and NaN as text"]


def array_of(event: DebugEvent) -> npt.NDArray[Any] | None:
    """Return the tensor of an event, None where its type is unknown or its bytes are not those of its shape."""
    import ml_dtypes
    import numpy as np

    named = getattr(ml_dtypes, event.dtype, None)
    try:
        dtype = np.dtype(named if isinstance(named, type) and issubclass(named, np.generic) else event.dtype)
    except (TypeError, ValueError, SyntaxError):
        return None
    # A file may name records, texts and dates: nothing that a core prints.
    if dtype.kind not in "fiub" and dtype.isbuiltin != _REGISTERED:
        return None
    if prod(event.shape) * dtype.itemsize != len(event.data):
        return None
    return np.frombuffer(event.data, dtype).reshape(event.shape)


def event_row(number: int, event: DebugEvent) -> EventRow:
    """Return an event as a row."""
    array = array_of(event)
    first = () if array is None else array.reshape(-1)[:_SHOWN]
    whole = array is not None and array.dtype.kind in "iub"
    values = None if array is None else [
        int(each) if whole else one if isfinite(one := float(each)) else str(one) for each in first
    ]  # fmt: skip
    return EventRow(number, event.prefix, event.core, _PIPES.get(event.pipe, str(event.pipe)), event.dtype, event.shape,
                    len(event.data), values)  # fmt: skip


def event_line(row: EventRow) -> str:
    """Return a row as a line."""
    shape = "x".join(map(str, row.shape)) or "scalar"
    if row.values is None:
        values = f"{row.bytes:,} bytes"
    else:
        values = " ".join(f"{one:g}" if isinstance(one, float) else str(one) for one in row.values)
        if prod(row.shape) > len(row.values):
            values += " ..."
    return f"{row.number:>4}  nc{row.core} {row.pipe}  {row.prefix}{row.dtype}[{shape}]: {values}"
