"""Instructions of the GpSimd engine: patterns, gathers, searches, folds over partitions."""

from __future__ import annotations

import operator as integers
from collections.abc import Sequence
from typing import Any

from formats import isa as words
from neurontools.nki.isa.checks import alu, number, same_free, same_partitions, tile
from neurontools.nki.isa.instruction import NkiInstruction
from neurontools.nki.isa.refusals import reject, since
from neurontools.nki.operators import OPERATORS, operator_of
from neurontools.nki.tensor import NkiTensor
from neurontools.nki.tracer import Tracer, tracer

__all__ = [
    "affine_select",
    "iota",
    "local_gather",
    "nc_n_gather",
    "nonzero_with_count",
    "sequence_bounds",
    "tensor_partition_reduce",
    "topk",
]

# Limits of the docstrings (hardware.md 5.4); 16 partitions are those of one GpSimd core.
_RUNS = (1, 2, 4, 8, 16, 32)
_GROUP = 16
_INDICES = 4096
_PATTERN = 4
_LOW, _HIGH = -(1 << 31), (1 << 31) - 1


def _int32(t: Tracer, instruction: str, argument: str, value: Any) -> int:
    try:
        result = integers.index(value)
    except TypeError:
        raise reject(t, instruction, argument, repr(value), "must be an integer known while tracing") from None
    if not _LOW <= result <= _HIGH:
        raise reject(t, instruction, argument, result, "must fit in int32")
    return result


def _affine(
    t: Tracer, instruction: str, pattern: Any, offset: Any, channel_multiplier: Any, elements: int
) -> dict[str, object]:
    """Return the fields of an affine walk; the pattern is [step, count] pairs, outermost first."""
    pairs = list(pattern) if isinstance(pattern, Sequence) else None
    if pairs is None or any(not isinstance(one, Sequence) or len(one) != 2 for one in pairs):
        raise reject(t, instruction, "pattern", repr(pattern), "must be a list of [step, num]")
    if not 1 <= len(pairs) <= _PATTERN:
        raise reject(t, instruction, "pattern", f"{len(pairs)}-dimensional", f"must have 1 to {_PATTERN} dimensions")
    fields: dict[str, object] = {
        "offset": _int32(t, instruction, "offset", offset),
        "channel_multiplier": _int32(t, instruction, "channel_multiplier", channel_multiplier),
    }
    total = 1
    for place, (step, count) in enumerate(reversed(pairs)):
        fields[f"step{place}"] = _int32(t, instruction, "pattern", step)
        fields[f"count{place}"] = counted = _int32(t, instruction, "pattern", count)
        if counted < 1:
            raise reject(t, instruction, "pattern", repr(pattern), "counts must be at least 1")
        total *= counted
    if total != elements:
        raise reject(
            t, instruction, "elements of pattern", total, f"must be the {elements} elements per partition of dst"
        )
    return fields


def iota(
    dst: NkiTensor, pattern: Any, offset: Any = 0, channel_multiplier: Any = 0, name: str | None = None
) -> NkiInstruction:
    """Write offset + partition * channel_multiplier + the walk of a pattern, in int32; GpSimd, into SBUF."""
    t = tracer()
    out = tile(t, "iota", "dst", dst, psum=False)
    fields = _affine(t, "iota", pattern, offset, channel_multiplier, dst.free_size)
    return NkiInstruction(t.compute(words.Iota, "Pool", {"dst": out}, fields, name))


def affine_select(
    dst: NkiTensor,
    pattern: Any,
    channel_multiplier: Any,
    on_true_tile: NkiTensor,
    on_false_value: Any,
    cmp_op: Any = OPERATORS["equal"],
    offset: Any = 0,
    name: str | None = None,
) -> NkiInstruction:
    """Keep elements where the walk of a pattern compares with 0, write a number elsewhere; GpSimd, SBUF only."""
    t = tracer()
    instruction = "affine_select"
    out = tile(t, instruction, "dst", dst, psum=False)
    src = tile(t, instruction, "on_true_tile", on_true_tile, psum=False)
    same_partitions(t, instruction, "dst and on_true_tile", out, src)
    same_free(t, instruction, "dst and on_true_tile", dst, on_true_tile)
    if not number(on_false_value):
        raise reject(t, instruction, "on_false_value", repr(on_false_value), "must be a number")
    comparison = alu(t, instruction, "cmp_op", cmp_op)
    if comparison.kind != "comparison":
        raise reject(t, instruction, "cmp_op", f"nl.{comparison.name}", "must be a comparison")
    fields = _affine(t, instruction, pattern, offset, channel_multiplier, dst.free_size)
    fields |= {"op": comparison.alu, "on_false": float(on_false_value)}
    return NkiInstruction(t.compute(words.AffineSelect, "Pool", {"src": src, "dst": out}, fields, name))


