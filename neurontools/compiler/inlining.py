"""Lowering of NKI kernels called in a graph: their traces become part of the program's.

Every operation keeps the kernel's own line and is called after the custom call, so that the way from operation to
instruction to line leads through both. Two programs of a kernel run one after the other on the one core, in turns
between their barriers.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

from formats.errors import FormatError, NeuronError
from formats.neff.visits import Site
from formats.targets import Target
from neurontools.builder.loaded_trace import VisitTable
from neurontools.builder.native_kernel import NativeKernel, config_of, decode
from neurontools.builder.trace import (
    Allocation,
    BarrierOp,
    DmaOp,
    LoopEndOp,
    LoopOp,
    Op,
    Place,
    SendRecvOp,
    Space,
    Trace,
    View,
    visit_of,
)
from neurontools.compiler.arrays import Array
from neurontools.compiler.element_types import element_type
from neurontools.compiler.emitter import Emitter
from neurontools.compiler.errors import UnsupportedGraphError, failed
from neurontools.compiler.graph import Node, Value
from neurontools.compiler.lowering import Lowering, lowers

__all__ = ["check_kernel", "kernel_of"]


@lru_cache(maxsize=16)
def kernel_of(config: bytes) -> NativeKernel:
    """Return the kernel of a custom call's configuration; FormatError where it holds none of ours."""
    fields = config_of(config)
    if fields is None:
        raise FormatError("configuration is no JSON object", path="backend_config")
    return decode(fields)


def check_kernel(node: Node, target: Target) -> NeuronError | None:
    """Return what stands against inlining the kernel of a node: a malformed one, other operands or results."""
    origin = node.origin
    try:
        kernel = kernel_of(node.attrs["config"])
    except (FormatError, NeuronError) as error:
        return failed("EVRF065", f"the NKI kernel cannot be read ({error}); trace the model again", origin)
    name, first = f"NKI kernel {kernel.name}", kernel.traces[0]
    if first.target.generation != target.generation:
        what = f"{name} was traced for {first.target.name}, the graph is compiled for {target.name}"
        return UnsupportedGraphError("EUOC002", f"{what}; trace it with platform_target={target.name!r}", origin)
    if len(node.operands) != len(first.inputs):
        return failed("EVRF064", f"{name} takes {len(first.inputs)} tensors, the call has {len(node.operands)}", origin)
    for value, one in zip(node.operands, first.inputs, strict=True):
        if not _fits(value, one.dtype, one.shape):
            what = f"{name} takes {_kind(one.dtype, one.shape)} as {one.name}, the call has {_kind_of(value)}"
            return failed("EVRF064", what, origin)
    if len(node.results) != len(kernel.results):
        return failed("EVRF064", f"{name} returns {len(kernel.results)} tensors, the call {len(node.results)}", origin)
    for place, (value, result) in enumerate(zip(node.results, kernel.results, strict=True)):
        if not _fits(value, result.dtype, result.shape):
            return failed("EVRF064", f"{name} returns {_kind(result.dtype, result.shape)} as result {place}, the call "
                          f"has {_kind_of(value)}", origin)  # fmt: skip
    return _check_aliases(node, kernel) or _check_programs(node, kernel)


def _fits(value: Value, dtype: Any, shape: tuple[int, ...]) -> bool:
    kind = element_type(value.dtype)
    return kind.storage is dtype and kind.given == dtype.size and (value.shape or (1,)) == (shape or (1,))


def _kind(dtype: Any, shape: tuple[int, ...]) -> str:
    return f"{dtype.numpy_name}[{','.join(map(str, shape))}]"


def _kind_of(value: Value) -> str:
    return f"{element_type(value.dtype).numpy}[{','.join(map(str, value.shape))}]"


def _check_aliases(node: Node, kernel: NativeKernel) -> NeuronError | None:
    """Refuse a call that says other aliases than the kernel has; one that says none has copies."""
    said: dict[int, int] = node.attrs.get("aliases", {})
    for operand, result in said.items():
        if operand >= len(node.operands) or result >= len(node.results) or kernel.aliases.get(operand) != result:
            return failed("EVRF064", f"NKI kernel {kernel.name} does not return operand {operand} as result {result}, "
                          "which the call says it does", node.origin)  # fmt: skip
    return None


