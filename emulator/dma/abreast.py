"""Engines that go the same way: a time of theirs is `at_ps` on engine 0 and `step_ps` more on each further one.

What is asked about times has one answer for all of them, or `Apart` says from which engine on it is another.
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
        raise Apart(max(meeting, first + 1))

    def parts(self, most: int, gap_ps: int, slope: int, each_ps: int) -> int:
        """Return the whole parts of a gap, at most so many, on all engines; Apart where they differ."""
        parts = min(most, (gap_ps + slope * self.first) // each_ps)
        if slope and min(most, (gap_ps + slope * self.last) // each_ps) != parts:
            for engine in range(self.first, self.last + 1):
                if min(most, (gap_ps + slope * engine) // each_ps) != parts:
                    raise Apart(engine)
        return parts
