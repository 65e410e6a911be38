"""Words of the Tensor engine: load the stationary tile, multiply a moving one into PSUM, transpose.

The stationary tile arrives backwards: the last element streamed becomes column 0. out[j, n] is the sum over k of
W[k, j] * X[k, n]. fp32 runs in two passes: the LOW MATMUL's product is held back and added together with HIGH's as one
fp32 product, unless another engine or a transfer meets it first. The split is exact, so only rounding differs; the
hardware's own split is not public. Source: isa.md 11.
"""

from __future__ import annotations

from functools import cache, partial
from typing import Any

import numpy as np

from emulator.dtypes import Array, Step, bind_load, bind_load_into, bind_store, chain, element_type, is_plain_float32
from emulator.engines.operands import elements, raw_view, refuse, reshaped, squeezed
from emulator.engines.pe_state import Form, Pending, PeState, Place, keep_high, keep_low
from emulator.engines.registry import executes
from emulator.port import Port
from emulator.scratch import scratch
from formats import isa
from formats.dtypes import Dtype
from formats.errors import UnsupportedError
from formats.isa import Fp32Pass
from formats.named_tuple import NamedTuple
from formats.neuron_core import PARTITIONS, PSUM_BASE, PSUM_PARTITION_STRIDE, QUADRANT, SBUF_PARTITION_STRIDE
from formats.regions import shape_of

__all__: list[str] = []

_NONE, _LOW, _HIGH, _LOW_HIGH = (int(p) for p in (Fp32Pass.NONE, Fp32Pass.LOW, Fp32Pass.HIGH, Fp32Pass.LOW_HIGH))
_PRODUCTS = 1 << 11  # products kept bound


class _Facts(NamedTuple):
    """What both words of the engine declare; `form` is what a MATMUL has to share with the weights."""

    form: Form
    rows: int
    cols: int
    dtype: Dtype
    fp32_pass: int
    transposed: bool


_FACTS: dict[tuple[bytes, str], _Facts] = {}


def _facts(word: isa.LoadWeights | isa.MatMul, port: Port) -> _Facts:
    """Return the facts of a word; words that differ in addresses share them."""
    key = word.without_addresses(), port.generation
    found = _FACTS.get(key)
    if found is None:
        found = _read_facts(word, port)
        if len(_FACTS) >= _PRODUCTS:
            _FACTS.clear()
        _FACTS[key] = found
    return found


def _read_facts(word: isa.LoadWeights | isa.MatMul, port: Port) -> _Facts:
    """Read and check a word."""
    dtype, fp32_pass, transposed = element_type(word.dtype), int(word.fp32_mode), bool(word.transpose_mode)
    rows, cols = word.rows, word.cols
    if not dtype.is_float:
        raise UnsupportedError(f"{word.NAME} on {dtype.spelling} elements is not modelled: it multiplies floats")
    if fp32_pass > _LOW_HIGH:
        raise UnsupportedError(f"{word.NAME}: fp32 mode {fp32_pass} is not known")
    if fp32_pass and not is_plain_float32(dtype):
        raise UnsupportedError(f"{word.NAME}: an fp32 pass on {dtype.spelling} elements is not modelled")
    if transposed and port.generation == "gen2":
        raise UnsupportedError(f"{word.NAME}: gen2 has no transpose mode; it multiplies by an identity")
    for name, size, groups in (("row", rows, word.row_groups), ("column", cols, word.column_groups)):
        if size > QUADRANT * groups.bit_count():
            raise UnsupportedError(f"{word.NAME}: {size} {name}s in {name} groups {groups:#x} of {QUADRANT} each")
    form = (rows, cols, word.row_groups, word.column_groups, transposed)
    return _Facts(form, rows, cols, dtype, fp32_pass, transposed)


