"""One transfer on DMA engines that need no plans: when each begins it, and when each is through with it."""

from __future__ import annotations

from collections.abc import Iterator

from emulator.dma.work import Piece

__all__ = ["Served"]

_made = tuple.__new__  # a named tuple in half the time


class Served:
    """One transfer on engines 0 to `last`: ready at `ready_ps` on the first, `step_ps` later on each further one.

    It starts at `start_ps`, `turn_ps` later on each further engine: then, or when the one that it is `behind` in its
    ring is through. `ends` are those of each engine where it `met` another, else it takes `took_ps` everywhere. Where
    only some engines go on to it from the one before it, `starts` are those of each engine, and so are `ends`.
    `begun_ps` is when the first engine has it ready, `saved_ps` the filling that waiting saved it, `mean_ps` its end on
    average, -1 until somebody asks. `guests` are what engines serve beside it and what is behind it, one at a time; of
    those `ends` are those of each engine, too.
    """

    __slots__ = (
        "begun_ps", "behind", "end_ps", "ends", "fill_ps", "follower", "guests", "last", "last_ps", "mean_ps", "met",
        "number", "packet_ps", "packets", "ready_ps", "ring", "saved_ps", "start_ps", "starts", "step_ps", "took_ps",
        "turn_ps",
    )  # fmt: skip

    def __init__(
        self, number: int, ring: int, ready_ps: int, step_ps: int, last: int, packets: int, packet_ps: int,
        last_ps: int, fill_ps: int,
    ) -> None:  # fmt: skip
        self.number, self.ring, self.ready_ps, self.step_ps, self.last = number, ring, ready_ps, step_ps, last
        self.packets, self.packet_ps, self.last_ps, self.fill_ps = packets, packet_ps, last_ps, fill_ps
        self.took_ps = took = fill_ps + packet_ps * (packets - 1) + last_ps
        self.ends: list[int] | None = None
        self.starts: list[int] | None = None
        self.met: Served | None = None
        self.guests: list[Served] | None = None
        self.behind: Served | None = None
        self.follower: Served | None = None
        self.start_ps, self.turn_ps, self.saved_ps, self.mean_ps = ready_ps, step_ps, 0, -1
        final = ready_ps + step_ps * last
        if step_ps < 0:
            ready_ps, final = final, ready_ps
        self.begun_ps, self.end_ps = ready_ps, final + took

    def follow(self, other: Served) -> bool | None:
        """Be served behind another of the ring, in front of it; return whether that is told here.

        None where all engines are through with that before this one is ready. Engines that go on to it were not idle,
        and fill no pipe.
        """
        last, ready, step = self.last, self.ready_ps, self.step_ps
        if other.ends is None and last <= other.last:
            start, turn = other.start_ps + other.took_ps, other.turn_ps
        else:
            if other.is_before(self):
                return None
            even = other.even_end(last)
            if even is None:
                return self._follow_in_part(other)
            start, turn = even
        ahead = ready - start
        further = ahead + (step - turn) * last
        if ahead > 0 < further:
            return None
        if ahead > 0 or further > 0:
            return self._follow_in_part(other)
        self.start_ps, self.turn_ps = start, turn
        self.took_ps = took = self.took_ps - self.fill_ps
        self.saved_ps, self.fill_ps = self.fill_ps, 0
        self.end_ps = start + took + (turn * last if turn > 0 else 0)
        self.behind, other.follower = other, self
        return True

    def _follow_in_part(self, other: Served) -> bool:
        """Do as `follow` where only some engines go on to it from the one before it."""
        last, ready, step = self.last, self.ready_ps, self.step_ps
        if other.ends is not None:
            return False
        starts, ends, took = [], [], self.took_ps
        through, turn = other.start_ps + other.took_ps, other.turn_ps
        for engine in range(last + 1):
            begin = ready + step * engine
            end = through + turn * engine
            if engine > other.last or begin > end:
                starts.append(begin)
                ends.append(begin + took)
            else:
                starts.append(end)
                ends.append(end + took - self.fill_ps)
        self.starts, self.ends, self.end_ps, self.saved_ps = starts, ends, max(ends), self.fill_ps
        self.behind, other.follower = other, self
        return True

    def even_end(self, last: int) -> tuple[int, int] | None:
        """Return when engines up to one are through with it: on the first, and so much later on each; None if not."""
        if last > self.last:
            return None
        ends = self.ends
        if ends is None:
            return self.start_ps + self.took_ps, self.turn_ps
        step = ends[1] - ends[0] if last else 0
        for engine in range(2, last + 1):
            if ends[engine] - ends[engine - 1] != step:
                return None
        return ends[0], step

    def __iter__(self) -> Iterator[Piece]:
        """Return an iterator over when engines serve it."""
        whole = self.whole
        if self.ends is None:
            return iter((whole,))
        _, _, ready, before, _ = whole
        if self.starts is not None:
            both = zip(self.starts, self.ends, strict=True)
            return iter([_made(Piece, (at, at, ready, (start, 0), (end, 0))) for at, (start, end) in enumerate(both)])
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
        return self.whole.begun_ps if self.starts is None else min(self.starts)

    def all_ends(self) -> list[int]:
        """Return when each engine is through with it."""
        if self.ends is not None:
            return self.ends.copy()
        end, step = self.start_ps + self.took_ps, self.turn_ps
        return [end] * (self.last + 1) if not step else list(range(end, end + step * (self.last + 1), step))

    def mean_end_ps(self) -> int:
        """Return when engines are through with it, on average; `mean_ps` is that, once somebody has asked."""
        count = self.last + 1
        if self.ends is not None:
            self.mean_ps = sum(self.ends) // count
        else:
            end, step = self.start_ps + self.took_ps, self.turn_ps
            self.mean_ps = (count * end + step * self.last * count // 2) // count
        return self.mean_ps

    def end_on(self, engine: int) -> int:
        """Return when an engine is through with it."""
        return self.start_ps + self.turn_ps * engine + self.took_ps if self.ends is None else self.ends[engine]

    def ends_before(self, start_ps: int, turn_ps: int, last: int) -> bool:
        """Return whether each engine up to one is through with it before a time, so much later on each."""
        return all(self.end_on(engine) < start_ps + turn_ps * engine for engine in range(min(last, self.last) + 1))

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
