"""Collectives of a device: from the word to what its rank hands to CC-cores, and back into memory.

Collectives of one stream of a core go one after the other.  What they read is taken when one begins, what they write
appears when the rank is through; who moves it in between is `Ranks`, a machine of several ranks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from emulator.dma.binding import place_of
from emulator.dma.direct import DirectContext, named_dtype, side_of
from emulator.dma.moves import element_dtype
from emulator.dma.sides import Bound
from emulator.dma.transfer import Part, Request, Side, Transfer
from emulator.errors import LoadError
from formats.dtypes import Dtype
from formats.errors import FormatError, UnsupportedError
from formats.isa import Collective, CollectiveKind
from formats.isa.operand import DmaAddress, DmaPattern
from formats.named_tuple import NamedTuple

if TYPE_CHECKING:
    from emulator.context import DeviceContext

__all__ = [
    "COLLECTIVE",
    "Arrival",
    "Arrived",
    "Call",
    "Caller",
    "CollectiveTransfer",
    "Ranks",
    "alone",
    "call_of",
    "put",
    "translate_collective",
]  # fmt: skip

COLLECTIVE = "collective"
"""The kind of the queues of collectives, and the operation of their transfers."""

_POINT = DmaPattern((1, 1), (1, 1))
_RANK_BYTES = 4
_MOST_RANKS = 1 << 16
_SENT, _SENT_AT, _RECEIVED, _PLACED = range(4)
V_FORMS = (CollectiveKind.ALL_GATHER_V, CollectiveKind.ALL_TO_ALL_V)

Array = npt.NDArray[Any]


class Arrival(NamedTuple):
    """Elements that arrived, and where in the destination they go, counted in elements."""

    at: int
    values: Array


class Caller(Protocol):
    """Who calls a collective: the transfer of its rank, or what stands for it in another process."""

    @property
    def core(self) -> int: ...

    @property
    def queue(self) -> str: ...

    @property
    def number(self) -> int: ...


class Call(NamedTuple):
    """One collective as its rank begins it: the word, its tables, what it gives, how many elements it has room for.

    `core` is the physical core of the rank, `counts` the rows of a V form.
    """

    core: int
    word: Collective
    groups: tuple[tuple[int, ...], ...]
    counts: tuple[tuple[int, ...], ...]
    source: Array
    room: int
    transfer: Caller


Arrived = Callable[[int, Sequence[Arrival], Sequence[int]], None]
"""Told once the rank is through: the time, what arrived, and the received counts of a V form."""


class Ranks(Protocol):
    """The machine around a device, as its collectives know it."""

    def begin(self, call: Call, now_ps: int, arrived: Arrived) -> None:
        """Take a collective over."""


class CollectiveTransfer(Transfer):
    """A collective as a transfer of its stream; `groups` and `counts` are the tables it reads besides."""

    __slots__ = ("counts", "groups")

    NOT_STATE: ClassVar = {**Transfer.NOT_STATE, **dict.fromkeys(("counts", "groups"), "what the program asks for")}

    groups: Side
    counts: Side | None


def translate_collective(
    word: Collective, context: DirectContext, queue: str, engine: str, pc: int, where: str
) -> Callable[[], CollectiveTransfer]:
    """Return the function that makes the transfer of a collective word, which is an engine's at a pc.

    Raises LoadError naming a variable or table entry that does not exist, or sizes that are none.
    """
    dtype = named_dtype(word.dtype, where)
    if not element_dtype(dtype).itemsize or dtype == Dtype.UNKNOWN:
        raise LoadError(f"{where}: the element type is not named")
    rows, columns = word.groups_rows, word.groups_columns
    if not 0 < rows * columns <= _MOST_RANKS:
        raise LoadError(f"{where} has {rows} x {columns} ranks in its groups; 1 to {_MOST_RANKS} are possible")
    sides: list[Side] = []

    def add(address: DmaAddress, pattern: DmaPattern, run: int, kind: Dtype, name: str) -> None:
        side = side_of(address, _POINT, run, kind, context, f"{where}: {name}")
        steps, counts = pattern
        dims = tuple((step, count) for step, count in zip(reversed(steps), reversed(counts), strict=True) if count != 1)
        side = side._replace(dims=dims)
        if not side.nbytes or run % kind.size:
            raise LoadError(f"{where}: {name} has {side.rows} runs of {run} bytes, no whole elements")
        sides.append(side)

    add(word.src, word.src_pattern, word.src_element_size, dtype, "src")
    add(word.dst, word.dst_pattern, word.dst_element_size, dtype, "dst")
    add(word.groups, _POINT, rows * columns * _RANK_BYTES, Dtype.INT32, "groups")
    if word.kind in V_FORMS:
        height = 4 if word.has_places else 3
        add(word.counts, _POINT, height * columns * _RANK_BYTES, Dtype.UINT32, "counts")

    request = Request(
        queue=queue,
        core=context.core,
        engine=engine,
        pc=pc,
        parts=(Part(COLLECTIVE, ((sides[0], sides[1]),)),),
        semaphore=word.semaphore,
        increment=word.semaphore_increment,
        instruction=word,
    )

    def make() -> CollectiveTransfer:
        made = CollectiveTransfer(request)
        made.groups, made.counts = sides[2], sides[3] if len(sides) > 3 else None
        return made

    return make


def call_of(device: DeviceContext, transfer: CollectiveTransfer) -> Call:
    """Read what a collective begins with; faults as in `emulator.dma.binding.bind`."""
    word = transfer.instruction
    assert isinstance(word, Collective)
    source, target = transfer.copies[0]
    # Bounds of what will be written are looked at now: before anything moves.
    Bound(device, transfer, target, "dst")
    bound = Bound(device, transfer, source, "src")
    extent = bound.written()
    if device.checking and extent is not None and not extent.full and (missing := extent.missing()):
        device.warn_unwritten(place_of(device, transfer), "src", missing, extent.size)
    values = bound.view(element_dtype(source.dtype)).reshape(-1).copy()
    groups = _table(device, transfer, transfer.groups, word.groups_columns)
    counts = () if transfer.counts is None else _table(device, transfer, transfer.counts, word.groups_columns)
    return Call(transfer.core, word, groups, counts, values, target.nbytes // target.dtype.size, transfer)


def _table(device: DeviceContext, transfer: Transfer, side: Side, columns: int) -> tuple[tuple[int, ...], ...]:
    values = Bound(device, transfer, side, "groups").view(element_dtype(side.dtype)).reshape(-1, columns)
    return tuple(tuple(row) for row in values.tolist())


def alone(call: Call) -> list[Arrival]:
    """Return what a collective gives the only rank there is, 0; UnsupportedError where others belong to it."""
    kind = call.word.kind
    if kind not in (CollectiveKind.RANK, CollectiveKind.RANK_IN_TURN) or (
        kind == CollectiveKind.RANK_IN_TURN and (0,) not in call.groups
    ):
        raise UnsupportedError("a collective takes the ranks of a machine: run the program with --ranks N")
    return [Arrival(0, np.zeros(1, call.source.dtype))]


def put(
    device: DeviceContext, transfer: CollectiveTransfer, pieces: Sequence[Arrival], received: Sequence[int]
) -> None:
    """Write what arrived; pieces that are not the whole destination need one without gaps."""
    _, target = transfer.copies[0]
    size, room = target.dtype.size, target.nbytes // target.dtype.size
    for at, values in pieces:
        if at < 0 or at + values.size > room:
            raise FormatError(f"collective of {transfer.name}", expected=f"at most {room} elements",
                              got=f"{values.size} at {at}")  # fmt: skip
        if not values.size:
            continue
        side = target
        if values.size != room:
            if target.dims:
                raise UnsupportedError("a collective that fills a part of a destination with gaps")
            side = target._replace(address=target.address + at * size, run=values.size * size)
        bound = Bound(device, transfer, side, "dst")
        view = bound.view(element_dtype(side.dtype))
        view[...] = values.reshape(view.shape)
        extent = bound.written()
        if extent is not None:
            extent.mark()
    table = transfer.counts
    if table is not None and received:
        columns = len(received)
        side = table._replace(address=table.address + _RECEIVED * columns * _RANK_BYTES, run=columns * _RANK_BYTES)
        bound = Bound(device, transfer, side, "counts")
        bound.view(element_dtype(side.dtype))[...] = np.asarray(received, np.uint32)
        extent = bound.written()
        if extent is not None:
            extent.mark()
