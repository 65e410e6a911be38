"""Inputs and outputs of a compiled module: their names, where they lie, and the order of reads and writes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from formats.dtypes import Dtype
from formats.errors import FormatError
from formats.hlo import Module
from formats.isa import AluOp
from formats.named_tuple import NamedTuple
from neurontools.builder.trace import (
    RESERVED,
    CollectiveOp,
    DmaComputeOp,
    DmaOp,
    IndirectDmaOp,
    LoopEndOp,
    LoopOp,
    Trace,
    View,
)
from neurontools.compiler.arrays import Array
from neurontools.compiler.element_types import ElementType, element_type
from neurontools.compiler.graph import Graph, Value
from neurontools.compiler.kernels import NS_BYTE, tile_elements
from neurontools.compiler.loading import load, part_of, store
from neurontools.compiler.lowering import Lowering
from neurontools.compiler.tiling import tiles

__all__ = ["Names", "declare_inputs", "names_of", "write_outputs"]

_TRANSFERS = (DmaOp, IndirectDmaOp, DmaComputeOp, CollectiveOp)


class Names(NamedTuple):
    """Names of inputs and outputs in the NEFF."""

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


def names_of(module: Module, graph: Graph) -> Names:
    """Return the names that the module's frontend attributes give, else input0, ... and output0, ...

    Raises FormatError for a name that two tensors have, or that programs need themselves: files know them by name.
    """
    given: list[str] = []
    for one in module.entry.parameters:
        listed = [part for part in one.frontend_attributes.get("neff_input_names", "").split(",") if part]
        leaves = len(list(one.shape.leaves()))
        given += listed if len(listed) == leaves else [""] * leaves
    inputs = tuple(name or f"input{number}" for number, name in enumerate(given))
    root = module.entry.root.frontend_attributes.get("neff_output_names", "")
    outputs = [part for part in root.split(",") if part]
    if len(outputs) != len(graph.roots):
        outputs = [f"output{number}" for number in range(len(graph.roots))]
    twice = [name for name, number in Counter((*inputs, *outputs, *RESERVED)).items() if number > 1]
    if twice:
        raise FormatError("another tensor of the program has the name of an input or output", got=twice[0],
                          field="neff_input_names, neff_output_names")  # fmt: skip
    return Names(inputs, tuple(outputs))


def declare_inputs(self: Lowering, parameters: Sequence[Value], names: Sequence[str]) -> None:
    """Allocate the tensors of all parameters, used or not; scalars have one dimension."""
    for value, name in zip(parameters, names, strict=True):
        kind = element_type(value.dtype)
        wide = _wide(kind)
        role = "input" if value.size else "private"  # no file has a tensor without elements
        array = self.emitter.tensor(wide or kind.storage, value.shape or (1,), role, name)
        if wide is not None:  # the low words
            array = array._replace(dtype=kind.storage, strides=tuple(2 * one for one in array.strides))
        self.values[value] = array._replace(shape=value.shape, strides=array.strides[: len(value.shape)])


def write_outputs(self: Lowering, roots: Sequence[Value], results: Sequence[Array], names: Sequence[str]) -> None:
    """Write the results behind everything that reads inputs: a caller may pass one tensor as both."""
    e = self.emitter
    inputs = {one.id for one in e.trace.inputs}
    order = {name: number for number, name in enumerate(names)}
    written = {one.name for one in e.trace.outputs}
    held = []
    for value, array, name in zip(roots, results, names, strict=True):
        e.origin = value.node.origin
        if name in written:
            held.append(array)
            continue
        if array.allocation.id in inputs and array.size:
            copy = e.tensor(array.dtype, array.shape)
            self.copy(copy, array)
            array = copy
        held.append(array)
    firsts = [len(trace.ops) for trace in e.traces]
    readers = [_readers(trace, inputs) for trace in e.traces]
    for value, array, name in zip(roots, held, names, strict=True):
        if array.size and name not in written:
            e.origin = value.node.origin
            _write(self, value, array, name)
    for trace, first, ones in zip(e.traces, firsts, readers, strict=True):
        for number in range(first, len(trace.ops)) if ones else ():
            trace.after[number] = ones | trace.after.get(number, set())
        _order_direct(trace, inputs, {one.id for one in trace.outputs if one.name in written})
        trace.outputs.sort(key=lambda one: order[one.name])


def _wide(kind: ElementType) -> Dtype | None:
    """Return the type of a tensor whose elements are held in half as many bytes, None for any other."""
    return None if kind.given == kind.storage.size else Dtype.from_numpy_name(kind.numpy.name)


def _write(self: Lowering, value: Value, array: Array, name: str) -> None:
    wide = _wide(element_type(value.dtype))
    out = self.emitter.tensor(wide or array.dtype, value.shape or (1,), "output", name)
    out = out._replace(shape=value.shape, strides=out.strides[: len(value.shape)])
    if wide is None:
        if not value.shape:
            self.copy(out, array)
            return
        rest = value.shape[1:]
        for begin, end in self.portions(value.shape[0], 2 * array.size * array.dtype.size * NS_BYTE):
            where, what = (begin, *(0 for _ in rest)), (end - begin, *rest)
            self.copy(out.sliced(where, what), array.sliced(where, what))
        return
    words = out._replace(dtype=array.dtype, strides=tuple(2 * one for one in out.strides))
    self.copy(words, array)
    _high_words(self, array, words._replace(offset=words.offset + 1), value.dtype == "s64")


def _order_direct(trace: Trace, inputs: set[int], outputs: set[int]) -> None:
    """Let what writes an output wait for the reads of inputs before it that may be of the same memory."""
    kinds = {one.id: (one.dtype, one.shape) for one in trace.allocations if one.id in inputs | outputs}
    reads: dict[object, set[int]] = {}
    depth = 0
    for number, op in enumerate(trace.ops):
        depth += isinstance(op, LoopOp) - isinstance(op, LoopEndOp)
        if not isinstance(op, _TRANSFERS):
            continue
        if op.dst.allocation.id in outputs:
            before = reads.get(kinds[op.dst.allocation.id])
            if before:
                trace.after[number] = trace.after.get(number, set()) | before
        for src in _sources(op):
            if depth == 0 and src.allocation.id in inputs:
                reads.setdefault(kinds[src.allocation.id], set()).add(number)


def _readers(trace: Trace, inputs: set[int]) -> set[int]:
    """Return the transfers that read inputs; those in a loop are complete behind it anyway."""
    found, depth = set(), 0
    for number, op in enumerate(trace.ops):
        depth += isinstance(op, LoopOp) - isinstance(op, LoopEndOp)
        if depth or not isinstance(op, _TRANSFERS):
            continue
        if any(src.allocation.id in inputs for src in _sources(op)):
            found.add(number)
    return found


def _sources(op: DmaOp | IndirectDmaOp | DmaComputeOp | CollectiveOp) -> tuple[View, ...]:
    return op.srcs if isinstance(op, DmaComputeOp) else (op.src,)


def _high_words(self: Lowering, array: Array, words: Array, signed: bool) -> None:
    """Write the upper halves of 64-bit integers: the sign everywhere, or zero."""
    e = self.emitter
    if not signed:
        zero = e.constant(np.zeros((), np.uint32), Dtype.UINT32)
        self.copy(words, zero._replace(shape=words.shape, strides=(0,) * len(words.shape)))
        return
    for tile in tiles(array.shape or (1,), tile_elements(4)):
        strides = array.strides or (0,)
        loaded = load(e, part_of(array, strides, tile), tile)
        sign = e.like(loaded, Dtype.INT32)
        e.tensor_scalar(sign, loaded, AluOp.LESS, 0.0, AluOp.MULTIPLY, -1.0)
        store(e, part_of(words, words.strides or (0,), tile), sign)
