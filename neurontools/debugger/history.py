"""Going back, and to any time or event, on the journal of a session."""

from __future__ import annotations

import re

from formats.errors import NotFoundError
from neurontools.debugger.errors import UsageError
from neurontools.debugger.execution import LiveExecution
from neurontools.debugger.frames import Standing, need_call, standing_at
from neurontools.debugger.interrupt import Flag, interruptible
from neurontools.debugger.names import parse_number, parse_time, positive
from neurontools.debugger.navigator import Navigator
from neurontools.debugger.results import Mark, Moved, When
from neurontools.debugger.stops import Stops

__all__ = ["ENDS", "MARK", "History"]

MARK = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
ENDS = ("start", "end")


class History:
    """Goes back, and to any place in time. Positions are counts of events that have been reported."""

    def __init__(self, execution: LiveExecution, navigator: Navigator, stops: Stops) -> None:
        self._execution, self._navigator, self._stops = execution, navigator, stops
        self._marks: dict[str, int] = {}

    def reverse_step(self, count: int = 1) -> Moved:
        """Take back the last `count` completions; breakpoints on the way stop it, as they stop `step`."""
        target = self._position() - positive(count)
        return self._seek(target, "step")

    def reverse_stepi(self, engine: str | None = None, core: int | None = None) -> Moved:
        """Go back to before the last instruction that an engine, else the focus engine, completed; focus it."""
        here, log = self._position(), self._execution.journal.log
        where = self._execution.focus = self._execution.engine(engine, core)
        own = (at for at in range(here - 1, -1, -1) if log[at].owner[:2] == where and log[at].owner[3] != "dma")
        target = next(own, None)
        return self._back(0, "line") if target is None else self._back(target, "step")

    def reverse_next(self, count: int = 1) -> Moved:
        """Go back to where the focus engine began its source line, or the previous line when it stands at a beginning.

        Without line information that is one instruction of the engine. Breakpoints on the way stop it.
        """
        start = self._position()
        for _ in range(positive(count)):
            found = self._reverse_next()
            if found.reason != "line":
                break
        return found._replace(completions=found.events - start)

    def _reverse_next(self) -> Moved:
        own = self._own_entries()
        if not own:
            return self._back(0, "line")
        line = self._standing(own[-1])
        depth = 0 if line is None else len(line.visits)
        while len(own) > 1 and line is not None:
            before = self._standing(own[-2])
            if before is None or not line.same_line(before, depth):
                break
            own.pop()
        # Behind the last completion of another line, which is where this one began.
        target = own[-2] + 1 if len(own) > 1 else 0
        return self._seek(target, "line")

    def reverse_finish(self) -> Moved:
        """Go back to before the call of the kernel's function that the focus engine is in; UsageError in none."""
        engine = self._execution.standing()
        core, name = self._execution.focus
        done = self._execution.device.cores[core].engines[name].done
        visits = need_call(standing_at(self._execution.program, engine), done)
        caller, own = visits[:-1], self._own_entries()
        target = self._position()
        while own:
            found = self._standing(own[-1])
            if found is None or found.visits[: len(caller)] != caller:
                break
            target = own.pop()
        return self._seek(target, "line")

    def _own_entries(self) -> list[int]:
        """Return the places in the log of what the focus engine has completed."""
        log, where = self._execution.journal.log, self._execution.focus
        return [index for index in range(self._position()) if log[index].owner[:2] == where]

    def _standing(self, position: int) -> Standing | None:
        owner = self._execution.journal.log[position].owner
        return standing_at(self._execution.program, owner[:3])

    def reverse_continue(self) -> Moved:
        """Go back to the previous stop: the last place where `continue` would have stopped, or the beginning."""
        return self._seek(-1, "start")

    def _seek(self, target: int, reason: str) -> Moved:
        """Go back to a position, at most to the last stop after it; -1 is the beginning, a stop or not."""
        journal, here, flag = self._execution.journal, self._position(), Flag()
        points = self._stops.breakpoints
        if points.before or points.after:
            with interruptible(flag):
                # From behind: the first stop that is met is the last one that `continue` would have made.
                for index in range(here - 1, max(target, -1), -1):
                    if flag.raised:
                        # Conditions may have taken the device back on the way: it stands where the log ends now.
                        return self._arrive(len(journal.log), here, "interrupted")
                    hit = self._hits(index)
                    if hit is not None:
                        return self._back(index, "breakpoint", here, hit)
        return self._back(target, reason, here)

    def _hits(self, position: int) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
        """Return the breakpoints that stop before and after a position, and count them; None without any.

        Where memory has to be looked at, the device goes back there.
        """
        log, points = self._execution.journal.log, self._stops.breakpoints
        last = None if not position else self._stops.remembered(log[position - 1])
        ahead = log[position]
        before = [each for each in points.before if each.matches(*ahead.owner)]
        concerns = self._stops.concerns
        after = [each for each in points.after if last is not None and (each.looks or concerns(each, last))]
        if not before and not after:
            return None
        watched: tuple[int, ...] = ()
        if any(each.looks or each.number in points.passing for each in (*before, *after)):
            self._execution.journal.back_to(position)
        if last is not None and after:
            watched = self._stops.after(last)
        hit: tuple[int, ...] = ()
        if before:
            if any(each.looks for each in before):
                self._execution.device.ahead()  # what has issued by then has taken its events
            hit = self._stops.before(ahead.owner, ahead.time_ps, self._event_and_time(position)[0])
        return (hit, watched) if hit or watched else None

    def goto(self, where: str) -> Moved:
        """Go to a time ("2.5us": all that completes until then), an event ("#12": up to and with it), or a mark.

        "start" and "end" are the ends of the program. Breakpoints do not stop it.
        """
        journal, text = self._execution.journal, where.strip()
        here = self._position()
        time_ps = parse_time(text)
        if text in self._marks:
            target = self._marks[text]
        elif text == "start":
            target = 0
        # Not known before it is reached: it is run to, past breakpoints.
        elif text == "end":
            return self._forward(None, None)
        elif time_ps is not None:
            if time_ps >= self._execution.time_ps:
                return self._forward(None, time_ps)
            return self._back(min(here, journal.count_until(time_ps)), "goto")
        elif text.startswith("#"):
            number = parse_number(text[1:], "an event number")
            if number < 0:
                raise UsageError(f"{number} is not an event number")
            target = journal.count_before(number + 1) if number < self._execution.events else number + 1
            if number >= self._execution.events:
                return self._forward(number, None)
        elif MARK.fullmatch(text):
            raise NotFoundError(f"no mark {text!r}; there is {', '.join((*self._marks, *ENDS))}")
        else:
            raise UsageError("go where? TIME (2.5us), #EVENT, a mark, start or end")
        if target > here:
            return self._forward(None, None, target)
        return self._back(target, "goto")

    def mark(self, name: str) -> Mark:
        """Name the place where the session stands, for `goto`."""
        if not MARK.fullmatch(name) or name in ENDS:
            raise UsageError(f"{name!r} cannot name a mark: use letters, digits, _ . - and not start or end")
        self._marks[name] = self._position()
        return Mark(name, self._execution.events, self._execution.time_ps)

    def when(self) -> When:
        """Return where the session stands in time, the marks, and how far back is at hand."""
        here, journal = self._execution, self._execution.journal
        position = self._position()
        marks = tuple(
            Mark(name, *self._event_and_time(at)) for name, at in sorted(self._marks.items(), key=lambda item: item[1])
            if at <= len(journal.log)
        )  # fmt: skip
        ahead = len(journal.log) - position
        return When(here.events, here.time_ps, marks, max(journal.records - ahead, 0), journal.nbytes,
                    len(journal.checkpoints) - 1, journal.checkpoint_bytes, journal.budget)  # fmt: skip

    # --- moving ------------------------------------------------------------------------------------------------------

    def _position(self) -> int:
        """Return how many events have been reported; one that is ready but was not returned does not count."""
        return self._execution.journal.count_before(self._execution.events)

    def _event_and_time(self, position: int) -> tuple[int, int]:
        log = self._execution.journal.log
        return (log[position - 1].number + 1, log[position - 1].time_ps) if position else (0, 0)

    def _back(self, target: int, reason: str, here: int | None = None,
              hit: tuple[tuple[int, ...], tuple[int, ...]] = ((), ())) -> Moved:  # fmt: skip
        journal, flag = self._execution.journal, Flag()
        if here is None:
            here = self._position()
        wanted = max(target, 0)
        with interruptible(flag):
            at = journal.back_to(wanted, lambda: flag.raised)
        if at != wanted:
            return self._arrive(at, here, "interrupted")
        if reason == "breakpoint":
            return self._arrive(at, here, "breakpoint" if hit[0] else self._stops.breakpoints.noun_of(hit[1]), *hit)
        if at == 0 and (target < 0 or reason == "line"):
            reason = "start"
        return self._arrive(at, here, reason)

    def _arrive(self, at: int, here: int, reason: str, hit: tuple[int, ...] = (),
                watched: tuple[int, ...] = ()) -> Moved:  # fmt: skip
        self._execution.events, self._execution.time_ps = self._event_and_time(at)
        self._navigator.stand_at(hit)
        return self._moved(reason, here, hit + watched)

    def _forward(self, number: int | None, time_ps: int | None, count: int | None = None) -> Moved:
        """Run to an event, a time, a number of events or the end, past breakpoints."""
        device, flag = self._execution.device, Flag()
        here = at = self._position()
        reason = "goto"
        with interruptible(flag):
            while (count is None or at < count) and (number is None or self._execution.events <= number):
                if flag.raised:
                    reason = "interrupted"
                    break
                if time_ps is not None:
                    due = device.ahead()
                    if due is not None and due[0] > time_ps:
                        break
                event = device.step()
                if event is None:
                    reason = device.outcome
                    break
                self._execution.events, self._execution.time_ps, at = event.number + 1, event.time_ps, at + 1
        self._navigator.stand_at(())
        return self._moved(reason, here, ())

    def _moved(self, reason: str, before: int, hit: tuple[int, ...]) -> Moved:
        here = self._execution
        if reason == "goto" and here.outcome in ("fault", "hang"):
            reason = here.outcome  # the place asked for is where the run ended so
        stop = self._navigator.stopped(reason, (), 0, hit)
        return Moved(reason, here.time_ps, here.events, self._position() - before, hit, stop.ahead, stop.fault,
                     stop.hang, self._stops.breakpoints.errors_of(hit))  # fmt: skip
