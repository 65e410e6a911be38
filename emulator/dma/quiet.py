"""DMA engines with little to do: transfers that they serve one after the other, or two at a time.

Where a transfer meets no other on any engine, each serves it when it is ready.  Where it meets none but those before it
in its ring, engines go on to it when they are through with these.  Where two meet, of different rings, an engine serves
the one that is ready first, packet by packet, and both in turn once the other is ready: when each ends is worked out at
once.  Whatever is more than that (`Quiet.give` returns None) is for the plans of
`emulator.dma.arbitration`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from functools import partial

from emulator.dma.work import Piece

__all__ = ["Quiet", "Served"]

_made = tuple.__new__  # a named tuple in half the time
_KEPT = 16  # transfers that are over, kept to know which ring was served last


class Served:
    """One transfer on engines 0 to `last`: ready at `ready_ps` on the first, `step_ps` later on each further one.

    It starts at `start_ps`, then or when the one that it is `behind` in its ring is through. `ends` are those of each
    engine where it `met` another, else it takes `took_ps` everywhere. `begun_ps` is when the first engine has it ready.
    """

    __slots__ = (
        "begun_ps", "behind", "end_ps", "ends", "fill_ps", "follower", "last", "last_ps", "met", "number", "packet_ps",
        "packets", "ready_ps", "ring", "start_ps", "step_ps", "took_ps",
    )  # fmt: skip

    def __init__(
        self, number: int, ring: int, ready_ps: int, step_ps: int, last: int, packets: int, packet_ps: int,
        last_ps: int, fill_ps: int,
    ) -> None:  # fmt: skip
        self.number, self.ring, self.ready_ps, self.step_ps, self.last = number, ring, ready_ps, step_ps, last
        self.packets, self.packet_ps, self.last_ps, self.fill_ps = packets, packet_ps, last_ps, fill_ps
        self.took_ps = took = fill_ps + packet_ps * (packets - 1) + last_ps
        self.ends: list[int] | None = None
        self.met: Served | None = None
        self.behind: Served | None = None
        self.follower: Served | None = None
        self.start_ps = ready_ps
        final = ready_ps + step_ps * last
        if step_ps < 0:
            ready_ps, final = final, ready_ps
        self.begun_ps, self.end_ps = ready_ps, final + took

    def follow(self, other: Served) -> None:
        """Be served behind another of the ring: engines that go on to it were not idle, and fill no pipe."""
        self.behind, other.follower = other, self
        self.start_ps = other.start_ps + other.took_ps
        self.end_ps += self.start_ps - self.ready_ps - self.fill_ps
        self.took_ps -= self.fill_ps
        self.fill_ps = 0

    def __iter__(self) -> Iterator[Piece]:
        """Return an iterator over when engines serve it."""
        ready = self.ready_ps, self.step_ps
        before = (0, 0) if self.start_ps == self.ready_ps else (self.start_ps, self.step_ps)
        if self.ends is None:
            return iter((Piece(0, self.last, ready, before, (self.start_ps + self.took_ps, self.step_ps)),))
        return iter([_made(Piece, (at, at, ready, before, (end, 0))) for at, end in enumerate(self.ends)])

    def all_ends(self) -> list[int]:
        """Return when each engine is through with it."""
        if self.ends is not None:
            return self.ends.copy()
        end, step = self.start_ps + self.took_ps, self.step_ps
        return [end] * (self.last + 1) if not step else list(range(end, end + step * (self.last + 1), step))

    def end_on(self, engine: int) -> int:
        """Return when an engine is through with it."""
        return self.start_ps + self.step_ps * engine + self.took_ps if self.ends is None else self.ends[engine]

    def meets(self, other: Served) -> bool:
        """Return whether, on some engine, neither is over before the other is ready."""
        return not (other.is_before(self) or self.is_before(other))

    def is_before(self, other: Served) -> bool:
        """Return whether every engine of both is through with it before the other is ready."""
        ready, step = other.ready_ps, other.step_ps
        common = min(other.last, self.last)
        ends = self.ends
        if ends is None:
            ahead, slope = ready - self.start_ps - self.took_ps, step - self.step_ps
            return ahead > 0 and ahead + slope * common > 0
        if self.end_ps < other.begun_ps:
            return True
        for engine in range(common + 1):
            if ends[engine] >= ready:
                return False
            ready += step
        return True


class Quiet:
    """Transfers of a core's engines that have ended or are known to end where nothing else comes.

    They lie in a line by when they are ready: any two of it are one behind the other on every engine, but for pairs
    that meet, and those that wait in their ring for the one before.
    """

    __slots__ = ("_gone", "_latest", "_less", "_line", "_ready", "_rings", "_whole_ps", "served")

    def __init__(self, rings: list[int]) -> None:
        self._rings = rings  # the one that each engine served last, as far as `_gone` does not tell
        self._gone: list[Served] = []
        self._line: list[Served] = []
        self._ready: list[int] = []  # on the first engine
        self._latest: dict[int, Served] = {}  # of each ring
        self.served: dict[int, Served] = {}
        self._whole_ps = 0  # how long what was given moves data on every engine
        self._less = [0] * len(rings)  # and by how much less on each

    def give(
        self, number: int, ring: int, ready_ps: int, step_ps: int, last: int, packets: int, packet_ps: int,
        last_ps: int, fill_ps: int, now_ps: int,
    ) -> bool | None:  # fmt: skip
        """Hand out a transfer that was triggered now; return as `DmaEngines.give`, None where nothing was done."""
        if ready_ps <= 0:
            return None  # engines count as busy up to the beginning of time
        line = self._line
        if line and line[0].end_ps < now_ps:
            self._pass_by(now_ps)
        new = Served(number, ring, ready_ps, step_ps, last, packets, packet_ps, last_ps, fill_ps)
        before = self._latest.get(ring)
        waits = before is not None and not before.is_before(new)
        at = bisect_right(self._ready, ready_ps)
        if before is not None and waits:
            # A ring is served in order: alike on all engines where each gets both as much later than the one before it.
            alike = before.ends is None and before.step_ps == step_ps and before.last == last
            if not alike or before.ready_ps > ready_ps:
                return None
            new.follow(before)
        meeting = self._near(at, new.meets) if line else ()
        met: Served | None = None
        if before is not None and waits:
            if any(one.ring != ring for one in meeting):
                before.follower = None
                return None
        elif meeting:
            met = meeting[0]
            if len(meeting) > 1 or met.ends is not None or met.behind is not None or met.follower is not None:
                return None
            found = _together(met, new)
            if found is None:
                return None
            ends, others = found
            end_ps, its_end_ps = max(ends), max(others)
            latest_ps = max(its_end_ps, end_ps)
            if self._near(at, partial(_lacks_room, met, ends, others, latest_ps)):
                return None
        # An engine that was idle till then fills its pipe, as far as could be told when it was given the transfer.
        self._count(at, new, met)
        if met is not None:
            met.met, new.met = new, met
            met.ends, new.ends = ends, others
            met.end_ps, new.end_ps = end_ps, its_end_ps
        line.insert(at, new)
        self._ready.insert(at, ready_ps)
        self._latest[ring] = self.served[number] = new
        return met is not None

    def _near(self, at: int, is_wanted: Callable[[Served], bool]) -> list[Served]:
        """Return what is wanted on both sides of a place in the line.

        Behind two that are on all engines and not wanted there is nothing else that touches the place: of three that
        are on all engines the outer ones do not meet.
        """
        line, engines = self._line, len(self._rings)
        found = []
        for places in (range(at - 1, -1, -1), range(at, len(line))):
            left = 2
            for place in places:
                one = line[place]
                if is_wanted(one):
                    found.append(one)
                elif one.last + 1 == engines:
                    left -= 1
                    if not left:
                        break
        return found

    def _count(self, at: int, new: Served, met: Served | None) -> None:
        """Count how long engines move data; they fill their pipes if all they were given is over before."""
        less, took, fill = self._less, new.took_ps, new.fill_ps
        self._whole_ps += took
        for engine in range(new.last + 1, len(less)):
            less[engine] += took
        if not fill or (met is None and at == len(self._line)):
            return
        engines = range(new.last + 1)
        busy = [False] * len(less)
        others = self._line[at:] if met is None else [met, *self._line[at:]]
        for one in others:
            for engine in range(min(new.last, one.last) + 1):
                if not busy[engine] and one.end_on(engine) >= new.ready_ps + new.step_ps * engine:
                    busy[engine] = True
            if one.last + 1 == len(less) and one is not met:
                break  # which is behind it on all engines
        for engine in engines:
            if busy[engine]:
                less[engine] += fill

    def _pass_by(self, now_ps: int) -> None:
        """Put away what is over: whatever comes is ready later."""
        line, gone, count = self._line, self._gone, 0
        for one in line:
            # Of two that met one is not over while the other would be planned without it.
            if one.end_ps >= now_ps or (one.met is not None and one.met.end_ps >= now_ps):
                break
            count += 1
        for one in line[:count]:
            met, one.met = one.met, None
            follower, one.follower = one.follower, None
            if follower is not None:
                follower.behind = None
            if one.last + 1 == len(self._rings):
                # All engines served it behind whatever is before it in the line, but for what it met.
                gone[:] = [met] if met is not None and met in gone else ()
            gone.append(one)
        del line[:count], self._ready[:count]
        if len(gone) > _KEPT:
            self._rings = self.rings()
            gone.clear()

    def rings(self) -> list[int]:
        """Return the ring that each engine served last before what is not over."""
        rings = self._rings.copy()
        ended = [-1] * len(rings)
        for one in self._gone:
            for engine in range(one.last + 1):
                end = one.end_on(engine)
                if end > ended[engine]:
                    rings[engine], ended[engine] = one.ring, end
        return rings

    def busy_ps(self) -> list[int]:
        """Return how long what each engine was given moves data."""
        return [self._whole_ps - less for less in self._less]

    def live(self, now_ps: int) -> list[Served]:
        """Return what is not over, of each ring in order."""
        self._pass_by(now_ps)
        return self._line


def _lacks_room(met: Served, ends: list[int], others: list[int], latest_ps: int, one: Served) -> bool:
    """Return whether a transfer that two which meet did not meet begins, on some engine, before they end."""
    if one is met or one.begun_ps > latest_ps or one.is_before(met):
        return False
    ready = one.ready_ps
    for engine in range(one.last + 1):
        if (engine < len(ends) and ends[engine] >= ready) or (engine < len(others) and others[engine] >= ready):
            return True
        ready += one.step_ps
    return False


def _together(one: Served, other: Served) -> tuple[list[int], list[int]] | None:
    """Return when each engine is through with two transfers that meet; None where the ring served last decides."""
    if not one.packet_ps or not other.packet_ps:
        return None
    ends, others = one.all_ends(), other.all_ends()
    ready, its, step, its_step = one.start_ps, other.start_ps, one.step_ps, other.step_ps
    for engine in range(min(one.last, other.last) + 1):
        if ready < its:
            if ends[engine] >= its:
                ends[engine], others[engine] = _turns(one, ready, other, its)
        elif its < ready:
            if others[engine] >= ready:
                others[engine], ends[engine] = _turns(other, its, one, ready)
        else:
            return None
        ready += step
        its += its_step
    return ends, others


def _turns(first: Served, ready_ps: int, second: Served, its_ready_ps: int) -> tuple[int, int]:
    """Return when an engine is through with two transfers, of which the first is ready before the second."""
    packet, left = first.packet_ps, first.packets
    at = ready_ps + first.fill_ps
    alone = -((at - its_ready_ps) // packet)  # packets before the second is ready
    if alone < 1:
        alone = 1  # for which it got ready
    if alone >= left:
        at += packet * (left - 1) + first.last_ps
        if at < its_ready_ps:
            return at, its_ready_ps + second.took_ps
        return at, at + second.took_ps - second.fill_ps
    at += alone * packet
    left -= alone
    its_packet, its_left = second.packet_ps, second.packets
    rounds = (min(its_left, left)) - 1
    left -= rounds
    its_left -= rounds
    at += rounds * (packet + its_packet)
    # The second has its turn; one of both has one packet left.
    if its_left == 1:
        its_end = at + second.last_ps
        return its_end + (left - 1) * packet + first.last_ps, its_end
    end = at + its_packet + first.last_ps
    return end, end + (its_left - 2) * its_packet + second.last_ps
