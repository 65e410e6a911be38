"""A row of transfers in one ring, each of which waits for the one before it, and what engines serve beside it.

An engine serves the row alone until something else is ready, then one packet of each in turn, and again the row alone.
It never waits meanwhile: what is left of the row ends later by what the other takes.
"""

from __future__ import annotations

from collections.abc import Iterable

from emulator.dma.served import Served

__all__ = ["Row", "row_before"]

_LONGEST = 32  # transfers that may wait in a row


class Row:
    """Transfers of a ring, all on the same engines, from the one on that is served when something else comes.

    It `is_over` when something that is served beside it outlasts it on some engine; what comes behind that in its ring
    is served alone. It `is_uneven` when engines are not through with all of it at even times, and `is_broken` when
    something of its ring does not wait for it: nothing more can be told then.
    """

    __slots__ = ("_alone_ps", "_guest", "_left", "_members", "_places", "is_broken", "is_over", "is_uneven", "ring")

    def __init__(self, members: list[Served]) -> None:
        host = members[0]
        self.ring = host.ring
        self.is_over = self.is_broken = self.is_uneven = False
        self._members = members
        self._guest: Served | None = None  # the last that was served beside it
        # When each engine was through with that, and what it has left of which.
        begin, step = host.start_ps + host.fill_ps, host.turn_ps
        self._alone_ps = [begin + step * engine for engine in range(host.last + 1)]
        self._places, self._left = [0] * (host.last + 1), [host.packets] * (host.last + 1)

    @property
    def end_ps(self) -> int:
        """Return when the last engine is through with all."""
        end_ps = self._members[-1].end_ps
        return end_ps if self._guest is None else max(end_ps, self._guest.end_ps)

    def follow(self, new: Served) -> None:
        """Have one more of the ring behind all others."""
        before = self._members[-1]
        if new.behind is before and new.starts is None and new.last == before.last and new.packet_ps:
            self._members.append(new)
        else:
            self.is_broken = True

    def visit(self, new: Served, latest: Iterable[Served]) -> list[Served] | None:
        """Have engines serve a transfer beside the row; None where more is to be told, which changes nothing.

        `latest` are the last of each ring. Return those that end later for it.
        """
        members, guest, begun_ps = self._members, self._guest, new.begun_ps
        if self.is_broken or new.last != members[0].last or not new.packet_ps:
            return None
        for other in latest:
            if other.end_ps >= begun_ps and other is not members[-1] and other is not guest:
                return None
        is_next = guest is not None and guest.ring == new.ring  # and may have to wait for that
        if guest is not None and is_next and guest.ready_ps > new.ready_ps:
            return None
        place = self._places[0]
        while place + 1 < len(members) and members[place].is_before(new) and max(self._places) == place:
            # All engines have gone on to the next before it is ready.
            self._alone_ps, place = members[place].all_ends(), place + 1
            self._places, self._left = [place] * len(self._places), [members[place].packets] * len(self._places)
        packet, others, ready, step = new.packet_ps, new.packets - 1, new.ready_ps, new.step_ps
        count = first = len(members)
        took = packet * others + new.last_ps
        begins = [ready + step * engine for engine in range(new.last + 1)]
        if is_next:
            begins = [max(begin, time) for begin, time in zip(begins, self._alone_ps, strict=True)]
        elif guest is not None and any(begin <= time for begin, time in zip(begins, self._alone_ps, strict=True)):
            return None  # three at a time
        ends: list[int] = []
        places: list[int] = []
        left: list[int] = []
        over: dict[tuple[int, int], int] = {}  # when engines were through meanwhile, by place and engine
        for engine, (place, time, packets) in enumerate(zip(self._places, self._alone_ps, self._left, strict=True)):
            if place < count:
                # The row alone until it is ready, one packet at least; in turns until it has its last one left.
                each = members[place].packet_ps
                ahead = others - (time - ready) // each
                if ahead <= others:
                    ahead = others + 1
                if ahead < packets:
                    ends.append(time + each * ahead + took)
                    left.append(packets - ahead)
                    places.append(place)
                    if place < first:
                        first = place
                    ready += step
                    continue
            found = self._beside(new, ready, engine, over)
            if found is None:
                return None
            begun, place, packets, time = found
            ends.append(time)
            left.append(packets)
            places.append(place)
            if begun < first:
                first = begun
            ready += step
        final = max(places)
        is_over = final == count
        if is_next or is_over:
            new.starts = begins
        new.ends, new.end_ps, new.took_ps = ends, max(ends), took
        self.is_uneven = self.is_uneven or first < final
        changed = members[first:]
        if first < final:
            self._part(changed[: final - first], first, places, over, took)
        _put_off(changed, final - first, took)
        if is_over:
            before = guest if self.is_over and guest is not None else members[-1]
            new.behind, before.follower = before, new
            self.is_over = True
        else:
            host = members[first]
            host.guests = [*(host.guests or ()), new]
        self._alone_ps, self._places, self._left, self._guest = ends, places, left, new
        gone = min(places)
        if _LONGEST < gone < count:
            del members[:gone]
            self._places = [place - gone for place in places]
        return changed

    def _beside(
        self, new: Served, ready_ps: int, engine: int, over: dict[tuple[int, int], int]
    ) -> tuple[int, int, int, int] | None:
        """Serve a transfer beside several members on an engine, or behind the last; None where it fills the pipe.

        Return the place of the one that the engine serves when it is ready, the place of the one that it is to serve
        when it is through with it, packets that are left of that, and when that is; put down when others are over.
        """
        members, place, time, packets = self._members, self._places[engine], self._alone_ps[engine], self._left[engine]
        count, packet, rounds, begun = len(members), new.packet_ps, new.packets - 1, len(members)
        ahead = max(-((time - ready_ps) // members[place].packet_ps), 1) if place < count else 0
        while place < count and ahead >= packets:
            one = members[place]
            time += one.packet_ps * (packets - 1) + one.last_ps
            if time >= ready_ps and place < begun:
                begun = place
            place += 1
            if place < count:
                packets = members[place].packets
                ahead = max(-((time - ready_ps) // members[place].packet_ps), 0)
        if place < count:
            time += members[place].packet_ps * ahead
            packets -= ahead
            begun = min(begun, place)
        while place < count and rounds >= packets:
            one = members[place]
            time += packet * packets + one.packet_ps * (packets - 1) + one.last_ps
            rounds -= packets
            over[place, engine] = time
            place += 1
            if place < count:
                packets = members[place].packets
        if place < count:
            time += members[place].packet_ps * rounds
            packets -= rounds
        elif time < ready_ps:
            if new.fill_ps:
                return None
            time = ready_ps
        return begun, place, packets, time + packet * rounds + new.last_ps

    def _part(
        self, some: list[Served], first: int, places: list[int], over: dict[tuple[int, int], int], took: int
    ) -> None:
        """Let members, from a place on, end later by what a guest took on engines that are not through with them.

        On those that were through with them meanwhile they end when these were.
        """
        starts: list[int] | None = None
        for place, one in enumerate(some, first):
            ends = one.all_ends()
            for engine, at in enumerate(places):
                ends[engine] = over.get((place, engine), ends[engine]) if at > place else ends[engine] + took
            one.starts = starts or one.starts
            one.ends, one.end_ps, one.mean_ps, starts = ends, max(ends), -1, ends


def _put_off(members: list[Served], place: int, took: int) -> None:
    """Let members from a place on end later by what all engines served beside them, or beside the one at that place."""
    before = members[place - 1].ends if place else None
    for one in members[place:]:
        one.mean_ps = -1
        one.end_ps += took
        if before is not None:
            one.ends = [end + took for end in one.all_ends()]
            one.starts, before = before, None
        elif one.ends is not None:
            one.ends = [end + took for end in one.ends]
            if one.starts is not None and one is not members[place]:
                one.starts = [start + took for start in one.starts]
        elif one is members[place]:
            one.took_ps += took
        else:
            one.start_ps += took


def row_before(new: Served, latest: Iterable[Served]) -> Row | None:
    """Return what there is of one ring when a transfer is ready: what all engines have begun, and what waits for it.

    None where there is anything else; `latest` are the last of each ring.
    """
    one: Served | None = None
    begun_ps, ready, last = new.begun_ps, new.ready_ps, new.last
    for each in latest:
        if each.end_ps >= begun_ps:
            if one is not None:
                return None
            one = each
    members: list[Served] = []
    while one is not None and len(members) < _LONGEST:
        if one.ends is not None or one.met is not None or one.guests or not one.packet_ps or one.last != last:
            return None
        members.append(one)
        if one.start_ps < ready and one.start_ps + one.turn_ps * last < ready + new.step_ps * last:
            return Row(members[::-1]) if one.ring != new.ring else None
        one = one.behind
    return None
