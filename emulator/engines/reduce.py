"""TENSOR_REDUCE: fold the innermost dimensions of a tile.

Sums, differences and products run left to right in fp32, as published device results show for sums (nki.md 0,
finding 4); NumPy's own sum is pairwise and would differ in the last bits.
"""

from __future__ import annotations

from functools import partial
from math import prod
from typing import Any

import numpy as np

from emulator import alu
from emulator.dtypes import Array, Step, bind_load, bind_store, chain, element_type
from emulator.engines.operands import packed, raw_view, require_elements, reshaped, squeezed
from emulator.engines.registry import executes
from emulator.port import Port
from emulator.scratch import scratch
from formats import isa
from formats.errors import UnsupportedError
from formats.isa import AluOp, ReduceDims

__all__ = ["bind_fold"]

# Transposing this many partitions at a time stays inside the first-level cache.
_BLOCK = 16
_SEQUENTIAL: dict[AluOp, np.ufunc] = {AluOp.ADD: np.add, AluOp.SUBTRACT: np.subtract, AluOp.MULTIPLY: np.multiply}
_ANY_ORDER: dict[AluOp, np.ufunc] = {AluOp.MAX: np.maximum, AluOp.MIN: np.minimum}
_BITS: dict[AluOp, np.ufunc] = {
    AluOp.BITWISE_AND: np.bitwise_and,
    AluOp.BITWISE_OR: np.bitwise_or,
    AluOp.BITWISE_XOR: np.bitwise_xor,
}


def bind_fold(op: AluOp, values: Array, out: Array) -> Step:
    """Return the step that folds the last axis of fp32 `values` (partitions, kept, folded) into `out`, without it."""
    if op in _ANY_ORDER:
        return partial(_ANY_ORDER[op].reduce, values, 2, None, out)
    if op in _SEQUENTIAL:
        return _bind_sequential(_SEQUENTIAL[op], values, out)
    if op in (AluOp.ABS_MAX, AluOp.ABS_MIN):
        return partial(_by_magnitude, np.argmax if op is AluOp.ABS_MAX else np.argmin, values, out)
    if op in (AluOp.LOGICAL_AND, AluOp.LOGICAL_OR, AluOp.LOGICAL_XOR):
        return partial(_logical, alu.float32(op), values, out)
    raise UnsupportedError(f"ALU operator {op.name} cannot reduce")


def _bind_sequential(ufunc: np.ufunc, values: Array, out: Array) -> Step:
    partitions, kept, folded = values.shape
    if partitions * kept == 1:
        # A single chain: along the first axis NumPy would fall back to its pairwise sum.
        running = scratch((folded,), np.float32)
        line = values.reshape(folded, copy=False)
        return chain(
            partial(ufunc.accumulate, line, 0, None, running),
            partial(np.copyto, out.reshape(1, copy=False), running[-1:]),
        )
    # Folding the first axis of a packed array adds whole rows one after the other.
    rows = scratch((folded, partitions, kept), np.float32)
    turned = rows.transpose(1, 2, 0)
    steps: list[Step] = [
        partial(np.copyto, turned[p : p + _BLOCK], values[p : p + _BLOCK]) for p in range(0, partitions, _BLOCK)
    ]
    total = scratch((partitions * kept,), np.float32)
    steps += [
        partial(ufunc.reduce, rows.reshape(folded, -1), 0, None, total),
        partial(np.copyto, out, total.reshape(partitions, kept)),
    ]
    return chain(*steps)


def _by_magnitude(choose: Any, values: Array, out: Array) -> None:
    """Keep the signed value of the extreme magnitude; a tie gives the last one, as folding pairs would."""
    backwards = np.abs(values)[..., ::-1]
    place = values.shape[2] - 1 - choose(backwards, axis=2, keepdims=True)
    np.copyto(out, np.take_along_axis(values, place, axis=2)[..., 0])


def _logical(function: alu.Binary, values: Array, out: Array) -> None:
    np.not_equal(values[..., 0], 0, out)
    for number in range(1, values.shape[2]):
        function(out, values[..., number], out)


@executes(isa.TensorReduce, movable=True)
def tensor_reduce(word: isa.TensorReduce, port: Port) -> Step:
    """Return dst = the fold of the innermost dimensions of src, negated when asked."""
    op = alu.alu_op(word.op)
    if op not in alu.REDUCIBLE:
        raise UnsupportedError(f"TENSOR_REDUCE with {op.name} is not modelled: it is not documented for reductions")
    if word.dims not in set(ReduceDims):
        raise UnsupportedError(f"TENSOR_REDUCE over dims code {word.dims} is not known")
    src, dst = port.read("src"), squeezed(port.write("dst"))
    # Code 2 folds X, 3 folds X and Y, and so on; the view has X last.
    split = src.ndim - (int(word.dims) - ReduceDims.X + 1)
    partitions, kept, folded = src.shape[0], prod(src.shape[1:split]), prod(src.shape[split:])
    require_elements(word, "dst", dst, kept)
    shape = (partitions, kept, folded)
    if op in _BITS:
        if word.negate or element_type(word.src_dtype).is_float or element_type(word.dst_dtype).is_float:
            raise UnsupportedError("TENSOR_REDUCE: bit-pattern operators work on integers and cannot negate")
        # Signed where the type is: a wider output extends the sign, as it does for TENSOR_TENSOR.
        bits = scratch(src.shape, src.dtype)
        fold = scratch((partitions, kept), src.dtype)
        return chain(
            partial(np.copyto, bits, src),
            partial(_BITS[op].reduce, bits.reshape(shape), 2, None, fold),
            partial(np.copyto, raw_view(dst), fold.reshape(dst.shape), casting="unsafe"),
        )
    values, load = bind_load(src, word.src_dtype)
    grouped = reshaped(values, shape)
    if grouped is None:
        grouped, load = packed(values, shape)
    total = scratch((partitions, kept), np.float32)
    negate = partial(np.negative, total, total) if word.negate else None
    return chain(load, bind_fold(op, grouped, total), negate, bind_store(total.reshape(dst.shape), dst, word.dst_dtype))
