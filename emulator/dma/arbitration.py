"""Who a DMA engine serves: its rings in turn, one packet of each. Source: hardware.md 4.1.

A ring is served in order; among rings that have a packet ready the engine goes round, starting behind the one it served
last. A plan is worked out only as far as somebody asks, in jumps of whole rounds; where a ring gets work again, it is
taken back to before that work is ready, and no further.

Engines that are given the same work, each a little later than the one before it, share a plan: a time in it is `at_ps`
on engine 0 and `step_ps` more on each further one. Where a comparison comes out differently on two of them, `Apart`
says from which engine on; `emulator.dma.engines` cuts the plan there, and joins plans that come to be alike again.
"""

from __future__ import annotations

from collections import deque
from typing import ClassVar

from emulator.dma.work import Apart, Head, Piece, PlanState, Run, Time, joined, within
from formats.named_tuple import NamedTuple
from formats.neuron_core import DMA_RINGS

__all__ = ["Plan"]

_SERVED = 32  # runs of a ring that may be kept after they were served, so that few calls delete many


class _Point(NamedTuple):
    """An engine when it has finished a transfer: when, the ring it served last, work done and left by then."""

    time: Time
    last_ring: int
    served_ps: int
    heads: dict[int, Head]  # never changed: plans share points
    transfer: int


