"""Moving a device from completion to completion, until something says stop."""

from __future__ import annotations

from collections.abc import Callable

from emulator.dma.queues import DmaQueue
from emulator.events import Event, Region
from emulator.sequencer import Sequencer
from emulator.session.breakpoints import Breakpoint
from emulator.session.errors import UsageError
from emulator.session.interrupt import Flag, interruptible
from emulator.session.names import engine_name, parse_number, parse_time
from emulator.session.results import Ahead, Step, Stop, Write
from emulator.session.stops import Happened, Stops, happened
from formats.errors import NotFoundError

__all__ = ["Traveller", "key_of"]

# What completes next: its time and its engine or queue. Returns why to stop before it, None to go on.
Before = Callable[[int, "Sequencer | DmaQueue"], str | None]
After = Callable[[Event], str | None]


class Traveller(Stops):
    """The half of a session that moves: `time_ps` and `events` count what has been reported."""

    events: int
    time_ps: int
    _reported: int  # completions at the last breakpoint, which `continue` goes on from
    _waited: tuple[int, int]  # events and time where `continue TIME` ended

    def step(self, count: int = 1) -> Stop:
        """Go on by `count` completions; breakpoints on the way stop it, that on the first does not."""
        left = self._count(count)

        def after(event: Event) -> str | None:
            nonlocal left
            left -= 1
            return None if left else "step"

        return self._travel(after, keep=True)

    def stepi(self, engine: str | None = None, core: int | None = None) -> Stop:
        """Go on until an engine, else the focus engine, completes one instruction; the focus moves to it."""
        where = self._engine(engine, core)
        if self.device.cores[where[0]].engines[where[1]].done:
            return self._stop("engine done", (), 0)
        self._focus = where

        def after(event: Event) -> str | None:
            return "step" if (event.core, event.engine) == where and event.kind != "dma" else None

        return self._travel(after)

    def next(self, count: int = 1) -> Stop:
        """Go on until the focus engine has left its source line; without line information this is `stepi`.

        Where that engine is done, the focus moves to one that is not.
        """
        for _ in range(self._count(count)):
            found = self._next()
            if found.reason != "line":
                break
        return found

    def _next(self) -> Stop:
        core, name = self._focus
        if self.device.cores[core].engines[name].done:
            others = [(c, n) for c, n, _ in self.program.streams() if not self.device.cores[c].engines[n].done]
            if others:
                core, name = self._focus = others[0]
        engine = self.device.cores[core].engines[name]
        start = self._line(engine)

        def after(event: Event) -> str | None:
            if event.core != core or event.engine != name:
                return None
            here = self._line(engine)
            return "line" if here is None or here != start else None

        return self._travel(after)

    def _line(self, engine: Sequencer) -> tuple[str | None, int | None] | None:
        loaded = engine.next_loaded
        source = None if loaded is None else self.program.source(engine.core.index, engine.name, loaded.pc)
        return None if source is None else (source.file, source.line)

    def continue_(self, time: str | int | None = None) -> Stop:
        """Go on until a breakpoint, a fault, a hang, the end, or Ctrl-C; at most for a time ("5us", or picoseconds)."""
        if time is None:
            return self._travel(lambda event: None, check_first=True)
        span = parse_time(time) if isinstance(time, str) else time
        if span is None or span < 1:
            raise UsageError(f"{time!r} is no time such as 5us")
        # Where nothing completed in the time of the last one, this one begins where that ended.
        since = self._waited[1] if self._waited[0] == self.events else 0
        until_ps = max(since, self.time_ps) + span
        stop = self._until_time(until_ps)
        if stop.reason == "until":
            self._waited = self.events, until_ps
        return stop

    def _until_time(self, time_ps: int) -> Stop:
        return self._travel(
            lambda event: None, lambda due, owner: "until" if due > time_ps else None, check_first=True
        )

    def until(self, where: str) -> Stop:
        """Go on until a time ("2.5us"), an event ("#12": up to and with it), or a place as in `break_at`."""
        text = where.strip()
        time_ps = parse_time(text)
        if time_ps is not None:
            return self._until_time(time_ps)
        if text.startswith("#"):
            number = parse_number(text[1:], "an event number")
            if number < self.events:
                raise UsageError(f"event #{number} has happened already; the next is #{self.events}")
            return self._travel(lambda event: "until" if event.number >= number else None, check_first=True)
        goal = Breakpoint(0, text, *self.program.resolve(text, self._focus[1]))
        return self._travel(lambda event: None, lambda due, owner: "until" if goal.matches(*key_of(owner)) else None)

    @staticmethod
    def _count(count: int) -> int:
        if count < 1:
            raise UsageError(f"{count} is no count from 1 on")
        return count

    def _travel(
        self, after: After, before: Before | None = None, *, keep: bool = False, check_first: bool = False
    ) -> Stop:
        """Complete one thing after the other until something says stop."""
        device, flag = self.device, Flag()
        steps: list[Step] = []
        last: Event | None = None
        count, reason = 0, ""
        hit: tuple[int, ...] = ()
        watched: tuple[int, ...] = ()
        with interruptible(flag):
            try:
                while not reason:
                    # Where `continue` stopped, it goes on from: a breakpoint is reported once.
                    look = count > 0 or (check_first and device.steps != self._reported)
                    if (look and self._breakpoints.before) or (before is not None and (count or check_first)):
                        due = device.ahead()
                        events = self.events if last is None else last.number + 1
                        if due is None and look and (refused := self._refused()) is not None:
                            hit = self._hit_before((*refused, "instruction"), device.now_ps, events)
                            reason = "breakpoint" if hit else ""
                            if reason:
                                break
                        if due is not None:
                            hit = self._hit_before(key_of(due[1]), due[0], events) if look else ()
                            reason = "breakpoint" if hit else "" if before is None else before(*due) or ""
                            if reason:
                                break
                    event = device.step()
                    if event is None:
                        reason = device.outcome
                        break
                    count, last = count + 1, event
                    # The screen looks at the session between two completions (see `looked_after`).
                    self.events, self.time_ps = event.number + 1, event.time_ps
                    if keep:
                        steps.append(self._step(event))
                    if self._breakpoints.behind:
                        watched = self._hit_behind(self._happened(event))
                    if event.kind in ("fault", "hang"):
                        reason = event.kind
                        continue
                    reason = "watchpoint" if watched else after(event) or ("interrupted" if flag.raised else "")
            except KeyboardInterrupt:
                reason = "interrupted"
                while (event := device.take_pending()) is not None:
                    count, last = count + 1, event
                    if keep:
                        steps.append(self._step(event))
        if hit:
            self._reported = device.steps
        if last is not None:
            self.events, self.time_ps = last.number + 1, last.time_ps
            if not keep:
                steps.append(self._step(last))
        return self._stop(reason, tuple(steps), count, hit)._replace(breakpoints=hit or watched)

    def _happened(self, event: Event) -> Happened:
        """Return an event that has just happened, as breakpoints see it."""
        key = event.core, event.engine, event.pc, "dma" if event.kind == "dma" else "instruction"
        return happened(event, key, event.writes)

    def _stop(self, reason: str, steps: tuple[Step, ...], count: int, hit: tuple[int, ...] = ()) -> Stop:
        ahead = self.ahead()
        if hit and ahead is not None and ahead.kind != "dma":
            self._focus = ahead.core, ahead.engine
        fault = self.device.fault if reason == "fault" else None
        if fault is not None and fault.engine in self.device.cores[0].engines and fault.core >= 0:
            self._focus = fault.core, fault.engine
        return Stop(
            reason, self.time_ps, count, steps, hit, ahead, fault, self.device.hang if reason == "hang" else None
        )

    def _step(self, event: Event) -> Step:
        core, engine, pc = event.core, event.engine, event.pc
        text, source, starts = event.text, self.program.source(core, engine, pc), None
        if event.kind == "dma":
            source = self.program.source(core, event.instruction.engine, pc)
        elif event.kind in ("instruction", "barrier"):
            own = self.program.text(core, engine, pc)
            text = own or text
            starts = self._transfer_text(core, engine, pc)
        elif event.kind == "fault":
            text = event.instruction.message
        elif event.kind == "hang":
            text = event.instruction.text().split("\n")[0]
        return Step(
            event.number,
            event.time_ps,
            event.issued_ps,
            core,
            engine,
            pc,
            event.kind,
            text,
            source,
            event.semaphores,
            tuple(map(self._write, event.writes)),
            starts,
        )

    def _write(self, region: Region) -> Write:
        strided = region.pattern is not None
        if region.space != "HBM":
            return Write(
                region.space, region.core, region.first, region.partitions, region.byte, region.nbytes, strided
            )
        found = self.device.hbm.find(region.byte)
        name, start = ("", 0) if found is None else (found.name, found.address)
        return Write("HBM", None, None, 1, region.byte, region.nbytes, strided, name, region.byte - start)

    def _transfer_text(self, core: int, engine: str, pc: int) -> str | None:
        pending = [
            t for q in self.device.queues if q.core == core for t in q.pending if t.engine == engine and t.pc == pc
        ]
        return f"{pending[-1].name}: {pending[-1].text}" if pending else None

    def ahead(self) -> Ahead | None:
        """Return what completes next, None at the end; words may issue, nothing completes."""
        due = None if self.device.finished else self.device.ahead()
        refused = self._refused()
        if refused is not None:
            return Ahead(
                *refused, "instruction", self.program.text(*refused), self.program.source(*refused), self.device.now_ps
            )
        if due is None:
            return None
        time_ps, owner = due
        core, name, pc, kind = key_of(owner)
        if isinstance(owner, DmaQueue):
            transfer = owner.pending[0]
            return Ahead(core, name, pc, kind, transfer.text, self.program.source(core, transfer.engine, pc), time_ps)
        return Ahead(
            core, name, pc, kind, self.program.text(core, name, pc), self.program.source(core, name, pc), time_ps
        )

    def _refused(self) -> tuple[int, str, int] | None:
        """Return the word whose fault at issue has not been reported yet: a breakpoint on it still comes first."""
        fault = self.device.fault
        if fault is None or not self.device.unreported or not 0 <= fault.core < len(self.device.cores):
            return None
        engine = self.device.cores[fault.core].engines.get(fault.engine)
        if engine is None or engine.position >= engine.count or engine.words[engine.position].pc != fault.pc:
            return None
        return fault.core, fault.engine, fault.pc

    @property
    def outcome(self) -> str:
        """Return "running", "finished", "fault" or "hang"; what no command has reported yet is still to come."""
        return "running" if self.device.unreported else self.device.outcome

    def _engine(self, engine: str | None, core: int | None) -> tuple[int, str]:
        number = self._focus[0] if core is None else core
        if not 0 <= number < len(self.device.cores):
            raise NotFoundError(f"no core {number}; there are {len(self.device.cores)}")
        return number, self._focus[1] if engine is None else engine_name(engine)


def key_of(owner: Sequencer | DmaQueue) -> tuple[int, str, int, str]:
    """Return core, engine or queue, pc and kind of what an engine or queue completes next."""
    if isinstance(owner, DmaQueue):
        return owner.core, owner.name, owner.pending[0].pc, "dma"
    return owner.core.index, owner.name, owner.in_flight[0].loaded.pc, "instruction"
