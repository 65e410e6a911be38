"""Rings in turn on engines that go the same way: in jumps of whole rounds up to the end of a transfer.

Where another ring gets ready in between, it has to have its first turn in the same round on all engines; `Apart` says
from which engines on it has not.
"""

from __future__ import annotations

from emulator.dma.abreast import Abreast
from emulator.dma.work import Apart, Head, Lane, Run, Time
from formats.neuron_core import DMA_RINGS

__all__ = ["Turns"]

# A ring that is through next: its run, the number of that, packets left, when the run before ended, and from when on.
Due = tuple[int, Run, int, int, Time, int, int]
# A ring that is ready: its place among turns, its number, packets left, how long each takes.
Taking = tuple[int, int, int, int]
# One that is not, on some engines: when it is ready on the first and on the last, from now, on engine 0 and so much
# later on each; its number, packets left, how long each takes.
Waiting = tuple[int, int, int, int, int, int, int]
_NEVER = 1 << 62


class Turns(Abreast):
    """Where engines `first` to `last` stand: the time after what they have served, and what rings have next."""

    __slots__ = ("_heads", "_lanes", "_last_ring", "_time")

    def __init__(self, first: int, last: int, time_ps: int, last_ring: int) -> None:
        super().__init__(first, last)
        self._lanes: dict[int, Lane] = {}  # by ring
        self._heads: dict[int, Head] = {}  # of rings that have work left
        self._time: Time = (time_ps, 0)
        self._last_ring = last_ring

    def _take_two_turns(self) -> Due:
        """Do as `_take_turns` for two rings, which there are nearly always.

        The ring has several packets left where these are over before the other is ready.
        """
        heads = self._heads
        (one, (mine, number, left, ended, i_am)), (other, (its, its_number, its_left, its_ended, it_is)) = heads.items()
        _, _, my_ready, _, my_packet, _, my_fill, my_step = mine
        _, _, its_ready, _, its_packet, _, its_fill, its_step = its
        at, step = self._time
        last_ring, first, last = self._last_ring, self.first, self.last
        is_over = self.is_over
        while True:
            if not i_am:
                ahead, slope = at - my_ready, step - my_step
                i_am = ahead + slope * first >= 0
                if i_am != (ahead + slope * last >= 0):
                    is_over(at, step, my_ready, my_step)
            if not it_is:
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
                    at, step = begins + my_fill, slope
                    if left == 1:
                        ring = one
                        break
                    left -= 1
                    took, last_ring = my_packet, one
                else:
                    at, step = begins + its_fill, slope
                    if its_left == 1:
                        ring = other
                        break
                    its_left -= 1
                    took, last_ring = its_packet, other
            at += took
        if ring == one:
            heads[other] = its, its_number, its_left, its_ended, it_is
            return one, mine, number, left, ended, at, step
        heads[one] = mine, number, left, ended, i_am
        return other, its, its_number, its_left, its_ended, at, step

    def _take_turns(self) -> Due:
        """Serve several rings until one of them has its turn with its last packet; return that ring and its head.

        It is the caller's to serve, from the time that is returned, and its place in `_heads` is as before.
        """
        heads, first, last = self._heads, self.first, self.last
        at, step = self._time
        last_ring = self._last_ring
        ready: list[Taking] = []
        waiting: list[Waiting] = []
        soonest = least = _NEVER
        place = through = length = 0
        for ring, (run, _, packets, _, is_ready) in heads.items():
            each = run[4]
            if not is_ready:
                _, _, gap, _, _, _, _, slope = run
                gap -= at
                slope -= step
                begin, end = gap + slope * first, gap + slope * last
                if begin > 0 or end > 0:
                    waiting.append((begin, end, gap, slope, ring, packets, each))
                    if begin < soonest:
                        soonest = begin
                    if end < soonest:
                        soonest = end
                    continue
            turn = ring if ring > last_ring else ring + DMA_RINGS
            ready.append((turn, ring, packets, each))
            length += each
            if packets < least or (packets == least and turn < place):
                least, place, through = packets, turn, ring
        if not ready:
            for one in waiting:
                if not one[0] > 0 < one[1]:
                    self.is_over(0, 0, one[2], one[3])  # which raises Apart
            return self._begin()
        # The first that has no more than any has its turn with its last packet when all have taken the others.
        least -= 1
        due = least * length
        for turn, _, _, each in ready:
            if turn < place:
                due += each
        if soonest <= due:
            return self._take_turns_until(ready, waiting)
        # What gets ready behind that is of no account here.
        for turn, ring, packets, _ in ready:
            run, number, _, ended, _ = heads[ring]
            if ring == through:
                found = ring, run, number, 1, ended, at + due, step
            else:
                heads[ring] = run, number, packets - least - (turn < place), ended, True
        return found

    def _take_turns_until(self, ready: list[Taking], waiting: list[Waiting]) -> Due:
        """Go on as `_take_turns` where another ring gets ready in between.

        It has its place in each round, and engines go the same way as long as it is ready in the same round there:
        how many packets of others they have served when it gets ready is of no account.
        """
        heads = self._heads
        at, step = self._time
        last_ring, served = self._last_ring, 0
        while True:
            ready.sort()
            length = before = place = 0
            least = _NEVER
            for index, (_, _, packets, each) in enumerate(ready):
                if packets < least:
                    least, place, before = packets, index, length
                length += each
            least -= 1
            due = served + least * length + before
            # What gets ready behind that is of no account here.
            next_round, next_place, cut = least + 1, 0, None
            for one in waiting:
                begin, end, gap, slope, ring, _, _ = one
                if begin > due < end:
                    continue
                if not length:  # packets that take no time: whether it is ready is told now
                    self.is_over(served, 0, gap, slope)
                turn = ring if ring > last_ring else ring + DMA_RINGS
                lead, index = served, 0
                for other, _, _, each in ready:
                    if other > turn:
                        break
                    lead += each
                    index += 1
                on_first = -((lead - begin) // length) if begin > lead else 0
                on_last = -((lead - end) // length) if end > lead else 0
                behind = least if index > place else least + 1  # the first round in which it comes too late
                soonest = on_first if on_first < on_last else on_last  # noqa: FURB136  a call takes twice as long
                if soonest >= behind or soonest > next_round or (soonest == next_round and index > next_place):
                    continue
                if soonest < next_round or index < next_place:
                    next_round, next_place, cut = soonest, index, None
                if on_first != on_last:
                    cut = one, lead, behind
            if cut is not None:
                self._go_apart(*cut, length)
            if next_round > least:
                for index, (_, ring, packets, _) in enumerate(ready):
                    run, number, _, ended, _ = heads[ring]
                    if index == place:
                        found = ring, run, number, 1, ended, at + due, step
                    else:
                        heads[ring] = run, number, packets - least - (index < place), ended, True
                return found
            served += next_round * length
            last_ring = ready[next_place - 1][1]  # the last one's of the round before where it is the first's turn
            asked, ready = ready, []
            for index, (_, ring, packets, each) in enumerate(asked):
                packets -= next_round
                if index < next_place:
                    packets -= 1
                    served += each
                ready.append((ring if ring > last_ring else ring + DMA_RINGS, ring, packets, each))
            later, waiting = waiting, []
            for one in later:
                begin, end, _, _, ring, packets, each = one
                if begin > served or end > served:
                    waiting.append(one)
                else:
                    ready.append((ring if ring > last_ring else ring + DMA_RINGS, ring, packets, each))

    def _go_apart(self, one: Waiting, lead: int, behind: int, length: int) -> None:
        """Raise Apart: a ring has its first turn in other rounds on some engines than on others.

        A round takes `length`, its turn of the first is at `lead`, and rounds from `behind` on are all the same.
        """
        _, _, gap, slope, *_ = one
        rounds = [
            min(max(-((lead - gap - slope * engine) // length), 0), behind)
            for engine in range(self.first, self.last + 1)
        ]
        raise Apart(*[self.first + at for at in range(1, len(rounds)) if rounds[at] != rounds[at - 1]])

    def _begin(self) -> Due:
        """Begin with the ring that is ready first, which fills the pipe, and go on as `_take_turns`."""
        heads, first, last, last_ring = self._heads, self.first, self.last, self._last_ring
        (chosen, *_), *others = heads.values()
        at, step = chosen.ready_ps, chosen.step_ps
        for run, *_ in others:
            ahead, slope = run.ready_ps - at, run.step_ps - step
            begin, end = ahead + slope * first, ahead + slope * last
            if begin > 0 < end:
                continue
            if not begin and not end:
                if (run.ring - last_ring - 1) % DMA_RINGS < (chosen.ring - last_ring - 1) % DMA_RINGS:
                    chosen = run
                continue
            if not begin < 0 > end:
                self.is_over(ahead, slope, 0, 0)  # one of them raises Apart
                self.is_same(ahead, slope, 0, 0)
            chosen, at, step = run, run.ready_ps, run.step_ps
        _, number, packets, ended, _ = heads[chosen.ring]
        if packets == 1:
            return chosen.ring, chosen, number, 1, ended, at + chosen.fill_ps, step  # with this packet
        heads[chosen.ring] = chosen, number, packets - 1, ended, True
        self._time, self._last_ring = (at + chosen.fill_ps + chosen.packet_ps, step), chosen.ring
        return self._take_turns()
