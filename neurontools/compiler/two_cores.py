"""Order between the two cores of a logical core: where one needs what the other has done, both meet.

Transfers are noted as they are appended, which is an order in which one core alone could do them. A transfer meets the
other core's only where they share bytes and one of them writes. Inputs and outputs of one type and shape count as one
memory, since a caller may pass one tensor as both.
"""

from __future__ import annotations

from formats.named_tuple import NamedTuple
from neurontools.builder.trace import Allocation, CollectiveOp, DmaOp, IndirectDmaOp, Op, Space, View

__all__ = ["Crossings", "halves"]


class _Span(NamedTuple):
    memory: object
    low: int
    high: int
    write: bool


_Touched = dict[tuple[object, bool], tuple[int, int]]


class Crossings:
    """What each core has read and written in device memory since both met last, before and behind a mark."""

    def __init__(self, cores: int) -> None:
        self._before: list[_Touched] = [{} for _ in range(cores)]
        self._behind: list[_Touched] = [{} for _ in range(cores)]

    def mark(self) -> None:
        """Begin work that cores share: what was done up to here is before it."""
        for before, behind in zip(self._before, self._behind, strict=True):
            for key, span in behind.items():
                _add(before, key, *span)
            behind.clear()

    def met(self, core: int, *, at_mark: bool) -> None:
        """Forget what the cores did before they met: another than `core` at the mark, or each where it is."""
        for seen in self._before:
            seen.clear()
        for number, seen in enumerate(self._behind):
            if number == core or not at_mark:
                seen.clear()

    def others(self, core: int) -> bool:
        """Return whether another core has touched anything."""
        return any(seen for both in (self._before, self._behind) for n, seen in enumerate(both) if n != core)

    def meets(self, core: int, op: Op) -> str:
        """Return "behind" or "before" for the latest work of another core that shares bytes, else nothing.

        Bytes that neither writes are not shared.
        """
        spans = _spans(op)
        for name, both in (("behind", self._behind), ("before", self._before)):
            for number, seen in enumerate(both):
                if number != core and seen and any(_touches(seen, span) for span in spans):
                    return name
        return ""

    def note(self, core: int, op: Op) -> None:
        """Keep what an operation of a core touches."""
        for span in _spans(op):
            _add(self._behind[core], (span.memory, span.write), span.low, span.high)


def _add(seen: _Touched, key: tuple[object, bool], low: int, high: int) -> None:
    # One span for all: bytes between two spans count too, which may cost a meeting, and never an order.
    first, last = seen.get(key, (low, high))
    seen[key] = min(low, first), max(high, last)


def _touches(seen: _Touched, span: _Span) -> bool:
    for write in (True, False) if span.write else (True,):
        found = seen.get((span.memory, write))
        if found is not None and found[0] < span.high and span.low < found[1]:
            return True
    return False


def _spans(op: Op) -> list[_Span]:
    if isinstance(op, DmaOp):
        sides = [(op.src, False, False), (op.dst, True, False)]
    elif isinstance(op, IndirectDmaOp):
        sides = [(op.src, False, not op.scatter), (op.dst, True, op.scatter)]
    elif isinstance(op, CollectiveOp):
        sides = [(op.src, False, True), (op.dst, True, True)]
    else:
        return []
    return [_span(view, write, whole) for view, write, whole in sides if view.allocation.space is Space.HBM]


def _span(view: View, write: bool, whole: bool) -> _Span:
    one = view.allocation
    if whole:  # where indices or peers decide, which bytes are touched is known at run time only
        return _Span(_memory(one), 0, one.nbytes, write)
    reach = [step * (count - 1) for step, count in view.dims]
    low = view.offset + view.dtype.size * sum(min(0, each) for each in reach)
    high = view.offset + view.dtype.size * (1 + sum(max(0, each) for each in reach))
    return _Span(_memory(one), low, high, write)


def _memory(allocation: Allocation) -> object:
    return (allocation.dtype, allocation.shape) if allocation.kind in ("input", "output") else allocation.id


def halves(extent: int, cores: int, unit: int = 1) -> list[tuple[int, int, int]]:
    """Return core, begin and end of each core's part of something that can be cut behind any `unit`."""
    middle = -(-extent // (2 * unit)) * unit
    if cores == 1 or middle >= extent:
        return [(0, 0, extent)]
    return [(0, 0, middle), (1, middle, extent)]
