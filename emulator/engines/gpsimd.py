"""Words of the GpSimd engine: integer patterns, gathers, searches. Source: hardware.md 5.2, 5.4, nki.isa pages."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from emulator import alu
from emulator.dtypes import Array, Step, bind_store, chain, element_type, from_float32
from emulator.engines.indirection import index_rows, require_inside
from emulator.engines.operands import elements, float_input, raw_input, raw_view, refuse, require_elements, squeezed
from emulator.engines.registry import executes
from emulator.engines.rows import float_rows, float_rows_out, raw_rows, raw_rows_out
from emulator.port import Port
from emulator.scratch import scratch
from formats import isa
from formats.dtypes import Dtype
from formats.errors import UnsupportedError
from formats.isa import AluOp

__all__: list[str] = []

_GROUP = 16  # partitions that one of the eight GpSimd cores reaches
_WORDS = (Dtype.INT32, Dtype.UINT32)
_COMPARISONS = frozenset(
    (AluOp.EQUAL, AluOp.NOT_EQUAL, AluOp.GREATER, AluOp.GREATER_EQUAL, AluOp.LESS, AluOp.LESS_EQUAL)
)


def _walk(word: isa.Iota | isa.AffineSelect, partitions: int) -> tuple[Array, Array]:
    """Return the walk as a row and a column, whose sum wraps to 32 bits."""
    row = np.array([word.offset], np.int64)
    for step, count in (
        (word.step3, word.count3),
        (word.step2, word.count2),
        (word.step1, word.count1),
        (word.step0, word.count0),
    ):
        row = np.add.outer(row, np.arange(count, dtype=np.int64) * step).reshape(-1)
    column = np.arange(partitions, dtype=np.int64) * word.channel_multiplier
    return row.astype(np.int32), column.astype(np.int32).reshape(-1, 1)


@executes(isa.Iota, lasting=True)
def iota(word: isa.Iota, port: Port) -> Step:
    """Return dst = the walk in 32-bit integers, converted to the output's type."""
    dst = port.write("dst")
    row, column = _walk(word, dst.shape[0])
    require_elements(word, "dst", dst, row.size)
    values = scratch((dst.shape[0], row.size), np.int32)
    make = partial(np.add, row, column, values)
    if element_type(word.dst_dtype) in _WORDS:
        return chain(make, partial(np.copyto, raw_view(dst), values.view(np.uint32).reshape(dst.shape)))
    rounded = scratch(values.shape, np.float32)
    return chain(make, partial(np.copyto, rounded, values), bind_store(rounded.reshape(dst.shape), dst, word.dst_dtype))


@executes(isa.AffineSelect, lasting=True)
def affine_select(word: isa.AffineSelect, port: Port) -> Step:
    """Return dst = src where the walk compares with 0, on_false elsewhere."""
    op = alu.alu_op(word.op)
    if op not in _COMPARISONS:
        raise UnsupportedError(f"AFFINE_SELECT with {op.name}: the operator is no comparison")
    dst, src = port.write("dst"), port.read("src")
    row, column = _walk(word, dst.shape[0])
    require_elements(word, "dst", dst, row.size)
    values = scratch((dst.shape[0], row.size), np.int32)
    keep = scratch(dst.shape, np.bool_)
    test = chain(
        partial(np.add, row, column, values), partial(alu.float32(op), values, np.int32(0), keep.reshape(values.shape))
    )
    if word.src_dtype == word.dst_dtype:
        chosen, load = raw_input(word, src, squeezed(dst).shape, "src")
        fill = from_float32(np.array([word.on_false], np.float32), word.dst_dtype)
        result = scratch(chosen.shape, chosen.dtype)
        store: Step = partial(np.copyto, raw_view(squeezed(dst)), result)
        other: Any = raw_view(fill)[0]
    else:
        out = squeezed(dst)
        chosen, load = float_input(word, src, word.src_dtype, out.shape, "src")
        result = scratch(chosen.shape, np.float32)
        store, other = bind_store(result, out, word.dst_dtype), np.float32(word.on_false)
    return chain(
        load,
        test,
        partial(result.fill, other),
        partial(np.copyto, result, chosen, where=keep.reshape(result.shape)),
        store,
    )