# Widening warns of nothing; where a product has to be flushed, that keeps quiet itself.
@executes(isa.LoadWeights, quiet=True, lasting=True)
def load_weights(word: isa.LoadWeights, port: Port) -> Step:
    """Return the latching of a stationary tile."""
    form, rows, cols, dtype, fp32_pass, transposed = _facts(word, port)
    state: PeState = port.pe
    src = port.read("src")
    if elements(src) != cols or not 0 < cols <= PARTITIONS:
        raise refuse(
            word,
            "columns and pattern differ",
            "src",
            f"{cols} elements per partition, at most {PARTITIONS}",
            f"{elements(src)}",
        )
    source = (word.src, dtype, rows)
    latch = state.low if fp32_pass == _LOW and not transposed else state.high
    place = (latch.bits if transposed else latch.weights)[:rows, :cols]
    backwards = (slice(None), *(slice(None, None, -1) for _ in src.shape[1:]))
    if transposed or is_plain_float32(dtype):
        target = place.reshape(src.shape, copy=False)[backwards]
        fill: Step = partial(np.copyto, target, raw_view(src) if transposed else src)
    else:
        # Bits are reversed before they are widened: conversions that run backwards take four times as long.
        held = scratch(place.shape, src.dtype)
        target = raw_view(held.reshape(src.shape, copy=False))[backwards]
        fill = chain(partial(np.copyto, target, raw_view(src)), bind_load_into(held, dtype, place))
    completes = fp32_pass == _HIGH and not transposed

    def latch_tile() -> None:
        if state.pending and not (completes and state.low.source == source):
            with np.errstate(all="ignore"):
                state.flush()
        if transposed:
            latch.has_bits = True
        else:
            latch.has_weights = True
        fill()
        latch.form, latch.dtype, latch.fp32_pass, latch.source = form, dtype, fp32_pass, source
        state.current = latch

    return latch_tile


class _Product:
    """A moving operand and a place in PSUM: what every way of multiplying needs."""

    def __init__(self, word: isa.MatMul, port: Port, facts: _Facts) -> None:
        rows, cols = facts.rows, facts.cols
        src, dst = port.read("src"), squeezed(port.write("dst"))
        size = elements(src)
        if elements(dst) != size or dst.shape[0] != cols:
            raise refuse(
                word,
                "moving operand and output differ in size",
                "dst",
                f"{size} elements per partition",
                f"{elements(dst)}",
            )
        self.moving, self.load = _moving(src, facts, (rows, size))
        self.dst, self.code = dst, int(word.dst_dtype) or int(Dtype.FLOAT32)
        flat = reshaped(dst, (cols, size))
        self.place = flat if flat is not None and is_plain_float32(self.code) else None
        self.product = scratch((cols, size), np.float32)
        self.shape = (rows, cols)
        self.pattern: isa.AccessPattern = word.dst
        self.target, self.source = _place(self.pattern, dst), _place(word.src, src)
        if self.place is None:
            self.held, self.fetch = bind_load(dst, self.code)
            self.keep = bind_store(self.product.reshape(dst.shape), dst, self.code)

    def overwrite(self, weights: Array) -> None:
        """Write weightsᵀ·X."""
        if self.load is not None:
            self.load()
        if self.place is not None:
            np.matmul(weights[: self.shape[0], : self.shape[1]].T, self.moving, self.place)
        else:
            np.matmul(weights[: self.shape[0], : self.shape[1]].T, self.moving, self.product)
            self.keep()

    def add(self, weights: Array) -> None:
        """Add weightsᵀ·X in fp32."""
        if self.load is not None:
            self.load()
        np.matmul(weights[: self.shape[0], : self.shape[1]].T, self.moving, self.product)
        if self.place is not None:
            np.add(self.place, self.product, self.place)
        else:
            if self.fetch is not None:
                self.fetch()
            np.add(self.held.reshape(self.product.shape), self.product, self.product)
            self.keep()


def _moving(src: Array, facts: _Facts, shape: tuple[int, int]) -> tuple[Array, Step | None]:
    """Return the moving operand in fp32, or the half of it that the pass carries, and the step that refreshes it."""
    values, load = bind_load(squeezed(src), facts.dtype)
    flat = reshaped(values, shape)
    if flat is None:
        held = scratch(values.shape, np.float32)
        flat, load = held.reshape(shape), partial(np.copyto, held, values)
    if facts.fp32_pass in (_NONE, _LOW_HIGH):
        return flat, load
    half = scratch(shape, np.float32)
    return half, chain(load, partial(keep_high if facts.fp32_pass == _HIGH else keep_low, flat, half))


