"""Words that move data: copy, cast, fill, transpose, select, shuffle. Source: isa.md 11, hardware.md 2.3, 5.1."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from emulator.dtypes import Array, Step, bind_store, chain
from emulator.engines.operands import (
    elements,
    float_input,
    float_output,
    immediate_integer,
    raw_input,
    raw_view,
    refuse,
    require_elements,
    scalar_bits,
    squeezed,
)
from emulator.engines.registry import executes
from emulator.port import Port
from emulator.scratch import scratch
from formats import isa
from formats.errors import UnsupportedError
from formats.neuron_core import QUADRANT

__all__: list[str] = []

_UNTOUCHED = 255  # mask value of a shuffle that leaves the output partition alone


@executes(isa.Copy, quiet=True, movable=True)
def copy(word: isa.Copy, port: Port) -> Step:
    """Return dst = src, bit for bit."""
    dst = squeezed(port.write("dst"))
    src = port.read("src")
    if src.dtype.itemsize != dst.dtype.itemsize:
        raise UnsupportedError(
            f"COPY from {src.dtype.itemsize}-byte to {dst.dtype.itemsize}-byte elements is not "
            "modelled: it moves raw bits"
        )
    bits, load = raw_input(word, src, dst.shape, "src")
    return chain(load, partial(np.copyto, raw_view(dst), bits))


@executes(isa.Cast, movable=True)
def cast(word: isa.Cast, port: Port) -> Step:
    """Return dst = src through fp32; equal element types move raw bits."""
    dst = squeezed(port.write("dst"))
    src = port.read("src")
    if word.src_dtype == word.dst_dtype:
        bits, load = raw_input(word, src, dst.shape, "src")
        return chain(load, partial(np.copyto, raw_view(dst), bits))
    values, load = float_input(word, src, word.src_dtype, dst.shape, "src")
    return chain(load, bind_store(values, dst, word.dst_dtype))


@executes(isa.Memset, movable=True)
def memset(word: isa.Memset, port: Port) -> Step:
    """Return dst = value in every element."""
    dst = port.write("dst")
    if word.count != elements(dst):
        raise refuse(word, "count and pattern differ", "dst", f"{word.count} elements", f"{elements(dst)}")
    value = immediate_integer(word, "value", signed=True) if word.value_is_integer else word.value
    return partial(raw_view(dst).fill, scalar_bits(value, word.dtype))


@executes(isa.VectorTranspose, movable=True)
def vector_transpose(word: isa.VectorTranspose, port: Port) -> Step:
    """Return dst[j, i] = src[i, j], at most 32 by 32."""
    dst = squeezed(port.write("dst"))
    src = squeezed(port.read("src"))
    if word.channels > QUADRANT or word.columns > QUADRANT:
        raise UnsupportedError(
            f"VECTOR_TRANSPOSE of {word.channels} by {word.columns} elements: the engine transposes at most 32 by 32"
        )
    require_elements(word, "src", src, word.columns)
    require_elements(word, "dst", dst, word.channels)
    if src.dtype.itemsize != dst.dtype.itemsize:
        raise UnsupportedError("VECTOR_TRANSPOSE between element types of different size is not modelled")
    source = raw_view(src)
    packed = scratch(src.shape, source.dtype)
    turned = packed.reshape(word.channels, word.columns).T
    target = raw_view(dst)
    if dst.ndim == 2:
        return chain(partial(np.copyto, packed, source), partial(np.copyto, target, turned))
    flat = scratch(turned.shape, source.dtype)
    return chain(
        partial(np.copyto, packed, source),
        partial(np.copyto, flat, turned),
        partial(np.copyto, target, flat.reshape(dst.shape)),
    )


@executes(isa.Select, movable=True)
def select(word: isa.Select, port: Port) -> Step:
    """Return dst = src where the predicate is not zero, else on_false."""
    dst = squeezed(port.write("dst"))
    shape = dst.shape
    has_tile = word.uses("on_false_tile")
    codes = {word.src_dtype, word.dst_dtype} | ({word.on_false_dtype} if has_tile else set())
    test, load_test = float_input(word, port.read("predicate"), word.predicate_dtype, shape, "predicate")
    if len(codes) == 1:  # bits are moved: fp32 does not hold every integer, nor the bits of every NaN
        chosen, load = raw_input(word, port.read("src"), shape, "src")
        out: Array = raw_view(dst)
        store: Step | None = None
        if has_tile:
            other, load_other = raw_input(word, port.read("on_false_tile"), shape, "on_false_tile")
        else:
            other, load_other = scalar_bits(_number(word), word.dst_dtype), None
    else:
        chosen, load = float_input(word, port.read("src"), word.src_dtype, shape, "src")
        out, store = float_output(dst, word.dst_dtype)
        if has_tile:
            tile = port.read("on_false_tile")
            other, load_other = float_input(word, tile, word.on_false_dtype, shape, "on_false_tile")
        else:
            other, load_other = np.full((), _number(word), np.float32), None
    # The output may lie over any input: it is written once all have been read.
    result = scratch(shape, out.dtype)
    mask = scratch(shape, np.bool_)
    return chain(
        load_test,
        load,
        load_other,
        partial(np.not_equal, test, 0, mask),
        partial(np.copyto, result, other),
        partial(np.copyto, result, chosen, where=mask),
        partial(np.copyto, out, result),
        store,
    )


def _number(word: isa.Select) -> Any:
    return immediate_integer(word, "on_false", signed=True) if word.on_false_is_integer else word.on_false


@executes(isa.StreamShuffle, movable=True)
def stream_shuffle(word: isa.StreamShuffle, port: Port) -> Step:
    """Return dst[32q + i] = src[32q + mask[i]] for every quadrant q; mask value 255 leaves dst as it is."""
    dst, src = squeezed(port.write("dst")), port.read("src")
    if src.dtype.itemsize != dst.dtype.itemsize:
        raise UnsupportedError("STREAM_SHUFFLE between element types of different size is not modelled")
    require_elements(word, "src", src, elements(dst))
    targets, sources = [], []
    for partition in range(dst.shape[0]):
        chosen = word.mask[partition % QUADRANT]
        if chosen == _UNTOUCHED:
            continue
        origin = partition - partition % QUADRANT + chosen
        if chosen >= QUADRANT or origin >= src.shape[0]:
            raise refuse(
                word,
                f"mask value {chosen} for partition {partition} of the output reads outside the input",
                "src",
                f"partitions 0 to {src.shape[0] - 1}",
                f"partition {origin}",
            )
        targets.append(partition)
        sources.append(origin)
    bits, load = raw_input(word, src, (src.shape[0], *dst.shape[1:]), "src")
    out = raw_view(dst)
    moved = scratch((len(sources), *dst.shape[1:]), bits.dtype)
    # The origins have been checked; with "raise" NumPy would go through a buffer of its own.
    gather = partial(np.take, bits, np.array(sources, np.intp), 0, moved, "clip")
    if targets == list(range(len(targets))):
        return chain(load, gather, partial(np.copyto, out[: len(targets)], moved))
    return chain(load, gather, partial(out.__setitem__, np.array(targets, np.intp), moved))
