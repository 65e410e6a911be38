"""Going back, and to any time or event, with all ranks of a machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from formats.errors import NotFoundError
from neurontools.debugger.errors import UsageError
from neurontools.debugger.history import ENDS, MARK, History
from neurontools.debugger.interrupt import Flag, interruptible
from neurontools.debugger.names import parse_number, parse_time
from neurontools.debugger.results import Mark, Moved, When

if TYPE_CHECKING:
    from neurontools.debugger.execution import LiveExecution
    from neurontools.debugger.navigator import Navigator
    from neurontools.debugger.rank_replay import Counts, Hit, RankReplay, Together
    from neurontools.debugger.stops import Stops

__all__ = ["RankHistory"]


class RankHistory(History):
    """The history of one rank: steps are its own completions, and all ranks go back with it.

    `reverse-continue` stops at the last place where a breakpoint stops any rank.
    """

    def __init__(self, ranks: Together, rank: int, execution: LiveExecution, navigator: Navigator,
                 stops: Stops) -> None:  # fmt: skip
        super().__init__(execution, navigator, stops)
        self._ranks, self._rank = ranks, rank

    @property
    def _replay(self) -> RankReplay:
        return self._ranks.replay

    def goto(self, where: str) -> Moved:
        """Go to a place as `History.goto`; a time and a mark are of all ranks, an event is of this one."""
        text, replay, here = where.strip(), self._replay, self._position()
        time_ps = parse_time(text)
        if text in replay.marks:
            return self._to(replay.marks[text], "goto", here)
        if text == "start":
            return self._to(replay.start(), "goto", here)
        if text == "end":
            return self._forward(None, None)
        if time_ps is not None:
            if time_ps >= max(each.time_ps for each in self._ranks.sessions.values()):
                return self._forward(None, time_ps)
            return self._to(replay.until(time_ps), "goto", here)
        if text.startswith("#"):
            number = parse_number(text[1:], "an event number")
            if number < 0:
                raise UsageError(f"{number} is not an event number")
            if number >= self._execution.events:
                return self._forward(number, None)
            at = self._execution.journal.count_before(number + 1)
            return self._to({**replay.cut(self._rank, max(at - 1, 0)), self._rank: at}, "goto", here)
        if MARK.fullmatch(text):
            raise NotFoundError(f"no mark {text!r}; there is {', '.join((*replay.marks, *ENDS))}")
        raise UsageError("go where? TIME (2.5us), #EVENT, a mark, start or end")

    def mark(self, name: str) -> Mark:
        """Name the place where all ranks stand."""
        found = super().mark(name)
        self._marks.clear()
        self._replay.marks[name] = self._replay.counts()
        return found

    def when(self) -> When:
        """Return where this rank stands, and the marks as it has them; going back runs all ranks again."""
        self._marks = {name: counts[self._rank] for name, counts in self._replay.marks.items()}
        found = super().when()
        self._marks = {}
        return found._replace(undoable=0)

    # --- moving ------------------------------------------------------------------------------------------------------

    def _seek(self, target: int, reason: str) -> Moved:
        """Go back to a position of this rank, at most to the last stop of any rank after it; -1 is the beginning."""
        replay, here, own, flag = self._replay, self._replay.counts(), self._position(), Flag()
        goal = replay.start() if target < 0 else replay.cut(self._rank, target)
        sessions = self._ranks.sessions.values()
        points = [each.navigator.stops.breakpoints for each in sessions]
        if any(each.before or each.after for each in points):
            hits: list[Hit] = []
            with interruptible(flag):
                # Once through all of it, to know where it would stop; a place counts once, before what comes next.
                if not replay.go_to(replay.start(), flag) or not replay.go_to(here, flag, hits):
                    return self._at("interrupted", own)
            first, last = sum(goal.values()), sum(here.values())
            for hit in reversed(_places(hits)):
                at = sum(hit.counts.values())
                if at < last and (at > first or target < 0):
                    numbers = self._counted(hit)
                    if numbers:
                        return self._to(hit.counts, "breakpoint", own, hit, numbers)
        return self._to(goal, reason, own, start=target < 0)

    def _counted(self, hit: Hit) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
        """Count the breakpoints of a place; return those that stop before and after it, None where none does."""
        points = self._ranks.sessions[hit.rank].navigator.stops.breakpoints
        after = tuple(each.number for each in hit.after if points.pass_by(each))
        before = tuple(each.number for each in hit.before if points.pass_by(each))
        return (before, after) if before or after else None

    def _back(self, target: int, reason: str, here: int | None = None,
              hit: tuple[tuple[int, ...], tuple[int, ...]] = ((), ())) -> Moved:  # fmt: skip
        own = self._position() if here is None else here
        goal = self._replay.start() if target < 0 else self._replay.cut(self._rank, target)
        return self._to(goal, reason, own, start=target < 0 or (target == 0 and reason == "line"))

    def _to(self, goal: Counts, reason: str, own: int, hit: Hit | None = None,
            numbers: tuple[tuple[int, ...], tuple[int, ...]] = ((), ()), *, start: bool = False) -> Moved:  # fmt: skip
        """Take all ranks to a place, and say how it went."""
        flag = Flag()
        with interruptible(flag):
            if not self._replay.go_to(goal, flag):
                return self._at("interrupted", own)
        if hit is None:
            return self._at("start" if start else reason, own)
        there = self._ranks.sessions[hit.rank].history
        assert isinstance(there, RankHistory)
        if there is not self:
            own = there._position()
        points = self._ranks.sessions[hit.rank].navigator.stops.breakpoints
        return there._at("breakpoint" if numbers[0] else points.noun_of(numbers[1]), own, *numbers)

    def _forward(self, number: int | None, time_ps: int | None, count: int | None = None) -> Moved:
        own, flag = self._position(), Flag()
        with interruptible(flag):
            arrived = self._replay.forward(flag, self._rank, number, time_ps)
        outcome = self._execution.outcome
        reason = "goto" if number is not None and self._execution.events > number else outcome
        if time_ps is not None:
            reason = "goto" if self._ranks.still_running() is not None else outcome
        return self._at(reason if arrived else "interrupted", own)

    def _at(self, reason: str, own: int, hit: tuple[int, ...] = (), watched: tuple[int, ...] = ()) -> Moved:
        """Return how a move ended with all ranks where they are; this one is selected."""
        self._ranks.selected = self._rank
        for rank, session in self._ranks.sessions.items():
            session.navigator.stand_at(hit if rank == self._rank else ())
        found = self._moved(reason, own, hit + watched)
        self._ranks.agree(hit + watched)
        return found._replace(rank=self._rank, ranks=self._ranks.waiting().hang)


def _places(hits: list[Hit]) -> list[Hit]:
    """Return hits by place: what stops after an event and what stops before the next one on the same rank are one."""
    found: list[Hit] = []
    for hit in hits:
        last = found[-1] if found else None
        if last is not None and last.counts == hit.counts and last.rank == hit.rank:
            found[-1] = last._replace(before=last.before + hit.before, after=last.after + hit.after)
        else:
            found.append(hit)
    return found
