"""Values a front end hands to the builder: allocations, views over them, and abstract operations in program order.

One `Trace` is one run of a kernel body for one program id.  Nothing here executes or encodes; `neurontools.builder`
turns traces into a NEFF.  Units: bytes unless a name says elements; partitions count from 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from math import prod
from typing import TYPE_CHECKING, Any, Protocol, Self

from formats.named_tuple import NamedTuple

if TYPE_CHECKING:
    import numpy as np

    from formats.dtypes import Dtype
    from formats.neff.visits import Site, Value
    from formats.targets import Target

Source = tuple[str, int]
"""Kernel file and line of an operation."""


class Place(tuple[str, int]):
    """Kernel file and line of an operation, and `visit`, the row of `Trace.visits` that says how it got there."""

    visit: int

    def __new__(cls, file: str, line: int, visit: int = -1) -> Self:
        """Make one; without a visit nothing more is known."""
        place = super().__new__(cls, (file, line))
        place.visit = visit
        return place


class Visited(Protocol):
    """The rows of `formats.neff.visits`: where the kernel stood when it called for operations."""

    @property
    def sites(self) -> Sequence[Site]:
        """Return the lines that call something."""

    @property
    def rows(self) -> Sequence[tuple[int, int, int, int, Mapping[str, Value]]]:
        """Return one row per call."""


def visit_of(source: Source) -> int:
    """Return the visit of a place, -1 where none is known."""
    return source.visit if isinstance(source, Place) else -1


# Variables that programs have for themselves: no tensor may have these names.
STATE_BUFFER, DGE_TABLE = RESERVED = ("SB", "DGETable0")

KINDS = frozenset({"input", "output", "shared", "private", "constant", "tile"})


class Space(Enum):
    """Name the memory an allocation lives in."""

    SBUF = "sbuf"
    PSUM = "psum"
    HBM = "hbm"


_HBM = Space.HBM


class Allocation:
    """Hold one piece of memory that a kernel asked for.

    On chip (`SBUF`, `PSUM`) dimension 0 of `shape` is the partition dimension: `partitions` rows of
    `partition_bytes` bytes. In HBM `partitions` is 1, `partition_bytes` equals `nbytes`, and the tensor is row major.
    `address` is (first partition, byte inside the partition) when the kernel fixed it.  `born` is the index in
    `Trace.ops` before which the allocation was made.  `data` carries the values of a constant.
    """

    __slots__ = (
        "address",
        "born",
        "data",
        "dtype",
        "id",
        "kind",
        "name",
        "partition_bytes",
        "partitions",
        "shape",
        "space",
    )

    def __init__(
        self,
        id: int,
        space: Space,
        name: str,
        dtype: Dtype,
        shape: tuple[int, ...],
        kind: str = "tile",
        *,
        address: tuple[int, int] | None = None,
        data: np.ndarray[Any, Any] | None = None,
        born: int = 0,
    ) -> None:
        if kind not in KINDS:
            raise ValueError(f"allocation kind {kind!r} is none of {', '.join(sorted(KINDS))}")
        self.id = id
        self.space = space
        self.name = name
        self.dtype = dtype
        self.shape = shape
        self.kind = kind
        self.address = address
        self.data = data
        self.born = born
        if space is _HBM:
            self.partitions = 1
            self.partition_bytes = prod(shape) * dtype.size
        else:
            self.partitions = shape[0]
            self.partition_bytes = prod(shape[1:]) * dtype.size

    @property
    def nbytes(self) -> int:
        """Return the size of the whole allocation in bytes, over all partitions."""
        return self.partitions * self.partition_bytes

    def __repr__(self) -> str:
        return f"<Allocation {self.id} {self.name!r} {self.space.value} {self.kind} {self.dtype.name} {self.shape}>"


class View(NamedTuple):
    """Select elements of an allocation.

    `offset` is in bytes, inside the partition on chip and inside the tensor in HBM.  `dims` are (step in elements of
    `dtype`, count), outermost first; on chip the free dimensions only, since `partition` and `partitions` say the rest.
    """

    allocation: Allocation
    dtype: Dtype
    partition: int
    partitions: int
    offset: int
    dims: tuple[tuple[int, int], ...]

    @property
    def elements(self) -> int:
        """Return the number of elements, over all partitions."""
        return self.partitions * prod(count for _, count in self.dims)


class ComputeOp:
    """Hold one instruction of a compute engine.

    `operands` has a key per operand of the class that is in use (a `_pointer` operand is `partitions` x 1); `fields`
    has the other fields by name, activation functions by NAME under `function`.
    """

    __slots__ = ("engine", "fields", "instruction", "name", "operands", "source")

    def __init__(
        self,
        instruction: type[Any],
        engine: str,
        operands: dict[str, View],
        fields: dict[str, object],
        source: Source,
        name: str | None = None,
    ) -> None:
        self.instruction = instruction
        self.engine = engine
        self.operands = operands
        self.fields = fields
        self.source = source
        self.name = name

    def __repr__(self) -> str:
        return f"<ComputeOp {self.instruction.__name__} on {self.engine} at {self.source[0]}:{self.source[1]}>"


class DmaOp:
    """Hold one copy by DMA; `transpose` swaps the two dimensions of the source.  `engine` names the queue's owner."""

    __slots__ = ("dst", "engine", "name", "source", "src", "transpose")

    def __init__(
        self,
        dst: View,
        src: View,
        engine: str | None,
        transpose: bool,
        source: Source,
        name: str | None = None,
    ) -> None:
        self.dst = dst
        self.src = src
        self.engine = engine
        self.transpose = transpose
        self.source = source
        self.name = name

    def __repr__(self) -> str:
        word = "transpose" if self.transpose else "copy"
        ends = f"{self.src.allocation.name} to {self.dst.allocation.name}"
        return f"<DmaOp {word} {ends} at {self.source[0]}:{self.source[1]}>"