def _same_width(word: isa.Instruction, src: Array, dst: Array) -> None:
    if src.dtype.itemsize != dst.dtype.itemsize:
        raise UnsupportedError(f"{word.NAME} between element types of different size is not modelled: bits are moved")


@executes(isa.NGather, lasting=True)
def n_gather(word: isa.NGather, port: Port) -> Step:
    """Return dst[p, i] = src[p, indices[p, i]]."""
    dst, src = port.write("dst"), port.read("src")
    _same_width(word, src, dst)
    data, load = raw_rows(src)
    indices, load_indices = index_rows(word, port)
    out, store = raw_rows_out(dst)
    require_elements(word, "indices", indices, out.shape[1])
    places = scratch(indices.shape, np.intp)

    def gather() -> None:
        np.copyto(places, indices, casting="unsafe")
        require_inside(word, places, data.shape[1])
        np.copyto(out, np.take_along_axis(data, places, axis=1))

    return chain(load, load_indices, gather, store)


@executes(isa.LocalGather, lasting=True)
def local_gather(word: isa.LocalGather, port: Port) -> Step:
    """Return dst[p, i * run + j] = src[p, index i of p's group + j]; indices run over partitions first."""
    dst, src = port.write("dst"), port.read("src")
    _same_width(word, src, dst)
    data, load = raw_rows(src)
    indices, load_indices = index_rows(word, port)
    out, store = raw_rows_out(dst)
    partitions, valid, run = data.shape[0], int(word.valid), int(word.run)
    if partitions % _GROUP or valid > _GROUP * indices.shape[1]:
        raise refuse(
            word,
            "groups do not fit",
            "indices",
            f"groups of {_GROUP} partitions, at least {valid} indices",
            f"{partitions} partitions of {indices.shape[1]}",
        )
    require_elements(word, "dst", dst, valid * run)

    def gather() -> None:
        for first in range(0, partitions, _GROUP):
            rows = slice(first, first + _GROUP)
            starts = indices[rows].T.reshape(-1)[:valid].astype(np.intp)
            places = np.add.outer(starts, np.arange(run)).reshape(-1)
            require_inside(word, places, data.shape[1])
            out[rows] = data[rows][:, places]

    return chain(load, load_indices, gather, store)


@executes(isa.NonzeroWithCount, lasting=True)
def nonzero_with_count(word: isa.NonzeroWithCount, port: Port) -> Step:
    """Return dst = places of non-zeros, padding, and their number, in the first partition of each group."""
    dst, src = port.write("dst"), port.read("src")
    if src.dtype.name not in ("float32", "int32") or dst.dtype.name != "int32":
        raise UnsupportedError(
            f"NONZERO_WITH_COUNT of {src.dtype.name} into {dst.dtype.name}: float32 or int32 into int32 are documented"
        )
    rows, target = src[::_GROUP], dst[::_GROUP]
    require_elements(word, "dst", dst, elements(src) + 1)
    flat = scratch(rows.shape, src.dtype)
    found = scratch(target.shape, np.int32)
    lines, results = flat.reshape(rows.shape[0], -1), found.reshape(rows.shape[0], -1)

    def search() -> None:
        for line, result in zip(lines, results, strict=True):
            places = np.flatnonzero(line)
            result.fill(word.padding)
            result[: places.size] = (places + word.index_offset).astype(np.int32)
            result[-1] = places.size

    return chain(partial(np.copyto, flat, rows), search, partial(np.copyto, target, found))


