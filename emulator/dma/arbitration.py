"""Who a DMA engine serves: its rings in turn, one packet of each. Source: hardware.md 4.1.

A ring is served in order; among rings that have a packet ready the engine goes round, starting behind the one it served
last. A plan is worked out only as far as somebody asks, in jumps of whole rounds; where a ring gets work again, it is
taken back to before that work is ready, and no further.

Engines that are given the same work, each a little later than the one before it, share a plan: a time in it is `at_ps`
on engine 0 and `step_ps` more on each further one. Where a comparison comes out differently on some of them, `Apart`
says from which engines on (`emulator.dma.abreast`); `emulator.dma.engines` cuts the plan there, and joins plans that
are alike again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from itertools import islice
from typing import ClassVar

from emulator.dma.turns import Turns
from emulator.dma.work import Head, Lane, Piece, PlanState, Point, Run, Time, joined, within
from formats.neuron_core import DMA_RINGS

__all__ = ["Plan"]

_SERVED = 32  # runs of a ring that may be kept after they were served, so that few calls delete many
_FEW = 16  # runs whose end is estimated before they are worked out
_PASSED = 8  # points that may be kept after nothing goes back to them, so that few calls drop many
_LONG_AGO: Time = (0, 0)
_made = tuple.__new__  # a named tuple in half the time


class Plan(Turns):
    """When engines `first` to `last` serve what they were given; `spans` of transfers as far as they are worked out.

    `busy_ps` is how long what each was given moves data.
    """

    __slots__ = (
        "_behind",
        "_bound_ps",
        "_filling_ps",
        "_points",
        "_since",
        "_state",
        "_work_ps",
        "busy_ps",
        "spans",
        "taken_back",
    )
    NOT_STATE: ClassVar = {
        "taken_back": "told to whoever gave a run",
        **dict.fromkeys(("_behind", "_points", "_state"), "derived from the state"),
        "_lanes": "in runs and ended",
    }

    def __init__(self, first: int = 0, last: int = 0, time_ps: int = 0, last_ring: int = DMA_RINGS - 1) -> None:
        super().__init__(first, last, time_ps, last_ring)
        self.busy_ps = 0
        # What takes `_work_ps` is not ready before a time on any of the engines: they are not through with all before
        # that and as much more.
        self._since: Time = (0, 0)
        self._work_ps = 0
        # All are served at the latest behind these two: engines that are busy to the end filled their pipes once, when
        # they began to be, and have what was ready since or will be.
        self._bound_ps = self._filling_ps = 0
        self.spans: dict[int, tuple[Piece, ...]] = {}
        self.taken_back: Sequence[int] = ()
        self._points: deque[Point] = deque([(self._time, last_ring, {}, -1)])
        self._state: PlanState | None = None
        self._behind = False  # restored: callers may know spans that have not been worked out here

    # --- work --------------------------------------------------------------------------------------------------------

    def give(self, run: Run, now_ps: int) -> bool:
        """Take over a run that was triggered now; return whether spans of others may have to be worked out again.

        Those are of the transfers in `taken_back`, or where that is empty of any.
        """
        took = run.packet_ps * (run.packets - 1) + run.last_ps
        fill_ps = run.fill_ps
        if fill_ps and self._is_over_before(run.ready_ps, run.step_ps):
            self.busy_ps += fill_ps
        self.busy_ps += took
        return self._add(run, took, now_ps)

    @property
    def last_ring(self) -> int:
        """Return the ring that was served last, as far as the plan is worked out."""
        return self._last_ring

    @property
    def time(self) -> Time:
        """Return the time after what is worked out."""
        return self._time

    def is_behind(self, transfer: int, ring: int) -> bool:
        """Return whether a transfer that the ring was given is behind another that is not over, as far as is known."""
        if transfer in self.spans:
            return False
        head = self._heads.get(ring)
        return head is not None and head[0][0] != transfer

    def is_over_before(self, now_ps: int) -> bool:
        """Return whether all that was given is known to be served before a time, on all engines."""
        return self._bound_ps + self._filling_ps < now_ps

    def take(self, run: Run, now_ps: int) -> None:
        """Take over a run whose time is counted elsewhere, and of which callers may know when it is served."""
        self._add(run, run.packet_ps * (run.packets - 1) + run.last_ps, now_ps)
        self._behind = True

    def _add(self, run: Run, took: int, now_ps: int) -> bool:
        self._state = None
        behind, self._behind = self._behind, False
        points, lanes, first, last = self._points, self._lanes, self.first, self.last
        _, ring, ready, _, _, _, fill, step = run
        if len(points) > _PASSED and points[1][0][0] < now_ps:
            self._pass_by(now_ps)
        lane = lanes.get(ring)
        if lane is None:
            lane = lanes[ring] = Lane()
        elif not len(lane.runs) % _SERVED:
            self._trim(ring, lane)
        begin, final = ready + step * first, ready + step * last
        lane.runs.append(run)
        at, further = self._since
        ahead, further = begin - at - further * first, final - at - further * last
        if ahead >= 0 <= further:
            work = self._work_ps
            if ahead >= work <= further:
                self._since, self._work_ps = (ready, step), took
            else:
                self._work_ps = work + took
        latest_ps = final if step > 0 else begin
        bound_ps = self._bound_ps
        self._bound_ps = took + (latest_ps if latest_ps > bound_ps else bound_ps)  # noqa: FURB136
        if fill > self._filling_ps:
            self._filling_ps = fill
        taken_back: Sequence[int] = ()
        heads = self._heads
        if ring not in heads:
            at, further = time = self._time
            is_later = at + further * first < begin and at + further * last < final
            # Back to when the ring ran empty, and where the run is ready later, to the last point before that.
            while not is_later and len(points) > 1:
                (at, further), before, _, transfer = points[-1]
                if before == ring or (at + further * first < begin and at + further * last < final):
                    break
                points.pop()
                lanes[before].ends.pop()
                self.spans.pop(transfer, None)
                taken_back = [*taken_back, transfer]
            if is_later or points[-1][0] is time:
                heads[ring] = self._head(lane, len(lane.ends))
            else:
                self._go_back()  # also from turns towards a transfer that some of the engines had not finished
        self.taken_back = () if behind else taken_back
        return behind or bool(taken_back)

    def _head(self, lane: Lane, index: int) -> Head:
        """Return the head of a ring of which nothing is under way."""
        run = lane.runs[index]
        at, step = time = lane.ends[index - 1] if index else lane.before
        at -= run.ready_ps
        step -= run.step_ps
        if at + step * self.first <= 0 and at + step * self.last <= 0:
            time = _LONG_AGO  # of no account: it is ready later
        return run, lane.start + index, run.packets, time, False

    def _trim(self, ring: int, lane: Lane) -> None:
        """Forget runs of a ring that nothing goes back to."""
        served = len(lane.ends) - sum([last_ring == ring for _, last_ring, _, _ in self._points])
        if served > _SERVED:
            lane.start, lane.before = lane.start + served, lane.ends[served - 1]
            del lane.runs[:served], lane.ends[:served]

    def _pass_by(self, now_ps: int) -> None:
        """Drop the points that nothing takes the plan back to: what comes is ready now or later."""
        points, first, last = self._points, self.first, self.last
        while len(points) > 1:
            at, further = points[1][0]
            if at + further * first >= now_ps or at + further * last >= now_ps:
                break
            points.popleft()

    def _go_back(self) -> None:
        """Stand at the last point, with what was given since."""
        self._time, self._last_ring, heads, _ = self._points[-1]
        self._heads = heads = heads.copy()
        for ring, lane in self._lanes.items():
            if ring not in heads and len(lane.ends) < len(lane.runs):
                heads[ring] = self._head(lane, len(lane.ends))

    def _is_over_before(self, at_ps: int, step_ps: int) -> bool:
        """Return whether all that was given is served before a time."""
        first, last = self.first, self.last
        begin, end = at_ps + step_ps * first, at_ps + step_ps * last
        bound_ps = self._bound_ps + self._filling_ps
        if bound_ps < begin and bound_ps < end:
            return True
        since, further = self._since
        since += self._work_ps
        if since + further * first >= begin and since + further * last >= end:
            return False
        time, further = self._time
        if time + further * first >= begin and time + further * last >= end:
            return False
        left, lanes = 0, self._lanes
        for run, _, packets, _, _ in self._heads.values():
            left += run[4] * (packets - 1) + run[5]
        if time + left + further * first >= begin and time + left + further * last >= end:
            return False
        count = 0
        for ring, (_, number, _, _, _) in self._heads.items():
            lane = lanes[ring]
            behind = lane.runs[number - lane.start + 1 :]
            for _, _, _, many, packet, took, _, _ in behind:
                left += packet * (many - 1) + took
            count += 1 + len(behind)
        if time + left + further * first >= begin and time + left + further * last >= end:
            return False
        if count <= _FEW:
            # At the latest everything is served so much before or behind, on any engine.
            late_ps = self._late_ps(step_ps)
            if late_ps < at_ps:
                self._bound_ps = min(self._bound_ps, late_ps + step_ps * (last if step_ps > 0 else first))
                return True
        self.work_out()
        time, further = self._time
        self._bound_ps = time + further * (last if further > 0 else first)
        return not self.is_over(time, further, at_ps, step_ps)

    def _late_ps(self, step_ps: int) -> int:
        """Return a time on engine 0 that, so much later on each further one, no engine is later through than.

        Whoever has its turn, engines do not wait while something is ready: all is served one after the other, the first
        of it behind one filling of pipes at most.
        """
        first, last = self.first, self.last
        at, further = self._time
        ready: list[tuple[int, int]] = []
        fill_ps = 0
        for ring, (_, number, packets, _, _) in self._heads.items():
            lane, latest = self._lanes[ring], 0
            for _, _, begins, count, packet, took, fill, slope in lane.runs[number - lane.start :]:
                slope -= step_ps
                begins += slope * (last if slope > 0 else first)
                if begins > latest:
                    latest = begins
                ready.append((latest, packet * ((packets or count) - 1) + took))
                packets = 0
                if fill > fill_ps:
                    fill_ps = fill
        further -= step_ps
        at += further * (last if further > 0 else first)
        for latest, took in sorted(ready):
            at = max(at, latest + fill_ps) + took
        return at

    def pieces(self, transfer: int) -> tuple[Piece, ...]:
        """Return when a transfer begins and ends."""
        found = self.spans.get(transfer)
        if found is None:
            self.work_out(transfer)
            found = self.spans[transfer]
        return found

    def work_out(self, transfer: int | None = None) -> None:
        """Plan until a transfer has ended, or everything; what collectives carry has numbers below 0."""
        heads, spans, lanes, points = self._heads, self.spans, self._lanes, self._points
        first, last = self.first, self.last
        while heads and transfer not in spans:
            count = len(heads)
            if count == 1:
                ((ring, (run, number, packets, before, _)),) = heads.items()
                at, step = self._time
                _, _, ready, _, _, _, fill, further = run
                ahead, slope = at - ready, step - further
                is_early = ahead + slope * first < 0 or ahead + slope * last < 0
                if is_early and not self.is_over(at, step, ready, further):
                    at, step = ready + fill, further
            else:
                # All rings but this one stand: its turn is now, mostly with its last packet.
                due = self._take_two_turns() if count == 2 else self._take_turns()
                ring, run, number, packets, before, at, step = due
            done, _, ready, _, packet, took, _, further = run
            if packets > 1:
                at += packet * (packets - 1)
            at += took
            self._time = time = at, step
            self._last_ring = ring
            lane = lanes[ring]
            lane.ends.append(time)
            spans[done] = (_made(Piece, (first, last, (ready, further), before, time)),)
            number += 1
            runs, index = lane.runs, number - lane.start
            if index < len(runs):
                run = runs[index]
                _, _, ready, left, _, _, _, further = run
                at -= ready
                step -= further
                begin, end = at + step * first, at + step * last
                # Where it is ready later, when this one ends is of no account.
                is_late = begin > 0 or end > 0
                heads[ring] = run, number, left, time if is_late else _LONG_AGO, begin >= 0 <= end
            else:
                del heads[ring]
            points.append((time, ring, heads.copy(), done))

    def forget(self, transfer: int) -> None:
        """Keep the span of a transfer that is complete no longer."""
        self.spans.pop(transfer, None)
        self._state = None

    # --- engines together and apart ----------------------------------------------------------------------------------

    def part(self, engine: int) -> Plan:
        """Leave the engines from one on, and return their plan."""
        made = Plan.__new__(Plan)
        made.first, made.last, made.busy_ps, made._behind = engine, self.last, self.busy_ps, self._behind
        made._lanes = {ring: lane.copy() for ring, lane in self._lanes.items()}
        made._heads, made.spans = self._heads.copy(), self.spans.copy()
        made._time, made._last_ring = self._time, self._last_ring
        made._since, made._work_ps = self._since, self._work_ps
        made._bound_ps, made._filling_ps = self._bound_ps, self._filling_ps
        made._points, made.taken_back = self._points.copy(), ()
        self.last = engine - 1
        made._state = self._state = None
        return made

    def join(self, other: Plan, now_ps: int) -> int | None:
        """Take in the plan of the engines behind these, where all that is to come is the same; return None then.

        Else return until when that is not to be expected, 0 where nothing tells. How long these were busy is the
        caller's to keep.
        """
        if self._last_ring != other._last_ring or self._heads != other._heads or self._behind or other._behind:
            return 0
        time = self._time
        if time != other._time and (time[0] >= now_ps or other._time[0] >= now_ps):
            return 0  # neither the same nor over
        self._pass_by(now_ps)
        other._pass_by(now_ps)
        mine, theirs = self._points, other._points
        if len(mine) != len(theirs):
            return 0
        for one, another in zip(islice(reversed(mine), len(mine) - 1), reversed(theirs), strict=False):
            if one is not another and (one[0] != another[0] or one[3] != another[3] or one[2] != another[2]):
                # Neither is over: what is given until then may change them, but hardly ever to the same.
                at, step = max(one[0], another[0])
                return at + step * (other.last if step > 0 else self.first)
        (base_time, base_ring, _, served), (its_time, its_ring, _, _) = mine[0], theirs[0]
        (heads, ended), (its_heads, its_ended) = self._base(now_ps), other._base(now_ps)
        if heads != its_heads or ended != its_ended or base_ring != its_ring:
            return 0
        if base_time != its_time:
            # Where engines were idle in between, when they were through is of no account.
            if not (self._waits(base_time, heads, now_ps) and other._waits(its_time, heads, now_ps)):
                return 0
            if len(mine) == 1:
                if time != base_time or other._time != its_time:
                    return 0
                time = other._time
        if time != other._time or not self._has_the_runs_of(other, heads):
            return 0
        # What ended before now on all engines is of no account; it was another time on some.
        for ring, lane in self._lanes.items():
            if ring not in heads and ring not in ended:
                if lane.ends:
                    lane.ends[-1] = _LONG_AGO
                lane.before = _LONG_AGO
        if base_time != its_time:
            runs = [run for run, *_ in heads.values()]
            starts = [run.ready_ps + run.step_ps * (self.first if run.step_ps > 0 else other.last) for run in runs]
            base_time = min([now_ps, *starts]) - 1, 0
            if len(mine) == 1:
                self._time = base_time
        mine[0] = base_time, base_ring, heads, served
        spans = self.spans
        for transfer, pieces in other.spans.items():
            own = spans.get(transfer, ())
            if own is not pieces:
                spans[transfer] = joined(within(own, self.first, self.last), within(pieces, other.first, other.last))
        if self._since != other._since:
            self._since, self._work_ps = (0, 0), 0
        elif other._work_ps < self._work_ps:
            self._work_ps = other._work_ps
        self._bound_ps = max(self._bound_ps, other._bound_ps)
        self._filling_ps = max(self._filling_ps, other._filling_ps)
        self.last, self._state = other.last, None
        return None

    def _base(self, since_ps: int = -1) -> tuple[dict[int, Head], dict[int, Time]]:
        """Return the heads at the first point, and when rings that had nothing left ended, if not before a time."""
        points, first, last = self._points, self.first, self.last
        heads, ended = points[0][2].copy(), {}
        later: dict[int, int] = {}
        for _, last_ring, _, _ in islice(points, 1, None):
            later[last_ring] = later.get(last_ring, 0) + 1
        for ring, lane in self._lanes.items():
            if ring in heads:
                continue
            index = len(lane.ends) - later.get(ring, 0)
            if index < len(lane.runs):
                heads[ring] = self._head(lane, index)
                continue
            at, step = time = lane.ends[index - 1] if index else lane.before
            if at + step * first >= since_ps or at + step * last >= since_ps:
                ended[ring] = time
        return heads, ended

    def row(self, now_ps: int) -> tuple[Time, int, list[Run]] | None:
        """Return what is left where all of it is one ring's, which was served last, from when and on which ring.

        None where it is not, or where engines have begun the first of it.
        """
        self._pass_by(now_ps)
        time, last_ring, _, _ = self._points[0]
        at, step = time
        heads, ended = self._base(now_ps)
        if self._behind or ended or len(heads) != 1 or max(at + step * self.first, at + step * self.last) >= now_ps:
            return None
        ((ring, (_, number, left, _, _)),) = heads.items()
        lane = self._lanes[ring]
        runs = lane.runs[number - lane.start :]
        return (time, ring, runs) if last_ring == ring and left == runs[0].packets else None

    def _waits(self, time: Time, heads: dict[int, Head], now_ps: int) -> bool:
        """Return whether engines were through before now, and had nothing to do until something got ready."""
        at, step = time
        ends = at + step * self.first, at + step * self.last
        if max(ends) >= now_ps:
            return False
        for run, *_ in heads.values():
            if ends[0] >= run.ready_ps + run.step_ps * self.first or ends[1] >= run.ready_ps + run.step_ps * self.last:
                return False
        return True

    def _has_the_runs_of(self, other: Plan, heads: dict[int, Head]) -> bool:
        """Return whether what is left from the same heads on is the same for both."""
        for ring, (_, number, _, _, _) in heads.items():
            mine, its = self._lanes[ring], other._lanes[ring]
            if mine.runs[number - mine.start :] != its.runs[number - its.start :]:
                return False
        return True

    # --- state -------------------------------------------------------------------------------------------------------

    def snapshot(self) -> PlanState:
        """Return what it was given as a value, for `restore`."""
        if self._state is None:
            (time, last_ring, _, _), *later = self._points
            planned = {transfer for _, _, _, transfer in later}
            heads, ended = self._base()
            runs = []
            for ring, lane in self._lanes.items():
                start = heads[ring][1] if ring in heads else lane.start + len(lane.runs)
                runs.append((ring, start, tuple(lane.runs[start - lane.start :])))
            self._state = PlanState(
                self.first, self.last, self.busy_ps, time, last_ring, self._since, self._work_ps,
                self._bound_ps, self._filling_ps, tuple(heads.items()), tuple(runs), tuple(ended.items()),
                tuple(item for item in self.spans.items() if item[0] not in planned))  # fmt: skip
        return self._state

    def restore(self, state: PlanState) -> None:
        """Return to a state that `snapshot` gave."""
        self._state, self._behind = state, True
        self.first, self.last, self.busy_ps = state.first, state.last, state.busy_ps
        self._since, self._work_ps = state.since, state.work_ps
        self._bound_ps, self._filling_ps = state.bound_ps, state.filling_ps
        ended, self.spans = dict(state.ended), dict(state.spans)
        self._lanes = {}
        for ring, start, runs in state.runs:
            lane = self._lanes[ring] = Lane(start, ended.get(ring, (0, 0)))
            lane.runs.extend(runs)
        self._points = deque([(state.time, state.last_ring, dict(state.heads), -1)])
        self._go_back()
