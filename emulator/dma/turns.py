"""Rings in turn on engines that go the same way: in jumps of whole rounds up to the end of a transfer.

Where another ring gets ready in between, engines have to be behind as many packets then; `Apart` says from which
engine on they are not.
"""

from __future__ import annotations

from bisect import insort

from emulator.dma.abreast import Abreast
from emulator.dma.work import Head, Lane, Time
from formats.neuron_core import DMA_RINGS

__all__ = ["Turns"]


class Turns(Abreast):
    """Where engines `first` to `last` stand: the time after what they have served, and what rings have next."""

    __slots__ = ("_heads", "_lanes", "_last_ring", "_time")

    def __init__(self, first: int, last: int, time_ps: int, last_ring: int) -> None:
        super().__init__(first, last)
        self._lanes: dict[int, Lane] = {}  # by ring
        self._heads: dict[int, Head] = {}  # of rings that have work left
        self._time: Time = (time_ps, 0)
        self._last_ring = last_ring

    def _take_two_turns(self) -> int:
        """Do as `_take_turns` for two rings, which there are nearly always."""
        heads, lanes = self._heads, self._lanes
        (one, (number, left, _)), (other, (its_number, its_left, _)) = heads.items()
        lane, its_lane = lanes[one], lanes[other]
        mine, its = lane.runs[number - lane.start], its_lane.runs[its_number - its_lane.start]
        _, _, my_ready, _, my_packet, _, my_fill, my_step = mine
        _, _, its_ready, _, its_packet, _, its_fill, its_step = its
        at, step = self._time
        last_ring, first, last = self._last_ring, self.first, self.last
        is_over = self.is_over
        while True:
            ahead, slope = at - my_ready, step - my_step
            i_am = ahead + slope * first >= 0
            if i_am != (ahead + slope * last >= 0):
                is_over(at, step, my_ready, my_step)
            ahead, slope = at - its_ready, step - its_step
            it_is = ahead + slope * first >= 0
            if it_is != (ahead + slope * last >= 0):
                is_over(at, step, its_ready, its_step)
            if i_am and it_is:
                # In turns until one has its last packet left, which it has in its next turn.
                rounds = min(left, its_left) - 1
                left -= rounds
                its_left -= rounds
                at += rounds * (my_packet + its_packet)
                if (one - last_ring - 1) % DMA_RINGS < (other - last_ring - 1) % DMA_RINGS:
                    ring = one
                    if left > 1:
                        left -= 1
                        at += my_packet
                        last_ring, ring = one, other
                else:
                    ring = other
                    if its_left > 1:
                        its_left -= 1
                        at += its_packet
                        last_ring, ring = other, one
                break
            if i_am:
                count = left
                if my_packet:
                    count = self.parts(left, its_ready - at + my_packet - 1, its_step - step, my_packet)
                if count == left:
                    ring = one
                    break
                left -= count
                took, last_ring = count * my_packet, one
            elif it_is:
                count = its_left
                if its_packet:
                    count = self.parts(its_left, my_ready - at + its_packet - 1, my_step - step, its_packet)
                if count == its_left:
                    ring = other
                    break
                its_left -= count
                took, last_ring = count * its_packet, other
            else:
                # Neither: the one that is ready first begins, and where both are, the one whose turn it is.
                begins, slope = my_ready, my_step
                ahead, behind = its_ready - my_ready, its_step - my_step
                if behind:
                    if not is_over(its_ready, its_step, my_ready, my_step):
                        begins, slope = its_ready, its_step
                    i_am = self.is_same(my_ready, my_step, begins, slope)
                    it_is = self.is_same(its_ready, its_step, begins, slope)
                else:
                    i_am, it_is = ahead >= 0, ahead <= 0
                    if ahead < 0:
                        begins = its_ready
                if i_am and it_is:
                    i_am = (one - last_ring - 1) % DMA_RINGS < (other - last_ring - 1) % DMA_RINGS
                if i_am:
                    if left == 1:  # it gets ready, and fills the pipe, with this packet
                        ring = one
                        break
                    left -= 1
                    took, last_ring = my_packet, one
                    at, step = begins + my_fill, slope
                else:
                    if its_left == 1:
                        ring = other
                        break
                    its_left -= 1
                    took, last_ring = its_packet, other
                    at, step = begins + its_fill, slope
            at += took
        heads[one] = number, left, heads[one][2]
        heads[other] = its_number, its_left, heads[other][2]
        self._time, self._last_ring = (at, step), last_ring
        return ring

    def _take_turns(self) -> int:
        """Serve several rings until one of them has its turn with its last packet; return that ring."""
        heads, lanes, first, last = self._heads, self._lanes, self.first, self.last
        at, step = self._time
        left: dict[int, int] = {}
        ready: list[tuple[int, int]] = []  # rings, and how long each packet takes
        waiting: list[tuple[int, ...]] = []  # the same behind when it is ready, from now: first engine, last, any
        for ring, (number, packets, _) in heads.items():
            lane = lanes[ring]
            run = lane.runs[number - lane.start]
            left[ring] = packets
            gap, slope = run[2] - at, run[7] - step
            begin, end = gap + slope * first, gap + slope * last
            if begin > 0 < end:
                waiting.append((begin, end, gap, slope, ring, run[4]))
            elif begin <= 0 >= end:
                ready.append((ring, run[4]))
            else:
                self.is_over(0, 0, gap, slope)  # which raises Apart
        if not ready:
            return self._begin()
        ready.sort()
        last_ring, served = self._last_ring, 0
        while True:
            length = turn = least = 0
            for ring, each in ready:
                length += each
                turn += ring <= last_ring
                packets = left[ring]
                if packets < least or not least:
                    least = packets
            # What gets ready behind the last packet of one of these is of no account here.
            limit = served + least * length
            later, begin, end = None, limit, limit
            for one in waiting:
                if (one[0] <= limit or one[1] <= limit) and (
                    later is None or not self.is_over(one[2], one[3], later[2], later[3])
                ):
                    later = one
                    begin, end = one[0], one[1]
            if later is None:
                # The first that has no more than any is through, in turn behind those that have taken as many.
                served += (least - 1) * length
                through = -1
                for ring, each in ready[turn:] + ready[:turn]:
                    number, _, ended = heads[ring]
                    packets = left[ring] - least
                    if through >= 0:
                        packets += 1
                    elif packets:
                        served += each
                    else:
                        through, packets = ring, 1
                    heads[ring] = number, packets, ended
                self._time, self._last_ring = (at + served, step), through
                return through
            rounds = min(least - 1, (begin - served - 1) // length)
            if rounds:
                served += rounds * length
                for ring, _ in ready:
                    left[ring] -= rounds
            # As many packets on all engines until another ring is ready, or one of these has its turn with its last.
            before, count = served, len(ready)
            while served < begin:
                ring, each = ready[turn % count]
                if left[ring] == 1:
                    if end <= served:
                        self.is_over(served, 0, later[2], later[3])
                    for one_of, _ in ready:
                        number, _, ended = heads[one_of]
                        heads[one_of] = number, left[one_of], ended
                    self._time, self._last_ring = (at + served, step), ring
                    return ring
                left[ring] -= 1
                turn += 1
                last_ring = ring
                before = served
                served += each
            if not before < end <= served:
                self.is_over(served, 0, later[2], later[3])  # if this does not, the next one raises Apart
                self.is_over(before, 0, later[2], later[3])
            asked, waiting = waiting, []
            for one in asked:
                begin, end, gap, slope, ring, each = one
                if (begin <= served) != (end <= served):
                    self.is_over(served, 0, gap, slope)
                if begin <= served:
                    insort(ready, (ring, each))
                else:
                    waiting.append(one)

    def _begin(self) -> int:
        """Begin with the ring that is ready first, which fills the pipe, and go on as `_take_turns`."""
        heads, lanes = self._heads, self._lanes
        runs = [lanes[ring].runs[number - lanes[ring].start] for ring, (number, _, _) in heads.items()]
        soonest = runs[0]
        for run in runs:
            if not self.is_over(run.ready_ps, run.step_ps, soonest.ready_ps, soonest.step_ps):
                soonest = run
        at, step, last_ring = soonest.ready_ps, soonest.step_ps, self._last_ring
        chosen = min(
            [run for run in runs if run is soonest or self.is_same(run.ready_ps, run.step_ps, at, step)],
            key=lambda run: (run.ring - last_ring - 1) % DMA_RINGS,
        )
        number, packets, ended = heads[chosen.ring]
        if packets == 1:
            return chosen.ring  # with this packet
        heads[chosen.ring] = number, packets - 1, ended
        self._time, self._last_ring = (at + chosen.fill_ps + chosen.packet_ps, step), chosen.ring
        return self._take_turns()