@executes(isa.SequenceBounds, lasting=True)
def sequence_bounds(word: isa.SequenceBounds, port: Port) -> Step:
    """Return dst = begin, then exclusive end, of the segment of each element; (n, -1) for segment 0."""
    dst, src = port.write("dst"), port.read("src")
    ids, load = float_rows(src, word.src_dtype)
    out, store = float_rows_out(dst, word.dst_dtype)
    count = ids.shape[1]
    require_elements(word, "dst", dst, 2 * count)

    def bound() -> None:
        for line, result in zip(ids, out, strict=True):
            edges = np.flatnonzero(np.diff(line)) + 1
            starts, stops = np.concatenate(([0], edges)), np.concatenate((edges, [count]))
            lengths = stops - starts
            padding = line == 0
            result[:count] = np.where(padding, count, np.repeat(starts, lengths))
            result[count:] = np.where(padding, -1, np.repeat(stops, lengths))

    return chain(load, bound, store)


@executes(isa.TopK, lasting=True)
def top_k(word: isa.TopK, port: Port) -> Step:
    """Return dst = the largest of each group's elements, ascending, and their places; every partition has the group's.

    Element i of a group stands in partition i % 16, column i // 16. Of equal values the later place counts as larger
    (inferred: the order of equal values is not documented).
    """
    dst, src, indices = port.write("dst"), port.read("src"), port.write("indices")
    data, load = float_rows(src, word.src_dtype)
    out, store = float_rows_out(dst, word.dst_dtype)
    places, store_places = raw_rows_out(indices)
    partitions, columns, count, wanted = *data.shape, int(word.count), out.shape[1]
    if partitions % _GROUP or count > _GROUP * columns or wanted > count:
        raise refuse(
            word,
            "groups do not fit",
            "src",
            f"groups of {_GROUP} partitions, {wanted} to {count} elements",
            f"{partitions} partitions of {columns}",
        )
    require_elements(word, "indices", indices, wanted)

    def sort() -> None:
        for first in range(0, partitions, _GROUP):
            rows = slice(first, first + _GROUP)
            snake = data[rows].T.reshape(-1)[:count]
            order = np.argsort(snake, kind="stable")[count - wanted :]
            out[rows] = snake[order]
            places[rows] = order

    return chain(load, sort, store, store_places)


_FOLDS = {AluOp.MAX: np.maximum, AluOp.BITWISE_OR: np.bitwise_or, AluOp.BITWISE_AND: np.bitwise_and}


@executes(isa.TensorPartitionReduce, lasting=True)
def tensor_partition_reduce(word: isa.TensorPartitionReduce, port: Port) -> Step:
    """Return dst = the fold of src over partitions; sums run from the first partition on, in fp32."""
    op = alu.alu_op(word.op)
    dst, src = port.write("dst"), port.read("src")
    require_elements(word, "src", src, elements(dst))
    if dst.shape[0] != 1:
        raise refuse(word, "the output has several partitions", "dst", "1 partition", f"{dst.shape[0]}")
    if op in (AluOp.BITWISE_OR, AluOp.BITWISE_AND):
        _same_width(word, src, dst)
        if element_type(word.src_dtype).is_float:
            raise UnsupportedError("TENSOR_PARTITION_REDUCE: bit-pattern operators need integer element types")
        bits, fetch = raw_rows(src)
        result, put = raw_rows_out(dst)
        return chain(fetch, partial(_FOLDS[op].reduce, bits, 0, None, result[0]), put)
    if op not in (AluOp.ADD, AluOp.MAX):
        raise UnsupportedError(f"TENSOR_PARTITION_REDUCE with {op.name} is not modelled: it is not documented")
    rows, load = float_rows(src, word.src_dtype)
    out, store = float_rows_out(dst, word.dst_dtype)
    total = out[0]
    share = partial(np.divide, total, np.float32(rows.shape[0]), total) if word.average else None
    fold = partial(_FOLDS[op].reduce, rows, 0, None, total) if op is AluOp.MAX else partial(_sum_rows, rows, total)
    return chain(load, fold, share, store)


def _sum_rows(rows: Array, total: Array) -> None:
    # Row by row: NumPy adds in pairs where a sum runs along memory, which gives other last bits.
    np.copyto(total, rows[0])
    for row in rows[1:]:
        np.add(total, row, total)