class IndirectDmaOp:
    """Hold one copy by DMA of which one side lies at the numbers of `index`, a tile in SBUF.

    `scatter` tells that `dst` is that side, else `src` is. One number counts `step` bytes. With `rows` of 0 the one
    number shifts the whole side; else the first of its dimensions has `rows` elements, each at its own number. `order`
    says which dimension of the other side each dimension goes with; `skip` leaves out what is out of bounds,
    `accumulate` adds to the destination.
    """

    __slots__ = (
        "accumulate",
        "dst",
        "engine",
        "index",
        "name",
        "order",
        "rows",
        "scatter",
        "skip",
        "source",
        "src",
        "step",
    )

    def __init__(
        self,
        dst: View,
        src: View,
        index: View,
        step: int,
        rows: int,
        engine: str | None,
        source: Source,
        name: str | None = None,
        *,
        scatter: bool = False,
        skip: bool = False,
        accumulate: bool = False,
        order: tuple[int, ...] | None = None,
    ) -> None:
        self.dst = dst
        self.src = src
        self.index = index
        self.step = step
        self.rows = rows
        self.engine = engine
        self.source = source
        self.name = name
        self.scatter = scatter
        self.skip = skip
        self.accumulate = accumulate
        self.order = order

    def __repr__(self) -> str:
        word = "scatter" if self.scatter else "gather"
        ends = f"{self.src.allocation.name} to {self.dst.allocation.name}"
        return f"<IndirectDmaOp {word} {ends} at {self.source[0]}:{self.source[1]}>"


class DmaComputeOp:
    """Hold one transfer by DMA that adds several sources, in fp32, into `dst`."""

    __slots__ = ("dst", "name", "source", "srcs")

    def __init__(self, dst: View, srcs: tuple[View, ...], source: Source, name: str | None = None) -> None:
        self.dst = dst
        self.srcs = srcs
        self.source = source
        self.name = name

    def __repr__(self) -> str:
        ends = f"{len(self.srcs)} sources to {self.dst.allocation.name}"
        return f"<DmaComputeOp {ends} at {self.source[0]}:{self.source[1]}>"


