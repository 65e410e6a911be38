"""The slow reference of `emulator.dma.arbitration`: serves all runs there are from the beginning, each time.

A ring is served in order; among rings that have a packet ready the engine goes round, starting behind the one it served
last.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

__all__ = ["Run", "Served", "serve"]

_RINGS = 16


class Run(NamedTuple):
    """What is left of one transfer in one ring: `packets` of `packet_ps`, the last of `last_ps`.

    It is ready at `ready_ps`; where the engine was idle till then, the first packet takes `fill_ps` more. `begun_ps` is
    when it was ready at the head of its ring, -1 before.
    """

    transfer: int
    ring: int
    ready_ps: int
    packets: int
    packet_ps: int
    last_ps: int
    fill_ps: int = 0
    begun_ps: int = -1


class Served(NamedTuple):
    """An engine at a time: what is left, and (transfer, begun, end) of what was finished on the way."""

    time_ps: int
    last_ring: int
    left: tuple[Run, ...]
    finished: tuple[tuple[int, int, int], ...]


class _Ring:
    """The work of one ring while it is served."""

    __slots__ = ("begun", "packets", "run", "runs")

    def __init__(self, runs: list[Run]) -> None:
        self.runs = runs  # the next one last
        self._head(0)

    def _head(self, time_ps: int) -> None:
        self.run = run = self.runs.pop()
        self.packets = run.packets
        self.begun = run.begun_ps if run.begun_ps >= 0 else max(run.ready_ps, time_ps)

    def take(self, packets: int, time_ps: int) -> int:
        """Serve packets from a time on; return when they are done."""
        self.packets -= packets
        run = self.run
        return time_ps + packets * run.packet_ps + (0 if self.packets else run.last_ps - run.packet_ps)

    def next(self, time_ps: int) -> bool:
        """Go on to the next transfer, and return whether there is one."""
        if not self.runs:
            return False
        self._head(time_ps)
        return True

    def left(self) -> list[Run]:
        """Return what is left, in order."""
        return [self.run._replace(packets=self.packets, begun_ps=self.begun), *reversed(self.runs)]


def serve(time_ps: int, last_ring: int, runs: Iterable[Run], until_ps: int | None = None) -> Served:
    """Serve runs, in the order of their rings, from a time on: all, or the packets that begin before `until_ps`.

    `time_ps` is when the engine is free, `last_ring` the one it served last. Times are picoseconds.
    """
    order: dict[int, list[Run]] = {}
    for run in runs:
        order.setdefault(run.ring, []).append(run)
    rings = {ring: _Ring(mine[::-1]) for ring, mine in order.items()}
    finished: list[tuple[int, int, int]] = []
    fill = False
    while rings:
        if until_ps is not None and time_ps >= until_ps:
            break
        ready, later = [], until_ps
        for ring, work in rings.items():
            at = work.run.ready_ps
            if at <= time_ps:
                ready.append(ring)
            elif later is None or at < later:
                later = at
        if not ready:
            assert later is not None
            if later == until_ps:
                break
            time_ps, fill = later, True
            continue
        if fill:
            packets, ring = 1, _next(ready, last_ring)
            time_ps, fill = time_ps + rings[ring].run.fill_ps, False
        elif len(ready) == 1:
            ring = ready[0]
            work = rings[ring]
            packets = work.packets
            if later is not None and work.run.packet_ps:
                packets = min(packets, -(-(later - time_ps) // work.run.packet_ps))
        else:
            rounds = min(rings[ring].packets for ring in ready) - 1
            length = sum(rings[ring].run.packet_ps for ring in ready)
            if later is not None and length:
                rounds = min(rounds, (later - time_ps - 1) // length)  # packets that take no time come after it
            if rounds > 0:
                for ring in ready:
                    rings[ring].packets -= rounds
                time_ps += rounds * length
                last_ring = max(ready, key=lambda ring: (ring - last_ring - 1) % _RINGS)
                continue
            packets, ring = 1, _next(ready, last_ring)
        work, last_ring = rings[ring], ring
        time_ps = work.take(packets, time_ps)
        if not work.packets:
            finished.append((work.run.transfer, work.begun, time_ps))
            if not work.next(time_ps):
                del rings[ring]
    left = tuple(run for work in rings.values() for run in work.left())
    return Served(time_ps, last_ring, left, tuple(finished))


def _next(ready: list[int], last: int) -> int:
    """Return the ring whose turn it is."""
    if len(ready) == 1:
        return ready[0]
    return min(ready, key=lambda ring: (ring - last - 1) % _RINGS)
