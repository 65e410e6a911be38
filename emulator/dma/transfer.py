"""One DMA transfer: where its bytes come from, where they go, what it signals, where it stands."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from math import prod
from typing import Any, ClassVar, Protocol

from emulator.dma.served import Served
from emulator.dma.work import Piece
from emulator.errors import LoadError
from formats.dtypes import Dtype
from formats.isa import Instruction
from formats.named_tuple import NamedTuple
from formats.neuron_core import DESCRIPTOR_LIMIT

__all__ = [
    "UNPLANNED",
    "Copies",
    "Dims",
    "DmaDescriptor",
    "Facts",
    "Limit",
    "Part",
    "Request",
    "Shares",
    "Side",
    "Transfer",
    "TransferCourse",
    "TransferPlan",
    "check_sizes",
    "facts_of",
]


Dims = tuple[tuple[int, int], ...]
# Which descriptors of a transfer each engine takes, as (first, last).
Shares = tuple[tuple[int, int], ...]


class Limit(NamedTuple):
    """The variable that one side of a transfer belongs to: nothing outside it may be touched."""

    name: str
    address: int
    nbytes: int


class Side(NamedTuple):
    """One end of a copy: `counts` runs of `run` contiguous bytes each, outermost dimension first.

    `address` is a device address for "HBM", partition * 0x40000 + byte for "SBUF"; steps are bytes on the same scale.
    `limit` names the variable where it is known, `chosen` (value, row, bytes per step) the index behind the address.
    """

    space: str
    core: int
    address: int
    dims: tuple[tuple[int, int], ...]
    run: int
    dtype: Dtype
    limit: Limit | None = None
    chosen: tuple[int, int, int] | None = None

    @property
    def rows(self) -> int:
        """Return the number of contiguous runs."""
        total = 1
        for _, count in self.dims:
            total *= count
        return total

    @property
    def nbytes(self) -> int:
        """Return the bytes the side holds."""
        return self.rows * self.run

    @property
    def span(self) -> tuple[int, int]:
        """Return the lowest address touched and the one behind the highest."""
        low = high = self.address
        for step, count in self.dims:
            reach = step * (count - 1)
            low, high = (low, high + reach) if reach >= 0 else (low + reach, high)
        return low, high + self.run

    def row_address(self, row: int) -> int:
        """Return the address of one run, counted in the order of the walk (last dimension fastest)."""
        address = self.address
        for step, count in reversed(self.dims):
            row, at = divmod(row, count)
            address += step * at
        return address


Copies = tuple[tuple[Side, Side], ...]


class Part(NamedTuple):
    """One operation of a transfer: (source, destination) pairs; combined sources share their destination.

    `constant` is what min and max begin with, `scale` the factor of fma, `shape` what a transpose makes of its source,
    innermost first, in elements of `element` bytes; none means that patterns say where each element goes.
    """

    op: str
    copies: Copies
    constant: float | None = None
    scale: float = 1.0
    shape: tuple[int, ...] = ()
    element: int = 1

    @property
    def destinations(self) -> tuple[Side, ...]:
        """Return the destinations, each once."""
        if len(self.copies) == 1:
            return (self.copies[0][1],)
        return tuple(dict.fromkeys(destination for _, destination in self.copies))


# Bytes of elements that an engine turns, and how many rows at a time.
_TURNED = 2, 4
_TURNED_ROWS = 16


class Facts(NamedTuple):
    """What planning asks of a transfer: bytes written, data descriptors of at most 64 KiB, bytes of device memory."""

    nbytes: int
    pieces: int
    hbm_bytes: int
    writes_hbm: bool
    op: str

    @property
    def reads_hbm(self) -> bool:
        """Return whether device memory is read."""
        return self.hbm_bytes > (self.nbytes if self.writes_hbm else 0)


def facts_of(parts: tuple[Part, ...]) -> Facts:
    """Return what planning asks of the parts of a transfer."""
    if len(parts) == 1 and len(parts[0].copies) == 1:
        ((source, target),) = parts[0].copies
        return _of_one_copy(parts[0].op, source.space, source.dims, source.run, target.space, target.dims, target.run)
    nbytes = pieces = hbm_bytes = 0
    writes_hbm = False
    for part in parts:
        for source, target in part.copies:
            pieces += _descriptors(part.op, source.dims, source.run)
            writes_hbm |= target.space == "HBM"
            if source.space == "HBM":
                hbm_bytes += source.nbytes
        for target in part.destinations:
            nbytes += target.nbytes
            if target.space == "HBM":
                hbm_bytes += target.nbytes
    names = {part.op for part in parts}
    op = names.pop() if len(names) == 1 else "mixed" if names else "nothing"
    return Facts(nbytes, pieces, hbm_bytes, writes_hbm, op)


@lru_cache(1 << 12)
def _of_one_copy(
    op: str, source: str, source_dims: Dims, source_run: int, target: str, target_dims: Dims, target_run: int
) -> Facts:
    rows, nbytes = prod([count for _, count in source_dims]), target_run * prod([count for _, count in target_dims])
    hbm_bytes = (rows * source_run if source == "HBM" else 0) + (nbytes if target == "HBM" else 0)
    return Facts(nbytes, _descriptors(op, source_dims, source_run), hbm_bytes, target == "HBM", op)


def _descriptors(op: str, dims: Dims, run: int) -> int:
    """Return how many data descriptors read one side of a copy.

    A transpose whose patterns say where each element goes is walked element by element. The engine reads the rows of
    its source as they lie, sixteen at a time, and turns elements of two bytes; those of four take two passes.
    Source: hardware.md 4.5.
    """
    rows = prod([count for _, count in dims])
    if op == "transpose" and run in _TURNED:
        for step, count in dims:
            if step == run and rows // count % _TURNED_ROWS == 0:
                return rows // count * _pieces(run * count) * (run // _TURNED[0])
    return rows * _pieces(run)


def check_sizes(source: Side, target: Side, where: str) -> None:
    """Raise LoadError where two sides do not hold the same number of whole elements."""
    read, written = source.nbytes, target.nbytes
    if not read or not written:
        raise LoadError(f"{where} has no bytes to move")
    have, want = read // source.dtype.size, written // target.dtype.size
    if source.run % source.dtype.size or target.run % target.dtype.size:
        raise LoadError(f"{where}: a run of {source.run} or {target.run} bytes is no whole number of elements")
    if have != want:
        raise LoadError(f"{where}: source has {have} elements and destination {want}")


class DmaDescriptor(NamedTuple):
    """One descriptor in a ring: bytes from `source` to `destination`, or the semaphore write that ends a transfer."""

    transfer: int
    source: int
    destination: int
    nbytes: int
    kind: str = "data"  # or "semaphore"


class TransferPlan(NamedTuple):
    """When a transfer completes, and when engines begin and end their parts; `idle_ps` is its start where none does."""

    idle_ps: int
    planned_ps: int
    pieces: Iterable[Piece]

    @property
    def started_ps(self) -> int:
        """Return when the first engine begins."""
        if isinstance(self.pieces, Served):
            return self.pieces.started_ps
        return min([piece.begun_ps for piece in self.pieces], default=self.idle_ps)

    @property
    def spans(self) -> tuple[tuple[int, int], ...]:
        """Return when each engine begins and ends its part."""
        return tuple([piece.span(engine) for piece in self.pieces for engine in range(piece.first, piece.last + 1)])


UNPLANNED = TransferPlan(-1, -1, ())


class TransferCourse(Protocol):
    """What a transfer has in common with others like it (`emulator.dma.course`)."""

    completion_ps: int
    engines: int
    held: int
    is_even: bool
    share: float
    shares: Shares
    writes_hbm: bool


class Request:
    """What a word asks of a queue each time it completes: any number of transfers have it in common.

    `remote` is (core, semaphore, increment) raised on another core, `instruction` the word, `prebuilt` tells that its
    descriptors were made at load time, `facts` are those of its parts. `priced` is its course, with the costs and the
    size of packets that it was worked out for, `copied` how its bytes are found (`emulator.dma.binding`). Nothing here
    refers to a device: files keep their words.
    """

    __slots__ = (
        "copied",
        "core",
        "engine",
        "facts",
        "increment",
        "instruction",
        "nbytes",
        "parts",
        "pc",
        "prebuilt",
        "priced",
        "queue",
        "remote",
        "semaphore",
    )

    def __init__(
        self,
        *,
        queue: str,
        core: int,
        engine: str,
        pc: int,
        parts: tuple[Part, ...],
        semaphore: int | None = None,
        increment: int = 0,
        remote: tuple[int, int, int] | None = None,
        prebuilt: bool = False,
        instruction: Instruction | None = None,
        facts: Facts | None = None,
    ) -> None:
        self.queue, self.core, self.engine, self.pc = queue, core, engine, pc
        self.parts = parts
        self.semaphore, self.increment, self.remote = semaphore, increment, remote
        self.prebuilt, self.instruction = prebuilt, instruction
        self.facts = facts = facts_of(parts) if facts is None else facts
        self.nbytes = facts.nbytes
        self.priced: tuple[object, int, Any] | None = None
        self.copied: tuple[Any, ...] | None = None

    def begin(self) -> tuple[tuple[Part, ...], int]:
        """Return the first part, if any, and how many there are."""
        return self.parts[:1], len(self.parts)

    @property
    def text(self) -> str:
        """Return what its transfers do, on one line."""
        parts, count = self.begin()
        if not parts:
            return "moves nothing"
        first = parts[0].copies
        more = f" and {count - 1} more" if count > 1 else ""
        sources = " + ".join(_side_text(source) for source, _ in first)
        return f"{self.facts.op} {self.nbytes} bytes {sources} -> {_side_text(first[0][1])}{more}"


class Transfer:
    """One transfer on a queue; `state` goes from "new" over "queued" to "done"; `running` tells when data moves.

    Fields of its `request` can be read here too. `ahead` is how many bytes each engine was given by its queue before
    it. Times are picoseconds, -1 until known.
    While it is pending, its plan changes when other queues get work; `settle` works plans out before somebody looks.
    """

    __slots__ = (
        "ahead",
        "completed_ps",
        "course",
        "generated_ps",
        "memory_ps",
        "move",
        "number",
        "plan",
        "request",
        "settle",
        "state",
        "triggered_ps",
    )

    NOT_STATE: ClassVar = {
        "request": "what the program asks for",
        **dict.fromkeys(
            ("ahead", "course", "generated_ps", "memory_ps", "number", "triggered_ps"), "set at the trigger, for good"
        ),
        **dict.fromkeys(("completed_ps", "state"), "the same for every pending transfer"),
        "plan": "derived from the state of DMA engines while it is pending",
        "settle": "wiring",
        "move": "bound again by `DmaSystem.bind_again`",
    }

    def __init__(self, request: Request) -> None:
        self.request = request
        self.number = self.triggered_ps = self.generated_ps = self.completed_ps = -1
        self.move: Callable[[], None] | None = None
        self.state = "new"
        self.course: TransferCourse | None = None
        self.plan = UNPLANNED
        self.settle: Callable[[], None] | None = None
        self.memory_ps = 0  # when device memory is through
        self.ahead = 0.0

    @property
    def queue(self) -> str:
        """Return the name of the queue."""
        return self.request.queue

    @property
    def core(self) -> int:
        """Return the core of the queue."""
        return self.request.core

    @property
    def engine(self) -> str:
        """Return the engine whose word triggered it."""
        return self.request.engine

    @property
    def pc(self) -> int:
        """Return the compiler pc of that word."""
        return self.request.pc

    @property
    def instruction(self) -> Instruction | None:
        """Return that word."""
        return self.request.instruction

    @property
    def parts(self) -> tuple[Part, ...]:
        """Return its operations."""
        return self.request.parts

    @property
    def facts(self) -> Facts:
        """Return what planning asks of it."""
        return self.request.facts

    @property
    def nbytes(self) -> int:
        """Return the bytes that it writes."""
        return self.request.nbytes

    @property
    def semaphore(self) -> int | None:
        """Return the semaphore of its core that it raises, by `increment`."""
        return self.request.semaphore

    @property
    def increment(self) -> int:
        """Return by how much it raises the semaphore."""
        return self.request.increment

    @property
    def remote(self) -> tuple[int, int, int] | None:
        """Return the core, semaphore and increment that it raises elsewhere."""
        return self.request.remote

    @property
    def prebuilt(self) -> bool:
        """Return whether its descriptors were made at load time."""
        return self.request.prebuilt

    @property
    def shares(self) -> Shares:
        """Return which descriptors each engine takes, none before the trigger."""
        return () if self.course is None else self.course.shares

    def snapshot(self) -> TransferPlan:
        """Return when it moves and completes, as things stand."""
        if self.state == "queued" and self.settle is not None:
            self.settle()
        return self.plan

    @property
    def started_ps(self) -> int:
        """Return when data starts to move."""
        return self.snapshot().started_ps

    @property
    def planned_ps(self) -> int:
        """Return when it completes, as things stand."""
        return self.snapshot().planned_ps

    @property
    def spans(self) -> tuple[tuple[int, int], ...]:
        """Return when it is at the head of its ring on each engine, and when it is through there."""
        return self.snapshot().spans

    def running(self, now_ps: int) -> bool:
        """Return whether data is moving at a time."""
        return self.state == "queued" and self.started_ps <= now_ps

    @property
    def copies(self) -> Copies:
        """Return the (source, destination) pairs of all parts."""
        if len(self.parts) == 1:
            return self.parts[0].copies
        return tuple(pair for part in self.parts for pair in part.copies)

    @property
    def op(self) -> str:
        """Return the operation; "mixed" where descriptors differ."""
        return self.facts.op

    @property
    def name(self) -> str:
        """Return queue and number, as views print them."""
        return f"{self.queue}#{self.number}"

    @property
    def text(self) -> str:
        """Return what the transfer does, on one line."""
        return self.request.text

    @property
    def reads(self) -> tuple[Side, ...]:
        """Return every side that is read."""
        return tuple([source for source, _ in self.copies])

    @property
    def writes(self) -> tuple[Side, ...]:
        """Return every side that is written."""
        if len(self.parts) == 1:
            return self.parts[0].destinations
        return tuple(side for part in self.parts for side in part.destinations)

    @property
    def writes_hbm(self) -> bool:
        """Return whether bytes go to device memory."""
        return self.facts.writes_hbm

    @property
    def reads_hbm(self) -> bool:
        """Return whether device memory is read."""
        return self.facts.reads_hbm

    @property
    def hbm_bytes(self) -> int:
        """Return the bytes moved to and from device memory."""
        return self.facts.hbm_bytes

    @property
    def pieces(self) -> int:
        """Return the number of data descriptors, none longer than 64 KiB."""
        return self.facts.pieces

    def descriptors(self, first: int, last: int) -> Iterator[DmaDescriptor]:
        """Yield data descriptors `first` to `last` - 1 in ring order."""
        start = 0
        for source, destination in self.copies:
            per_row = _pieces(source.run)
            count = source.rows * per_row
            for number in range(max(first - start, 0), min(last - start, count)):
                row, piece = divmod(number, per_row)
                done = piece * DESCRIPTOR_LIMIT
                yield DmaDescriptor(
                    self.number,
                    source.row_address(row) + done,
                    _walk_address(destination, row * source.run + done, source, destination),
                    min(source.run - done, DESCRIPTOR_LIMIT),
                )
            start += count


def _walk_address(side: Side, position: int, source: Side, destination: Side) -> int:
    """Return the address of the byte at `position` of the source's walk; a cast scales it to the destination's."""
    if source.nbytes != destination.nbytes:
        position = position // source.dtype.size * destination.dtype.size
    row, byte = divmod(position, side.run)
    return side.row_address(row) + byte


def _pieces(run: int) -> int:
    return max(1, -(-run // DESCRIPTOR_LIMIT))


def _side_text(side: Side) -> str:
    return f"{side.space}[{side.address:#x}]" if side.limit is None else f"{side.limit.name}[{_within(side):#x}]"


def _within(side: Side) -> int:
    return side.address - (side.limit.address if side.limit else 0)