def _dtype(t: Tracer, instruction: str, argument: str, one: NkiTensor, *allowed: str) -> None:
    if one.dtype not in allowed:
        raise reject(t, instruction, argument, f"of {one.dtype}", f"must be {' or '.join(allowed)}")


def _same_dtype(t: Tracer, instruction: str, argument: str, dst: NkiTensor, src: NkiTensor) -> None:
    if dst.dtype != src.dtype:
        raise reject(t, instruction, "dst", f"of {dst.dtype}", f"must have the type of {argument}, {src.dtype}")


def nc_n_gather(dst: NkiTensor, data: NkiTensor, indices: NkiTensor, name: str | None = None) -> NkiInstruction:
    """Gather, in each partition, the elements of `data` at flattened uint32 indices; GpSimd, SBUF only."""
    t = tracer()
    instruction = "nc_n_gather"
    out = tile(t, instruction, "dst", dst, psum=False)
    src = tile(t, instruction, "data", data, psum=False)
    places = tile(t, instruction, "indices", indices, psum=False)
    same_partitions(t, instruction, "dst, data and indices", out, src, places)
    same_free(t, instruction, "dst and indices", dst, indices)
    _same_dtype(t, instruction, "data", dst, data)
    _dtype(t, instruction, "indices", indices, "uint32")
    return NkiInstruction(t.compute(words.NGather, "Pool", {"src": src, "indices": places, "dst": out}, {}, name))


def local_gather(
    dst: NkiTensor,
    src_buffer: NkiTensor,
    index: NkiTensor,
    num_elem_per_idx: int = 1,
    num_valid_indices: int | None = None,
    name: str | None = None,
) -> NkiInstruction:
    """Gather runs of elements by the uint16 indices of each group of 16 partitions; GpSimd, SBUF only.

    Indices count elements of a partition and are taken down the partitions first.
    """
    t = tracer()
    instruction = "local_gather"
    out = tile(t, instruction, "dst", dst, psum=False)
    src = tile(t, instruction, "src_buffer", src_buffer, psum=False)
    places = tile(t, instruction, "index", index, psum=False)
    same_partitions(t, instruction, "dst, src_buffer and index", out, src, places)
    if src.partitions % _GROUP:
        raise reject(t, instruction, "partition count of src_buffer", src.partitions, f"must be a multiple of {_GROUP}")
    _same_dtype(t, instruction, "src_buffer", dst, src_buffer)
    _dtype(t, instruction, "index", index, "uint16")
    run = _int32(t, instruction, "num_elem_per_idx", num_elem_per_idx)
    if run not in _RUNS:
        raise reject(t, instruction, "num_elem_per_idx", run, f"must be one of {', '.join(map(str, _RUNS))}")
    # a group takes its indices from all of its partitions
    present = index.free_size * _GROUP
    valid = present if num_valid_indices is None else _int32(t, instruction, "num_valid_indices", num_valid_indices)
    if not 1 <= valid <= min(present, _INDICES):
        limit = f"must be 1 to {min(present, _INDICES)} (the indices of 16 partitions, at most {_INDICES})"
        raise reject(t, instruction, "num_valid_indices", valid, limit)
    if dst.free_size != valid * run:
        raise reject(t, instruction, "elements per partition of dst", dst.free_size, f"must be {valid} indices * {run}")
    operands = {"src": src, "indices": places, "dst": out}
    return NkiInstruction(t.compute(words.LocalGather, "Pool", operands, {"run": run, "valid": valid}, name))


def nonzero_with_count(
    dst: NkiTensor, src: NkiTensor, index_offset: Any = 0, padding_val: Any = -1, name: str | None = None
) -> NkiInstruction:
    """Write the places of non-zeros, padding and their number, in partitions 0, 16, ... only; GpSimd, gen3 on."""
    t = tracer()
    instruction = "nonzero_with_count"
    since(t, instruction, 3)
    out = tile(t, instruction, "dst", dst, psum=False)
    view = tile(t, instruction, "src", src, psum=False)
    same_partitions(t, instruction, "dst and src", out, view)
    _dtype(t, instruction, "src", src, "float32", "int32")
    _dtype(t, instruction, "dst", dst, "int32")
    if dst.free_size != src.free_size + 1:
        raise reject(
            t, instruction, "elements per partition of dst", dst.free_size, f"must be {src.free_size + 1}, one over src"
        )
    fields: dict[str, object] = {
        "index_offset": _int32(t, instruction, "index_offset", index_offset),
        "padding": _int32(t, instruction, "padding_val", padding_val),
    }
    return NkiInstruction(t.compute(words.NonzeroWithCount, "Pool", {"src": view, "dst": out}, fields, name))


