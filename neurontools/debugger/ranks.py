"""Sessions of the ranks of one machine: commands go to one of them, and moving it moves all.

The machine goes on event by event, the earliest first, so that a breakpoint of any rank stops all of them where it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from emulator.dma.collectives import Arrived, Call
from emulator.machine.ranks.devices import OthersFirst, RankDevice
from emulator.machine.ranks.explain import explain, waits_of
from emulator.machine.ranks.machine import RankedMachine
from emulator.runtime.ranks import Ranks, inputs_by_rank, new_ranks
from emulator.settings import Settings
from formats.errors import NotFoundError
from formats.neff import Neff
from neurontools.debugger.execution import LiveExecution, key_of
from neurontools.debugger.navigator import Navigator
from neurontools.debugger.rank_checks import CheckedMachine, need_no_edits
from neurontools.debugger.rank_history import RankHistory
from neurontools.debugger.rank_replay import RankReplay
from neurontools.debugger.rank_results import RankRow, RanksWaiting
from neurontools.debugger.results import Stop
from neurontools.debugger.session import Session
from neurontools.debugger.stops import Stops

if TYPE_CHECKING:
    from emulator.device import Device
    from emulator.events import Event
    from neurontools.debugger.live_checks import LiveChecks

__all__ = ["RankSessions"]

# Later than any time.
_NEVER = 1 << 62


class _StoppedElsewhere(Exception):  # noqa: N818  no error: it ends a move of another rank
    """Ends a move: a rank that was moved along has come to a stop."""

    def __init__(self, rank: int, reason: str, numbers: tuple[int, ...], event: Event | None) -> None:
        super().__init__(rank)
        self.rank, self.reason, self.numbers, self.event = rank, reason, numbers, event


class RankSessions:
    """The sessions of all ranks that run a program, over one machine; `selected` is the one that commands go to.

    `neffs` and `inputs` are of every rank, None where a rank runs no program. Errors as of `execute_ranks`.
    """

    def __init__(
        self, neffs: Sequence[Neff | None], inputs: Sequence[Mapping[str, Any]], where: Ranks,
        settings: Settings, journal_bytes: int,
    ) -> None:  # fmt: skip
        self._neffs, self._where, self._settings = neffs, where, settings
        self._inputs = inputs_by_rank(neffs, inputs)
        self._moving = False
        self._mover: Navigator | None = None
        self.replay = RankReplay(self)
        self._checked: CheckedMachine | None = None
        self.machine = self._begin()
        self.sessions: dict[int, Session] = {}
        for rank, (neff, given) in enumerate(zip(neffs, self._inputs, strict=True)):
            if neff is not None:
                self.sessions[rank] = Session(
                    neff, given, target=self.machine.machine.instance.target, seed=settings.seed,
                    timing=settings.timing, journal_bytes=journal_bytes // len(neffs), act=settings.act,
                    among=_Seat(self, rank),
                )  # fmt: skip
        self.selected = min(self.sessions)
        # Displays, names and commands are the person's, not a rank's.
        scripting = self.session.scripting
        for session in self.sessions.values():
            session.scripting = scripting

    def _begin(self) -> RankedMachine:
        machine = new_ranks(self._neffs, self._where, self._settings)
        machine.load(self._neffs)
        for device, given in zip(machine.devices, self._inputs, strict=True):
            device.around = self
            if device.model is not None:
                device.set_inputs(given)
        return machine

    @property
    def session(self) -> Session:
        """Return the session that commands go to."""
        return self.sessions[self.selected]

    def select(self, rank: int) -> None:
        """Let commands go to a rank; NotFoundError where there is no such one, or it runs no program."""
        if not 0 <= rank < self.machine.ranks:
            raise NotFoundError(f"no rank {rank}; there are 0 to {self.machine.ranks - 1}")
        if rank not in self.sessions:
            raise NotFoundError(f"rank {rank} runs no program: its script launched none")
        self.selected = rank

    def restart(self) -> None:
        """Begin again on a fresh machine; breakpoints stay."""
        recorded = [session for session in self.sessions.values() if session.inspector.recorded]
        self.machine = self._begin()
        for session in self.sessions.values():
            Navigator.restart(session.navigator)
        for session in recorded:
            session.record()

    def checks(self, rank: int, tools: tuple[str, ...]) -> LiveChecks:
        """Return the checks of a rank; asked for others than are running, all ranks of another machine get them."""
        for session in self.sessions.values():
            log = session.need_live().log
            need_no_edits(() if log is None else log.edits)
        if self._checked is None or self._checked.ranks[rank].tools != tools:
            machine = self._begin()
            for device in machine.devices:
                device.around = machine
            self._checked = CheckedMachine(machine, dict.fromkeys(self.sessions, tools))
        return self._checked.ranks[rank]

    # --- what the machine is to its devices --------------------------------------------------------------------------

    def begin(self, rank: int, call: Call, now_ps: int, arrived: Arrived) -> None:
        """Take a collective of a rank over."""
        self.machine.begin(rank, call, now_ps, arrived)

    def catch_up(self, device: RankDevice) -> None:
        """Bring everything else to the time of a device's next event, or until it has one; stop where a rank stops."""
        engine = self.machine.engine
        while True:
            at = device.next_ps
            last = _NEVER if at is None else at
            others = ((due, other.rank) for other in self.machine.devices
                      if other is not device and (due := other.next_ps) is not None)  # fmt: skip
            first, rank = min(others, default=(_NEVER + 1, -1))
            carried = engine.next_ps
            carries = carried is not None and carried <= min(first, last)
            # Where times are equal ranks go in their order, whichever is stepped: the same order of events always.
            if not carries and (first, rank) > (last, device.rank):
                return
            if not self._moving:
                # So far nothing that happens elsewhere can reach this rank.
                free = min(first + self.machine.trigger_ps, _NEVER if carried is None else carried)
                if last < free:
                    return
                raise OthersFirst
            # The mover asks only between its own completions, and may wait long for one.
            if self._mover is not None and self._mover.flag.raised:
                raise _StoppedElsewhere(device.rank, "interrupted", (), None)
            if carries:
                engine.step()
            else:
                self._go_on(rank)

    def _go_on(self, rank: int) -> None:
        """Carry out what is due next on a rank, unless it stops before that."""
        device, session = self.machine.devices[rank], self.sessions[rank]
        execution, navigator = session.need_live(), session.navigator
        points, stops = session.breakpoints, navigator.stops
        due = device.completes_next()
        if due is not None and points.before and navigator.reported != device.steps:
            hit = stops.before(key_of(due[1]), due[0], execution.events)
            if hit:
                navigator.stand_at(hit)
                raise _StoppedElsewhere(rank, "breakpoint", hit, None)
        found: _StoppedElsewhere | None = None
        for event in device.go_on():
            execution.events, execution.time_ps = event.number + 1, event.time_ps
            numbers = stops.after(stops.happened(event)) if points.after else ()
            if numbers or event.kind in ("fault", "hang"):
                reason = event.kind if event.kind in ("fault", "hang") else points.noun_of(numbers)
                found = _StoppedElsewhere(rank, reason, numbers, event)
        if found is not None:
            raise found

    # --- moving ------------------------------------------------------------------------------------------------------

    @contextmanager
    def moving(self, moves: bool) -> Iterator[None]:
        """Let other ranks move, or stand, when one is moved or looked at."""
        before, self._moving = self._moving, moves
        try:
            yield
        finally:
            self._moving = before

    def travelled(self, rank: int, move: Callable[[], Stop]) -> Stop:
        """Return how a move of a rank ended, wherever it did; that rank is selected."""
        self._mover = self.sessions[rank].navigator
        try:
            with self.moving(True):
                stop = move()
        except _StoppedElsewhere as elsewhere:
            rank = elsewhere.rank
            stop = self.sessions[rank].navigator.met(elsewhere.reason, elsewhere.numbers, elsewhere.event)
        finally:
            self._mover = None
        self.selected = rank
        self.agree(stop.breakpoints)
        return stop._replace(rank=rank, ranks=self._settled())

    def still_running(self) -> Session | None:
        """Return the session of the first rank that has not ended, None where all have."""
        running = (each for each in self.sessions.values() if each.outcome == "running")
        return next(running, None)

    def _settled(self) -> Any:
        machine = self.machine
        if machine.engine.next_ps is None and all(device.next_ps is None for device in machine.devices):
            machine.settle()
        return machine.hang

    def agree(self, numbers: tuple[int, ...]) -> None:
        """Let a breakpoint that went away, or was disabled, where it stopped do so on every rank."""
        here = {each.number: each.enabled for each in self.session.breakpoints}
        for session in self.sessions.values():
            own = {each.number: each.enabled for each in session.breakpoints}
            for number in numbers:
                if number in own and number not in here:
                    session.breakpoints.delete(number)
                elif own.get(number) and not here[number]:
                    session.breakpoints.disable(number)

    # --- looking -----------------------------------------------------------------------------------------------------

    def waiting(self) -> RanksWaiting:
        """Return which ranks are in collectives, and why, where nothing moves any more."""
        return RanksWaiting(tuple(waits_of(self.machine)), self.machine.hang or self._still())

    def _still(self) -> Any:
        quiet = self.machine.engine.next_ps is None and all(each.next_ps is None for each in self.machine.devices)
        return explain(self.machine) if quiet else None

    def rows(self) -> tuple[RankRow, ...]:
        """Return every rank: how it stands, and what holds it up."""
        calls = {wait.rank: wait for wait in reversed(waits_of(self.machine))}
        return tuple(self._row(rank, calls.get(rank)) for rank in range(self.machine.ranks))

    def _row(self, rank: int, call: Any) -> RankRow:
        session = self.sessions.get(rank)
        if session is None:
            return RankRow(rank, False, "absent", 0, 0, 0, 0, 0, 0, "", 0, None, "")
        rows = session.info_engines()
        states = [row.state for row in rows]
        waits = sum(state == "wait" for state in states)
        focus = next(row for row in rows if row.focus)
        at = next((row for row in rows if row.state == "wait"), focus)
        engine, pc, why = at.engine, at.pc, at.waits_for or ""
        if call is not None:
            engine, pc = call.engine, call.pc
            whom = f"rank{'s' if len(call.waits_for) > 1 else ''} {', '.join(map(str, call.waits_for[:6]))}"
            why = f"{call.what}: {whom if call.waits_for else 'all have come'}"
        source = session.program.source(at.core, engine, pc)
        return RankRow(rank, rank == self.selected, session.outcome, session.time_ps, session.events,
                       states.count("run"), waits, states.count("done"), at.core, engine, pc, source, why,
                       "" if call is None else call.what, () if call is None else call.waits_for)  # fmt: skip


