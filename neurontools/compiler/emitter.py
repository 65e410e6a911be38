"""The one place where the compiler appends to a trace: allocations, instructions of the engines, transfers.

Tiles are views of SBUF or PSUM whose free dimensions are counted in elements. The instructions are those of
`nki.isa`, with the same words and engines; the builder and its checks see no difference.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from formats import isa as words
from formats.dtypes import Dtype
from formats.isa import AluOp, CollectiveKind, ReduceCommand, ReduceDims
from formats.neuron_core import PARTITIONS
from formats.targets import Target
from neurontools.builder.limits import LIMITS
from neurontools.builder.trace import (
    RESERVED,
    Allocation,
    BarrierOp,
    CollectiveOp,
    ComputeOp,
    DmaOp,
    IndirectDmaOp,
    LoopEndOp,
    LoopOp,
    MatmulOp,
    Op,
    Space,
    Trace,
    View,
    views_of,
)
from neurontools.compiler.arrays import Array, row_major
from neurontools.compiler.graph import Origin
from neurontools.compiler.two_cores import Crossings

__all__ = ["Emitter", "narrowed"]

_LAST_OF_WORD = 15  # of codes of element types, of which TENSOR_TENSOR has four bits for each input
_RAW = {1: Dtype.UINT8, 2: Dtype.UINT16, 4: Dtype.UINT32}


def narrowed(view: View, rows: int) -> View:
    """Return the first partitions of a tile."""
    return view if rows == view.partitions else view._replace(partitions=rows)


class Emitter:
    """Append to the trace of one core after another; `origin` says for which operation of the module.

    Tensors in device memory belong to all cores, tiles to the one at work, `core`.
    """

    def __init__(self, target: Target, cores: int = 1) -> None:
        self.traces = [Trace(target, number, cores) for number in range(cores)]
        self.core = 0
        self.limits = LIMITS[target.generation]
        self.origin = Origin("main", "?", 0)
        self.saturate = False  # infinities become the largest numbers before they pass through the array
        self.wide_sums = True  # folds of 16-bit floats keep fp32 until they are complete
        self.output_kinds: frozenset[object] = frozenset()
        self._names = dict.fromkeys(RESERVED, 1)
        self._constants: dict[tuple[object, ...], Array] = {}
        self._turn = False
        self._identities: list[list[dict[Dtype, View]]] = [[{}] for _ in range(cores)]
        self._allocated = 0
        self._crossings = Crossings(cores)
        self._reads: list[set[int]] = [set() for _ in range(cores)]
        self._marks = [(0, 0)] * cores
        self.barriers = 0

    @property
    def trace(self) -> Trace:
        """Return the trace of the core that is at work."""
        return self.traces[self.core]

    @property
    def cores(self) -> int:
        """Return the number of cores."""
        return len(self.traces)

    def finish(self) -> list[Trace]:
        """Return the traces; tensors that both cores use are theirs together."""
        if self.cores > 1:
            used = [{view.allocation.id for op in trace.ops for view in views_of(op)} for trace in self.traces]
            for one in self.traces[0].allocations:
                if one.kind == "private" and all(one.id in each for each in used):
                    one.kind = "shared"
        return self.traces

    def _append(self, op: Op) -> None:
        """Append an operation to the core at work, behind a barrier where it needs what another core has done."""
        if self.cores > 1 and (where := self._crossings.meets(self.core, op)):
            self._meet(at_mark=where == "before")
        self.place(op)

    def place(self, op: Op) -> None:
        """Append an operation to the core at work that needs nothing of another one."""
        trace = self.trace
        if self.cores > 1:
            self._crossings.note(self.core, op)
            if isinstance(op, DmaOp | IndirectDmaOp) and op.src.allocation.kind == "input":
                one = op.src.allocation
                if (one.dtype, one.shape) in self.output_kinds:
                    self._reads[self.core].add(len(trace.ops))
        trace.ops.append(op)

    def alone(self) -> None:
        """Begin work that the core does by itself: behind everything that others have done in device memory."""
        if self._crossings.others(self.core):
            self._meet()

    def mark(self) -> None:
        """Begin work that cores share; where one needs what was done before, the other meets it here."""
        self._crossings.mark()
        self._marks = [(len(trace.ops), len(trace.allocations)) for trace in self.traces]

    def _meet(self, *, at_mark: bool = False) -> None:
        """Let all cores meet: what they did in device memory before is done before anything behind it.

        The core at work does so here, others here or at the mark.
        """
        self.barriers += 1
        for core, trace in enumerate(self.traces):
            here = len(trace.ops)
            place, known = self._marks[core] if at_mark and core != self.core else (here, len(trace.allocations))
            if place < here:
                for one in trace.allocations[known:]:
                    one.born += one.born >= place
                trace.after = {
                    number + (number >= place): {one + (one >= place) for one in ones}
                    for number, ones in trace.after.items()
                }
            first = {one for one in self._reads[core] if one < place}
            self._reads[core] = {one + 1 for one in self._reads[core] - first}
            if first:
                trace.after[place] = first
            trace.ops.insert(place, BarrierOp(self._source()))
        self._crossings.met(self.core, at_mark=at_mark)

    def number(self) -> int:
        """Return the number of the next tensor, which is one for all cores."""
        self._allocated += 1
        return self._allocated - 1

    # Memory

    def tensor(
        self, dtype: Dtype, shape: Sequence[int], kind: str = "private", name: str = "", data: Any = None
    ) -> Array:
        """Allocate a dense tensor in device memory."""
        shape = tuple(shape)
        own = name if kind in ("input", "output") else self._name(name or self.origin.name)
        born = len(self.trace.ops)
        allocation = Allocation(self.number(), Space.HBM, own, dtype, shape, kind, data=data, born=born)
        for trace in self.traces:
            trace.allocations.append(allocation)
            if kind == "input":
                trace.inputs.append(allocation)
            elif kind == "output":
                trace.outputs.append(allocation)
        return Array(allocation, dtype, 0, shape, row_major(shape))

    def constant(self, values: np.ndarray[Any, Any], dtype: Dtype) -> Array:
        """Return a tensor that the file carries; equal ones are one."""
        held = np.ascontiguousarray(values)
        key = (dtype, held.shape, held.tobytes())
        found = self._constants.get(key)
        if found is None:
            found = self._constants[key] = self.tensor(dtype, held.shape, "constant", "constant", held)
        return found

    def tile(self, dtype: Dtype, rows: int, dims: Sequence[int] = (1,), psum: bool = False) -> View:
        """Allocate a tile of `rows` partitions with dense free dimensions."""
        trace = self.trace
        free = tuple(dims) or (1,)
        number = self.number()
        space = Space.PSUM if psum else Space.SBUF
        allocation = Allocation(number, space, f"t{number}", dtype, (rows, prod(free)), born=len(trace.ops))
        trace.allocations.append(allocation)
        return View(allocation, dtype, 0, rows, 0, tuple(zip(row_major(free), free, strict=True)))

    def like(self, view: View, dtype: Dtype) -> View:
        """Allocate a dense tile in the shape of another one."""
        return self.tile(dtype, view.partitions, [count for _, count in view.dims])

    def identity(self, dtype: Dtype) -> View:
        """Return the 128 x 128 identity in SBUF; one per type and per loop that is open."""
        known = self._identities[self.core][-1]
        found = known.get(dtype)
        if found is None:
            ones = self.constant(np.eye(PARTITIONS, dtype=dtype.numpy_name), dtype)
            found = known[dtype] = self.tile(dtype, PARTITIONS, (PARTITIONS,))
            self.copy(found, ones)
        return found

    def reserve(self, names: Sequence[str]) -> None:
        """Keep names of inputs and outputs from being given to other tensors."""
        self._names.update(dict.fromkeys(names, 1))

    def _name(self, wanted: str) -> str:
        count = self._names.get(wanted)
        self._names[wanted] = 1 if count is None else count + 1
        if count is None:
            return wanted
        return self._name(f"{wanted}_{count}")

    # Transfers

    def copy(self, dst: View | Array, src: View | Array) -> None:
        """Append a transfer of bits between device memory and SBUF, or inside one of them."""
        a = dst.view() if isinstance(dst, Array) else dst
        b = src.view() if isinstance(src, Array) else src
        if b.dtype is not a.dtype:
            assert b.dtype.size == a.dtype.size  # the same bits: types of one width
            b = b._replace(dtype=a.dtype)
        self._append(DmaOp(a, b, None, False, self._source(), self.origin.name))

    def indirect(
        self, dst: View, src: View, index: View, step: int, rows: int, *, scatter: bool, skip: bool = False
    ) -> None:
        """Append a transfer of which one side lies at run-time numbers; one number counts `step` bytes."""
        self._append(
            IndirectDmaOp(dst, src, index, step, rows, "Pool", self._source(), self.origin.name, scatter=scatter,
                          skip=skip)
        )  # fmt: skip

    # Instructions

    def compute(self, word: type[Any], engine: str, operands: dict[str, View], fields: dict[str, object]) -> None:
        """Append one instruction."""
        self._append(ComputeOp(word, engine, operands, fields, self._source(), self.origin.name))

    def tensor_tensor(self, dst: View, a: View, b: View, op: AluOp, engine: str = "DVE") -> None:
        """Append dst = a op b; inputs of types that the word has no room for pass through fp32."""
        wide: dict[View, View] = {}
        for one in (a, b):
            if one.dtype > _LAST_OF_WORD and one not in wide:
                wide[one] = self.like(one, Dtype.FLOAT32)
                self.cast(wide[one], one)
        a, b = wide.get(a, a), wide.get(b, b)
        self.compute(words.TensorTensor, engine, {"src0": a, "src1": b, "dst": dst}, {"op": op})

    def tensor_scalar(
        self,
        dst: View,
        src: View,
        op0: AluOp,
        value0: float | View = 0.0,
        op1: AluOp = AluOp.BYPASS,
        value1: float | View = 0.0,
        reverse0: bool = False,
        reverse1: bool = False,
    ) -> None:
        """Append dst = (src op0 value0) op1 value1; a value may be a tile of one element a partition."""
        operands = {"src": src, "dst": dst}
        fields: dict[str, object] = {
            "op0": op0, "op1": op1, "reverse0": int(reverse0), "reverse1": int(reverse1),
        }  # fmt: skip
        for name, value in (("immediate0", value0), ("immediate1", value1)):
            if isinstance(value, View):
                operands[f"{name}_pointer"] = value._replace(dtype=Dtype.FLOAT32, dims=((1, 1),))
            elif name == "immediate0" or op1 is not AluOp.BYPASS:
                fields[name] = value
        self.compute(words.TensorScalar, "DVE", operands, fields)

    def activation(
        self,
        dst: View,
        src: View,
        function: str,
        scale: float = 1.0,
        bias: View | None = None,
        command: ReduceCommand | None = None,
    ) -> None:
        """Append dst = function(src * scale + bias); with a command its sum goes to the accumulators, too."""
        operands = {"src": src, "dst": dst}
        if bias is not None:
            operands["bias_pointer"] = bias
        fields: dict[str, object] = {"function": function, "scale": float(scale)}
        simple = src.dtype < 16 and dst.dtype < 16 and command is None
        if command is not None:
            fields |= {"reduce_command": command, "reduce_op": AluOp.ADD}
        self.compute(words.Activate if simple else words.ActivationExtended, "Activation", operands, fields)

    def read_total(self, dst: View) -> None:
        """Append a store of what activations have summed."""
        self.compute(words.ActivationReadAccumulator, "Activation", {"dst": dst}, {})

    def cast(self, dst: View, src: View, engine: str = "DVE") -> None:
        """Append a copy of a tile through fp32, or of its bits where both types are one."""
        word = words.Copy if src.dtype is dst.dtype else words.Cast
        self.compute(word, engine, {"src": src, "dst": dst}, {})

    def evict(self, dst: View, src: View) -> None:
        """Append a copy out of PSUM, by Vector and Scalar in turn where Scalar can."""
        self._turn = not self._turn
        self.cast(dst, src, "Activation" if self._turn and self.limits.scalar_engine_copies else "DVE")

    def fill(self, dst: View, value: float) -> None:
        """Append a fill with one number, an int for integer tiles."""
        number: int | float = float(value) if dst.dtype.is_float else int(value)
        self.compute(words.Memset, "DVE", {"dst": dst}, {"value": number})

    def choose(self, dst: View, where: View, src: View) -> None:
        """Append dst = src where the test is not zero; other elements stay."""
        test = where._replace(dtype=_RAW[where.dtype.size])
        self.compute(words.CopyPredicated, "DVE", {"src": src, "predicate": test, "dst": dst}, {"reverse": 0})

    def iota(self, dst: View, start: int, row_step: int, steps: Sequence[tuple[int, int]]) -> None:
        """Append dst = start + partition * row_step + a walk of (step, count) pairs, outermost first."""
        fields: dict[str, object] = {"offset": start, "channel_multiplier": row_step}
        for place, (step, count) in enumerate(reversed(steps)):
            fields[f"step{place}"], fields[f"count{place}"] = step, count
        self.compute(words.Iota, "Pool", {"dst": dst}, fields)

    def reduce(self, dst: View, src: View, op: AluOp, folded: int, negate: bool = False) -> None:
        """Append a fold over the last `folded` dimensions of a tile, negated where that is asked for."""
        dims = ReduceDims(ReduceDims.X + folded - 1)
        self.compute(
            words.TensorReduce, "DVE", {"src": src, "dst": dst}, {"op": op, "dims": dims, "negate": int(negate)}
        )

    def matmul(self, dst: View, stationary: View, moving: View, accumulate: bool, transpose: bool = False) -> None:
        """Append a product into PSUM."""
        self._append(MatmulOp(dst, stationary, moving, accumulate, transpose, self._source(), self.origin.name))

    def collective(
        self, kind: CollectiveKind, dst: Array, src: Array, groups: tuple[tuple[int, ...], ...], reduce: AluOp | None,
        stream: int = 0,
    ) -> None:  # fmt: skip
        """Append a collective of dense tensors, ranks one behind the other."""
        table = self.constant(np.array(groups, np.int32), Dtype.INT32).view()
        to, given = (one._replace(shape=(one.size,), strides=(1,)).view() for one in (dst, src))
        self._append(
            CollectiveOp(kind, to, given, table, len(groups), len(groups[0]), self._source(), self.origin.name,
                         reduce=AluOp.ADD if reduce is None else reduce, stream=stream)
        )  # fmt: skip

    def rank(self, dst: View) -> None:
        """Append what gives the number of the rank that runs the program."""
        table = self.constant(np.zeros((1, 1), np.int32), Dtype.INT32).view()
        source = table._replace(dims=((1, 1),))
        self._append(CollectiveOp(CollectiveKind.RANK, dst, source, table, 1, 1, self._source(), self.origin.name))

    def loop(self, condition: View, counting: bool = False) -> None:
        """Begin a loop of the device that goes on while the condition is not 0 (above 0 when `counting`)."""
        self.alone()  # no turn could meet another core
        self._identities[self.core].append({})
        self._append(LoopOp(condition, counting, self._source(), self.origin.name))

    def loop_end(self) -> None:
        """End the innermost loop."""
        self._identities[self.core].pop()
        self._append(LoopEndOp(self._source()))

    def _source(self) -> tuple[str, int]:
        return self.origin.file, self.origin.line