def sequence_bounds(dst: NkiTensor, segment_ids: NkiTensor, name: str | None = None) -> NkiInstruction:
    """Write where the segment of each element begins and ends, (1, 2, n) from (1, n); GpSimd."""
    t = tracer()
    instruction = "sequence_bounds"
    out = tile(t, instruction, "dst", dst, psum=False)
    src = tile(t, instruction, "segment_ids", segment_ids, psum=False)
    for argument, one, view in (("dst", dst, out), ("segment_ids", segment_ids, src)):
        _dtype(t, instruction, argument, one, "float32", "int32")
        if view.partitions != 1:
            raise reject(t, instruction, f"partition count of {argument}", view.partitions, "must be 1")
    if dst.free_size != 2 * segment_ids.free_size:
        raise reject(
            t, instruction, "elements of dst", dst.free_size, f"must be twice the {segment_ids.free_size} segment ids"
        )
    return NkiInstruction(t.compute(words.SequenceBounds, "Pool", {"src": src, "dst": out}, {}, name))


def topk(val_dst: NkiTensor, idx_dst: NkiTensor, src: NkiTensor, n: Any, name: str | None = None) -> NkiInstruction:
    """Write the largest of the first n elements of each group of 16 partitions, ascending, and their places; GpSimd."""
    t = tracer()
    instruction = "topk"
    values = tile(t, instruction, "val_dst", val_dst, psum=False)
    places = tile(t, instruction, "idx_dst", idx_dst, psum=False)
    view = tile(t, instruction, "src", src, psum=False)
    same_partitions(t, instruction, "val_dst, idx_dst and src", values, places, view)
    same_free(t, instruction, "val_dst and idx_dst", val_dst, idx_dst)
    _dtype(t, instruction, "src", src, "bfloat16")
    _dtype(t, instruction, "val_dst", val_dst, "bfloat16")
    _dtype(t, instruction, "idx_dst", idx_dst, "uint32")
    count, wanted = _int32(t, instruction, "n", n), val_dst.free_size
    if not 8 <= count < 65536:
        raise reject(t, instruction, "n", count, "must be 8 to 65535")
    if wanted >= 32768 or wanted > count:
        raise reject(t, instruction, "elements per partition of val_dst", wanted, f"at most {min(32767, count)}")
    if src.free_size * _GROUP < count:
        raise reject(t, instruction, "elements per partition of src", src.free_size, f"at least {-(-count // _GROUP)}")
    if view.partitions % _GROUP:
        raise reject(t, instruction, "partition count of src", view.partitions, f"must be a multiple of {_GROUP}")
    operands = {"src": view, "dst": values, "indices": places}
    return NkiInstruction(t.compute(words.TopK, "Pool", operands, {"count": count}, name))


_FOLDS = ("add", "average", "maximum", "bitwise_or", "bitwise_and")


def tensor_partition_reduce(dst: NkiTensor, op: Any, data: NkiTensor, name: str | None = None) -> NkiInstruction:
    """Fold all partitions of a tile into one: add, average, max, bitwise_or or bitwise_and; GpSimd, SBUF only."""
    t = tracer()
    instruction = "tensor_partition_reduce"
    out = tile(t, instruction, "dst", dst, psum=False)
    src = tile(t, instruction, "data", data, psum=False)
    found = operator_of(op)
    if found is None or found.name not in _FOLDS:
        raise reject(t, instruction, "op", repr(op), "must be add, average, max, bitwise_or or bitwise_and")
    if out.partitions != 1:
        raise reject(t, instruction, "partition count of dst", out.partitions, "must be 1")
    same_free(t, instruction, "dst and data", dst, data)
    if found.kind == "bitvec" and not (dst.dtype.is_int and data.dtype == dst.dtype):
        raise reject(t, instruction, "dst", f"of {dst.dtype}", f"nl.{found.name} takes one integer type for both tiles")
    average = found.name == "average"
    fields: dict[str, object] = {"op": words.AluOp.ADD if average else found.alu, "average": int(average)}
    return NkiInstruction(t.compute(words.TensorPartitionReduce, "Pool", {"src": src, "dst": out}, fields, name))
