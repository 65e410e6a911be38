"""MX quantization and multiplication, gen4 only."""

from __future__ import annotations

from typing import Any

from formats import isa as words
from formats.neuron_core import PARTITIONS, QUADRANT
from neurontools.builder.trace import Space, View
from neurontools.nki.isa.checks import flag, tensor, tile
from neurontools.nki.isa.indirection import check_product, first_partition, operand
from neurontools.nki.isa.instruction import NkiInstruction
from neurontools.nki.isa.matmul import _array_tile, psum_span
from neurontools.nki.isa.refusals import reject, since
from neurontools.nki.tensor import NkiTensor
from neurontools.nki.tracer import Tracer, tracer

__all__ = ["nc_matmul_mx", "quantize_mx"]

_SCALES, _PACK = 4, 4
_OFFSETS = (0, 4, 8, 12)
_QUANTIZED = ("float8_e5m2_x4", "float8_e4m3fn_x4")
_PACKED = (*_QUANTIZED, "float4_e2m1fn_x4")


def _data(t: Tracer, instruction: str, argument: str, one: Any, dtypes: tuple[str, ...]) -> View:
    view = tile(t, instruction, argument, one, psum=False)
    if one.dtype not in dtypes:
        raise reject(t, instruction, argument, f"of {one.dtype}", f"must be {' or '.join(dtypes)}")
    if view.partitions % QUADRANT:
        raise reject(t, instruction, f"partition count of {argument}", view.partitions, "must be a multiple of 32")
    return view


def _scales(t: Tracer, instruction: str, argument: str, one: Any, data: View, columns: int) -> View:
    """Return the partitions that scales span: the first four of each 32, from 0, 4, 8 or 12 on."""
    tensor(t, instruction, argument, one)
    indirect = one.indirection is not None and one.indirection.base is not None
    view: View = operand(t, instruction, argument, one) if indirect else one.view_of_storage
    allocation = view.allocation
    if allocation.space is not Space.SBUF:
        raise reject(t, instruction, argument, f"{one.name} in {one.buffer.value}", "must be in SBUF")
    if one.dtype not in ("float8_e8m0fnu", "uint8"):
        raise reject(t, instruction, argument, f"of {one.dtype}", "must be float8_e8m0fnu or uint8")
    if one.free_size != columns:
        raise reject(t, instruction, f"elements per partition of {argument}", one.free_size, f"must be {columns}")
    # four partitions of each 32 hold scales: behind those of the last group nothing is read
    span = data.partitions - QUADRANT + _SCALES
    if view.partitions < span:
        raise reject(t, instruction, f"partition count of {argument}", view.partitions, f"must be at least {span}")
    start = first_partition(view)
    if start % QUADRANT not in _OFFSETS:
        raise reject(t, instruction, argument, f"{one.name} from partition {start}", "must start 0, 4, 8 or 12 into 32")
    return view._replace(partitions=span)


def _same_index(t: Tracer, instruction: str, argument: str, data: NkiTensor, scale: NkiTensor) -> None:
    """Refuse data and scales of which one is indirect, or both with different indices."""
    found = {None if one.indirection is None else one.indirection.indices.view_of_storage for one in (data, scale)}
    if len(found) > 1:
        limit = "must both be indirect with the same index, or neither"
        raise reject(t, instruction, f"{argument} and {argument}_scale", "indirect in different ways", limit)


def quantize_mx(dst: NkiTensor, src: NkiTensor, dst_scale: NkiTensor, name: str | None = None) -> NkiInstruction:
    """Quantize groups of 8 partitions by 4 elements to 8-bit floats with a scale each; Vector engine of gen4."""
    t = tracer()
    instruction = "quantize_mx"
    since(t, instruction, 4)
    source = _data(t, instruction, "src", src, ("float16", "bfloat16"))
    out = _data(t, instruction, "dst", dst, _QUANTIZED)
    if src.free_size % _PACK:
        raise reject(t, instruction, "elements per partition of src", src.free_size, "must be a multiple of 4")
    if out.partitions != source.partitions or dst.free_size * _PACK != src.free_size:
        wanted = (source.partitions, src.free_size // _PACK)
        raise reject(t, instruction, "dst", f"of shape {dst.shape}", f"must be of shape {wanted}")
    scale = _scales(t, instruction, "dst_scale", dst_scale, source, dst.free_size)
    operands = {"src": source, "dst": out, "scale": scale}
    return NkiInstruction(t.compute(words.QuantizeMx, "DVE", operands, {}, name))


def nc_matmul_mx(
    dst: NkiTensor,
    stationary: NkiTensor,
    moving: NkiTensor,
    stationary_scale: NkiTensor,
    moving_scale: NkiTensor,
    tile_position: Any = None,
    tile_size: Any = None,
    accumulate: bool | None = None,
    name: str | None = None,
) -> NkiInstruction:
    """Compute dst = stationary.T @ moving of packed tiles with scales, into PSUM; Tensor engine of gen4."""
    t = tracer()
    instruction = "nc_matmul_mx"
    since(t, instruction, 4)
    left = _data(t, instruction, "stationary", stationary, _PACKED)
    right = _data(t, instruction, "moving", moving, _PACKED)
    out = tile(t, instruction, "dst", dst)
    if out.allocation.space is not Space.PSUM:
        raise reject(t, instruction, "dst", f"{dst.name} in SBUF", "must be in PSUM")
    if left.partitions != right.partitions:
        value = f"{left.partitions} and {right.partitions}"
        raise reject(t, instruction, "partition count of stationary and moving", value, "must be equal")
    columns, width = stationary.free_size, moving.free_size
    if columns % 2 or columns > PARTITIONS:
        raise reject(t, instruction, "stationary free size", columns, f"even, at most {PARTITIONS}")
    if str(dst.dtype) not in t.limits.moving_free:
        raise reject(t, instruction, "dst", f"of {dst.dtype}", f"must be {' or '.join(sorted(t.limits.moving_free))}")
    if width > t.limits.moving_free[dst.dtype]:
        raise reject(t, instruction, "moving free size", width, f"at most {t.limits.moving_free[dst.dtype]}")
    if out.partitions != columns or dst.free_size != width:
        raise reject(t, instruction, "dst", f"of shape {dst.shape}", f"must be ({columns}, {width})")
    if tile_position or tile_size:
        _array_tile(t, left, columns, tile_position or (), tile_size or ())
        if tile_size[1] != PARTITIONS:
            raise reject(t, instruction, "tile_size", tile_size, "column size must be 128")
    psum_span(t, instruction, out)
    for argument, data, scale in (("stationary", stationary, stationary_scale), ("moving", moving, moving_scale)):
        _same_index(t, instruction, argument, data, scale)
    operands = {
        "stationary": left,
        "stationary_scale": _scales(t, instruction, "stationary_scale", stationary_scale, left, columns),
        "src": right,
        "src_scale": _scales(t, instruction, "moving_scale", moving_scale, right, width),
        "dst": out,
    }
    adds = None if accumulate is None else flag(t, instruction, "accumulate", accumulate)
    fields: dict[str, object] = {"accumulate": adds}
    if t.indirect:
        check_product(t, instruction, tile_position)
    return NkiInstruction(t.compute(words.MatMulMx, "PE", operands, fields, name))