class MatmulOp:
    """Hold one matrix multiplication: load the stationary tile, stream the moving tile, write PSUM.

    `accumulate` is what the kernel said; None leaves overwrite or accumulate to the life of the PSUM allocation.
    """

    __slots__ = ("accumulate", "dst", "is_transpose", "moving", "name", "source", "stationary")

    def __init__(
        self,
        dst: View,
        stationary: View,
        moving: View,
        accumulate: bool | None,
        is_transpose: bool,
        source: Source,
        name: str | None = None,
    ) -> None:
        self.dst = dst
        self.stationary = stationary
        self.moving = moving
        self.accumulate = accumulate
        self.is_transpose = is_transpose
        self.source = source
        self.name = name

    def __repr__(self) -> str:
        return f"<MatmulOp into {self.dst.allocation.name} at {self.source[0]}:{self.source[1]}>"


class BarrierOp:
    """Hold one point that every program id must reach before `engine` goes on; `data` is a tile they meet about."""

    __slots__ = ("data", "engine", "name", "source")

    def __init__(self, source: Source, engine: str = "Pool", data: View | None = None, name: str | None = None) -> None:
        self.source = source
        self.engine = engine
        self.data = data
        self.name = name

    def __repr__(self) -> str:
        return f"<BarrierOp at {self.source[0]}:{self.source[1]}>"


class SendRecvOp:
    """Hold one exchange with program id `peer`: `src` goes there, what it sends on the same pipe lands in `dst`."""

    __slots__ = ("dst", "name", "peer", "pipe", "source", "src")

    def __init__(self, src: View, dst: View, peer: int, source: Source, pipe: int = 0, name: str | None = None) -> None:
        self.name = name
        self.src = src
        self.dst = dst
        self.peer = peer
        self.source = source
        self.pipe = pipe

    def __repr__(self) -> str:
        return f"<SendRecvOp with {self.peer} at {self.source[0]}:{self.source[1]}>"


class CollectiveOp:
    """Hold one collective of this rank: what it gives lies in `src`, what comes lands in `dst`.

    `kind` and `reduce` are `CollectiveKind` and `AluOp`. `groups` are `rows` replica groups of `columns` 32-bit ranks
    in HBM, or pairs of source and target. Ranks lie one behind the other along dimension `axis` of dst, partitions
    first; `counts` is the table of a V form. Collectives of one `stream` go one after the other.
    """

    __slots__ = (
        "axis", "channel", "columns", "counts", "dst", "engine", "groups", "has_places", "keeps_counts", "kind", "name",
        "reduce", "rows", "source", "src", "stream", "turn",
    )  # fmt: skip

    def __init__(
        self, kind: int, dst: View, src: View, groups: View, rows: int, columns: int, source: Source,
        name: str | None = None, *, reduce: int = 4, engine: str = "Pool", stream: int = 0, channel: int = 0,
        turn: int = 0, axis: int = 0, counts: View | None = None, keeps_counts: bool = False, has_places: bool = False,
    ) -> None:  # fmt: skip
        self.kind, self.reduce = kind, reduce
        self.dst, self.src, self.groups, self.counts = dst, src, groups, counts
        self.rows, self.columns, self.axis = rows, columns, axis
        self.engine, self.stream, self.channel, self.turn = engine, stream, channel, turn
        self.keeps_counts, self.has_places = keeps_counts, has_places
        self.source, self.name = source, name

    def __repr__(self) -> str:
        ends = f"{self.src.allocation.name} to {self.dst.allocation.name}"
        return f"<CollectiveOp {self.kind} {ends} at {self.source[0]}:{self.source[1]}>"


class LoopOp:
    """Hold the head of a loop that the device runs: everything up to its `LoopEndOp` is carried out again and again.

    `condition` is one 32-bit integer in SBUF; the loop is left where it is 0, or, with `counting`, where it is not
    above 0. The test comes before each turn.
    """

    __slots__ = ("condition", "counting", "name", "source")

    def __init__(self, condition: View, counting: bool, source: Source, name: str | None = None) -> None:
        self.condition = condition
        self.counting = counting
        self.source = source
        self.name = name

    def __repr__(self) -> str:
        return f"<LoopOp at {self.source[0]}:{self.source[1]}>"


class LoopEndOp:
    """Hold the end of the body of the innermost open loop."""

    __slots__ = ("source",)
    name = None

    def __init__(self, source: Source) -> None:
        self.source = source

    def __repr__(self) -> str:
        return f"<LoopEndOp at {self.source[0]}:{self.source[1]}>"


