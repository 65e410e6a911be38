"""Random numbers: generator states, bits, uniform numbers, dropout."""

from __future__ import annotations

from typing import Any

from formats import isa as words
from neurontools.builder.trace import View
from neurontools.nki.isa.checks import alike, pick_engine, scalar_or_column, tile
from neurontools.nki.isa.constants import engine as engines
from neurontools.nki.isa.instruction import NkiInstruction
from neurontools.nki.isa.moves import no_psum
from neurontools.nki.isa.refusals import reject, since
from neurontools.nki.tensor import NkiTensor
from neurontools.nki.tracer import Tracer, tracer

__all__ = ["dropout", "rand2", "rand_get_state", "rand_set_state", "rng", "set_rng_seed"]

# Source: the rand_set_state docstring.
_STATE_WORDS = {"Pool": 6, "DVE": 24}
_RAND2 = (
    "float8_e4m3",
    "float8_e5m2",
    "float16",
    "bfloat16",
    "float32",
    "tfloat32",
    "int8",
    "int16",
    "int32",
    "uint8",
    "uint16",
    "uint32",
)


def rng(dst: NkiTensor, engine: Any = engines.vector, name: str | None = None) -> NkiInstruction:
    """Write random bits, the low ones of 32; Vector engine, or GpSimd from gen3 on."""
    t = tracer()
    out = tile(t, "rng", "dst", dst)
    if not dst.dtype.is_int:
        raise reject(t, "rng", "dst", f"of {dst.dtype}", "must be of an integer type")
    chosen = pick_engine(t, "rng", engine, "DVE", ("DVE", "Pool"))
    if chosen == "Pool":
        if t.generation < 3:
            raise reject(t, "rng", "engine", "gpsimd", "needs gen3")
        no_psum(t, "rng", out)
    return NkiInstruction(t.compute(words.Rng, chosen, {"dst": out}, {}, name))


def set_rng_seed(src_seeds: NkiTensor, name: str | None = None) -> NkiInstruction:
    """Seed the generator of the Vector engine from a [1, 1] tile of 32 bits."""
    t = tracer()
    src = tile(t, "set_rng_seed", "src_seeds", src_seeds)
    if src.partitions != 1 or src_seeds.free_size != 1:
        raise reject(t, "set_rng_seed", "src_seeds", f"of shape {src_seeds.shape}", "must be of shape (1, 1)")
    if src_seeds.dtype.itemsize != 4:
        raise reject(t, "set_rng_seed", "src_seeds", f"of {src_seeds.dtype}", "must be of 32 bits")
    return NkiInstruction(t.compute(words.SetRngSeed, "DVE", {"src": src}, {}, name))


def _state(t: Tracer, instruction: str, argument: str, one: NkiTensor, engine: Any) -> tuple[View, str]:
    since(t, instruction, 3)
    chosen = pick_engine(t, instruction, engine, "Pool", ("DVE", "Pool"))
    if chosen == "DVE" and t.generation < 4:
        raise reject(t, instruction, "engine", "vector", "needs gen4")
    view = tile(t, instruction, argument, one, psum=instruction == "rand_get_state" and chosen == "DVE")
    if one.dtype != "uint32":
        raise reject(t, instruction, argument, f"of {one.dtype}", "must be uint32")
    if one.free_size != _STATE_WORDS[chosen]:
        raise reject(
            t, instruction, f"elements per partition of {argument}", one.free_size, f"must be {_STATE_WORDS[chosen]}"
        )
    return view, chosen


def rand_set_state(src_seeds: NkiTensor, engine: Any = engines.gpsimd, name: str | None = None) -> NkiInstruction:
    """Set the generator state of each lane: 6 words (GpSimd, gen3 on) or 24 (Vector, gen4)."""
    t = tracer()
    src, chosen = _state(t, "rand_set_state", "src_seeds", src_seeds, engine)
    return NkiInstruction(t.compute(words.RandSetState, chosen, {"src": src}, {}, name))


def rand_get_state(dst: NkiTensor, engine: Any = engines.gpsimd, name: str | None = None) -> NkiInstruction:
    """Write the generator state of each lane: 6 words (GpSimd, gen3 on) or 24 (Vector, gen4)."""
    t = tracer()
    out, chosen = _state(t, "rand_get_state", "dst", dst, engine)
    return NkiInstruction(t.compute(words.RandGetState, chosen, {"dst": out}, {}, name))


def rand2(dst: NkiTensor, min: Any, max: Any, name: str | None = None) -> NkiInstruction:
    """Write numbers distributed evenly from `min` to `max`, numbers or columns; Vector engine of gen4."""
    t = tracer()
    instruction = "rand2"
    since(t, instruction, 4)
    out = tile(t, instruction, "dst", dst)
    if dst.dtype not in _RAND2:
        raise reject(t, instruction, "dst", f"of {dst.dtype}", f"must be one of {', '.join(_RAND2)}")
    operands: dict[str, View] = {"dst": out}
    fields: dict[str, object] = {}
    for argument, field, value in (("min", "low", min), ("max", "high", max)):
        found = scalar_or_column(t, instruction, argument, value, out.partitions, ("float32",))
        if isinstance(found, View):
            operands[f"{field}_pointer"] = found
        else:
            fields[field] = float(found)
    low, high = fields.get("low"), fields.get("high")
    if isinstance(low, float) and isinstance(high, float) and not low < high:
        raise reject(t, instruction, "min", low, f"must be less than max, {high}")
    return NkiInstruction(t.compute(words.Rand2, "DVE", operands, fields, name))


def dropout(dst: NkiTensor, data: NkiTensor, prob: Any, name: str | None = None) -> NkiInstruction:
    """Write 0 with probability `prob`, a number or a column, else the data; Vector engine."""
    t = tracer()
    instruction = "dropout"
    out, src = alike(t, instruction, dst=dst, data=data)
    if dst.dtype != data.dtype:
        raise reject(t, instruction, "dst", f"of {dst.dtype}", f"must have the type of data, {data.dtype}")
    operands: dict[str, View] = {"src": src, "dst": out}
    fields: dict[str, object] = {}
    found = scalar_or_column(
        t, instruction, "prob", prob, out.partitions, None if data.dtype.is_float else ("float32",)
    )
    if isinstance(found, View):
        if not found.dtype.is_float:
            raise reject(t, instruction, "prob", f"a tile of {prob.dtype}", "must be of a float type")
        operands["probability_pointer"] = found
    elif not 0 <= found <= 1:
        raise reject(t, instruction, "prob", found, "must be 0 to 1")
    else:
        fields["probability"] = float(found)
    return NkiInstruction(t.compute(words.Dropout, "DVE", operands, fields, name))
