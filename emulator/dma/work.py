"""What DMA engines are given and when they serve it: values of the plan in `emulator.dma.arbitration`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from formats.named_tuple import NamedTuple

__all__ = [
    "Apart", "Head", "Lane", "Piece", "Pieces", "PlanState", "Point", "Run", "Shown", "Time", "joined",
    "spans_by_engine", "within",
]  # fmt: skip

_made = tuple.__new__  # a named tuple in half the time
Time = tuple[int, int]  # on engine 0, and how much later on each further one


class Apart(Exception):  # noqa: N818  no error: the engines of a plan go different ways
    """Engines of a plan go different ways: those from each of `engines` on another one than those before it."""

    def __init__(self, *engines: int) -> None:
        self.engines = engines


class Run(NamedTuple):
    """One transfer in one ring: `packets` of `packet_ps`, the last of `last_ps`.

    It is ready at `ready_ps`, `step_ps` later on each further engine; where the engine was idle till then, the first
    packet takes `fill_ps` more.
    """

    transfer: int
    ring: int
    ready_ps: int
    packets: int
    packet_ps: int
    last_ps: int
    fill_ps: int = 0
    step_ps: int = 0


# Of a ring: its next run, the number of that, packets left, when the run before ended; whether it is known that all
# engines have it ready.
Head = tuple[Run, int, int, Time, bool]


# An engine when it has finished a transfer: the time, the ring, heads of rings with work by what was given when that
# was found, which are never changed as plans share points, and the transfer.
Point = tuple[Time, int, dict[int, Head], int]


class Piece(NamedTuple):
    """When engines `first` to `last` serve a transfer: it has begun when it is ready and `before` has ended."""

    first: int
    last: int
    ready: Time
    before: Time
    end: Time

    def span(self, engine: int) -> tuple[int, int]:
        """Return begin and end on an engine."""
        (ready, later), (before, behind), (end, step) = self.ready, self.before, self.end
        return max(ready + later * engine, before + behind * engine), end + step * engine

    @property
    def begun_ps(self) -> int:
        """Return when the first of the engines begins."""
        first, last, (ready, later), (end, behind), _ = self
        if ready + later * first >= end + behind * first and ready + later * last >= end + behind * last:
            return ready + later * (first if later > 0 else last)
        # The later of two that grow evenly is least at an end, or where they change places.
        crossing = first if later == behind else (end - ready) // (later - behind)
        middle = [engine for engine in (crossing, crossing + 1) if first < engine < last]
        return min([self.span(engine)[0] for engine in (first, last, *middle)])


Shown = tuple[int, int, tuple[Piece, ...]]  # engines of a plan, first and last, and pieces that may be of others too


class Pieces:
    """When engines serve a transfer, by plan: put together for whoever looks, which most runs never do."""

    __slots__ = ("_parts",)

    def __init__(self, parts: list[Shown]) -> None:
        self._parts = parts

    def __eq__(self, other: object) -> bool:
        return tuple(self) == tuple(other) if isinstance(other, Pieces) else NotImplemented

    __hash__ = None  # type: ignore[assignment]  # as of lists: equal ones may be put together otherwise

    def __iter__(self) -> Iterator[Piece]:
        """Return an iterator over pieces, each of neighbours that are served alike."""
        found: list[Piece] = []
        begin, final, held = 0, -1, None
        for first, last, pieces in self._parts:
            # Neighbours that were cut after they were through with it have the same pieces.
            if pieces is not held:
                if held is not None:
                    found += within(held, begin, final)
                begin, held = first, pieces
            final = last
        if held is not None:
            found += within(held, begin, final)
        return iter(found)


class PlanState(NamedTuple):
    """What engines were given, as seen from a point that no later work changes."""

    first: int
    last: int
    busy_ps: int
    time: Time
    last_ring: int
    since: Time
    work_ps: int
    bound_ps: int
    filling_ps: int
    heads: tuple[tuple[int, Head], ...]
    runs: tuple[tuple[int, int, tuple[Run, ...]], ...]
    ended: tuple[tuple[int, Time], ...]
    spans: tuple[tuple[int, tuple[Piece, ...]], ...]


class Lane:
    """One ring: its runs from number `start` on, `ends` of those that are worked out.

    `before` is when the run in front of them ended.
    """

    __slots__ = ("before", "ends", "runs", "start")

    def __init__(self, start: int = 0, before: Time = (0, 0)) -> None:
        self.runs: list[Run] = []
        self.ends: list[Time] = []
        self.start, self.before = start, before

    def copy(self) -> Lane:
        """Return a ring with the same runs."""
        made = Lane.__new__(Lane)
        made.start, made.before = self.start, self.before
        made.runs, made.ends = self.runs.copy(), self.ends.copy()
        return made


def within(pieces: tuple[Piece, ...], first: int, last: int) -> tuple[Piece, ...]:
    """Return pieces as far as they are of engines `first` to `last`."""
    if len(pieces) == 1:
        begin, end, ready, before, ended = pieces[0]
        if begin >= first and end <= last:
            return pieces
        if begin > last or end < first:
            return ()
        return (_made(Piece, (max(begin, first), min(end, last), ready, before, ended)),)
    return tuple(
        [
            piece if piece.first >= first and piece.last <= last
            else Piece(max(piece.first, first), min(piece.last, last), *piece[2:])
            for piece in pieces if piece.first <= last and piece.last >= first
        ]
    )  # fmt: skip


def spans_by_engine(pieces: Iterable[Piece]) -> tuple[tuple[int, int], ...]:
    """Return begin and end on each engine, in order."""
    return tuple([piece.span(engine) for piece in pieces for engine in range(piece.first, piece.last + 1)])


def joined(pieces: tuple[Piece, ...], behind: tuple[Piece, ...]) -> tuple[Piece, ...]:
    """Return pieces of engines and of those behind them, what meets as one where it is served alike."""
    if not pieces or not behind:
        return pieces or behind
    _, _, *times = one = pieces[-1]
    first, last, *others = behind[0]
    if times != others or one.last + 1 != first:
        return pieces + behind
    return (*pieces[:-1], Piece(one.first, last, *times), *behind[1:])