class _Seat:
    """The place of one rank; see `Among`."""

    def __init__(self, ranks: RankSessions, rank: int) -> None:
        self._ranks, self.rank = ranks, rank
        self.select, self.rows, self.waiting = ranks.select, ranks.rows, ranks.waiting
        self.checks = partial(ranks.checks, rank)
        self.still = partial(ranks.moving, False)

    @property
    def selected(self) -> int:
        """Return the rank that commands go to."""
        return self._ranks.selected

    @property
    def sessions(self) -> Mapping[int, Session]:
        """Return the sessions of all ranks."""
        return self._ranks.sessions

    def device(self) -> Device:
        """Return the device of the rank in the machine as it is now."""
        return self._ranks.machine.devices[self.rank]

    def navigator(self, execution: LiveExecution, stops: Stops) -> Navigator:
        """Return what goes forward, with all other ranks."""
        return _RankNavigator(self._ranks, self.rank, execution, stops)

    def history(self, execution: LiveExecution, navigator: Navigator, stops: Stops) -> RankHistory:
        """Return what goes back, with all other ranks."""
        return RankHistory(self._ranks, self.rank, execution, navigator, stops)


class _RankNavigator(Navigator):
    """Goes forward with the other ranks, and stops where one of them does."""

    def __init__(self, ranks: RankSessions, rank: int, execution: LiveExecution, stops: Stops) -> None:
        super().__init__(execution, stops)
        self._ranks, self._rank = ranks, rank

    def restart(self) -> None:
        """Begin again with all ranks."""
        self._ranks.restart()

    def continue_(self, time: str | int | None = None) -> Stop:
        """Run as `Navigator.continue_`; where this rank has ended, the others go on."""
        stop = super().continue_(time)
        while time is None and stop.reason == "finished" and (other := self._ranks.still_running()) is not None:
            stop = Navigator.continue_(other.navigator)
        return stop

    def _travel(self, *given: Any, **named: Any) -> Stop:
        return self._ranks.travelled(self._rank, lambda: Navigator._travel(self, *given, **named))

    def stopped(self, reason: str, steps: Any, count: int, hit: tuple[int, ...] = ()) -> Stop:
        """Return how a command ended: looking at what comes next moves no other rank."""
        with self._ranks.moving(False):
            return super().stopped(reason, steps, count, hit)._replace(rank=self._rank)
