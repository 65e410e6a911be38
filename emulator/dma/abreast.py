"""Engines that go the same way: a time of theirs is `at_ps` on engine 0 and `step_ps` more on each further one.

What is asked about times has one answer for all of them, or `Apart` says from which engines on it is another.
"""

from __future__ import annotations

from emulator.dma.work import Apart

__all__ = ["Abreast"]


class Abreast:
    """Engines `first` to `last`."""

    __slots__ = ("first", "last")

    def __init__(self, first: int, last: int) -> None:
        self.first, self.last = first, last

    def is_over(self, at_ps: int, step_ps: int, other_ps: int, other_step_ps: int) -> bool:
        """Return whether a time is at another or past it, on all engines; Apart where they differ."""
        first, last, slope = self.first, self.last, step_ps - other_step_ps
        ahead = at_ps - other_ps
        over = ahead + slope * first >= 0
        if over != (ahead + slope * last >= 0):
            raise Apart(next(one for one in range(first, last + 1) if (ahead + slope * one >= 0) != over))
        return over

    def is_same(self, at_ps: int, step_ps: int, other_ps: int, other_step_ps: int) -> bool:
        """Return whether a time is the same as another, on all engines; Apart where they differ."""
        ahead, slope = at_ps - other_ps, step_ps - other_step_ps
        if not slope:
            return not ahead
        first, last = self.first, self.last
        meeting, rest = divmod(-ahead, slope)
        if rest or not first <= meeting <= last:
            return False
        if first == last:
            return True
        raise Apart(*[one for one in (meeting, meeting + 1) if first < one <= last])

    def parts(self, most: int, gap_ps: int, slope: int, each_ps: int) -> int:
        """Return the whole parts of a gap, at most so many, on all engines; Apart where they differ."""
        first, last = self.first, self.last
        parts = min(most, (gap_ps + slope * first) // each_ps)
        if slope:
            others = min(most, (gap_ps + slope * last) // each_ps)
            if others > parts:  # from the engine on whose gap has as many
                cuts = [-((gap_ps - each_ps * more) // slope) for more in range(parts + 1, others + 1)]
                raise Apart(*sorted({*cuts}))
            if others < parts:  # from the one on whose gap has no longer as many
                cuts = [-((gap_ps + 1 - each_ps * more) // slope) for more in range(others + 1, parts + 1)]
                raise Apart(*sorted({*cuts}))
        return parts