def _check_programs(node: Node, kernel: NativeKernel) -> NeuronError | None:
    what = ""
    for trace in kernel.traces:
        depth = 0
        for op in trace.ops:
            depth += isinstance(op, LoopOp) - isinstance(op, LoopEndOp)
            if isinstance(op, _MEETINGS) and depth and len(kernel.traces) > 1:
                what = "has a core barrier or an exchange of tiles in a loop of the device"
            elif isinstance(op, SendRecvOp) and (len(kernel.traces) == 1 or _not_in_sbuf(op)):
                what = "exchanges tiles that are not in SBUF, or with a program that there is not"
    sizes = [[one.nbytes for one in _shared(trace)] for trace in kernel.traces]
    if any(one != sizes[0] for one in sizes):
        what = "has programs that share different tensors"
    kinds = {
        tuple(_meeting(trace.ops[place], program) for place in _meetings(trace))
        for program, trace in enumerate(kernel.traces)
    }
    if len(kinds) > 1:
        what = "has programs that meet at different barriers, or exchange tiles in different orders"
    if not what:
        return None
    return UnsupportedGraphError("EUOC002", f"NKI kernel {kernel.name} {what}, which is not inlined", node.origin)


def _not_in_sbuf(op: SendRecvOp) -> bool:
    return any(one.allocation.space is not Space.SBUF for one in (op.src, op.dst))


def _meeting(op: Op, program: int) -> tuple[object, ...]:
    """Return what programs must have in common of a place where they meet: the pipe, what goes each way."""
    if not isinstance(op, SendRecvOp):
        return ()
    first, second = (op.dst, op.src) if program else (op.src, op.dst)
    return op.pipe, *((one.partitions, one.elements, one.dtype) for one in (first, second))


