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

    It starts at `start_ps`, `turn_ps` later on each further engine: then, or when the one that it is `behind` in its
    ring is through. `ends` are those of each engine where it `met` another, else it takes `took_ps` everywhere.
    `begun_ps` is when the first engine has it ready, `saved_ps` the filling that waiting saved it.
    """

    __slots__ = (
        "begun_ps", "behind", "end_ps", "ends", "fill_ps", "follower", "last", "last_ps", "met", "number", "packet_ps",
        "packets", "ready_ps", "ring", "saved_ps", "start_ps", "step_ps", "took_ps", "turn_ps",
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
        self.start_ps, self.turn_ps, self.saved_ps = ready_ps, step_ps, 0
        final = ready_ps + step_ps * last
        if step_ps < 0:
            ready_ps, final = final, ready_ps
        self.begun_ps, self.end_ps = ready_ps, final + took

    def follow(self, other: Served) -> None:
        """Be served behind another of the ring: engines that go on to it were not idle, and fill no pipe."""
        self.behind, other.follower = other, self
        self.start_ps = start = other.start_ps + other.took_ps
        self.turn_ps = step = other.turn_ps
        self.took_ps -= self.fill_ps
        self.saved_ps, self.fill_ps = self.fill_ps, 0
        self.end_ps = start + self.took_ps + (step * self.last if step > 0 else 0)

    def __iter__(self) -> Iterator[Piece]:
        """Return an iterator over when engines serve it."""
        whole = self.whole
        if self.ends is None:
            return iter((whole,))
        _, _, ready, before, _ = whole
        return iter([_made(Piece, (at, at, ready, before, (end, 0))) for at, end in enumerate(self.ends)])

    @property
    def whole(self) -> Piece:
        """Return when engines serve it, as one piece: where it met another, its end is that of none of them."""
        ready, before = (self.ready_ps, self.step_ps), (self.start_ps, self.turn_ps)
        end = self.start_ps + self.took_ps, self.turn_ps
        return Piece(0, self.last, ready, (0, 0) if before == ready else before, end)

    @property
    def started_ps(self) -> int:
        """Return when the first engine begins."""
        return self.whole.begun_ps

    def all_ends(self) -> list[int]:
        """Return when each engine is through with it."""
        if self.ends is not None:
            return self.ends.copy()
        end, step = self.start_ps + self.took_ps, self.turn_ps
        return [end] * (self.last + 1) if not step else list(range(end, end + step * (self.last + 1), step))

    def end_on(self, engine: int) -> int:
        """Return when an engine is through with it."""
        return self.start_ps + self.turn_ps * engine + self.took_ps if self.ends is None else self.ends[engine]

    def meets(self, other: Served) -> bool:
        """Return whether, on some engine, neither is over before the other is ready."""
        return not (other.is_before(self) or self.is_before(other))

    def is_before(self, other: Served) -> bool:
        """Return whether every engine of both is through with it before the other is ready."""
        ready, step = other.ready_ps, other.step_ps
        common = min(other.last, self.last)
        ends = self.ends
        if ends is None:
            ahead, slope = ready - self.start_ps - self.took_ps, step - self.turn_ps
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

    __slots__ = ("_gone", "_latest", "_less", "_line", "_only", "_ready", "_rings", "_whole_ps", "served")

    def __init__(self, rings: list[int]) -> None:
        self._rings = rings  # the one that each engine served last, as far as `_gone` does not tell
        self._gone: list[Served] = []
        self._line: list[Served] = []
        self._ready: list[int] = []  # on the first engine
        self._latest: dict[int, Served] = {}  # of each ring
        self._only = -1  # the ring of all that is in the line, -1 where there are several
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
            # A ring is served in order: alike where no engine has it ready after the one before it is through.
            if before.ends is not None or before.last < last or before.ready_ps > ready_ps:
                return None
            ahead, slope = ready_ps - before.start_ps - before.took_ps, step_ps - before.turn_ps
            if ahead > 0 or ahead + slope * last > 0:
                return None
            new.follow(before)
        # Among transfers of one ring those that wait for one another are all there is to meet.
        is_near = line and not (waits and self._only == ring)
        meeting = self._near(at, new.begun_ps, new.end_ps, new.meets) if is_near else ()
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
            if self._near(at, met.begun_ps, latest_ps, partial(_lacks_room, met, ends, others)):
                return None
        # An engine that was idle till then fills its pipe, as far as could be told when it was given the transfer.
        self._count(at, new, met)
        if met is not None:
            met.met, new.met = new, met
            met.ends, new.ends = ends, others
            met.end_ps, new.end_ps = end_ps, its_end_ps
        if not line:
            self._only = ring
        elif self._only != ring:
            self._only = -1
        line.insert(at, new)
        self._ready.insert(at, ready_ps)
        self._latest[ring] = self.served[number] = new
        return met is not None

    def stand_behind(self, ring: int, time: tuple[int, int]) -> None:
        """Have engines free when they are through with a transfer of a ring: that on the first, so much later on each.

        That one is in front of all that is given from now on, in its ring too, and counts for nothing else.
        """
        before = self._latest[ring] = Served(-1, ring, 0, 0, len(self._rings) - 1, 1, 0, 0, 0)
        before.start_ps, before.turn_ps = time

    def _near(self, at: int, begin_ps: int, end_ps: int, is_wanted: Callable[[Served], bool]) -> list[Served]:
        """Return what is wanted on both sides of a place in the line, none of which is over before or begins behind.

        Behind two that are on all engines and not wanted there is nothing else that touches the place: of three that
        are on all engines the outer ones do not meet.
        """
        line, engines = self._line, len(self._rings)
        found = []
        for places in (range(at - 1, -1, -1), range(at, len(line))):
            left = 2
            for place in places:
                one = line[place]
                if one.end_ps >= begin_ps and one.begun_ps <= end_ps and is_wanted(one):
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
        busy: set[int] = set()
        others = self._line[at:] if met is None else [met, *self._line[at:]]
        ready, step = new.ready_ps, new.step_ps
        for one in others:
            common, ends = min(new.last, one.last), one.ends
            if ends is None:
                ahead, slope = ready - one.start_ps - one.took_ps, step - one.turn_ps
                if ahead <= 0 and ahead + slope * common <= 0:
                    busy.update(range(common + 1))
                elif ahead <= 0 or ahead + slope * common <= 0:
                    busy.update([engine for engine in range(common + 1) if ahead + slope * engine <= 0])
            else:
                busy.update([engine for engine in range(common + 1) if ends[engine] >= ready + step * engine])
            if one.last + 1 == len(less) and one is not met:
                break  # which is behind it on all engines
        for engine in busy:
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


def _lacks_room(met: Served, ends: list[int], others: list[int], one: Served) -> bool:
    """Return whether a transfer that two which meet did not meet begins, on some engine, before they end."""
    if one is met or one.is_before(met):
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
    ready, its, step, its_step = one.start_ps, other.start_ps, one.turn_ps, other.turn_ps
    engine, left = 0, min(one.last, other.last) + 1
    while left:
        if ready < its:
            end, its_end, count = _turns(one, ready, other, its, its_step - step, left)
            turn = step
        elif its < ready:
            its_end, end, count = _turns(other, its, one, ready, step - its_step, left)
            turn = its_step
        else:
            return None
        if end:
            behind = engine + count
            ends[engine:behind] = range(end, end + turn * count, turn) if turn else [end] * count
            others[engine:behind] = range(its_end, its_end + turn * count, turn) if turn else [its_end] * count
        engine += count
        left -= count
        ready += step * count
        its += its_step * count
    return ends, others


def _turns(
    first: Served, ready_ps: int, second: Served, its_ready_ps: int, slope: int, most: int
) -> tuple[int, int, int]:
    """Return when an engine is through with two transfers, of which the first is ready before the second.

    Both are 0 where it is through with the first by then.  The third is how many engines, of `most`, go the same way,
    each as much later as it has the first later; the second is ready by `slope` more behind that.
    """
    packet, left, took = first.packet_ps, first.packets, first.took_ps
    ahead = its_ready_ps - ready_ps  # above 0, and so it is on all that go the same way
    if ahead > took:
        return 0, 0, most if slope >= 0 else min((ahead - took - 1) // -slope + 1, most)
    fill = first.fill_ps
    alone = -((fill - ahead) // packet)  # packets before the second is ready
    if alone < 1:
        alone = 1  # for which it got ready
    served_ps = fill + packet * (min(alone, left) - 1)
    # As long as there are no more of these, nor fewer, nor the second is the one that is ready first.
    if slope > 0:
        latest_ps = served_ps + packet if alone < left else took
        most = min((latest_ps - ahead) // slope + 1, most)
    elif slope < 0:
        most = min((ahead - (served_ps if served_ps > fill else 0) - 1) // -slope + 1, most)
    if alone >= left:
        end = ready_ps + took
        return end, end + second.took_ps - second.fill_ps, most
    at = ready_ps + served_ps + packet
    left -= alone
    its_packet, its_left = second.packet_ps, second.packets
    rounds = (min(its_left, left)) - 1
    left -= rounds
    its_left -= rounds
    at += rounds * (packet + its_packet)
    # The second has its turn; one of both has one packet left.
    if its_left == 1:
        its_end = at + second.last_ps
        return its_end + (left - 1) * packet + first.last_ps, its_end, most
    end = at + its_packet + first.last_ps
    return end, end + (its_left - 2) * its_packet + second.last_ps, most