class Plan:
    """When engines `first` to `last` serve what they were given; `spans` of transfers as far as they are worked out.

    `busy_ps` is how long what each was given moves data.
    """

    __slots__ = (
        "_behind",
        "_bound_ps",
        "_ended",
        "_given_ps",
        "_heads",
        "_last_ring",
        "_latest",
        "_points",
        "_runs",
        "_served_ps",
        "_starts",
        "_state",
        "_time",
        "busy_ps",
        "first",
        "last",
        "spans",
    )
    NOT_STATE: ClassVar = dict.fromkeys(
        ("_behind", "_starts", "_given_ps", "_points", "_served_ps", "_state"), "derived from the state"
    )

    def __init__(self, first: int = 0, last: int = 0, time_ps: int = 0, last_ring: int = DMA_RINGS - 1) -> None:
        self.first, self.last = first, last
        self.busy_ps = 0
        self._runs: dict[int, list[Run]] = {}  # by ring, from run number `_starts` on
        self._starts: dict[int, int] = {}
        self._ended: dict[int, Time] = {}  # when a ring has run empty
        self._heads: dict[int, Head] = {}
        self._time: Time = (time_ps, 0)
        self._last_ring = last_ring
        self._given_ps = self._served_ps = 0
        self._latest: Time = (0, 0)  # a run that is ready as late as any, where all engines agree on it
        self._bound_ps = 0  # all are served at the latest
        self.spans: dict[int, tuple[Piece, ...]] = {}
        self._points: deque[_Point] = deque([_Point(self._time, last_ring, 0, {}, -1)])
        self._state: PlanState | None = None
        self._behind = False  # restored: callers may know spans that have not been worked out here

    # --- times on several engines ------------------------------------------------------------------------------------

    def _is_over(self, at_ps: int, step_ps: int, other_ps: int, other_step_ps: int) -> bool:
        """Return whether a time is at another or past it, on all engines; Apart where they differ."""
        first, last, slope = self.first, self.last, step_ps - other_step_ps
        ahead = at_ps - other_ps
        over = ahead + slope * first >= 0
        if over != (ahead + slope * last >= 0):
            raise Apart(next(one for one in range(first, last + 1) if (ahead + slope * one >= 0) != over))
        return over

    def _is_same(self, one: Run, other: Run) -> bool:
        """Return whether two runs are ready at the same time, on all engines; Apart where they differ."""
        ahead, slope = one.ready_ps - other.ready_ps, one.step_ps - other.step_ps
        if not slope:
            return not ahead
        first, last = self.first, self.last
        same = ahead + slope * first == 0
        for engine in range(first, last + 1):
            if (ahead + slope * engine == 0) != same:
                raise Apart(engine)
        return same

    def _parts(self, most: int, gap_ps: int, slope: int, each_ps: int) -> int:
        """Return the whole parts of a gap, at most so many, on all engines; Apart where they differ."""
        parts = min(most, (gap_ps + slope * self.first) // each_ps)
        if slope and min(most, (gap_ps + slope * self.last) // each_ps) != parts:
            for engine in range(self.first, self.last + 1):
                if min(most, (gap_ps + slope * engine) // each_ps) != parts:
                    raise Apart(engine)
        return parts

    # --- work --------------------------------------------------------------------------------------------------------

    def give(self, run: Run, now_ps: int) -> bool:
        """Take over a run that was triggered now; return whether spans of others may have to be worked out again."""
        took = run.packet_ps * (run.packets - 1) + run.last_ps
        if run.fill_ps and self._is_over_before(run.ready_ps, run.step_ps):
            self.busy_ps += run.fill_ps
        self.busy_ps += took
        return self._add(run, took, now_ps)

    @property
    def last_ring(self) -> int:
        """Return the ring that was served last, as far as the plan is worked out."""
        return self._last_ring

    def is_over_before(self, now_ps: int) -> bool:
        """Return whether all that was given is known to be served before a time, on all engines."""
        return self._bound_ps < now_ps

    def take(self, run: Run, now_ps: int) -> None:
        """Take over a run whose time is counted elsewhere, and of which callers may know when it is served."""
        self._add(run, run.packet_ps * (run.packets - 1) + run.last_ps, now_ps)
        self._behind = True

    def _add(self, run: Run, took: int, now_ps: int) -> bool:
        self._state = None
        behind, self._behind = self._behind, False
        points, ring, ready, step = self._points, run.ring, run.ready_ps, run.step_ps
        first, last = self.first, self.last
        self._pass_by(now_ps)
        runs = self._runs.get(ring)
        if runs is None:
            runs, self._starts[ring] = self._runs.setdefault(ring, []), 0
        elif len(runs) > _SERVED:
            head = points[0].heads.get(ring)
            served = len(runs) if head is None else head[0] - self._starts[ring]
            if served > _SERVED:
                del runs[:served]
                self._starts[ring] += served
        runs.append(run)
        self._given_ps += took
        at, further = self._latest
        if ready + step * first >= at + further * first and ready + step * last >= at + further * last:
            self._latest = ready, step
        latest_ps = ready + step * (last if step > 0 else first)
        if latest_ps > self._bound_ps:
            self._bound_ps = latest_ps
        self._bound_ps += took + run.fill_ps
        if ring in self._heads:
            return behind
        added: Head = (
            self._starts[ring] + len(runs) - 1,
            run.packets,
            self._counts(self._ended.get(ring, (0, 0)), run),
        )
        self._heads[ring] = added
        for index in range(len(points) - 1, -1, -1):
            point = points[index]
            if ring in point.heads:
                break
            points[index] = point._replace(heads={**point.heads, ring: added})
        at, further = self._time
        if at + further * first < ready + step * first and at + further * last < ready + step * last:
            return behind
        if len(points) == 1:
            self._go_back()  # from turns towards a transfer that some of the engines had not finished
            return behind
        while len(points) > 1:
            at, further = points[-1].time
            if at + further * first < ready + step * first and at + further * last < ready + step * last:
                break
            self.spans.pop(points.pop().transfer, None)
        self._go_back()
        return True

    def _pass_by(self, now_ps: int) -> None:
        """Drop the points that nothing takes the plan back to: what comes is ready now or later."""
        points, first, last = self._points, self.first, self.last
        while len(points) > 1:
            at, further = points[1].time
            if at + further * first >= now_ps or at + further * last >= now_ps:
                break
            points.popleft()

    def _counts(self, before: Time, run: Run) -> Time:
        """Return when the run before another ended, (0, 0) where that is of no account, since it is ready later."""
        at, step = before[0] - run.ready_ps, before[1] - run.step_ps
        return before if at + step * self.first > 0 or at + step * self.last > 0 else (0, 0)

    def _go_back(self) -> None:
        point = self._points[-1]
        self._time, self._last_ring, self._served_ps = point.time, point.last_ring, point.served_ps
        self._heads = dict(point.heads)

    def _is_over_before(self, at_ps: int, step_ps: int) -> bool:
        """Return whether all that was given is served before a time."""
        first, last = self.first, self.last
        begin, end = at_ps + step_ps * first, at_ps + step_ps * last
        if self._bound_ps < begin and self._bound_ps < end:
            return True
        latest, further = self._latest
        if latest + further * first >= begin and latest + further * last >= end:
            return False
        time, further = self._time
        time += self._given_ps - self._served_ps
        if time + further * first >= begin and time + further * last >= end:
            return False
        self.work_out()
        time, further = self._time
        self._bound_ps = time + further * (last if further > 0 else first)
        return not self._is_over(time, further, at_ps, step_ps)

    def pieces(self, transfer: int) -> tuple[Piece, ...]:
        """Return when a transfer begins and ends."""
        found = self.spans.get(transfer)
        if found is None:
            self.work_out(transfer)
            found = self.spans[transfer]
        return found

    def work_out(self, transfer: int | None = None) -> None:
        """Plan until a transfer has ended, or everything; what collectives carry has numbers below 0."""
        heads, spans, all_runs, starts = self._heads, self.spans, self._runs, self._starts
        first, last, points = self.first, self.last, self._points
        while heads and transfer not in spans:
            count = len(heads)
            if count == 1:
                (ring,) = heads
            else:
                ring = self._take_two_turns() if count == 2 else self._take_turns()
            number, packets, before = heads[ring]
            runs, start = all_runs[ring], starts[ring]
            done, _, ready, _, packet, took, fill, further = runs[number - start]
            # All rings but this one stand: it is alone, or has its last packet left.
            at, step = self._time
            if not (at >= ready if step == further else self._is_over(at, step, ready, further)):
                at, step = ready + fill, further
            if packets > 1:
                took += packet * (packets - 1)
            self._time = time = at + took, step
            self._served_ps = served = self._served_ps + took
            self._last_ring = ring
            spans[done] = (Piece(first, last, (ready, further), before, time),)
            number += 1
            if number - start < len(runs):
                following = runs[number - start]
                heads[ring] = number, following[3], self._counts(time, following)
            else:
                del heads[ring]
                self._ended[ring] = time
            points.append(_Point(time, ring, served, heads.copy(), done))

    def _take_two_turns(self) -> int:
        """Do as `_take_turns` for two rings, which there are nearly always."""
        heads, runs, starts = self._heads, self._runs, self._starts
        (one, (number, left, _)), (other, (its_number, its_left, _)) = heads.items()
        mine, its = runs[one][number - starts[one]], runs[other][its_number - starts[other]]
        _, _, my_ready, _, my_packet, _, my_fill, my_step = mine
        _, _, its_ready, _, its_packet, _, its_fill, its_step = its
        at, step = self._time
        last_ring, served_ps = self._last_ring, self._served_ps
        is_over = self._is_over
        while True:
            i_am = at >= my_ready if step == my_step else is_over(at, step, my_ready, my_step)
            it_is = at >= its_ready if step == its_step else is_over(at, step, its_ready, its_step)
            if i_am and it_is:
                rounds, length = min(left, its_left) - 1, my_packet + its_packet
                if rounds > 0:
                    left -= rounds
                    its_left -= rounds
                    at += rounds * length
                    served_ps += rounds * length
                if (one - last_ring - 1) % DMA_RINGS < (other - last_ring - 1) % DMA_RINGS:
                    if left == 1:
                        ring = one
                        break
                    left -= 1
                    took, last_ring = my_packet, one
                else:
                    if its_left == 1:
                        ring = other
                        break
                    its_left -= 1
                    took, last_ring = its_packet, other
            elif i_am:
                count = left
                if my_packet:
                    count = self._parts(left, its_ready - at + my_packet - 1, its_step - step, my_packet)
                if count == left:
                    ring = one
                    break
                left -= count
                took, last_ring = count * my_packet, one
            elif it_is:
                count = its_left
                if its_packet:
                    count = self._parts(its_left, my_ready - at + its_packet - 1, my_step - step, its_packet)
                if count == its_left:
                    ring = other
                    break
                its_left -= count
                took, last_ring = count * its_packet, other
            else:
                # Neither: the one that is ready first begins, and where both are, the one whose turn it is.
                later = its if not is_over(its_ready, its_step, my_ready, my_step) else mine
                i_am, it_is = self._is_same(mine, later), self._is_same(its, later)
                if i_am and it_is:
                    i_am = (one - last_ring - 1) % DMA_RINGS < (other - last_ring - 1) % DMA_RINGS
                if i_am:
                    if left == 1:  # it gets ready, and fills the pipe, with this packet
                        ring = one
                        break
                    left -= 1
                    took, last_ring = my_packet, one
                    at, step = later.ready_ps + my_fill, later.step_ps
                else:
                    if its_left == 1:
                        ring = other
                        break
                    its_left -= 1
                    took, last_ring = its_packet, other
                    at, step = later.ready_ps + its_fill, later.step_ps
            at += took
            served_ps += took
        heads[one] = number, left, heads[one][2]
        heads[other] = its_number, its_left, heads[other][2]
        self._time, self._last_ring, self._served_ps = (at, step), last_ring, served_ps
        return ring

    def _take_turns(self) -> int:
        """Serve several rings until one of them has its turn with its last packet; return that ring."""
        heads, runs, numbers = self._heads, self._runs, self._starts
        work = [(ring, runs[ring][number - numbers[ring]]) for ring, (number, _, _) in heads.items()]
        packets = {ring: head[1] for ring, head in heads.items()}
        at, step = self._time
        last_ring, served_ps = self._last_ring, self._served_ps
        while True:
            ready, later = [], None
            for pair in work:
                run = pair[1]
                if at >= run.ready_ps if step == run.step_ps else self._is_over(at, step, run.ready_ps, run.step_ps):
                    ready.append(pair)
                elif later is None or not self._is_over(run.ready_ps, run.step_ps, later.ready_ps, later.step_ps):
                    later = run
            fill_ps = 0
            if not ready:
                assert later is not None  # of rings that are not ready one is next
                ready = [pair for pair in work if self._is_same(pair[1], later)]
                ring, run = _next(ready, last_ring)
                if packets[ring] == 1:
                    break  # it gets ready, and fills the pipe, with this packet
                at, step, fill_ps, count = later.ready_ps, later.step_ps, run.fill_ps, 1
            elif len(ready) == 1:
                ring, run = ready[0]
                count, each = packets[ring], run.packet_ps
                if later is not None and each:
                    count = self._parts(count, later.ready_ps - at + each - 1, later.step_ps - step, each)
                if count == packets[ring]:
                    break
            else:
                rounds = min([packets[one] for one, _ in ready]) - 1
                length = sum([run.packet_ps for _, run in ready])
                if later is not None and length:
                    rounds = self._parts(rounds, later.ready_ps - at, later.step_ps - step, length)
                if rounds > 0:
                    for one, _ in ready:
                        packets[one] -= rounds
                    at += rounds * length
                    served_ps += rounds * length
                    continue
                ring, run = _next(ready, last_ring)
                count = 1
                if packets[ring] == 1:
                    break
            took = count * run.packet_ps
            packets[ring] -= count
            at += took + fill_ps
            served_ps += took
            last_ring = ring
        for one, left in packets.items():
            number, _, before = heads[one]
            heads[one] = number, left, before
        self._time, self._last_ring, self._served_ps = (at, step), last_ring, served_ps
        return ring

    def forget(self, transfer: int) -> None:
        """Keep the span of a transfer that is complete no longer."""
        self.spans.pop(transfer, None)
        self._state = None

    # --- engines together and apart ----------------------------------------------------------------------------------

    def part(self, first: int, last: int) -> Plan:
        """Return the plan of some of the engines."""
        made = Plan.__new__(Plan)
        made.first, made.last, made.busy_ps, made._behind = first, last, self.busy_ps, self._behind
        made._runs = {ring: runs.copy() for ring, runs in self._runs.items()}
        made._starts, made._ended = self._starts.copy(), self._ended.copy()
        made._heads, made.spans = self._heads.copy(), self.spans.copy()
        made._time, made._last_ring = self._time, self._last_ring
        made._given_ps, made._served_ps = self._given_ps, self._served_ps
        made._latest, made._bound_ps = self._latest, self._bound_ps
        made._points, made._state = self._points.copy(), None
        return made

    def join(self, other: Plan, now_ps: int) -> bool:
        """Take in the plan of the engines behind these, where all that is to come is the same; return whether.

        How long they were busy is the caller's to keep.
        """
        if self._last_ring != other._last_ring or self._heads != other._heads or self._behind or other._behind:
            return False
        self._pass_by(now_ps)
        other._pass_by(now_ps)
        mine, theirs = self._points, other._points
        if len(mine) != len(theirs):
            return False
        for one, another in zip(mine, theirs, strict=True):
            if one is not another and (
                one.last_ring != another.last_ring
                or one.heads != another.heads
                or (one.time != another.time and one is not mine[0])
            ):
                return False
        time, base, its = self._time, mine[0], theirs[0]
        if base.time != its.time:
            # Where engines were idle in between, when they were through is of no account.
            if not (self._waits(base, now_ps) and other._waits(its, now_ps)):
                return False
            if len(mine) == 1:
                if time != base.time or other._time != its.time:
                    return False
                time = other._time
        if time != other._time or not self._has_the_runs_of(other, now_ps):
            return False
        if base.time != its.time:
            starts = [self._run(ring, head).ready_ps for ring, head in base.heads.items()]
            mine[0] = base._replace(time=(min([now_ps, *starts]) - 1, 0))
            if len(mine) == 1:
                self._time = mine[0].time
        spans = self.spans
        for transfer, pieces in other.spans.items():
            own = spans.get(transfer, ())
            if own is not pieces:
                spans[transfer] = joined(
                    (*within(own, self.first, self.last), *within(pieces, other.first, other.last))
                )
        if self._latest != other._latest:
            self._latest = (0, 0)
        self._bound_ps = max(self._bound_ps, other._bound_ps)
        self.last, self.busy_ps, self._state = other.last, 0, None
        return True

    def _run(self, ring: int, head: Head) -> Run:
        return self._runs[ring][head[0] - self._starts[ring]]

    def _waits(self, point: _Point, now_ps: int) -> bool:
        """Return whether engines were through before now, and had nothing to do until something got ready."""
        at, step = point.time
        ends = at + step * self.first, at + step * self.last
        if max(ends) >= now_ps:
            return False
        for ring, head in point.heads.items():
            run = self._run(ring, head)
            if ends[0] >= run.ready_ps + run.step_ps * self.first or ends[1] >= run.ready_ps + run.step_ps * self.last:
                return False
        return True

    def _has_the_runs_of(self, other: Plan, now_ps: int) -> bool:
        """Return whether what is left, and what has ended from now on, is the same for both."""
        ended = []
        for plan in (self, other):
            plan._ended = {
                ring: (at, step)
                for ring, (at, step) in plan._ended.items()
                if at + step * plan.first >= now_ps or at + step * plan.last >= now_ps
            }
            ended.append({ring: at for ring, at in plan._ended.items() if ring not in plan._heads})
        heads = self._points[0].heads
        return ended[0] == ended[1] and all(
            self._runs[ring][head[0] - self._starts[ring] :] == other._runs[ring][head[0] - other._starts[ring] :]
            for ring, head in heads.items()
        )

    # --- state -------------------------------------------------------------------------------------------------------

    def snapshot(self) -> PlanState:
        """Return what it was given as a value, for `restore`."""
        if self._state is None:
            base, *later = self._points
            planned = {point.transfer for point in later}
            self._state = PlanState(
                self.first, self.last, self.busy_ps,
                base.time, base.last_ring, self._given_ps - base.served_ps, self._latest, self._bound_ps,
                tuple(base.heads.items()),
                tuple((ring, self._starts[ring], tuple(runs)) for ring, runs in self._runs.items()),
                tuple((ring, at) for ring, at in self._ended.items() if ring not in base.heads),
                tuple(item for item in self.spans.items() if item[0] not in planned))  # fmt: skip
        return self._state

    def restore(self, state: PlanState) -> None:
        """Return to a state that `snapshot` gave."""
        self._state, self._behind = state, True
        self.first, self.last, self.busy_ps = state.first, state.last, state.busy_ps
        self._latest, self._bound_ps = state.latest, state.bound_ps
        self._runs = {ring: list(runs) for ring, _, runs in state.runs}
        self._starts = {ring: first for ring, first, _ in state.runs}
        self._ended, self.spans = dict(state.ended), dict(state.spans)
        self._given_ps = state.left_ps
        self._points = deque([_Point(state.time, state.last_ring, 0, dict(state.heads), -1)])
        self._go_back()


def _next(ready: list[tuple[int, Run]], last_ring: int) -> tuple[int, Run]:
    """Return the ring whose turn it is, and its run."""
    if len(ready) == 1:
        return ready[0]
    return min(ready, key=lambda pair: (pair[0] - last_ring - 1) % DMA_RINGS)
