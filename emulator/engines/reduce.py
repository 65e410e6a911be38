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
from emulator.dtypes import Array, Step, bind_load, bind_store, chain, element_type, is_plain_float32
from emulator.engines.operands import packed, raw_view, require_elements, reshaped, squeezed
from emulator.engines.registry import executes
from emulator.engines.rows import turned
from emulator.port import Port
from emulator.scratch import scratch
from formats import isa
from formats.errors import UnsupportedError
from formats.isa import AluOp, ReduceDims

__all__ = ["bind_fold"]

# Results in each partition from which on rows of them are long enough to be added as they are.
_MANY = 16
# Elements up to which folding them one after the other takes less time than packing them; and, of maxima, up to which
# NumPy's own loops go from the first to the last on any processor.
_FEW, _FEWEST = 16, 4
# Where rows of each result are whole vectors, however they follow each other: which of two NaNs a sum keeps may differ
# between a vector and what is left over.
_VECTORS = 64
_CALLS = 256  # results, each a call of NumPy's loop, that take longer than going through all tiles of elements
# What NumPy's sum begins with: 0 on some versions, so that negative zeros add up to 0, and -0 on others.
_BEGIN = np.add.reduce(np.full((2, 2), -0.0, np.float32), 0)[0]
_SEQUENTIAL: dict[AluOp, np.ufunc] = {AluOp.ADD: np.add, AluOp.SUBTRACT: np.subtract, AluOp.MULTIPLY: np.multiply}
_ANY_ORDER: dict[AluOp, np.ufunc] = {AluOp.MAX: np.maximum, AluOp.MIN: np.minimum}
_TRUTHS: dict[AluOp, np.ufunc] = {
    AluOp.LOGICAL_AND: np.logical_and,
    AluOp.LOGICAL_OR: np.logical_or,
    AluOp.LOGICAL_XOR: np.logical_xor,
}
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
    if op in _TRUTHS:
        return partial(_logical, _TRUTHS[op], values, out)
    raise UnsupportedError(f"ALU operator {op.name} cannot reduce")


def _bind_few(op: AluOp, values: Array, dims: int, out: Array) -> Step | None:
    """Return the step that folds the last `dims` dimensions of a tile element by element, bit for bit as `bind_fold`.

    None where that takes longer, or where NumPy's own loops could choose another of two zeros.
    """
    shape = values.shape[-dims:]
    if op in _ANY_ORDER:
        suits = out.size >= _CALLS and 1 < prod(shape) <= _FEWEST
    else:
        suits = out[0].size >= _MANY and 1 < prod(shape) <= _FEW
    if not suits:
        return None
    places = tuple((Ellipsis, *place) for place in np.ndindex(shape))
    if op in _ANY_ORDER:
        return partial(_choose, _ANY_ORDER[op], values, places, out)
    return partial(_fold_few, _SEQUENTIAL[op], values, places, out) if op in _SEQUENTIAL else None


def _fold_few(ufunc: np.ufunc, values: Array, places: tuple[Any, ...], out: Array) -> None:
    if ufunc is np.add:
        np.add(_BEGIN, values[places[0]], out)
    else:
        np.copyto(out, values[places[0]])
    for place in places[1:]:
        ufunc(out, values[place], out)
    if np.isnan(out).any():  # which of several NaNs remains differs
        rows = values.reshape(out.size, -1).T.copy()
        out[...] = ufunc.reduce(rows, 0).reshape(out.shape)


def _choose(ufunc: np.ufunc, values: Array, places: tuple[Any, ...], out: Array) -> None:
    ufunc(values[places[0]], values[places[1]], out=out)
    for place in places[2:]:
        ufunc(out, values[place], out=out)
    if np.isnan(out).any():
        ufunc.reduce(values.reshape(*out.shape, -1), out.ndim, None, out)


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
    if partitions == 1 or kept >= _MANY or (kept > 1 and partitions % _VECTORS):
        # Folding the first axis of a packed array adds whole rows one after the other.
        rows = scratch((folded, partitions, kept), np.float32)
        total = scratch((partitions * kept,), np.float32)
        return chain(
            partial(np.copyto, rows.transpose(1, 2, 0), values),
            partial(ufunc.reduce, rows.reshape(folded, -1), 0, None, total),
            partial(np.copyto, out, total.reshape(partitions, kept)),
        )
    lanes, turn = turned(values)
    groups = lanes.reshape((kept, folded, partitions), copy=False)
    flat = reshaped(out, (1, partitions)) if kept == 1 else None
    if flat is not None:
        return chain(turn, partial(ufunc.reduce, groups, 1, None, flat))
    total = scratch((kept, partitions), np.float32)
    return chain(turn, partial(ufunc.reduce, groups, 1, None, total), partial(np.copyto, out, total.T))


def _by_magnitude(choose: Any, values: Array, out: Array) -> None:
    """Keep the signed value of the extreme magnitude; a tie gives the last one, as folding pairs would."""
    backwards = np.abs(values)[..., ::-1]
    place = values.shape[2] - 1 - choose(backwards, axis=2, keepdims=True)
    np.copyto(out, np.take_along_axis(values, place, axis=2)[..., 0])


def _logical(ufunc: np.ufunc, values: Array, out: Array) -> None:
    np.copyto(out, ufunc.reduce(np.not_equal(values, 0), 2))


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
        whole = scratch((partitions, kept), src.dtype)
        return chain(
            partial(np.copyto, bits, src),
            partial(_BITS[op].reduce, bits.reshape(shape), 2, None, whole),
            partial(np.copyto, raw_view(dst), whole.reshape(dst.shape), casting="unsafe"),
        )
    values, load = bind_load(src, word.src_dtype)
    total = scratch((partitions, kept), np.float32)
    fold = _bind_few(op, values, src.ndim - split, total.reshape(src.shape[:split]))
    if fold is None:
        grouped = reshaped(values, shape)
        if grouped is None:
            grouped, load = packed(values, shape)
        fold = bind_fold(op, grouped, total)
    results = total.reshape(dst.shape)
    if word.negate and is_plain_float32(word.dst_dtype):
        return chain(load, fold, partial(np.negative, results, dst))
    negate = partial(np.negative, results, results) if word.negate else None
    return chain(load, fold, negate, bind_store(results, dst, word.dst_dtype))