def _place(pattern: isa.AccessPattern, array: Array) -> Place:
    on_sbuf = pattern.address < PSUM_BASE
    stride = SBUF_PARTITION_STRIDE if on_sbuf else PSUM_PARTITION_STRIDE
    partition, byte = divmod(pattern.address - (0 if on_sbuf else PSUM_BASE), stride)
    size = array.dtype.itemsize
    steps = [(step * size, count) for step, count in zip(pattern.steps, pattern.counts, strict=True)]
    shape = shape_of(steps, size, unit=1)
    space = "SBUF" if on_sbuf else "PSUM"
    return Place(space, partition, array.shape[0], byte + shape.shift, shape.reach, shape.pattern)


@executes(isa.MatMul, lasting=True)
def matmul(word: isa.MatMul, port: Port) -> Step:
    """Return the product of the latched tile and a moving operand, or the transpose of the latched tile."""
    facts = _facts(word, port)
    if facts.transposed:
        return _transpose(word, port, facts)
    state: PeState = port.pe
    # The passes of one product, and repeated ones, differ in flags only: what binding them takes is done once.
    shared = (*word.factors, facts.dtype, facts.fp32_pass)
    product = state.products.get(shared)
    if product is None:
        if len(state.products) >= _PRODUCTS:
            state.products.clear()
        product = state.products[shared] = _Product(word, port, facts)
    overwrite, add, target, place = product.overwrite, product.add, product.target, product.dst
    first, form = not word.adds, facts.form
    key = (word.src, product.pattern, facts.dtype, facts.fp32_pass, form)

    def multiply() -> None:
        latch = state.current
        if latch.form != form:
            raise _mismatch(word, latch.form, form)
        weights = latch.weights
        if latch.fp32_pass == _LOW:
            if state.pending:
                state.flush(target)
            if first and not state.deferring:
                place.fill(0)
            state.pending[key] = Pending(first, target, product.source, add, place)
            return
        overwriting = first
        if latch.fp32_pass == _HIGH:
            low = state.pending.pop(key, None)
            if low is not None:
                overwriting = first or low.first
            else:
                keep_high(weights, state.half)
                weights = state.half
        if state.pending:
            state.flush(target)
        if overwriting:
            overwrite(weights)
        else:
            add(weights)

    return multiply


def _mismatch(word: isa.MatMul, weights: Form, form: Form) -> Exception:
    names = ("rows", "columns", "row groups", "column groups", "transpose mode")
    for name, latched, wanted in zip(names, weights, form, strict=True):
        if latched != wanted:
            return refuse(word, f"word and weights differ in {name}", "src", str(int(latched)), str(int(wanted)))
    return UnsupportedError(f"{word.NAME}: word and weights differ")


@cache
def _identity(rows: int, cols: int, dtype: np.dtype[Any]) -> Array:
    """Return the bits of an identity."""
    return raw_view(np.eye(rows, cols, dtype=np.float32).astype(dtype))


def _transpose(word: isa.MatMul, port: Port, facts: _Facts) -> Step:
    """Return the transpose of the latched tile, bit for bit; the moving operand has to be an identity."""
    state: PeState = port.pe
    if word.adds:
        raise UnsupportedError("MATMUL in transpose mode that accumulates is not modelled: only overwriting is known")
    src, dst = squeezed(port.read("src")), squeezed(port.write("dst"))
    rows, cols, size = facts.rows, facts.cols, elements(src)
    if size > rows or elements(dst) != size:
        raise refuse(
            word,
            "moving operand and output of a transpose differ in size",
            "dst",
            f"{size} elements per partition, at most {rows}",
            f"{elements(dst)}",
        )
    form, moving, target = facts.form, raw_view(src), raw_view(dst)
    identity = _identity(rows, size, src.dtype).reshape(moving.shape)
    turned = state.high.bits[:size, :cols].T
    itemsize = dst.dtype.itemsize
    flat = reshaped(target, (cols, size))
    held = scratch((cols, size), target.dtype) if flat is None else flat

    def turn() -> None:
        latch = state.current
        if latch.form != form:
            raise _mismatch(word, latch.form, form)
        if not np.array_equal(moving, identity):
            raise UnsupportedError("MATMUL in transpose mode by anything but an identity is not modelled")
        if Dtype(latch.dtype).size > itemsize:
            raise UnsupportedError(
                f"MATMUL in transpose mode from {Dtype(latch.dtype).size}-byte to {itemsize}-byte "
                "elements is not modelled"
            )
        if state.pending:
            state.flush()
        np.copyto(held, turned, casting="unsafe")
        if flat is None:
            np.copyto(target, held.reshape(target.shape))

    return turn
