"""What a kernel calls for before it is carried out: matrix products, whose operands may change in between."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from formats.regions import shape_of
from neurontools.builder.areas import Area, overlap
from neurontools.builder.dependencies import accesses_of
from neurontools.builder.trace import Op, View
from neurontools.nki.reshaping import shift_copies
from neurontools.nki.tracer import Tracer

__all__ = ["Moment"]


class Moment:
    """A point of the trace that operations may still be put in at."""

    def __init__(self, t: Tracer) -> None:
        self._trace = t
        # The operation and not its number, which changes where others are put in before it.
        self._behind: Op | None = t.ops[-1] if t.ops else None

    def _number(self) -> int:
        ops = self._trace.ops
        return next((at + 1 for at in range(len(ops) - 1, -1, -1) if ops[at] is self._behind), 0)

    def overwritten(self, views: Sequence[View]) -> bool:
        """Return whether an operation since then writes where one of the views reads."""
        later = self._trace.ops[self._number() :]
        return any(write and _meet(view, one) for op in later for view, write in accesses_of(op) for one in views)

    def carry_out(self, emit: Callable[[], None]) -> None:
        """Append what `emit` appends at this point, in front of all that has come since."""
        ops, at = self._trace.ops, self._number()
        later = ops[at:]
        del ops[at:]
        emit()
        shift_copies(self._trace, at, len(ops) - at)
        ops += later


def _meet(one: View, other: View) -> bool:
    if one.allocation is not other.allocation:
        return False
    first, second = (Area(view.partition, view.partition + view.partitions, view.offset,
                          shape_of(view.dims, view.dtype.size)) for view in (one, other))  # fmt: skip
    return overlap(first, second)