@lowers("custom-call")
def _native_kernel(self: Lowering, node: Node) -> None:
    """Lower a kernel: its inputs are the operands, copied where it writes them; its results what it returns."""
    kernel = kernel_of(node.attrs["config"])
    e, first = self.emitter, kernel.traces[0]
    arrays: dict[int, Array] = {}  # by tensors of the first program
    for value, result in zip(node.results, kernel.results, strict=True):
        one = first.allocations[result.allocation]
        whole = Array(one, result.dtype, result.offset, result.shape, result.strides)
        is_all = not result.offset and whole.dense and whole.size * result.dtype.size == one.nbytes
        if is_all and result.allocation not in arrays:
            arrays[result.allocation] = self.result(value.node, value.index)
    written = {one.id for one in first.outputs}
    for value, one in zip(node.operands, first.inputs, strict=True):
        given = self.array(value)
        if one.id not in written:
            arrays.setdefault(one.id, self.dense(given))
            continue
        if one.id not in arrays:
            arrays[one.id] = self.new(value.dtype, value.shape)
        self.copy(arrays[one.id], given)
    _Inliner(e, kernel, arrays).run()
    for value, result in zip(node.results, kernel.results, strict=True):
        base = arrays[result.allocation]
        if value not in self.values:
            own = Array(base.allocation, result.dtype, result.offset, result.shape, result.strides)
            own = own._replace(offset=own.offset + base.offset * base.dtype.size // result.dtype.size)
            found = own.reshaped(value.shape)
            assert found is not None  # only dimensions of one differ
            self.values[value] = found


class _Inliner:
    """Append the operations of a kernel's programs to a trace; `arrays` has where tensors lie, more are added."""

    def __init__(self, e: Emitter, kernel: NativeKernel, arrays: dict[int, Array]) -> None:
        self.e, self.kernel = e, kernel
        self.maps: list[dict[int, tuple[Allocation, int]]] = []  # by program and tensor: where it is, at which byte
        self.coming: list[list[Allocation]] = []
        shared = [_shared(trace) for trace in kernel.traces]
        for number, trace in enumerate(kernel.traces):
            known: dict[int, tuple[Allocation, int]] = {}
            for mine, theirs in zip(shared[number], shared[0], strict=True):
                array = arrays.get(theirs.id)
                if array is None:
                    array = arrays[theirs.id] = e.tensor(theirs.dtype, theirs.shape, name=theirs.name)
                known[mine.id] = array.allocation, array.offset * array.dtype.size
            self.maps.append(known)
            rest = [one for one in trace.allocations if one.id not in known]
            self.coming.append(sorted(rest, key=lambda one: one.born, reverse=True))  # the next one at the end
        self.arrays = arrays

    def run(self) -> None:
        """Append everything."""
        e = self.e
        e.alone()
        trace = e.trace
        table = trace.visits
        if table is None:
            table = trace.visits = VisitTable([], [])
        assert isinstance(table, VisitTable)  # the compiler's own, above
        visits = [_add_visits(table, e, one) for one in self.kernel.traces]
        numbers: list[dict[int, int]] = [{} for _ in self.kernel.traces]
        meetings = [_meetings(one) for one in self.kernel.traces]
        for program, begin, end in _turns(self.kernel.traces):
            own = self.kernel.traces[program]
            for place in range(begin, end):
                self._tiles(program, place)
                op = own.ops[place]
                if isinstance(op, SendRecvOp):
                    if program == 0:  # the others have come to theirs: it is the first of the turn
                        turn = meetings[0].index(place)
                        self._exchange([one[turn] for one in meetings], visits, numbers)
                    continue
                numbers[program][place] = len(trace.ops)
                if not isinstance(op, BarrierOp):
                    e.place(self._moved(op, program, visits[program]))
        for program, own in enumerate(self.kernel.traces):
            for place, before in own.after.items():
                mine = {numbers[program][one] for one in before if not isinstance(own.ops[one], BarrierOp)}
                if not isinstance(own.ops[place], BarrierOp) and mine:
                    trace.after[numbers[program][place]] = mine

    def _exchange(self, places: list[int], visits: list[int], numbers: list[dict[int, int]]) -> None:
        """Append what two programs send each other: copies between their tiles, which lie on one core here."""
        e, sides = self.e, []
        for program, place in enumerate(places):
            self._tiles(program, place)
            side = self._moved(self.kernel.traces[program].ops[place], program, visits[program])
            assert isinstance(side, SendRecvOp)  # all programs have one here
            sides.append(side)
        first, second = sides
        sent = first.src
        if first.dst.allocation is sent.allocation:  # what comes would overwrite what is still to go
            sent = e.like(sent, sent.dtype)
            e.place(DmaOp(sent, first.src, None, False, first.source, e.origin.name))
        for program, (side, given) in enumerate(((first, second.src), (second, sent))):
            numbers[program][places[program]] = len(e.trace.ops)
            e.place(DmaOp(side.dst, given, None, False, side.source, e.origin.name))

    def _tiles(self, program: int, place: int) -> None:
        """Allocate what a program allocates up to an operation of it."""
        known, trace, coming = self.maps[program], self.e.trace, self.coming[program]
        while coming and coming[-1].born <= place:
            one = coming.pop()
            if one.space is Space.HBM:
                kind = "constant" if one.kind == "constant" else "private"
                array = self.e.tensor(one.dtype, one.shape, kind, one.name, one.data)
                known[one.id] = array.allocation, 0
                continue
            made = Allocation(self.e.number(), one.space, one.name, one.dtype, one.shape, "tile",
                              address=one.address, born=len(trace.ops))  # fmt: skip
            trace.allocations.append(made)
            known[one.id] = made, 0

    def _moved(self, op: Op, program: int, first_visit: int) -> Op:
        """Return an operation over the tensors of the graph."""
        made = copy.copy(op)
        known = self.maps[program]

        def view(one: View) -> View:
            allocation, offset = known[one.allocation.id]
            return one._replace(allocation=allocation, offset=one.offset + offset)

        for slot in type(op).__slots__:
            held = getattr(op, slot)
            if isinstance(held, View):
                setattr(made, slot, view(held))
            elif slot == "operands":
                setattr(made, slot, {name: view(one) for name, one in held.items()})
            elif slot == "srcs":
                setattr(made, slot, tuple(view(one) for one in held))
        file, line = op.source
        visit = visit_of(op.source)
        made.source = Place(file, line, -1 if visit < 0 else visit + first_visit)
        if "name" in type(op).__slots__:
            made.name = self.e.origin.name
        return made


def _shared(trace: Trace) -> list[Allocation]:
    """Return the tensors that are the same memory for all programs, in an order that they have in common."""
    outputs = {one.id for one in trace.outputs}
    rest = [one for one in trace.allocations if one.space is Space.HBM and one.kind != "input"]
    return [*trace.inputs, *(one for one in rest if one.kind in ("output", "shared") or one.id in outputs)]


_MEETINGS = (BarrierOp, SendRecvOp)


def _meetings(trace: Trace) -> list[int]:
    """Return the operations of a program at which it meets the other one."""
    return [place for place, op in enumerate(trace.ops) if isinstance(op, _MEETINGS)]


def _turns(traces: Sequence[Trace]) -> Iterator[tuple[int, int, int]]:
    """Yield which program carries out which of its operations: each goes on to where it meets the other, in turn."""
    ends = [[*_meetings(one), len(one.ops)] for one in traces]
    done = [0] * len(traces)
    for turn in range(len(ends[0])):
        for program, own in enumerate(ends):
            yield program, done[program], own[turn]
            done[program] = own[turn]


def _add_visits(table: VisitTable, e: Emitter, trace: Trace) -> int:
    """Add a program's visits behind one of the call in the model; return the number of the first."""
    parent = len(table.rows)
    table.rows.append((-1, len(table.sites), -1, 1, {}))
    table.sites.append(Site(e.origin.file, f"%{e.origin.name}", e.origin.line))
    if trace.visits is None:
        return 0
    first, sites = len(table.rows), len(table.sites)
    table.sites.extend(trace.visits.sites)
    for up, site, base, turn, own in trace.visits.rows:
        caller = up + first if up >= 0 else parent
        table.rows.append((caller, site + sites, base + first if base >= 0 else -1, turn, own))
    return first
