"""The trace being written: allocations, operations, and the kernel line that each comes from."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING, Any, Protocol

from formats.dtypes import Dtype
from formats.named_tuple import NamedTuple
from formats.neuron_core import PARTITIONS, PSUM_BYTES
from formats.targets import Target, resolve_target
from neurontools.builder.limits import LIMITS, Limits
from neurontools.builder.trace import (
    RESERVED,
    Allocation,
    ComputeOp,
    DmaOp,
    MatmulOp,
    Op,
    Place,
    Source,
    Space,
    Trace,
    View,
)
from neurontools.nki.errors import NkiValidationError
from neurontools.nki.kinds import NOTHING, Kind, Operations, operations_under, whole
from neurontools.nki.switches import switch
from neurontools.nki.syntax import NAMED, assigned_name

if TYPE_CHECKING:
    import numpy as np

__all__ = [
    "OTHER_FILES",
    "OUR_FILES",
    "OVERRIDES",
    "OpenLoop",
    "Surroundings",
    "Tracer",
    "Visiting",
    "chain_of",
    "current",
    "default_lenient",
    "default_target",
    "is_ours",
    "is_tracing",
    "kernel_frame",
    "kernel_line",
    "kernel_place",
    "threads",
    "tracer",
    "tracing",
]

_FOLDER = os.path.dirname(os.path.abspath(__file__))
# Both generations of the front end: the old one lies beside this one.
_PACKAGE = (_FOLDER + os.sep, os.path.join(os.path.dirname(_FOLDER), "neuronxcc") + os.sep)
_SHOWN_CALLS = 8  # of a chain of calls; a recursion may have hundreds


class _Local(threading.local):
    """Hold the tracer of each thread: an attribute of the class, so that threads that have set none find it too."""

    tracer: Tracer | None = None


threads = _Local()
"""What `tracer` looks at: whoever is called for each operation asks `threads.tracer or tracer()`, which is no call."""

_HBM, _PSUM = Space.HBM, Space.PSUM
_new: Callable[[type], Any] = object.__new__

DEFAULT_TARGET = "trn3"
"""Target of a launch that nothing else decides, as the simulator's documentation says (nki.md 4.1)."""

OVERRIDES = ("NEURON_PLATFORM_TARGET_OVERRIDE", "NKI_NC_VERSION")
"""Variables that decide before a kernel does, the first that is set."""


OTHER_FILES: set[str] = set()
OUR_FILES: set[str] = set()
"""Files for which `is_ours` does not hold, and for which it does, as far as it was asked: walks along frames look here
first, at each operation."""


def is_ours(file: str) -> bool:
    """Return whether a source file is one of the front ends', or NumPy's: neither is where a kernel's line is."""
    if file in OUR_FILES:
        return True
    if file in OTHER_FILES:
        return False
    import numpy as np  # deferred: start-up

    ours = file.startswith((*_PACKAGE, os.path.join(np.__path__[0], "")))
    (OUR_FILES if ours else OTHER_FILES).add(file)
    return ours


def kernel_frame(skipped: int = 1) -> FrameType | None:
    """Return the innermost frame outside this package; the caller knows that `skipped` frames are inside."""
    frame: FrameType | None = sys._getframe(skipped)
    while frame is not None:
        file = frame.f_code.co_filename
        if file not in OUR_FILES and not is_ours(file):
            return frame
        frame = frame.f_back
    return None


def kernel_place(place: Source | None = None) -> str:
    """Return where the kernel is as file:line, and who called there, as far as that is the kernel's own code.

    Another `place` stands for itself.
    """
    if place is not None:
        return f"{place[0]}:{place[1]}"
    tracer = current()
    bottom = tracer.bottom if tracer is not None else None
    frame = kernel_frame(2)
    if frame is None:
        return "?:0"
    chain, top = [f"{frame.f_code.co_filename}:{frame.f_lineno}"], frame
    while frame is not None and frame is not bottom:
        if frame is not top and not is_ours(frame.f_code.co_filename):
            chain.append(f"{frame.f_code.co_filename}:{frame.f_lineno}")
        frame = frame.f_back
    # Outside of a launch there is no telling where the kernel begins.
    return chain[0] if frame is None else chain_of(chain)