Op = (
    ComputeOp | DmaOp | IndirectDmaOp | DmaComputeOp | MatmulOp | BarrierOp | SendRecvOp | CollectiveOp | LoopOp
    | LoopEndOp
)  # fmt: skip


def views_of(op: Op) -> tuple[View, ...]:
    """Return every view that an operation touches."""
    if type(op) is DmaOp:  # the one that traces have most of, where they ask for computing operations apart
        return op.src, op.dst
    if isinstance(op, ComputeOp):
        return tuple(op.operands.values())
    if isinstance(op, MatmulOp):
        return op.stationary, op.moving, op.dst
    if isinstance(op, (DmaOp, SendRecvOp)):
        return op.src, op.dst
    if isinstance(op, IndirectDmaOp):
        return op.src, op.dst, op.index
    if isinstance(op, DmaComputeOp):
        return *op.srcs, op.dst
    if isinstance(op, CollectiveOp):
        return (op.src, op.dst, op.groups) if op.counts is None else (op.src, op.dst, op.groups, op.counts)
    if isinstance(op, LoopOp):
        return (op.condition,)
    if isinstance(op, BarrierOp) and op.data is not None:
        return (op.data,)
    return ()


class Touched(NamedTuple):
    """The views that operations touch, one after the other; `ends` has, by operation, how many there are behind it.

    `computing` are operations of compute engines, `copies` those that only copy, `others` neither these nor products.
    """

    views: list[View]
    ends: list[int]
    computing: list[ComputeOp]
    copies: list[DmaOp]
    others: list[Op]


def touched_by(ops: Sequence[Op]) -> Touched:
    """Return what operations touch, in one pass over them."""
    found = Touched([], [0] * len(ops), [], [], [])
    views, ends, computing, copies, others = found
    count = 0
    for number, op in enumerate(ops):
        kind = op.__class__
        if kind is ComputeOp:
            operands = op.operands  # type: ignore[union-attr]  # it is one
            views += operands.values()
            count += len(operands)
            computing.append(op)  # type: ignore[arg-type]
        elif kind is DmaOp:
            views += op.src, op.dst  # type: ignore[union-attr]
            count += 2
            copies.append(op)  # type: ignore[arg-type]
        elif kind is MatmulOp:
            views += op.stationary, op.moving, op.dst  # type: ignore[union-attr]
            count += 3
        else:
            views += views_of(op)
            count = len(views)
            others.append(op)
        ends[number] = count
    return found


class Trace:
    """Hold everything one program id did, in program order.

    `results` is the kernel's return value with each tensor replaced by a `View`; `inputs` and `outputs` are the HBM
    allocations of the launch's tensors. `after` has, by the number of an operation, the numbers of those that must be
    complete before it begins though no byte says so. `visits` says where the kernel stood, None where nobody noted it.
    With `spills` tiles may go through device memory where SBUF is full, as kernels of the first generation expect.
    `touched` is what a tracer found of the operations at its end; the builder takes it away.
    """

    __slots__ = (
        "after",
        "allocations",
        "inputs",
        "num_programs",
        "ops",
        "outputs",
        "program_id",
        "results",
        "spills",
        "target",
        "touched",
        "visits",
    )

    def __init__(self, target: Target, program_id: int = 0, num_programs: int = 1) -> None:
        self.target = target
        self.program_id = program_id
        self.num_programs = num_programs
        self.allocations: list[Allocation] = []
        self.ops: list[Op] = []
        self.inputs: list[Allocation] = []
        self.outputs: list[Allocation] = []
        self.results: Any = None
        self.after: dict[int, set[int]] = {}
        self.visits: Visited | None = None
        self.touched: Touched | None = None
        self.spills = False

    def what_is_touched(self) -> Touched:
        """Return what the operations touch: from a tracer that has just gone through them, or found now."""
        found = self.touched
        return touched_by(self.ops) if found is None or len(found.ends) != len(self.ops) else found

    def __repr__(self) -> str:
        return (
            f"<Trace {self.program_id}/{self.num_programs}: {len(self.ops)} ops, {len(self.allocations)} allocations>"
        )
