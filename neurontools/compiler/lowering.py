"""From the graph to the trace: every value becomes an array in device memory, every node instructions.

Nodes that only move data make views. Chains of element-wise nodes are one kernel (`fusion`). The other opcodes are
functions in files of their own, registered in `LOWERINGS`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import prod
from typing import Any

import numpy as np

from formats.targets import Target
from neurontools.compiler.arrays import Array, merged, row_major
from neurontools.compiler.element_types import element_type
from neurontools.compiler.elementwise import ELEMENTWISE, stored_constant
from neurontools.compiler.emitter import Emitter
from neurontools.compiler.epilogues import Finished, Step, with_epilogues
from neurontools.compiler.errors import no_lowering
from neurontools.compiler.fusion import REACH, Group, plan, squeezed
from neurontools.compiler.graph import Graph, Node, Value
from neurontools.compiler.kernels import Parts, Splat, run_kernel
from neurontools.compiler.two_cores import halves

__all__ = ["FINISHED", "LOWERINGS", "Lowering", "finishes", "lowers"]

LOWERINGS: dict[str, Callable[[Lowering, Node], None]] = {}


Finish = Callable[["Lowering", Finished], None]
FINISHED: dict[str, Finish] = {}


def lowers(*opcodes: str) -> Callable[[Callable[[Lowering, Node], None]], Callable[[Lowering, Node], None]]:
    """Register a function as the lowering of some opcodes."""

    def register(function: Callable[[Lowering, Node], None]) -> Callable[[Lowering, Node], None]:
        for one in opcodes:
            LOWERINGS[one] = function
        return function

    return register


def finishes(opcode: str) -> Callable[[Finish], Finish]:
    """Register a function as the lowering of an opcode with the kernel behind it."""

    def register(function: Finish) -> Finish:
        FINISHED[opcode] = function
        return function

    return register


class Lowering:
    """Lower graphs into one trace; `values` has the array of every value so far."""

    def __init__(self, target: Target, cores: int = 1, worth: float = 0.0) -> None:
        self.emitter = Emitter(target, cores)
        self.worth = worth  # ns of work below which one core does it alone
        self.saved = 0.0  # ns, about, that other cores take over
        self.epilogues = True
        self.reach = REACH["generic"]
        self.inside = 0  # bodies of loops and branches that are open
        self.values: dict[Value, Array] = {}
        self.splats: dict[Value, int | float] = {}
        self.direct: dict[Value, str] = {}
        self.parts: Parts = {}

    def array(self, value: Value) -> Array:
        """Return where a value lies in device memory; a constant is put there when somebody asks."""
        found = self.values.get(value)
        if found is None:
            found = self.values[value] = self._constant(value)
        return found

    def _constant(self, value: Value) -> Array:
        if not value.size:  # no file has a tensor without elements
            return self.new(value.dtype, value.shape)
        storage = element_type(value.dtype).storage
        splat = self.splats.get(value)
        if splat is None:
            return self.emitter.constant(stored_constant(value), storage)
        one = self.emitter.constant(np.array([splat], storage.numpy_name), storage)
        return one._replace(shape=value.shape, strides=(0,) * len(value.shape))

    def new(self, dtype: str, shape: Sequence[int]) -> Array:
        """Allocate room for a value."""
        return self.emitter.tensor(element_type(dtype).storage, shape)

    def result(self, node: Node, index: int = 0) -> Array:
        """Allocate and note the array of a node's result: an output itself, where that may be written now."""
        value = node.results[index]
        name = self.direct.get(value)
        if name is None:
            array = self.new(value.dtype, value.shape)
        else:
            storage = element_type(value.dtype).storage
            array = self.emitter.tensor(storage, value.shape or (1,), "output", name)
            array = array._replace(shape=value.shape, strides=array.strides[: len(value.shape)])
        self.values[value] = array
        return array

    def dense(self, array: Array) -> Array:
        """Return the array with elements side by side: itself, or a copy."""
        if array.dense:
            return array
        copy = self.emitter.tensor(array.dtype, array.shape)
        self.copy(copy, array)
        return copy

    def reshaped(self, array: Array, shape: Sequence[int]) -> Array:
        """Return the array in another shape, through a copy where no view does it."""
        found = array.reshaped(shape)
        if found is None:
            found = self.dense(array).reshaped(shape)
            assert found is not None  # dense arrays take any shape
        return found

    def copy(self, dst: Array, src: Array) -> None:
        """Append a copy of elements; both have one shape."""
        if dst.size:
            run_copy(self.emitter, dst, src)

    def steps(self, graph: Graph) -> list[Step]:
        """Return what a graph is lowered as, in order."""
        steps = plan(graph, self.reach)
        return list(with_epilogues(steps, graph, self.reach.behind) if self.epilogues else steps)

    def run(self, graph: Graph) -> list[Array]:
        """Lower all nodes of a body, whose parameters have arrays; return the arrays of its results."""
        self.inside += 1
        for step in self.steps(graph):
            self.step(step)
        self.inside -= 1
        return [self.array(one) for one in graph.roots]

    def portions(self, extent: int, nanoseconds: float, unit: int = 1) -> Iterator[tuple[int, int]]:
        """Yield begin and end of each core's part of work along a dimension of units, with that core at work.

        `nanoseconds` is about what one core takes; work that is not worth a barrier, or is in a body, is not shared.
        """
        cores = 1 if self.inside or nanoseconds < self.worth else self.emitter.cores
        parts = halves(extent, cores, unit)
        if len(parts) > 1:
            self.saved += nanoseconds / 2
            self.emitter.mark()
        for core, begin, end in parts:
            self.emitter.core = core
            yield begin, end
        self.emitter.core = 0

    def step(self, step: Step) -> None:
        """Lower a kernel or another node."""
        if isinstance(step, Node):
            self.emitter.origin = step.origin
            self._node(step)
        elif isinstance(step, Finished):
            self.emitter.origin = step.product.origin
            FINISHED[step.product.opcode](self, step)
        else:
            self._kernel(step)

    def _node(self, node: Node) -> None:
        lowering = LOWERINGS.get(node.opcode)
        if lowering is None:
            raise no_lowering(node, node.opcode)
        lowering(self, node)

    def _kernel(self, group: Group) -> None:
        """Lower nodes that run together; where their rows are too long, one after the other."""
        self.emitter.origin = group.nodes[-1].origin
        inputs: dict[Value, Array | Splat] = {}
        for value in group.inputs:
            splat = self.splats.get(value)
            inputs[value] = self.array(value) if splat is None else Splat(element_type(value.dtype).storage, splat)
        outputs = {value: self.result(value.node) for value in group.outputs}
        if run_kernel(self.emitter, group, inputs, outputs, self.parts, self.portions, self.reach.longest):
            return
        for node in group.nodes:
            self.emitter.origin = node.origin
            if node.opcode in ELEMENTWISE:
                alone = Group((node,), group.shape, len(group.shape), tuple(dict.fromkeys(node.operands)),
                              (node.result,))  # fmt: skip
                self._kernel(alone._replace(shape=squeezed(node.result.shape), split=len(squeezed(node.result.shape))))
            else:
                self._node(node)