def chain_of(places: list[str]) -> str:
    """Return lines of a kernel, the innermost first, as the end of a message; of many those in the middle left out."""
    if len(places) == 1:
        return places[0]
    left_out = len(places) - _SHOWN_CALLS
    shown = places[1:] if left_out <= 1 else [*places[1 : _SHOWN_CALLS - 1], f"{left_out + 1} more", places[-1]]
    return f"{places[0]}, called from {', from '.join(shown)}"


def kernel_line() -> Source:
    """Return file and line of the innermost frame outside this package, as `kernel_frame` does, with its visit.

    While what was called for earlier is carried out, that call's line.
    """
    running = threads.tracer
    if running is not None and running.called_at is not None:
        return running.called_at
    return _line_from(sys._getframe(1), running)


def _line_from(inner: FrameType, running: Tracer | None) -> Source:
    """Return what `kernel_line` does, from a frame on that has called the caller."""
    if running is not None and running.visits is not None:
        return running.visits.place(inner)
    frame: FrameType | None = inner
    while frame is not None:
        if not is_ours(frame.f_code.co_filename):
            return Place(frame.f_code.co_filename, frame.f_lineno)
        frame = frame.f_back
    return Place("?", 0)


def default_target(platform_target: str | None = None) -> Target:
    """Return the target of a launch, from the environment as it is now.

    NEURON_PLATFORM_TARGET_OVERRIDE comes first, then NKI_NC_VERSION, then `platform_target` of the decorator, then
    trn3.
    """
    for name in OVERRIDES:
        text = switch(name)
        if text:
            return resolve_target(text, name)
    return resolve_target(platform_target or DEFAULT_TARGET)


def default_lenient() -> bool:
    """Return whether the environment asks for launches that only warn of limits."""
    return switch("NEURONTOOLS_LENIENT", "0") not in ("", "0")


class Observation:
    """Name a hidden output that the launch looks at after the run: an `assert` on a tensor, or a `device_print`."""

    __slots__ = ("allocation", "kind", "shape", "source", "text")

    def __init__(self, kind: str, allocation: Allocation, shape: tuple[int, ...], source: Source, text: str) -> None:
        self.kind = kind
        self.allocation = allocation
        self.shape = shape
        self.source = source
        self.text = text


class OpenLoop(NamedTuple):
    """One loop whose body is being traced; `key` tells a `while` statement of the kernel from others.

    `cached` are the keys of the trace's cache from before it.
    """

    source: Source
    key: object
    cached: frozenset[Any]


class Visiting(Protocol):
    """Who notes at which place, and in which turn of its loops, the kernel calls for an operation."""

    def place(self, inner: FrameType) -> Source:
        """Return the place of what the kernel calls just now; `inner` is a frame in what it calls."""


class Surroundings(Protocol):
    """What stands before and behind the instruction that is being noted: the moves of its indirect operands' data."""

    def compute(
        self,
        t: Tracer,
        instruction: type[Any],
        engine: str,
        operands: dict[str, View],
        fields: dict[str, object],
        name: str | None,
    ) -> ComputeOp:
        """Append an instruction of a compute engine with its moves; return its operation."""

    def matmul(
        self,
        t: Tracer,
        dst: View,
        stationary: View,
        moving: View,
        accumulate: bool | None,
        is_transpose: bool,
        name: str | None,
    ) -> MatmulOp:
        """Append a matrix multiplication with its moves; return its operation."""


