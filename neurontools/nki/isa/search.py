"""Instructions of the Vector engine that search for eight values, and batch statistics."""

from __future__ import annotations

from typing import Any

from formats import isa as words
from neurontools.builder.trace import View
from neurontools.nki.isa.checks import number, same_free, same_partitions, tile
from neurontools.nki.isa.instruction import NkiInstruction
from neurontools.nki.isa.refusals import reject
from neurontools.nki.tensor import NkiTensor
from neurontools.nki.tracer import Tracer, threads, tracer

__all__ = ["bn_aggr", "bn_stats", "max8", "nc_find_index8", "nc_match_replace8"]

_EIGHT, _MOST = 8, 16384
_STATISTICS = 512


def _key(instruction: str, *operands: NkiTensor | None) -> tuple[Any, ...] | None:
    """Return what decides whether an instruction takes its operands, None where that is something else than tensors."""
    try:
        return instruction, *[one if one is None else one._kind or one._find_kind() for one in operands]
    except AttributeError:
        return None


def _views(**operands: NkiTensor) -> dict[str, View]:
    """Return the views of operands that an instruction takes."""
    return {name: one._view or one.base_view for name, one in operands.items()}


def _searched(t: Tracer, instruction: str, argument: str, one: NkiTensor) -> None:
    if not _EIGHT <= one.free_size <= _MOST:
        raise reject(
            t, instruction, f"elements per partition of {argument}", one.free_size, f"must be {_EIGHT} to {_MOST}"
        )


def _exactly(t: Tracer, instruction: str, argument: str, one: NkiTensor, count: int) -> None:
    if one.free_size != count:
        raise reject(t, instruction, f"elements per partition of {argument}", one.free_size, f"must be {count}")


def _indices(t: Tracer, instruction: str, argument: str, one: NkiTensor) -> None:
    _exactly(t, instruction, argument, one, _EIGHT)
    if one.dtype not in ("uint16", "uint32"):
        raise reject(t, instruction, argument, f"of {one.dtype}", "must be uint16 or uint32")


def max8(dst: NkiTensor, src: NkiTensor, name: str | None = None) -> NkiInstruction:
    """Write the eight largest values of each partition in descending order; Vector engine."""
    t = threads.tracer or tracer()
    key = _key("max8", dst, src)
    if key is not None and key in t.known:
        return NkiInstruction(t.compute(words.Max8, "DVE", _views(src=src, dst=dst), {}, name))
    out, view = tile(t, "max8", "dst", dst), tile(t, "max8", "src", src)
    same_partitions(t, "max8", "dst and src", out, view)
    _searched(t, "max8", "src", src)
    _exactly(t, "max8", "dst", dst, _EIGHT)
    if key is not None:
        t.known.note(key, True)
    return NkiInstruction(t.compute(words.Max8, "DVE", {"src": view, "dst": out}, {}, name))


def nc_find_index8(dst: NkiTensor, data: NkiTensor, vals: NkiTensor, name: str | None = None) -> NkiInstruction:
    """Write the place of each of eight values in the data of its partition, all ones if absent; Vector engine."""
    t = threads.tracer or tracer()
    instruction = "nc_find_index8"
    key = _key(instruction, dst, data, vals)
    if key is not None and key in t.known:
        operands = _views(src=data, values=vals, dst=dst)
        return NkiInstruction(t.compute(words.FindIndex8, "DVE", operands, {}, name))
    out, view = tile(t, instruction, "dst", dst), tile(t, instruction, "data", data)
    values = tile(t, instruction, "vals", vals)
    same_partitions(t, instruction, "dst, data and vals", out, view, values)
    _searched(t, instruction, "data", data)
    _exactly(t, instruction, "vals", vals, _EIGHT)
    _indices(t, instruction, "dst", dst)
    if key is not None:
        t.known.note(key, True)
    return NkiInstruction(t.compute(words.FindIndex8, "DVE", {"src": view, "values": values, "dst": out}, {}, name))


def nc_match_replace8(
    dst: NkiTensor,
    data: NkiTensor,
    vals: NkiTensor,
    imm: Any,
    dst_idx: NkiTensor | None = None,
    name: str | None = None,
) -> NkiInstruction:
    """Replace the first match of each of eight values, the last value first; their places go to dst_idx."""
    t = threads.tracer or tracer()
    instruction = "nc_match_replace8"
    key = _key(instruction, dst, data, vals, dst_idx) if imm.__class__ is float or imm.__class__ is int else None
    if key is not None and key in t.known:
        operands = _views(src=data, values=vals, dst=dst)
        if dst_idx is not None:
            operands["indices"] = dst_idx._view or dst_idx.base_view
        return NkiInstruction(t.compute(words.MatchReplace8, "DVE", operands, {"immediate": float(imm)}, name))
    out, view = tile(t, instruction, "dst", dst), tile(t, instruction, "data", data)
    values = tile(t, instruction, "vals", vals)
    same_partitions(t, instruction, "dst, data and vals", out, view, values)
    same_free(t, instruction, "dst and data", dst, data)
    _searched(t, instruction, "data", data)
    _exactly(t, instruction, "vals", vals, _EIGHT)
    if not number(imm):
        raise reject(t, instruction, "imm", repr(imm), "must be a number")
    operands = {"src": view, "values": values, "dst": out}
    if dst_idx is not None:
        places = tile(t, instruction, "dst_idx", dst_idx)
        same_partitions(t, instruction, "dst and dst_idx", out, places)
        _indices(t, instruction, "dst_idx", dst_idx)
        operands["indices"] = places
    if key is not None:
        t.known.note(key, True)
    return NkiInstruction(t.compute(words.MatchReplace8, "DVE", operands, {"immediate": float(imm)}, name))


def bn_stats(dst: NkiTensor, data: NkiTensor, name: str | None = None) -> NkiInstruction:
    """Write count, mean and count * variance of even, then of odd elements, of up to 512; Vector engine."""
    t = tracer()
    out, view = tile(t, "bn_stats", "dst", dst), tile(t, "bn_stats", "data", data)
    same_partitions(t, "bn_stats", "dst and data", out, view)
    if data.free_size > _STATISTICS:
        raise reject(t, "bn_stats", "elements per partition of data", data.free_size, f"at most {_STATISTICS}")
    _exactly(t, "bn_stats", "dst", dst, 6)
    return NkiInstruction(t.compute(words.BnStats, "DVE", {"src": view, "dst": out}, {}, name))


def bn_aggr(dst: NkiTensor, data: NkiTensor, name: str | None = None) -> NkiInstruction:
    """Aggregate triples of bn_stats into mean and variance; Vector engine."""
    t = tracer()
    out, view = tile(t, "bn_aggr", "dst", dst), tile(t, "bn_aggr", "data", data)
    same_partitions(t, "bn_aggr", "dst and data", out, view)
    if data.free_size % 3:
        raise reject(t, "bn_aggr", "elements per partition of data", data.free_size, "must be a multiple of 3")
    _exactly(t, "bn_aggr", "dst", dst, 2)
    return NkiInstruction(t.compute(words.BnAggregate, "DVE", {"src": view, "dst": out}, {}, name))