def run_copy(e: Emitter, dst: Array, src: Array) -> None:
    """Append the transfers of a copy, in parts where it has more dimensions than descriptors hold."""
    shape, (a, b) = merged([dst.shape, src.shape], [dst.strides, src.strides])
    if len(shape) > 4 or (b and b[-1] == 0 and len(shape) > 3):
        axis = min(range(len(shape) - 1), key=lambda i: shape[i])
        one_dst, one_src = (one._replace(shape=shape, strides=strides) for one, strides in ((dst, a), (src, b)))
        for place in range(shape[axis]):
            starts = [place if i == axis else 0 for i in range(len(shape))]
            extents = [1 if i == axis else extent for i, extent in enumerate(shape)]
            run_copy(e, one_dst.sliced(starts, extents), one_src.sliced(starts, extents))
        return
    e.copy(dst._replace(shape=shape or (1,), strides=a or (1,)), src._replace(shape=shape or (1,), strides=b or (1,)))


# Nodes that make views


@lowers("constant")
def _constant(self: Lowering, node: Node) -> None:
    value = node.result
    data = stored_constant(value).reshape(-1)
    if value.size and (value.size == 1 or _same(data)):
        self.splats[value] = data[0].item() if data.dtype.kind in "biuf" else float(data[0])
        if data.dtype.kind not in "biu":
            self.splats[value] = float(data[0])


def _same(data: np.ndarray[Any, Any]) -> bool:
    raw = data.view(f"u{data.dtype.itemsize}")
    return bool((raw == raw[0]).all())


@lowers("reshape", "bitcast")
def _reshape(self: Lowering, node: Node) -> None:
    value = node.result
    operand = node.operands[0]
    if operand in self.splats:
        self.splats[value] = self.splats[operand]
    else:
        self.values[value] = self.reshaped(self.array(operand), value.shape)


@lowers("transpose")
def _transpose(self: Lowering, node: Node) -> None:
    self.values[node.result] = self.array(node.operands[0]).permuted(node.attrs["permutation"])


@lowers("broadcast")
def _broadcast(self: Lowering, node: Node) -> None:
    value, operand = node.result, node.operands[0]
    if operand in self.splats:
        self.splats[value] = self.splats[operand]
    else:
        self.values[value] = self.array(operand).broadcast(value.shape, node.attrs["dimensions"])


