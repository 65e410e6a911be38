"""Who a DMA engine serves: its rings in turn, one packet of each. Source: hardware.md 4.1.

A ring is served in order; among rings that have a packet ready the engine goes round, starting behind the one it served
last. A plan is worked out only as far as somebody asks, in jumps of whole rounds; where a ring gets work again, it is
taken back to before that work is ready, and no further.
"""

from __future__ import annotations

from collections import deque
from typing import ClassVar, NamedTuple

__all__ = ["Plan", "PlanState", "Run"]

_RINGS = 16
_SERVED = 32  # runs of a ring that may be kept after they were served, so that few calls delete many

Head = tuple[int, int, int]  # of a ring: which of its runs is next, packets left of that, when it was first there


class Run(NamedTuple):
    """One transfer in one ring: `packets` of `packet_ps`, the last of `last_ps`.

    It is ready at `ready_ps`; where the engine was idle till then, the first packet takes `fill_ps` more.
    """

    transfer: int
    ring: int
    ready_ps: int
    packets: int
    packet_ps: int
    last_ps: int
    fill_ps: int = 0

    @property
    def took_ps(self) -> int:
        """Return how long all packets take."""
        return self.packet_ps * (self.packets - 1) + self.last_ps


class _Point:
    """An engine when it has finished a transfer: when, the ring it served last, what is left to do in each ring."""

    __slots__ = ("heads", "last_ring", "left_ps", "time_ps", "transfer")

    def __init__(self, time_ps: int, last_ring: int, left_ps: int, heads: dict[int, Head], transfer: int) -> None:
        self.time_ps, self.last_ring, self.left_ps = time_ps, last_ring, left_ps
        self.heads, self.transfer = heads, transfer


class PlanState(NamedTuple):
    """What an engine was given, as seen from a point that no later work changes."""

    time_ps: int
    last_ring: int
    left_ps: int
    latest_ps: int
    bound_ps: int
    heads: tuple[tuple[int, Head], ...]
    runs: tuple[tuple[int, int, tuple[Run, ...]], ...]
    ended: tuple[tuple[int, int], ...]
    spans: tuple[tuple[int, tuple[int, int]], ...]


