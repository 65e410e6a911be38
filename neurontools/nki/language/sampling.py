"""Random numbers and gathers as functional operations."""

from __future__ import annotations

from typing import Any

import ml_dtypes

from neurontools.builder.trace import Space
from neurontools.nki.dtype import dtype_of, float32, uint32
from neurontools.nki.isa.gpsimd import nc_n_gather
from neurontools.nki.isa.random_numbers import dropout as isa_dropout
from neurontools.nki.isa.random_numbers import rng, set_rng_seed
from neurontools.nki.isa.vector import tensor_scalar
from neurontools.nki.language.creation import ndarray
from neurontools.nki.language.movement import cast, in_sbuf, store
from neurontools.nki.operators import OPERATORS
from neurontools.nki.regions import MemoryRegion, region_of
from neurontools.nki.storage import new_tensor
from neurontools.nki.tensor import NkiTensor
from neurontools.nki.tracer import Tracer, tracer
from neurontools.nki.views import unsupported

__all__ = ["dropout", "gather_flattened", "rand", "random_seed"]

_BITS = 24  # of a random number in [0, 1) at most: every one of them is exact in fp32


def _tile(t: Tracer, function: str, argument: str, x: Any) -> NkiTensor:
    if not isinstance(x, NkiTensor) or not x.on_chip:
        raise t.error(f"nl.{function}: {argument} is {x!r}, must be a tile in SBUF or PSUM")
    return x


def rand(shape: Any, dtype: Any, buffer: Any = MemoryRegion.sbuf, name: str = "") -> NkiTensor:
    """Return a tensor of random numbers distributed evenly over [0, 1), in steps of 2**-24 or the type's precision."""
    t = tracer()
    kind = dtype_of(dtype)
    if not kind.is_float:
        raise t.error(f"nl.rand: dtype is {kind}, must be a float type")
    region = region_of(buffer)
    result = ndarray(shape, kind, buffer, name)
    made = result if region.space is not Space.HBM else ndarray(shape, kind)
    bits = new_tensor(t, made.shape, uint32)
    rng(bits)
    # No more bits than the type holds, or rounding would give 1.
    held = min(_BITS, 1 + ml_dtypes.finfo(kind.numpy).nmant)  # type: ignore[no-untyped-call]  # it has no types here
    tensor_scalar(bits, bits, OPERATORS["right_shift"], 32 - held)
    tensor_scalar(made, bits, OPERATORS["multiply"], 2.0**-held)
    if made is not result:
        store(result, made)
    return result


def random_seed(seed: NkiTensor) -> None:
    """Seed `rand` and `dropout` from a [1, 1] tile of 32 bits."""
    set_rng_seed(_tile(tracer(), "random_seed", "seed", seed))


def dropout(x: NkiTensor, rate: Any, dtype: Any = None) -> NkiTensor:
    """Return a new SBUF tile of `x` with elements replaced by 0 with probability `rate`, a number or a column."""
    t = tracer()
    _tile(t, "dropout", "x", x)
    result = new_tensor(t, x.shape, x.dtype)
    if isinstance(rate, NkiTensor) and not x.dtype.is_float:
        rate = cast(t, rate, float32)
    isa_dropout(result, x, rate)
    return result if dtype is None else cast(t, result, dtype)


def gather_flattened(data: NkiTensor, indices: NkiTensor, axis: int = 0, dtype: Any = None) -> NkiTensor:
    """Return a new SBUF tile with the elements of each partition of `data` at flattened indices."""
    t = tracer()
    if axis != 0:
        raise unsupported(f"nl.gather_flattened with axis={axis}")
    source = in_sbuf(t, _tile(t, "gather_flattened", "data", data))
    if not _tile(t, "gather_flattened", "indices", indices).dtype.is_int:
        raise t.error(f"nl.gather_flattened: indices are of {indices.dtype}, must be of an integer type")
    places = cast(t, in_sbuf(t, indices), uint32)
    result = new_tensor(t, indices.shape, data.dtype)
    nc_n_gather(result, source, places)
    return result if dtype is None else cast(t, result, dtype)