@lowers("slice")
def _slice(self: Lowering, node: Node) -> None:
    value, operand = node.result, node.operands[0]
    if operand in self.splats:
        self.splats[value] = self.splats[operand]
    else:
        self.values[value] = self.array(operand).sliced(node.attrs["starts"], value.shape, node.attrs["strides"])


@lowers("reverse")
def _reverse(self: Lowering, node: Node) -> None:
    self.values[node.result] = self.array(node.operands[0]).reversed(node.attrs["dimensions"])


@lowers("bitcast-convert")
def _bitcast(self: Lowering, node: Node) -> None:
    """Lower a view of bits: of one width as a view, else with a dimension more or less."""
    value, operand = node.result, node.operands[0]
    old, new = element_type(operand.dtype).storage, element_type(value.dtype).storage
    array = self.array(operand)
    widths = element_type(operand.dtype).given, element_type(value.dtype).given
    if 8 in widths and widths != (8, 8):
        self.values[value] = _bitcast_wide(self, node, array._replace(dtype=new), widths)
        return
    if old.size == new.size:
        self.values[value] = array._replace(dtype=new)
        return
    array = self.dense(array)
    self.values[value] = Array(
        array.allocation, new, array.offset * old.size // new.size, value.shape, row_major(value.shape)
    )


@lowers("parameter")
def _parameter(self: Lowering, node: Node) -> None:
    """Leave a parameter where whoever lowers the graph has put it."""


def _bitcast_wide(self: Lowering, node: Node, array: Array, widths: tuple[int, int]) -> Array:
    """Return the bits of 64-bit integers, of which the lower halves are held, as 32-bit ones, or the other way."""
    shape = node.result.shape
    if widths == (4, 8):
        return array.sliced([0] * len(array.shape), (*shape, 1))._replace(shape=shape, strides=array.strides[:-1])
    if widths != (8, 4) or node.operands[0].dtype != "u64":
        raise no_lowering(node, f"bitcast-convert of {node.operands[0].dtype} to {node.result.dtype}")
    out = self.emitter.tensor(array.dtype, shape)
    zero = self.emitter.constant(np.zeros((), array.dtype.numpy_name), array.dtype)
    self.copy(out, zero._replace(shape=shape, strides=(0,) * len(shape)))
    low = out._replace(shape=shape[:-1], strides=out.strides[:-1])
    self.copy(low, array)
    return out


# Nodes that copy


@lowers("concatenate")
def _concatenate(self: Lowering, node: Node) -> None:
    out, axis, begin = self.result(node), node.attrs["dimension"], 0
    for operand in node.operands:
        starts = [begin if i == axis else 0 for i in range(len(out.shape))]
        self.copy(out.sliced(starts, operand.shape), self.array(operand))
        begin += operand.shape[axis]


@lowers("pad")
def _pad(self: Lowering, node: Node) -> None:
    """Lower a pad: the filler everywhere, then the elements that are left, every (interior + 1)-th."""
    out = self.result(node)
    source, filler = self.array(node.operands[0]), self.array(node.operands[1])
    if not out.size:
        return
    self.copy(out, filler.reshaped(())._replace(shape=out.shape, strides=(0,) * len(out.shape)))  # type: ignore[union-attr]
    first, begin, counts, steps = [], [], [], []
    for extent, (low, _, interior), limit in zip(source.shape, node.attrs["padding"], out.shape, strict=True):
        step = interior + 1
        skipped = max(0, -(low // step)) if low < 0 else 0
        place = low + skipped * step
        count = max(0, min(extent - skipped, -(-(limit - place) // step)))
        first.append(skipped)
        begin.append(place)
        counts.append(count)
        steps.append(step)
    if prod(counts):
        self.copy(out.sliced(begin, counts, steps), source.sliced(first, counts))


@lowers("strided-update")
def _strided_update(self: Lowering, node: Node) -> None:
    """Lower our own operation: every `strides`-th element from `starts` on is replaced."""
    out = self.result(node)
    self.copy(out, self.array(node.operands[0]))
    new = self.array(node.operands[1])
    self.copy(out.sliced(node.attrs["starts"], new.shape, node.attrs["strides"]), new)


@lowers("iota")
def _iota(self: Lowering, node: Node) -> None:
    """Lower an iota as a constant line that is repeated along the other dimensions."""
    value, axis = node.result, node.attrs["dimension"]
    kind = element_type(value.dtype)
    numbers = np.arange(value.shape[axis])
    line = numbers.astype(kind.numpy if kind.given == kind.storage.size else kind.storage.numpy_name)
    array = self.emitter.constant(line.astype(np.uint8) if value.dtype == "pred" else line, kind.storage)
    self.values[value] = array.broadcast(value.shape, (axis,))
