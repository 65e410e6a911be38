"""The DMA engines of one core: those that are given the same work share one plan, as long as they go the same way."""

from __future__ import annotations

from typing import ClassVar, NamedTuple

from emulator.addresses import DMA_RINGS
from emulator.dma.arbitration import Plan
from emulator.dma.rings import Ring
from emulator.dma.work import Apart, Piece, PlanState, Run, within

__all__ = ["DmaEngines", "DmaEnginesState", "Stretch"]


class Stretch(NamedTuple):
    """Engines `first` to `last` that take the same part of a transfer: `packets` of `packet_ps`, the last `last_ps`."""

    first: int
    last: int
    packets: int
    packet_ps: int
    last_ps: int


class DmaEnginesState(NamedTuple):
    """The state of a core's DMA engines: how long each was busy before its plan, and the plans."""

    busy_before: tuple[int, ...]
    plans: tuple[PlanState, ...]


class DmaEngines:
    """The engines of a core: `rings` of each, `plans` in the order of their engines, each of some neighbours."""

    NOT_STATE: ClassVar = {"core": "wiring", "rings": "wiring"}

    def __init__(self, core: int, count: int) -> None:
        self.core = core
        self.rings = tuple(tuple(Ring(core, engine, ring) for ring in range(DMA_RINGS)) for engine in range(count))
        self.busy_before = [0] * count
        self.plans = [Plan(0, count - 1)]

    @property
    def busy_ps(self) -> list[int]:
        """Return how long what each engine was given moves data."""
        return [before + self.plans[self._holder(engine)].busy_ps for engine, before in enumerate(self.busy_before)]

    def give(
        self, transfer: int, ring: int, ready_ps: int, step_ps: int, stretches: tuple[Stretch, ...], fill_ps: int,
        now_ps: int,
    ) -> bool:  # fmt: skip
        """Hand out a transfer that was triggered now, ready on engine 0 and a step later on each further one.

        Return whether spans of others may have to be worked out again.
        """
        if len(self.plans) > 1:
            self._join(now_ps)
        moved = False
        plans = self.plans
        for first, last, packets, packet_ps, last_ps in stretches:
            run = Run(transfer, ring, ready_ps, packets, packet_ps, last_ps, fill_ps, step_ps)
            index = 0 if plans[0].first == first and plans[-1].last == last else self._cut(first, last)
            while index < len(plans) and plans[index].first <= last:
                try:
                    moved |= plans[index].give(run, now_ps)
                except Apart as apart:
                    self._part(index, apart.engine)
                else:
                    index += 1
        return moved

    def pieces(self, transfer: int, engines: int) -> tuple[Piece, ...]:
        """Return when the first so many engines serve a transfer."""
        found: list[Piece] = []
        index, plans = 0, self.plans
        while index < len(plans) and (plan := plans[index]).first < engines:
            pieces = plan.spans.get(transfer)
            if pieces is None:
                # Where the engines go different ways, the other part stands behind this one, and its turn is next.
                try:
                    plan.work_out(transfer)
                except Apart as apart:
                    self._part(index, apart.engine)
                    continue
                pieces = plan.spans[transfer]
            if len(pieces) == 1 and pieces[0].first >= plan.first and pieces[0].last <= plan.last:
                found.append(pieces[0])
            else:
                found += within(pieces, plan.first, plan.last)
            index += 1
        return tuple(found)

    def forget(self, transfer: int) -> None:
        """Keep the spans of a transfer that is complete no longer."""
        for plan in self.plans:
            plan.forget(transfer)

    # --- plans together and apart ------------------------------------------------------------------------------------

    def _part(self, index: int, engine: int) -> None:
        """Cut a plan in front of an engine."""
        plan = self.plans[index]
        self.plans[index : index + 1] = plan.part(plan.first, engine - 1), plan.part(engine, plan.last)

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
        index = 0
        while index + 1 < len(self.plans):
            plan, other = self.plans[index], self.plans[index + 1]
            busy = plan.busy_ps, other.busy_ps
            before = plan.last
            if not plan.join(other, now_ps):
                index += 1
                continue
            for engine in range(plan.first, plan.last + 1):
                self.busy_before[engine] += busy[engine > before]
            del self.plans[index + 1]

    # --- state -------------------------------------------------------------------------------------------------------

    def snapshot(self) -> DmaEnginesState:
        """Return what they were given as a value, for `restore`."""
        return DmaEnginesState(tuple(self.busy_before), tuple([plan.snapshot() for plan in self.plans]))

    def restore(self, state: DmaEnginesState) -> None:
        """Return to a state that `snapshot` gave."""
        self.busy_before[:] = state.busy_before
        self.plans = []
        for held in state.plans:
            plan = Plan()
            plan.restore(held)
            self.plans.append(plan)
