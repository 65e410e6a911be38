"""DMA engines with little to do: transfers that they serve one after the other, or two at a time.

Where a transfer meets no other on any engine, each serves it when it is ready.  Where it meets none but those before it
in its ring, engines go on to it when they are through with these.  Where two meet, of different rings, an engine serves
the one that is ready first, packet by packet, and both in turn once the other is ready: when each ends is worked out at
once.  So it is where short ones come beside a long one (`emulator.dma.row`).  Whatever is more than that
(`Quiet.give` returns None) is for the plans of `emulator.dma.arbitration`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from functools import partial
from operator import attrgetter

from emulator.dma.row import Row, row_before
from emulator.dma.served import Served

__all__ = ["Quiet"]

_LONGEST = 40  # transfers in the line while something is served beside a row
_KEPT = 16  # transfers that are over, kept to know which ring was served last


class Quiet:
    """Transfers of a core's engines that have ended or are known to end where nothing else comes.

    They lie in a line by when they are ready: any two of it are one behind the other on every engine, but for pairs
    that meet, and those that wait in their ring for the one before. What is served beside a `_row` does not: while that
    is not over, there is nothing else.
    """

    __slots__ = (
        "_end_ps", "_gone", "_latest", "_less", "_line", "_only", "_parted", "_ready", "_rings", "_row", "_whole_ps",
        "changed", "served",
    )  # fmt: skip

    def __init__(self, rings: list[int]) -> None:
        self._rings = rings  # the one that each engine served last, as far as `_gone` does not tell
        self._gone: list[Served] = []
        self._line: list[Served] = []
        self._ready: list[int] = []  # on the first engine
        self._latest: dict[int, Served] = {}  # of each ring
        self._parted = False  # whether something in the line has `starts`
        self._only = -1  # the ring of all that is in the line, -1 where there are several
        self._row: Row | None = None
        self.served: dict[int, Served] = {}
        self.changed: Sequence[int] = ()  # others whose times were changed by what was given last
        self._end_ps = 0  # when the last of what is in the line ends, or later
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
        begun_ps = new.begun_ps
        self.changed = ()
        row = self._row
        if row is not None:
            if row.end_ps < begun_ps:
                row = self._row = None
            elif ring != row.ring:
                return self._visit(row, new)
            elif row.is_over:
                return None
        if before is not None:
            # Where engines are not through with it, they are served in order.
            is_told = None if before.end_ps < begun_ps else new.follow(before)
            if is_told is None:
                before = None
            elif not is_told or before.ready_ps > ready_ps:
                before.follower = None
                return None
        at = bisect_right(self._ready, ready_ps)
        meeting: Sequence[Served] = ()
        if self._end_ps < begun_ps or not line:
            pass
        elif before is not None and new.starts is None and line[-1] is before:
            # Engines go on from the last that came, with which they are through behind all others but one that it met.
            if before.met is not None:
                meeting = (before.met,)
        elif before is None or self._only != ring or new.starts is not None:
            # Among transfers of one ring those that wait for one another are all there is to meet.
            meeting = self._near(at, begun_ps, new.end_ps, new.meets)
        met: Served | None = None
        if before is not None:
            if new.starts is not None:
                is_told = at == len(line) and all(one is before for one in meeting)
                self._parted = self._parted or is_told
            else:
                # Others are of no account where engines are through with them before they go on to this one.
                start, turn = new.start_ps, new.turn_ps
                is_told = not meeting or all(one.ring == ring or one.ends_before(start, turn, last) for one in meeting)
            if not is_told:
                before.follower = None
                return None
        elif meeting:
            met = meeting[0]
            if len(meeting) > 1 or met.behind is not None or met.follower is not None or met.packets > 2 * packets:
                begun = row_before(new, self._latest.values())
                visited = None if begun is None else self._visit(begun, new)
                if visited is not None or len(meeting) > 1 or met.behind is not None or met.follower is not None:
                    return visited
            if met.ends is not None:
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
            met.mean_ps = -1
            self.changed = (met.number,)
        if new.end_ps > self._end_ps or met is not None:
            self._end_ps = max(self._end_ps, new.end_ps, 0 if met is None else met.end_ps)
        self._line_up(at, new)
        if row is not None:
            row.follow(new)
        return met is not None

    def _line_up(self, at: int, new: Served) -> None:
        """Put a transfer into the line."""
        if not self._line:
            self._only = new.ring
        elif self._only != new.ring:
            self._only = -1
        self._line.insert(at, new)
        self._ready.insert(at, new.ready_ps)
        self._latest[new.ring] = self.served[new.number] = new

    def _visit(self, row: Row, new: Served) -> bool | None:
        """Have engines serve a transfer beside a row; return as `give`."""
        if len(self._line) > _LONGEST:
            return None  # it is as long as the row may have to be planned
        changed = row.visit(new, self._latest.values())
        if changed is None:
            return None
        took, less = new.took_ps, self._less
        self._whole_ps += took
        for engine in range(new.last + 1, len(less)):
            less[engine] += took
        if row.end_ps > self._end_ps:
            self._end_ps = row.end_ps
        self._row, self.changed = row, [one.number for one in changed]
        self._parted = self._parted or row.is_uneven
        if row.is_over:  # and is outlasted
            self._line_up(bisect_right(self._ready, new.ready_ps), new)
        else:
            self._latest[new.ring] = self.served[new.number] = new
        return bool(changed)

    def stand_behind(self, ring: int, time: tuple[int, int]) -> None:
        """Have engines free when they are through with a transfer of a ring: that on the first, so much later on each.

        That one is in front of all that is given from now on, in its ring too, and counts for nothing else.
        """
        before = self._latest[ring] = Served(-1, ring, 0, 0, len(self._rings) - 1, 1, 0, 0, 0)
        before.start_ps, before.turn_ps = at, step = time
        before.end_ps = at + max(step * before.last, 0)
        before.ends = before.all_ends()  # so that no more than all engines go on from it

    def _near(self, at: int, begin_ps: int, end_ps: int, is_wanted: Callable[[Served], bool]) -> list[Served]:
        """Return what is wanted on both sides of a place in the line, none of which is over before or begins behind.

        Behind two that are on all engines and not wanted there is nothing else that touches the place: of three that
        are on all engines the outer ones do not meet.
        """
        line, engines = self._line, len(self._rings)
        found = []
        for places in (range(at - 1, -1, -1), range(at, len(line))):
            left = 2
            for one in map(line.__getitem__, places):
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
        beside = met if new.starts is None else new.behind
        if not fill or (beside is None and at == len(self._line)):
            return
        busy: set[int] = set()
        others = self._line[at:] if beside is None else [beside, *self._line[at:]]
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
            if one.last + 1 == len(less) and one is not beside:
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
        if self._parted:
            # Nor is one that some engines go on from, which cannot be told of without it.
            kept, most = [], len(line) + 1
            while most > count:
                most = count
                kept = [one.behind for one in line[count:] if one.starts is not None]
                count = min([count, *[place for place, one in enumerate(line[:count]) if one in kept]])
            self._parted = bool(kept)
        for one in line[:count]:
            met, one.met, one.guests = one.met, None, None
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
        line = self._line
        guests = [guest for one in line for guest in one.guests or ()]
        return sorted([*guests, *line], key=attrgetter("ready_ps")) if guests else line

    def release(self) -> None:
        """Let go of each other what met or waits in a row; nothing may be handed out after that."""
        for one in self._line:
            one.met = one.behind = one.follower = None


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
    common = min(one.last, other.last) + 1
    ahead, slope = other.start_ps - one.start_ps, other.turn_ps - one.turn_ps
    final = ahead + slope * (common - 1)
    ends, others = one.all_ends(), other.all_ends()
    if ahead > 0 and final > 0:
        _take_turns(one, other, 0, common, ends, others)
    elif ahead < 0 and final < 0:
        _take_turns(other, one, 0, common, others, ends)
    elif not slope or not ahead % slope:
        return None  # an engine has both at once
    else:
        change = -ahead // slope + 1
        if ahead > 0:
            _take_turns(one, other, 0, change, ends, others)
            _take_turns(other, one, change, common, others, ends)
        else:
            _take_turns(other, one, 0, change, others, ends)
            _take_turns(one, other, change, common, ends, others)
    return ends, others


def _take_turns(
    first: Served, second: Served, engine: int, behind: int, ends: list[int], others: list[int]
) -> None:  # fmt: skip
    """Set when engines in front of `behind` are through with two transfers; each has the first before the second."""
    ready_ps, step, took, fill = first.start_ps, first.turn_ps, first.took_ps, first.fill_ps
    packet, packets, its_packet, its_packets = first.packet_ps, first.packets, second.packet_ps, second.packets
    begins, slope = second.start_ps - ready_ps, second.turn_ps - step
    whole = took + second.took_ps - second.fill_ps  # whichever is served last: engines never wait
    while engine < behind:
        ahead = begins + slope * engine
        if ahead > took:  # through with the first by then
            if slope >= 0:
                return
            engine += (ahead - took - 1) // -slope + 1
            continue
        alone = -((fill - ahead) // packet)  # packets before the second is ready
        if alone < 1:
            alone = 1  # for which it got ready
        # Engines go the same way as long as there are no more of these, nor fewer, and the first is ready first.
        if slope > 0:
            latest = fill + packet * alone if alone < packets else took
            until = engine + (latest - ahead) // slope + 1
        elif slope < 0:
            latest = fill + packet * (min(alone, packets) - 1) if alone > 1 and packets > 1 else 0
            until = engine + (ahead - latest - 1) // -slope + 1
        else:
            until = behind
        if until > behind:
            until = behind
        end = its_end = whole
        left = packets - alone
        if left <= 0:
            end = took
        elif left >= its_packets:
            its_end = fill + alone * packet + (its_packets - 1) * (packet + its_packet) + second.last_ps
        else:
            end = fill + alone * packet + (left - 1) * (packet + its_packet) + its_packet + first.last_ps
        at = ready_ps + step * engine
        span = until - engine
        end += at
        its_end += at
        ends[engine:until] = range(end, end + step * span, step) if step else [end] * span
        others[engine:until] = range(its_end, its_end + step * span, step) if step else [its_end] * span
        engine = until
