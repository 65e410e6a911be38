"""The DMA engines of one core: those that are given the same work share one plan, as long as they go the same way."""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import ClassVar

from emulator.dma.arbitration import Plan
from emulator.dma.queues import DmaQueue
from emulator.dma.quiet import Quiet
from emulator.dma.rings import Ring
from emulator.dma.work import Apart, Piece, Pieces, PlanState, Run, Shown, within
from formats.named_tuple import NamedTuple
from formats.neuron_core import DMA_RINGS

__all__ = ["DmaEngines", "DmaEnginesState", "Stretch"]

_made = tuple.__new__  # a named tuple in half the time
_PLANNED = 8  # transfers for which there are plans at least: to make them takes as long as to plan a few


class Stretch(NamedTuple):
    """Engines `first` to `last` that take the same part of a transfer: `packets` of `packet_ps`, the last `last_ps`."""

    first: int
    last: int
    packets: int
    packet_ps: int
    last_ps: int


class DmaEnginesState(NamedTuple):
    """The state of a core's DMA engines: how long each was busy before its plan, the plans, until when these differ."""

    busy_before: tuple[int, ...]
    plans: tuple[PlanState, ...]
    apart_ps: int


class DmaEngines:
    """The engines of a core: their rings, `plans` in the order of their engines, each of some neighbours.

    Engines with little to do need no plans (`quiet`); they have them from when two transfers meet a third until all is
    over, and for good once somebody has asked for their state.
    """

    NOT_STATE: ClassVar = {
        "core": "wiring", "_count": "wiring", "_owners": "wiring", "_rings": "wiring",
        "quiet": "in the plans for whoever asks for the state",
        "_is_asked": "whether somebody asks for the state",
        **dict.fromkeys(("_changed", "_in_row", "_planned", "_ring", "_sums"), "what was given since there are plans"),
    }  # fmt: skip

    def __init__(self, core: int, count: int) -> None:
        self.core = core
        self._count = count
        self._rings: dict[int, tuple[Ring, ...]] = {}  # by number, of those that somebody has looked at
        self._owners: dict[int, DmaQueue] = {}
        self.busy_before = [0] * count
        self.plans = [Plan(0, count - 1)]
        self.quiet: Quiet | None = Quiet([DMA_RINGS - 1] * count)
        self._is_asked = False
        self._sums: dict[int, int] = {}  # of when engines are through with a transfer, while there are plans
        self._changed: set[int] | None = None  # by what was given last, while there are plans
        self._planned = self._in_row = 0
        self._ring = -1
        self._apart_ps = 0  # until when plans are not expected to be alike

    def give_rings(self, queue: DmaQueue) -> None:
        """Let a queue own the rings of its number on as many engines as it has rings."""
        self._owners[queue.ring] = queue
        for each in self._rings.get(queue.ring, ())[: queue.num_queues]:
            each.owner = queue

    def numbered(self, ring: int) -> tuple[Ring, ...]:
        """Return the ring of a number of each engine."""
        found = self._rings.get(ring)
        if found is None:
            owner = self._owners.get(ring)
            owned = 0 if owner is None else owner.num_queues
            found = self._rings[ring] = tuple(
                [Ring(self.core, engine, ring, owner if engine < owned else None) for engine in range(self._count)]
            )
        return found

    @property
    def rings(self) -> tuple[tuple[Ring, ...], ...]:
        """Return the rings of each engine by their numbers."""
        return tuple(zip(*map(self.numbered, range(DMA_RINGS)), strict=True))

    @property
    def busy_ps(self) -> list[int]:
        """Return how long what each engine was given moves data."""
        if self.quiet is not None:
            return [before + more for before, more in zip(self.busy_before, self.quiet.busy_ps(), strict=True)]
        return [before + self.plans[self._holder(engine)].busy_ps for engine, before in enumerate(self.busy_before)]

    def give(
        self, transfer: int, ring: int, ready_ps: int, step_ps: int, stretches: tuple[Stretch, ...], fill_ps: int,
        now_ps: int,
    ) -> bool:  # fmt: skip
        """Hand out a transfer that is ready on engine 0, and a step later on each further one.

        It is not ready before `now_ps`, nor is what will be handed out later: what is over by then is over for good.
        Return whether spans of others may have to be worked out again.
        """
        if self.quiet is None and not self._is_asked:
            self._planned += 1
            self._in_row = self._in_row + 1 if ring == self._ring else 0
            self._ring = ring
            if self._planned > _PLANNED:
                if self.plans[0].is_over_before(now_ps) and self._are_over(now_ps):
                    self._be_quiet()
                elif self._in_row > _PLANNED and len(self.plans) == 1:
                    self._be_quiet_behind(now_ps)
        if self.quiet is not None:
            if len(stretches) == 1:
                _, last, packets, packet_ps, last_ps = stretches[0]
                met = self.quiet.give(
                    transfer, ring, ready_ps, step_ps, last, packets, packet_ps, last_ps, fill_ps, now_ps
                )
                if met is not None:
                    return met
            self._make_plans(now_ps)
        if len(self.plans) > 1 and self._apart_ps < now_ps:
            self._join(now_ps)
        moved = False
        changed: set[int] | None = set()
        plans = self.plans
        for first, last, packets, packet_ps, last_ps in stretches:
            run = _made(Run, (transfer, ring, ready_ps, packets, packet_ps, last_ps, fill_ps, step_ps))
            index = 0 if plans[0].first == first and plans[-1].last == last else self._cut(first, last)
            while index < len(plans) and plans[index].first <= last:
                plan = plans[index]
                try:
                    if plan.give(run, now_ps):
                        moved = True
                        if not plan.taken_back:
                            changed = None
                        elif changed is not None:
                            changed.update(plan.taken_back)
                except Apart as apart:
                    self._part(index, *apart.engines)
                else:
                    index += 1
        self._changed = changed
        if moved:
            self._sums.clear()
        return moved

    @property
    def changed(self) -> Container[int] | None:
        """Return those whose times were changed by what was handed out last, None where all may be."""
        return self._changed if self.quiet is None else self.quiet.changed

    def times(self, transfer: int, engines: int) -> tuple[int, Iterable[Piece]]:
        """Return when the last of so many engines is through with a transfer, and the pieces of all."""
        if self.quiet is not None:
            served = self.quiet.served.get(transfer)
            if served is not None:
                return served.end_ps, served
        end, parts = 0, self._parts(transfer, engines)
        for begin, final, pieces in parts:
            for first, last, _, _, (at, step) in pieces:
                if step > 0:
                    at += step * (last if last < final else final)  # noqa: FURB136  a call takes twice as long
                elif step:
                    at += step * max(first, begin)
                if at > end and first <= final and last >= begin:
                    end = at
        return end, Pieces(parts)

    def pieces(self, transfer: int, engines: int) -> tuple[Piece, ...]:
        """Return when the first so many engines serve a transfer."""
        if self.quiet is not None:
            served = self.quiet.served.get(transfer)
            if served is not None:
                return tuple(served)
        return tuple(Pieces(self._parts(transfer, engines)))

    def is_behind(self, transfer: int, ring: int, engines: int) -> bool:
        """Return whether `soonest_ps` tells something of a transfer, which is on so many engines."""
        return self.quiet is None and engines == self._count and self.plans[0].is_behind(transfer, ring)

    def soonest_ps(self, transfer: int, ring: int) -> int:
        """Return a time that engines do not begin a transfer before, on average; -1 where plans may go as far as that.

        It is on all of them.
        """
        total, plans = 0, self.plans
        for plan in plans:
            if not plan.is_behind(transfer, ring):
                return -1
            at, step = plan.time
            many = plan.last - plan.first + 1
            total += many * at
            if step:
                total += step * (plan.first + plan.last) * many // 2
        return total // self._count

    def summed_ends_ps(self, transfer: int, engines: int) -> int:
        """Return the sum of when each of the first so many engines is through with a transfer, as their plans say."""
        total = self._sums.get(transfer)
        if total is not None:
            return total
        total = 0
        for begin, final, pieces in self._parts(transfer, engines):
            for first, last, _, _, (at, step) in pieces:
                if first < begin:
                    first = begin
                if last > final:
                    last = final
                if first <= last:
                    many = last - first + 1
                    total += many * at + step * (first + last) * many // 2
        self._sums[transfer] = total
        return total

    def _parts(self, transfer: int, engines: int) -> list[Shown]:
        """Return what plans of the first so many engines have of a transfer, worked out as far as that."""
        plans = self.plans
        parts: list[Shown] = []
        index = 0
        while index < len(plans):
            plan = plans[index]
            pieces = plan.spans.get(transfer)
            if pieces is None:
                if plan.first >= engines:
                    break
                # Where the engines go different ways, the other part stands behind this one, and its turn is next.
                try:
                    plan.work_out(transfer)
                except Apart as apart:
                    self._part(index, *apart.engines)
                    continue
                pieces = plan.spans[transfer]
            parts.append((plan.first, plan.last, pieces))
            index += 1
        return parts

    def forget(self, transfer: int) -> None:
        """Keep the spans of a transfer that is complete no longer."""
        if self.quiet is not None and self.quiet.served.pop(transfer, None) is not None:
            return
        self._sums.pop(transfer, None)
        for plan in self.plans:
            plan.forget(transfer)

    # --- with plans and without --------------------------------------------------------------------------------------

    def _are_over(self, now_ps: int) -> bool:
        """Return whether all that plans were given is over before now."""
        return all(plan.is_over_before(now_ps) for plan in self.plans)

    def _be_quiet(self) -> None:
        """Do without plans, which are over; one is left, of when engines served what is not complete."""
        self.busy_before = self.busy_ps
        rings: list[int] = []
        index = 0
        while index < len(self.plans):
            plan = self.plans[index]
            try:
                plan.work_out()
            except Apart as apart:
                self._part(index, *apart.engines)
                continue
            rings += [plan.last_ring] * (plan.last + 1 - plan.first)
            index += 1
        spans = self._spans()
        self.plans = [Plan(0, len(rings) - 1)]
        self.plans[0].spans = spans
        self.quiet = Quiet(rings)

    def _be_quiet_behind(self, now_ps: int) -> None:
        """Do without plans where all that is not over waits in one ring, and nothing of it is begun."""
        (plan,) = self.plans
        self._in_row = 0  # where it cannot be, it is not tried again at once
        row = plan.row(now_ps)
        if row is None:
            return
        time, ring, runs = row
        quiet = Quiet([ring] * (plan.last + 1))
        quiet.stand_behind(ring, time)
        for number, _, ready, packets, packet, took, fill, step in runs:
            if quiet.give(number, ring, ready, step, plan.last, packets, packet, took, fill, 0) is not False:
                quiet.release()
                return
        quiet.served[runs[0].transfer].behind = None  # which is over
        self.busy_before = [busy - taken_over for busy, taken_over in zip(self.busy_ps, quiet.busy_ps(), strict=True)]
        spans = {number: pieces for number, pieces in plan.spans.items() if number not in quiet.served}
        self.quiet, self.plans = quiet, [Plan(0, plan.last)]
        self.plans[0].spans = spans

    def _make_plans(self, now_ps: int) -> None:
        """Have plans again, of what is not over."""
        assert self.quiet is not None
        quiet, spans = self.quiet, self._spans()
        live = quiet.live(now_ps)
        self.busy_before, rings = self.busy_ps, quiet.rings()
        # Idle until something gets ready: when they were through is of no account.
        before = max(min([now_ps, *[one.begun_ps for one in live]]) - 1, 0)
        self.quiet, self.plans, self._planned = None, [], 0
        self._sums.clear()
        for engine, ring in enumerate(rings):
            if not engine or ring != rings[engine - 1]:
                self.plans.append(Plan(engine, engine, before, ring))
            self.plans[-1].last = engine
        for one in live:
            ready, step, fill = one.start_ps, one.turn_ps, one.fill_ps
            if one.behind is not None:
                # What comes may yet keep an engine from filling its pipe, so that the one before it ends earlier.
                ready, step, fill = one.ready_ps, one.step_ps, one.saved_ps
            run = Run(one.number, one.ring, ready, one.packets, one.packet_ps, one.last_ps, fill, step)
            first = self._cut(0, one.last)
            for plan in self.plans[first : self._holder(one.last) + 1]:
                plan.take(run, before)
            spans.pop(one.number, None)
        quiet.release()
        for number, pieces in spans.items():
            for plan in self.plans:
                mine = within(pieces, plan.first, plan.last)
                if mine:
                    plan.spans[number] = mine

    def _spans(self) -> dict[int, tuple[Piece, ...]]:
        """Return when engines serve what is not complete."""
        spans: dict[int, tuple[Piece, ...]] = {}
        for plan in self.plans:
            for number, pieces in plan.spans.items():
                spans[number] = (*spans.get(number, ()), *within(pieces, plan.first, plan.last))
        if self.quiet is not None:
            spans.update({number: tuple(served) for number, served in self.quiet.served.items()})
        return spans

    def release(self) -> None:
        """Leave no cycles behind; nothing may be handed out after that."""
        if self.quiet is not None:
            self.quiet.release()

    # --- plans together and apart ------------------------------------------------------------------------------------

    def _part(self, index: int, *engines: int) -> None:
        """Cut a plan in front of engines, which are in order."""
        for engine in reversed(engines):
            self.plans.insert(index + 1, self.plans[index].part(engine))

    def _cut(self, first: int, last: int) -> int:
        """See to it that plans begin with an engine and end with another; return the number of the first of them."""
        index = self._holder(first)
        if self.plans[index].first < first:
            self._part(index, first)
            index += 1
        end = self._holder(last)
        if self.plans[end].last > last:
            self._part(end, last + 1)
        return index

    def _holder(self, engine: int) -> int:
        """Return the number of the plan of an engine."""
        index = 0
        while self.plans[index].last < engine:
            index += 1
        return index

    def _join(self, now_ps: int) -> None:
        """Bring together neighbours that stand alike."""
        plan, *others = self.plans
        joined, until = [plan], []
        for other in others:
            apart_ps = plan.join(other, now_ps)
            if apart_ps is not None:
                joined.append(other)
                until.append(apart_ps)
                plan = other
            elif other.busy_ps != plan.busy_ps:
                for engine in range(other.first, other.last + 1):
                    self.busy_before[engine] += other.busy_ps - plan.busy_ps
        self._apart_ps = min(until, default=0)
        if len(joined) < len(self.plans):
            self.plans[:] = joined

    # --- state -------------------------------------------------------------------------------------------------------

    def snapshot(self) -> DmaEnginesState:
        """Return what they were given as a value, for `restore`."""
        self._is_asked = True
        if self.quiet is not None:
            self._make_plans(0)
        plans = tuple([plan.snapshot() for plan in self.plans])
        return DmaEnginesState(tuple(self.busy_before), plans, self._apart_ps)

    def restore(self, state: DmaEnginesState) -> None:
        """Return to a state that `snapshot` gave."""
        self.release()
        self._is_asked, self.quiet = True, None
        self._sums.clear()
        self.busy_before[:], self._apart_ps = state.busy_before, state.apart_ps
        self.plans = []
        for held in state.plans:
            plan = Plan()
            plan.restore(held)
            self.plans.append(plan)
