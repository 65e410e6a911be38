"""Moving a program from completion to completion until something stops it."""

from __future__ import annotations

from collections.abc import Callable

from emulator.dma.queues import DmaQueue
from emulator.events import Event
from emulator.sequencer import Sequencer
from formats.times import duration
from neurontools.debugger.breakpoint import Breakpoint
from neurontools.debugger.errors import UsageError
from neurontools.debugger.execution import LiveExecution, key_of
from neurontools.debugger.frames import Standing, need_call, standing_at
from neurontools.debugger.interrupt import Flag, interruptible
from neurontools.debugger.names import parse_number, parse_time, positive
from neurontools.debugger.results import Step, Stop
from neurontools.debugger.stops import Stops

__all__ = ["Navigator"]

# What completes next: its time and its engine or queue. Returns why to stop before it, None to go on.
Before = Callable[[int, "Sequencer | DmaQueue"], str | None]
After = Callable[[Event], str | None]


class Navigator:
    """Goes forward. `reported` counts the completions at the last breakpoint, which `continue` goes on from."""

    def __init__(self, execution: LiveExecution, stops: Stops) -> None:
        self._execution, self.stops = execution, stops
        self.reported = -1
        self.flag = Flag()  # of the move under way
        self._waited = -1, 0  # events and time where `continue TIME` ended
        self._line: tuple[int, str] | None = None  # events and line of the breakpoint that stopped last

    def restart(self) -> None:
        """Begin again on a fresh device with the same inputs."""
        self._execution.restart()
        self.stand_at(())
        self._waited = -1, 0

    def stand_at(self, hit: tuple[int, ...]) -> None:
        """Remember the breakpoints that the program stands before: `continue` goes on from them, `next` over a line."""
        here, lines = self._execution, self.stops.breakpoints.lines_of(hit)
        self.reported = here.device.steps if hit else -1
        self._line = (here.events, lines[0]) if lines else None

    def step(self, count: int = 1) -> Stop:
        """Advance by `count` completions; breakpoints on the way stop it, except one on the first."""
        left = positive(count)

        def after(event: Event) -> str | None:
            nonlocal left
            left -= 1
            return None if left else "step"

        return self._travel(after, keep=True)

    def stepi(self, engine: str | None = None, core: int | None = None) -> Stop:
        """Run until an engine, else the focus engine, completes one instruction; the focus moves to it."""
        where = self._execution.engine(engine, core)
        if self._execution.device.cores[where[0]].engines[where[1]].done:
            return self.stopped("engine done", (), 0)
        self._execution.focus = where

        def after(event: Event) -> str | None:
            return "step" if (event.core, event.engine) == where and event.kind != "dma" else None

        return self._travel(after)

    def next(self, count: int = 1, *, into: bool = False) -> Stop:
        """Run until the focus engine has left the present turn of its source line, over what functions it calls do.

        With `into` each call that a function of the kernel makes counts.

        Without line information this is `stepi`. Where that engine is done, the focus moves to one that is not.
        """
        for _ in range(positive(count)):
            engine, start = self._begin()
            depth = len(start.visits) if into and start is not None else self._depth(start)

            def after(event: Event, engine: Sequencer = engine, start: Standing | None = start,
                      depth: int = depth) -> str | None:  # fmt: skip
                if (event.core, event.engine) != (engine.core.index, engine.name):
                    return None
                here = self._standing(engine)
                # A lower pc: a branch led back, to another turn of a loop on the device, though the line is the same.
                if here is None or start is None or here.pc < start.pc:
                    return "line"
                deeper = into and len(here.visits) != depth
                return None if start.same_line(here, depth) and not deeper else "line"

            found = self._travel(after)
            if found.reason != "line":
                break
        return found

    def finish(self) -> Stop:
        """Run until the focus engine is behind the call of the kernel's function that it is in; UsageError in none."""
        engine, start = self._begin()
        visits = need_call(start, engine.done)
        caller = visits[: self._depth(start) - 1] or visits[:1]

        def after(event: Event) -> str | None:
            if (event.core, event.engine) != (engine.core.index, engine.name):
                return None
            here = self._standing(engine)
            return "call done" if here is None or here.visits[: len(caller)] != caller else None

        return self._travel(after)

    def until_later(self) -> Stop:
        """Run until the focus engine comes to a later line, out of the loops that are left; as `until` without a place.

        It stops as well where the engine leaves the function that it is in.
        """
        engine, start = self._begin()
        depth = self._depth(start)

        def after(event: Event) -> str | None:
            if (event.core, event.engine) != (engine.core.index, engine.name):
                return None
            here = self._standing(engine)
            if here is None or start is None:
                return "line"
            if start.visits and here.visits:
                if len(here.visits) < depth or here.visits[: depth - 1] != start.visits[: depth - 1]:
                    return "line"
                known = self._execution.program.visits(engine.core.index)
                assert known is not None
                first, now = known.site(start.visits[depth - 1]), known.site(here.visits[depth - 1])
                return "line" if now.file != first.file or now.line > first.line else None
            return "line" if here.file != start.file or (here.line or 0) > (start.line or 0) else None

        return self._travel(after)

    def _begin(self) -> tuple[Sequencer, Standing | None]:
        """Return the focus engine, or one that is not done where it is, and where it stands."""
        here = self._execution
        cores = here.device.cores
        core, name = here.focus
        if cores[core].engines[name].done:
            others = [(c, n) for c, n, _ in here.program.streams() if not cores[c].engines[n].done]
            if others:
                core, name = here.focus = others[0]
        engine = cores[core].engines[name]
        return engine, self._standing(engine)

    def _depth(self, start: Standing | None) -> int:
        """Return how deep the line is that the debugger stands at: a breakpoint may be on that of a call."""
        whole = 0 if start is None else len(start.visits)
        if start is None or self._line is None or self._line[0] != self._execution.events:
            return whole
        known = self._execution.program.visits(self._execution.focus[0])
        for depth, visit in enumerate(start.visits, 1):
            site = None if known is None else known.site(visit)
            if site is not None and self._line[1] == f"{site.file}:{site.line}":
                return depth
        return whole

    def _standing(self, engine: Sequencer) -> Standing | None:
        loaded = engine.next_loaded
        if loaded is None:
            return None
        return standing_at(self._execution.program, (engine.core.index, engine.name, loaded.pc))

    def continue_(self, time: str | int | None = None) -> Stop:
        """Run until a breakpoint, a fault, a hang, the end, or Ctrl-C; at most for a time ("5us", or picoseconds)."""
        if time is None:
            return self._travel(lambda event: None, check_first=True)
        span = parse_time(time) if isinstance(time, str) else time
        if span is None or span < 1:
            raise UsageError(f"{time!r} is not a time such as 5us")
        # Where nothing completed in the time of the last one, this one begins where that ended.
        since = self._waited[1] if self._waited[0] == self._execution.events else 0
        until_ps = max(since, self._execution.time_ps) + span
        stop = self._until_time(until_ps)
        if stop.reason == "until":
            self._waited = self._execution.events, until_ps
        return stop

    def _until_time(self, time_ps: int) -> Stop:
        return self._travel(lambda event: None, lambda due, owner: "until" if due > time_ps else None, check_first=True)

    def until(self, where: str) -> Stop:
        """Run until a time ("2.5us"), an event ("#12": up to and with it), or a place as in `break_at`.

        A line is reached in every turn of the loops around it.
        """
        text = where.strip()
        time_ps = parse_time(text)
        if time_ps is not None:
            if time_ps < (now_ps := self._execution.time_ps):
                raise UsageError(f"{text} has passed already, it is {duration(now_ps)}; goto goes back")
            return self._until_time(time_ps)
        if text.startswith("#"):
            number, here = parse_number(text[1:], "an event number"), self._execution.events
            if number < here:
                raise UsageError(f"event #{number} has happened already; the next is #{here}")
            return self._travel(lambda event: "until" if event.number >= number else None, check_first=True)
        goal = Breakpoint(0, text, *self._execution.program.resolve(text, self._execution.focus[1]))
        return self._travel(lambda event: None, lambda due, owner: "until" if goal.matches(*key_of(owner)) else None)

    def _travel(
        self, after: After, before: Before | None = None, *, keep: bool = False, check_first: bool = False
    ) -> Stop:
        """Complete one thing after another until something stops it."""
        execution, stops, flag = self._execution, self.stops, Flag()
        self.flag = flag
        device, points = execution.device, stops.breakpoints
        steps: list[Step] = []
        last: Event | None = None
        count, reason = 0, ""
        hit: tuple[int, ...] = ()
        watched: tuple[int, ...] = ()
        with interruptible(flag):
            try:
                while not reason:
                    # `continue` goes on from where it stopped: a breakpoint is reported once.
                    look = count > 0 or (check_first and device.steps != self.reported)
                    # What comes next costs a look at every queue and engine: not asked where nothing stops before it.
                    if (look and points.before) or (before is not None and (count or check_first)):
                        due = device.ahead()
                        if due is not None:
                            hit = stops.before(key_of(due[1]), due[0], execution.events) if look else ()
                            reason = "breakpoint" if hit else "" if before is None else before(*due) or ""
                        elif look and (refused := execution.refused()) is not None:
                            hit = stops.before((*refused, "instruction"), device.now_ps, execution.events)
                            reason = "breakpoint" if hit else ""
                        if reason:
                            break
                    event = device.step()
                    if event is None:
                        reason = device.outcome
                        break
                    count, last = count + 1, event
                    # The screen looks at the session between two completions (see `looked_after`).
                    execution.events, execution.time_ps = event.number + 1, event.time_ps
                    if keep:
                        steps.append(self._step(event))
                    if points.after:
                        watched = stops.after(stops.happened(event))
                    if event.kind in ("fault", "hang"):
                        reason = event.kind
                        continue
                    met = points.noun_of(watched) if watched else after(event)
                    reason = met or ("interrupted" if flag.raised else "")
            except KeyboardInterrupt:
                reason = "interrupted"
                # It came inside a step: what has completed there is in the journal, and has to be reported too.
                while (event := device.take_pending()) is not None:
                    count, last = count + 1, event
                    if keep:
                        steps.append(self._step(event))
        if last is not None:
            execution.events, execution.time_ps = last.number + 1, last.time_ps
            if not keep:
                steps.append(self._step(last))
        if hit:
            self.stand_at(hit)
        numbers = hit or watched
        errors = points.errors_of(numbers)
        return self.stopped(reason, tuple(steps), count, hit)._replace(breakpoints=numbers, errors=errors)

    def met(self, reason: str, numbers: tuple[int, ...], event: Event | None) -> Stop:
        """Return how a move ended that something else made: before a breakpoint, or after an event."""
        steps = () if event is None else (self._step(event),)
        found = self.stopped(reason, steps, len(steps), () if event is not None else numbers)
        return found._replace(breakpoints=numbers, errors=self.stops.breakpoints.errors_of(numbers))

    def stopped(self, reason: str, steps: tuple[Step, ...], count: int, hit: tuple[int, ...] = ()) -> Stop:
        """Return how a command ended, with the focus on what a breakpoint or fault stopped at."""
        here = self._execution
        ahead = here.ahead()
        if hit and ahead is not None and ahead.kind != "dma":
            here.focus = ahead.core, ahead.engine
        fault = here.device.fault if reason == "fault" else None
        # A fault may be of a queue, or of none: then the focus stays.
        if fault is not None and fault.engine in here.device.cores[0].engines and fault.core >= 0:
            here.focus = fault.core, fault.engine
        hang = here.device.hang if reason == "hang" else None
        return Stop(reason, here.time_ps, count, steps, hit, ahead, fault, hang)

    def _step(self, event: Event) -> Step:
        program = self._execution.program
        core, engine, pc = event.core, event.engine, event.pc
        text, source, starts = event.text, program.source(core, engine, pc), None
        if event.kind == "dma":
            source = program.source(core, event.instruction.engine, pc)
        elif event.kind in ("instruction", "barrier"):
            text = program.text(core, engine, pc) or text
            starts = self._transfer_text(core, engine, pc)
        elif event.kind == "fault":
            text = event.instruction.message
        elif event.kind == "hang":
            text = event.instruction.text().split("\n")[0]
        writes = tuple(self._execution.write_of(region) for region in event.writes)
        owner = event.instruction.engine if event.kind == "dma" else engine
        # A transfer may be of a turn of the loop that its engine has left since.
        before = -1 if event.kind == "dma" else event.number
        iteration = (
            program.iteration(core, owner, pc, before) if event.kind in ("instruction", "barrier", "dma") else ()
        )
        return Step(event.number, event.time_ps, event.issued_ps, core, engine, pc, event.kind, text, source,
                    event.semaphores, writes, starts, iteration)  # fmt: skip

    def _transfer_text(self, core: int, engine: str, pc: int) -> str | None:
        queues = self._execution.device.queues
        pending = [t for q in queues if q.core == core for t in q.pending if t.engine == engine and t.pc == pc]
        return f"{pending[-1].name}: {pending[-1].text}" if pending else None