class Tracer:
    """Write one `Trace`: one program id's run of the kernel body."""

    __slots__ = (
        "assigned",
        "bottom",
        "cache",
        "called_at",
        "generation",
        "grid",
        "indirect",
        "known",
        "lenient",
        "limits",
        "loop_edges",
        "loops",
        "names",
        "observations",
        "ops",
        "ordered",
        "precise",
        "target",
        "trace",
        "visits",
        "written",
    )

    def __init__(
        self, target: Target, program_id: int = 0, grid: tuple[int, ...] = (), lenient: bool | None = None
    ) -> None:
        programs = 1
        for extent in grid:
            programs *= extent
        if target.generation not in LIMITS:
            raise NkiValidationError(f"target {target.name} has no NKI limits (NKI runs on {', '.join(LIMITS)})")
        self.trace = Trace(target, program_id, programs)
        self.ops: list[Op] = self.trace.ops
        self.target = target
        self.limits: Limits = LIMITS[target.generation]
        self.generation = self.limits.number
        self.grid = grid
        # Variables that every NEFF has of its own; a tensor of that name gets a number behind it.
        self.names = dict.fromkeys(RESERVED, 1)
        self.cache: dict[Any, Any] = {}
        self.observations: list[Observation] = []
        self.assigned: list[Op] = []  # copies that stand for assignments of the kernel's
        self.written: set[int] = set()
        self.indirect: Surroundings | None = None  # where the instruction that is being noted has indirect operands
        self.loops: list[OpenLoop] = []  # open loops of the device, the innermost last
        self.loop_edges: list[int] = []  # numbers of the operations that begin and end loops
        self.ordered = 0  # how many nl.no_reorder() blocks are open
        self.precise = switch("NKI_PRECISE_FP", "1") != "0"
        self.lenient = default_lenient() if lenient is None else lenient
        self.known: Operations = NOTHING if self.lenient else operations_under(self.limits)
        self.bottom: FrameType | None = None  # the frame of ours that calls the kernel
        self.visits: Visiting | None = None
        self.called_at: Source | None = None  # of what is carried out later than the kernel called for it

    def error(self, message: str, place: Source | None = None) -> NkiValidationError:
        """Return the error to raise, with target and kernel line (or another `place`) added: a finding of a check."""
        text = f"{message}, on {self.target.name} ({self.limits.generation}) at {kernel_place(place)}"
        file, line = (place or kernel_line())[:2]
        return NkiValidationError(text).found("memcheck:operand", (file, line))

    def limit(self, error: NkiValidationError) -> None:
        """Raise the error about a limit of partitions or capacity; in a lenient launch only warn of it, once."""
        if not self.lenient:
            raise error
        seen: set[str] = self.cache.setdefault("limits", set())
        if str(error) not in seen:
            seen.add(str(error))
            print(f"neurontools: warning: {error}", file=sys.stderr)

    def unnamed(self, name: object) -> NkiValidationError:
        """Return the error for a name that is no text, which debug information could not carry."""
        return self.error(f"name is {name!r}, must be text")

    def unique_name(self, wanted: str) -> str:
        """Return `wanted`, with a number behind it when it is taken."""
        count = self.names.get(wanted)
        if count is None:
            self.names[wanted] = 1
            return wanted
        while True:
            name = f"{wanted}_{count}"
            count += 1
            if name not in self.names:
                self.names[wanted] = count
                self.names[name] = 1
                return name

    def allocate(
        self,
        space: Space,
        dtype: Dtype,
        shape: tuple[int, ...],
        kind: str = "tile",
        name: str = "",
        address: tuple[int, int] | None = None,
        data: np.ndarray[Any, Any] | None = None,
        its: Kind | None = None,
    ) -> Allocation:
        """Append an allocation; a shape that no partition range can hold is an error.

        `its` is the kind of all of it, where that is known.
        """
        if name and not isinstance(name, str):
            raise self.unnamed(name)
        allocations = self.trace.allocations
        index = len(allocations)
        if not name:
            # People ask for tiles by the variable; the frame is behind what of this package asks for a tile. The walk
            # of `kernel_frame`, written out: every tile of a loop comes by.
            frame: FrameType | None = sys._getframe(2)
            while frame is not None:
                file = frame.f_code.co_filename
                if file in OTHER_FILES or (file not in OUR_FILES and not is_ours(file)):
                    break
                frame = frame.f_back
            found = None if frame is None else NAMED.get((id(frame.f_code), frame.f_lasti))
            if found is not None and found[1]:
                name = found[1]
            else:
                name = assigned_name(frame, self.bottom) or f"{space.value}_{index}"
        names = self.names
        if name in names:
            name = self.unique_name(name)
        else:
            names[name] = 1
        if its is None:
            its = whole(shape, dtype.name, dtype, space, address)
        # What `Allocation(...)` does, without its function.
        allocation: Allocation = _new(Allocation)
        allocation.id = index
        allocation.space = space
        allocation.name = name
        allocation.dtype = dtype
        allocation.shape = shape
        allocation.kind = kind
        allocation.address = address
        allocation.data = data
        allocation.born = len(self.ops)
        partitions = allocation.partitions = its.partitions
        size = allocation.partition_bytes = its.span
        # PSUM has fewer bytes than SBUF in all generations, so that small tiles fit either
        if space is not _HBM and (partitions > PARTITIONS or size > PSUM_BYTES or address is not None):
            self._check_tile(allocation)
        allocations.append(allocation)
        return allocation

    def _check_tile(self, allocation: Allocation) -> None:
        if allocation.partitions > PARTITIONS:
            self.limit(self.error(
                f"ndarray: shape[0] of the {allocation.space.value} tensor {allocation.name} is "
                f"{allocation.partitions} partitions, at most {PARTITIONS}"
            ))  # fmt: skip
        capacity = PSUM_BYTES if allocation.space is _PSUM else self.limits.sbuf_bytes
        if allocation.partition_bytes > capacity:
            self.limit(self.error(
                f"ndarray: {allocation.space.value} tensor {allocation.name} takes "
                f"{allocation.partition_bytes} bytes per partition, at most {capacity}"
            ))  # fmt: skip
        if allocation.address is not None:
            self._check_address(allocation, allocation.address, capacity)

    def _check_address(self, allocation: Allocation, address: tuple[int, int], capacity: int) -> None:
        """Refuse an address outside of the memory; where that is only warned of, the builder finds another."""
        partition, byte = address
        if partition < 0 or partition + allocation.partitions > PARTITIONS:
            what = f"{allocation.partitions} partitions past {PARTITIONS}"
        elif byte < 0 or byte + allocation.partition_bytes > capacity:
            what = (f"{allocation.partition_bytes} bytes past the {capacity} of a {allocation.space.value} "
                    "partition")  # fmt: skip
        else:
            return
        self.limit(self.error(f"ndarray: address={address} puts {what}"))
        allocation.address = None

    def compute(
        self,
        instruction: type[Any],
        engine: str,
        operands: dict[str, View],
        fields: dict[str, object],
        name: str | None = None,
    ) -> ComputeOp:
        """Append one instruction of a compute engine, and what its indirect operands need around it."""
        if self.indirect is not None:
            return self.indirect.compute(self, instruction, engine, operands, fields, name)
        visits, inner = self.visits, sys._getframe(1)
        source = self.called_at or (_line_from(inner, self) if visits is None else visits.place(inner))
        # what `ComputeOp(...)` does, without its function, as for the other operations that traces have most of
        op: ComputeOp = _new(ComputeOp)
        op.instruction = instruction
        op.engine = engine
        op.operands = operands
        op.fields = fields
        op.source = source
        op.name = name
        self.ops.append(op)
        return op

    def dma(self, dst: View, src: View, engine: str | None, transpose: bool = False, name: str | None = None) -> DmaOp:
        """Append one copy; remember inputs that it writes."""
        visits, inner = self.visits, sys._getframe(1)
        source = self.called_at or (_line_from(inner, self) if visits is None else visits.place(inner))
        op: DmaOp = _new(DmaOp)
        op.dst = dst
        op.src = src
        op.engine = engine
        op.transpose = transpose
        op.source = source
        op.name = name
        self.ops.append(op)
        if dst.allocation.kind == "input":
            self.written.add(dst.allocation.id)
        return op

    def matmul(
        self,
        dst: View,
        stationary: View,
        moving: View,
        accumulate: bool | None,
        is_transpose: bool,
        name: str | None = None,
    ) -> MatmulOp:
        """Append one matrix multiplication, and what its indirect operands need around it."""
        if self.indirect is not None:
            return self.indirect.matmul(self, dst, stationary, moving, accumulate, is_transpose, name)
        visits, inner = self.visits, sys._getframe(1)
        source = self.called_at or (_line_from(inner, self) if visits is None else visits.place(inner))
        op: MatmulOp = _new(MatmulOp)
        op.dst = dst
        op.stationary = stationary
        op.moving = moving
        op.accumulate = accumulate
        op.is_transpose = is_transpose
        op.source = source
        op.name = name
        self.ops.append(op)
        return op


def current() -> Tracer | None:
    """Return the tracer of this thread, or None outside a kernel."""
    return threads.tracer


def is_tracing() -> bool:
    """Return whether a kernel body is running in this thread."""
    return current() is not None


def tracer() -> Tracer:
    """Return the tracer of this thread; outside a kernel there is none, which is an error."""
    found = threads.tracer
    if found is None:
        raise NkiValidationError(
            f"NKI tensors and instructions exist only while a kernel is traced, at {kernel_place()}; "
            "call a @nki.jit function, or nki.simulate(function)"
        )
    return found


class tracing:
    """Make `new` the tracer of this thread for a while."""

    __slots__ = ("_before", "_new")

    def __init__(self, new: Tracer) -> None:
        self._new = new

    def __enter__(self) -> Tracer:
        self._before = threads.tracer
        threads.tracer = self._new
        return self._new

    def __exit__(self, *raised: object) -> None:
        threads.tracer = self._before
