"""Words of the Tensor engine: load the stationary tile, multiply a moving one into PSUM, transpose.

The stationary tile arrives backwards: the last element streamed becomes column 0. out[j, n] is the sum over k of
W[k, j] * X[k, n]. fp32 runs in two passes: the LOW MATMUL's product is held back and added together with HIGH's as one
fp32 product. The split is exact, so only rounding differs; the hardware's own split is not public. Source: isa.md 11.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from emulator.dtypes import Array, Step, bind_load, bind_store, chain, element_type, is_plain_float32
from emulator.engines.operands import elements, raw_view, refuse, reshaped, squeezed
from emulator.engines.pe_state import ARRAY, Pending, PeState, Span, keep_high
from emulator.engines.registry import executes
from emulator.scratch import scratch
from formats import isa
from formats.dtypes import Dtype
from formats.errors import UnsupportedError
from formats.isa import PSUM_BASE, PSUM_PARTITION_STRIDE, Fp32Pass

__all__: list[str] = []

_SINGLE_PASS = (Fp32Pass.NONE, Fp32Pass.LOW_HIGH)
_FIRST = 1      # acc_flags bit 0: overwrite PSUM


def _form(word: isa.LoadWeights | isa.MatMul) -> tuple[int, int, int, int, bool]:
    return word.rows, word.cols, word.row_groups, word.column_groups, bool(word.transpose_mode)


def _check(word: isa.LoadWeights | isa.MatMul, port: Any) -> None:
    dtype = element_type(word.dtype)
    if not dtype.is_float:
        raise UnsupportedError(f"{word.NAME} on {dtype.spelling} elements is not modelled: it multiplies floats")
    if word.fp32_mode not in set(Fp32Pass):
        raise UnsupportedError(f"{word.NAME}: fp32 mode {int(word.fp32_mode)} is not known")
    if word.fp32_mode != Fp32Pass.NONE and not is_plain_float32(dtype):
        raise UnsupportedError(f"{word.NAME}: an fp32 pass on {dtype.spelling} elements is not modelled")
    if word.transpose_mode and port.generation == "gen2":
        raise UnsupportedError(f"{word.NAME}: gen2 has no transpose mode; it multiplies by an identity")


@executes(isa.LoadWeights)
def load_weights(word: isa.LoadWeights, port: Any) -> Step:
    """Return the latching of a stationary tile."""
    _check(word, port)
    state: PeState = port.pe
    src = port.read("src")
    if elements(src) != word.cols or not 0 < word.cols <= ARRAY:
        raise refuse(word, "columns and pattern differ", "src", f"{word.cols} elements per partition, at most {ARRAY}",
                     f"{elements(src)}")
    form, source, mode = _form(word), (word.src, word.dtype, word.rows), int(word.fp32_mode)
    transposed = form[-1]
    latch = state.low if mode == Fp32Pass.LOW and not transposed else state.high
    buffer = latch.bits if transposed else latch.weights
    backwards = (slice(None), *(slice(None, None, -1) for _ in src.shape[1:]))
    place = buffer[:word.rows, :word.cols]
    held = scratch(place.shape, src.dtype) if word.dtype in (Dtype.FLOAT16, Dtype.TFLOAT32) and not transposed else None
    source_view = raw_view(src) if transposed else src
    target = (place if held is None else held).reshape(src.shape, copy=False)[backwards]
    fill: Step = partial(np.copyto, target, source_view, casting="unsafe")
    if held is not None:      # turned round first, widened in one piece after
        values, load = bind_load(held, word.dtype)
        fill = chain(fill, load, partial(np.copyto, place, values))
    completes = mode == Fp32Pass.HIGH and not transposed

    def latch_tile() -> None:
        if state.pending and not (completes and state.low.source == source):
            state.flush()
        fill()
        latch.form, latch.dtype, latch.fp32_pass, latch.source = form, word.dtype, mode, source
        state.current = latch
    return latch_tile


class _Product:
    """A moving operand and a place in PSUM: what every way of multiplying needs."""

    def __init__(self, word: isa.MatMul, port: Any) -> None:
        rows, cols = word.rows, word.cols
        src, dst = port.read("src"), squeezed(port.write("dst"))
        size = elements(src)
        if elements(dst) != size or dst.shape[0] != cols:
            raise refuse(word, "moving operand and output differ in size", "dst", f"{size} elements per partition",
                         f"{elements(dst)}")
        self.moving, self.load = _moving(word, src, (rows, size))
        self.dst, self.code = dst, int(word.dst_dtype) or int(Dtype.FLOAT32)
        flat = reshaped(dst, (cols, size))
        self.place = flat if flat is not None and is_plain_float32(self.code) else None
        self.product = scratch((cols, size), np.float32)
        self.shape = (rows, cols)
        self.span = _span(word.dst, dst)
        if self.place is None:
            self.held, self.fetch = bind_load(dst, self.code)
            self.keep = bind_store(self.product.reshape(dst.shape), dst, self.code)

    def overwrite(self, weights: Array) -> None:
        """Write weightsᵀ·X."""
        if self.load is not None:
            self.load()
        if self.place is not None:
            np.matmul(weights[:self.shape[0], :self.shape[1]].T, self.moving, self.place)
        else:
            np.matmul(weights[:self.shape[0], :self.shape[1]].T, self.moving, self.product)
            self.keep()

    def add(self, weights: Array) -> None:
        """Add weightsᵀ·X in fp32."""
        if self.load is not None:
            self.load()
        np.matmul(weights[:self.shape[0], :self.shape[1]].T, self.moving, self.product)
        if self.place is not None:
            np.add(self.place, self.product, self.place)
        else:
            if self.fetch is not None:
                self.fetch()
            np.add(self.held.reshape(self.product.shape), self.product, self.product)
            self.keep()


def _moving(word: isa.MatMul, src: Array, shape: tuple[int, int]) -> tuple[Array, Step | None]:
    """Return the moving operand in fp32, or the half of it that the pass carries, and the step that refreshes it."""
    values, load = bind_load(squeezed(src), word.dtype)
    flat = reshaped(values, shape)
    if flat is None:
        held = scratch(values.shape, np.float32)
        flat, load = held.reshape(shape), partial(np.copyto, held, values)
    if word.fp32_mode in _SINGLE_PASS:
        return flat, load
    half = scratch(shape, np.float32)
    split = partial(keep_high, flat, half)
    if word.fp32_mode == Fp32Pass.HIGH:
        return half, chain(load, split)
    return half, chain(load, split, partial(np.subtract, flat, half, half))


def _span(pattern: isa.AccessPattern, dst: Array) -> Span:
    partition, byte = divmod(pattern.address - PSUM_BASE, PSUM_PARTITION_STRIDE)
    reaches = [step * (count - 1) * dst.dtype.itemsize
               for step, count in zip(pattern.steps, pattern.counts, strict=True) if count]
    return (partition, partition + dst.shape[0], byte + sum(r for r in reaches if r < 0),
            byte + sum(r for r in reaches if r > 0) + dst.dtype.itemsize)


@executes(isa.MatMul)
def matmul(word: isa.MatMul, port: Any) -> Step:
    """Return the product of the latched tile and a moving operand, or the transpose of the latched tile."""
    _check(word, port)
    if word.transpose_mode:
        return _transpose(word, port)
    state: PeState = port.pe
    product = _Product(word, port)
    overwrite, add, span, place = product.overwrite, product.add, product.span, product.dst
    first, form = bool(word.acc_flags & _FIRST), _form(word)
    key = (word.src, word.dst, word.dtype, int(word.fp32_mode), form)

    def multiply() -> None:
        latch = state.current
        if latch.form != form:
            raise _mismatch(word, latch.form)
        weights = latch.weights
        if latch.fp32_pass == Fp32Pass.LOW:
            if state.pending:
                state.flush(span)
            if first:
                place.fill(0)
            state.pending[key] = Pending(first, span, add)
            return
        overwriting = first
        if latch.fp32_pass == Fp32Pass.HIGH:
            low = state.pending.pop(key, None)
            if low is not None:
                overwriting = first or low.first
            else:
                keep_high(weights, state.half)
                weights = state.half
        if state.pending:
            state.flush(span)
        if overwriting:
            overwrite(weights)
        else:
            add(weights)
    return multiply


def _mismatch(word: isa.MatMul, form: tuple[int, int, int, int, bool]) -> Exception:
    names = ("rows", "columns", "row groups", "column groups", "transpose mode")
    for name, latched, wanted in zip(names, form, _form(word), strict=True):
        if latched != wanted:
            return refuse(word, f"word and weights differ in {name}", "src", str(int(latched)), str(int(wanted)))
    return UnsupportedError(f"{word.NAME}: word and weights differ")


def _transpose(word: isa.MatMul, port: Any) -> Step:
    """Return the transpose of the latched tile, bit for bit; the moving operand has to be an identity."""
    state: PeState = port.pe
    if not word.acc_flags & _FIRST:
        raise UnsupportedError("MATMUL in transpose mode that accumulates is not modelled: only overwriting is known")
    src, dst = squeezed(port.read("src")), squeezed(port.write("dst"))
    rows, size = word.rows, elements(src)
    if size > rows or elements(dst) != size:
        raise refuse(word, "moving operand and output of a transpose differ in size", "dst",
                     f"{size} elements per partition, at most {rows}", f"{elements(dst)}")
    form, moving, target = _form(word), raw_view(src), raw_view(dst)
    identity = raw_view(np.eye(rows, size, dtype=np.float32).astype(src.dtype)).reshape(moving.shape)
    turned = state.high.bits[:size, :word.cols].T
    itemsize = dst.dtype.itemsize
    flat = reshaped(target, (word.cols, size))
    held = scratch((word.cols, size), target.dtype) if flat is None else flat

    def turn() -> None:
        latch = state.current
        if latch.form != form:
            raise _mismatch(word, latch.form)
        if not np.array_equal(moving, identity):
            raise UnsupportedError("MATMUL in transpose mode by anything but an identity is not modelled")
        if Dtype(latch.dtype).size > itemsize:
            raise UnsupportedError(f"MATMUL in transpose mode from {Dtype(latch.dtype).size}-byte to {itemsize}-byte "
                                   "elements is not modelled")
        if state.pending:
            state.flush()
        np.copyto(held, turned, casting="unsafe")
        if flat is None:
            np.copyto(target, held.reshape(target.shape))
    return turn