class Plan:
    """When an engine serves what it was given; `spans` of transfers are (begun, end), as far as they are worked out.

    A transfer has begun when it is ready at the head of its ring.
    """

    __slots__ = (
        "_behind",
        "_bound_ps",
        "_ended",
        "_first",
        "_heads",
        "_last_ring",
        "_latest_ps",
        "_left_ps",
        "_points",
        "_runs",
        "_state",
        "_time_ps",
        "spans",
    )
    NOT_STATE: ClassVar = dict.fromkeys(("_behind", "_points", "_first", "_state"), "derived from the state")

    def __init__(self) -> None:
        self._runs: dict[int, list[Run]] = {}  # by ring, from run number `_first` on
        self._first: dict[int, int] = {}
        self._ended: dict[int, int] = {}  # when a ring has run empty
        self._heads: dict[int, Head] = {}
        self._time_ps, self._last_ring, self._left_ps = 0, _RINGS - 1, 0
        self._latest_ps = self._bound_ps = 0  # the last run is ready, and all are served at the latest
        self.spans: dict[int, tuple[int, int]] = {}
        self._points: deque[_Point] = deque([_Point(0, _RINGS - 1, 0, {}, -1)])
        self._state: PlanState | None = None
        self._behind = False  # restored: callers may know spans that have not been worked out here

    def add(self, run: Run, now_ps: int) -> bool:
        """Take over a run that was triggered now; return whether spans of others may have to be worked out again."""
        self._state = None
        behind, self._behind = self._behind, False
        points, ring, took = self._points, run.ring, run.took_ps
        # What comes is ready now or later.
        while len(points) > 1 and points[1].time_ps < now_ps:
            points.popleft()
        runs = self._runs.get(ring)
        if runs is None:
            runs, self._first[ring] = self._runs.setdefault(ring, []), 0
        elif len(runs) > _SERVED:
            head = points[0].heads.get(ring)
            served = len(runs) if head is None else head[0] - self._first[ring]
            if served > _SERVED:
                del runs[:served]
                self._first[ring] += served
        runs.append(run)
        self._left_ps += took
        for point in points:
            point.left_ps += took
        ready = run.ready_ps
        self._latest_ps = max(self._latest_ps, ready)
        self._bound_ps = max(self._bound_ps, ready) + took + run.fill_ps
        if ring in self._heads:
            return behind
        head = self._first[ring] + len(runs) - 1, run.packets, max(ready, self._ended.get(ring, 0))
        self._heads[ring] = head
        for point in reversed(points):
            if ring in point.heads:
                break
            point.heads[ring] = head
        if self._time_ps < ready or len(points) == 1:
            return behind
        while len(points) > 1 and points[-1].time_ps >= ready:
            self.spans.pop(points.pop().transfer, None)
        self._go_back()
        return True

    def _go_back(self) -> None:
        point = self._points[-1]
        self._time_ps, self._last_ring, self._left_ps = point.time_ps, point.last_ring, point.left_ps
        self._heads = dict(point.heads)

    def is_over_before(self, time_ps: int) -> bool:
        """Return whether all that was given is served before a time."""
        if self._latest_ps >= time_ps:
            return False
        if self._bound_ps < time_ps:
            return True
        if self._time_ps + self._left_ps >= time_ps:
            return False
        self.work_out()
        self._bound_ps = self._time_ps
        return self._time_ps < time_ps

    def span(self, transfer: int) -> tuple[int, int]:
        """Return when a transfer begins and ends."""
        found = self.spans.get(transfer)
        if found is None:
            self.work_out(transfer)
            found = self.spans[transfer]
        return found

    def work_out(self, transfer: int = -1) -> None:
        """Plan until a transfer has ended, or everything."""
        heads, spans = self._heads, self.spans
        while heads and transfer not in spans:
            ring = next(iter(heads)) if len(heads) == 1 else self._take_turns()
            number, packets, begun = heads[ring]
            runs, first = self._runs[ring], self._first[ring]
            run = runs[number - first]
            # All rings but this one stand: it is alone, or has its last packet left.
            time_ps = self._time_ps
            if run.ready_ps > time_ps:
                time_ps = run.ready_ps + run.fill_ps
            took = run.packet_ps * (packets - 1) + run.last_ps
            self._time_ps = time_ps = time_ps + took
            self._left_ps -= took
            self._last_ring = ring
            spans[run.transfer] = begun, time_ps
            number += 1
            if number - first < len(runs):
                behind = runs[number - first]
                heads[ring] = number, behind.packets, max(behind.ready_ps, time_ps)
            else:
                del heads[ring]
                self._ended[ring] = time_ps
            self._points.append(_Point(time_ps, ring, self._left_ps, dict(heads), run.transfer))

    def _take_turns(self) -> int:
        """Serve several rings until one of them has its turn with its last packet; return that ring."""
        heads = self._heads
        work = {ring: self._runs[ring][head[0] - self._first[ring]] for ring, head in heads.items()}
        packets = {ring: head[1] for ring, head in heads.items()}
        time_ps, last_ring, left_ps = self._time_ps, self._last_ring, self._left_ps
        while True:
            ready, later = [], 0
            for ring, run in work.items():
                at = run.ready_ps
                if at <= time_ps:
                    ready.append(ring)
                elif not later or at < later:
                    later = at
            fill_ps = 0
            if not ready:
                ready = [ring for ring, run in work.items() if run.ready_ps == later]
                ring = _next(ready, last_ring)
                if packets[ring] == 1:
                    break  # it gets ready, and fills the pipe, with this packet
                time_ps, fill_ps, count = later, work[ring].fill_ps, 1
            elif len(ready) == 1:
                ring = ready[0]
                count, each = packets[ring], work[ring].packet_ps
                if later and each:
                    count = min(count, -(-(later - time_ps) // each))
                if count == packets[ring]:
                    break
            else:
                rounds = min([packets[one] for one in ready]) - 1
                length = sum([work[one].packet_ps for one in ready])
                if later and length:
                    rounds = min(rounds, (later - time_ps) // length)
                if rounds > 0:
                    for one in ready:
                        packets[one] -= rounds
                    time_ps += rounds * length
                    left_ps -= rounds * length
                    continue
                ring, count = _next(ready, last_ring), 1
                if packets[ring] == 1:
                    break
            took = count * work[ring].packet_ps
            packets[ring] -= count
            time_ps += took + fill_ps
            left_ps -= took
            last_ring = ring
        for one, left in packets.items():
            heads[one] = heads[one][0], left, heads[one][2]
        self._time_ps, self._last_ring, self._left_ps = time_ps, last_ring, left_ps
        return ring

    def forget(self, transfer: int) -> None:
        """Keep the span of a transfer that is complete no longer."""
        self.spans.pop(transfer, None)
        self._state = None

    def snapshot(self) -> PlanState:
        """Return what it was given as a value, for `restore`."""
        if self._state is None:
            base, *later = self._points
            planned = {point.transfer for point in later}
            self._state = PlanState(
                base.time_ps, base.last_ring, base.left_ps, self._latest_ps, self._bound_ps, tuple(base.heads.items()),
                tuple((ring, self._first[ring], tuple(runs)) for ring, runs in self._runs.items()),
                tuple((ring, at) for ring, at in self._ended.items() if ring not in base.heads),
                tuple(item for item in self.spans.items() if item[0] not in planned))  # fmt: skip
        return self._state

    def restore(self, state: PlanState) -> None:
        """Return to a state that `snapshot` gave."""
        self._state, self._behind = state, True
        self._latest_ps, self._bound_ps = state.latest_ps, state.bound_ps
        self._runs = {ring: list(runs) for ring, _, runs in state.runs}
        self._first = {ring: first for ring, first, _ in state.runs}
        self._ended, self.spans = dict(state.ended), dict(state.spans)
        self._points = deque([_Point(state.time_ps, state.last_ring, state.left_ps, dict(state.heads), -1)])
        self._go_back()


def _next(ready: list[int], last_ring: int) -> int:
    """Return the ring whose turn it is."""
    if len(ready) == 1:
        return ready[0]
    return min(ready, key=lambda ring: (ring - last_ring - 1) % _RINGS)
