"""MX words of gen4: quantization to 8-bit floats with shared scales, and products of such tiles.

A group is 8 partitions by the 4 elements of a packed one. Its scale is a byte e for 2**(e - 127), in row g % 4 of the
32 partitions that group g is from. Source: hardware.md 3.3, 5.1, 5.2, nki.isa pages, nki-mxfp-scale-packing.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import ml_dtypes
import numpy as np

from emulator.dtypes import Array, Step, bind_load, bind_store, chain, element_type
from emulator.engines.operands import elements, raw_view, refuse, require_elements
from emulator.engines.pe_state import PeState
from emulator.engines.registry import executes
from emulator.engines.rows import float_rows, raw_rows, raw_rows_out
from emulator.port import Port
from emulator.scratch import scratch
from formats import isa
from formats.dtypes import Dtype
from formats.errors import UnsupportedError
from formats.neuron_core import QUADRANT

__all__: list[str] = []

_ROWS, _PACK, _SCALES = 8, 4, 4
_BIAS, _NAN_SCALE = 127, 255
# fp32 is not documented; narrow tiles are stored that way where a kernel runs with NKI_PRECISE_FP=0.
_SOURCES = (Dtype.BFLOAT16, Dtype.FLOAT16, Dtype.FLOAT32)
# Element type and its largest exponent.
_QUANTIZED: dict[Dtype, tuple[Any, int]] = {
    Dtype.FLOAT8E4FN_X4: (ml_dtypes.float8_e4m3fn, 8),
    Dtype.FLOAT8E5_X4: (ml_dtypes.float8_e5m2, 15),
}


def _scale_rows(word: isa.QuantizeMx | isa.MatMulMx, view: Array, partitions: int, name: str) -> list[int]:
    """Return the row of each group's scale within the scale operand."""
    if partitions % QUADRANT or not partitions:
        raise refuse(word, "partitions are no whole groups", "src", f"a multiple of {QUADRANT}", f"{partitions}")
    rows = [group // _SCALES * QUADRANT + group % _SCALES for group in range(partitions // _ROWS)]
    if view.shape[0] <= rows[-1] or view.dtype.itemsize != 1:
        raise refuse(
            word,
            "scales do not fit",
            name,
            f"bytes in {rows[-1] + 1} partitions",
            f"{view.dtype.itemsize} bytes in {view.shape[0]}",
        )
    return rows


@executes(isa.QuantizeMx, lasting=True)
def quantize_mx(word: isa.QuantizeMx, port: Port) -> Step:
    """Return dst = src / scale in 8-bit floats, with scale = 2**(floor(log2(largest)) - (Emax - 1)) per group.

    Zeros have the scale 2**-127. A group with an infinity or a NaN has the NaN scale and NaN elements (inferred).
    """
    kind = _QUANTIZED.get(element_type(word.dst_dtype))
    if kind is None or element_type(word.src_dtype) not in _SOURCES:
        raise UnsupportedError(
            f"QUANTIZE_MX from {element_type(word.src_dtype).spelling} to "
            f"{element_type(word.dst_dtype).spelling} is not documented"
        )
    narrow, largest_exponent = kind
    dst, scale = port.write("dst"), port.write("scale")
    values, load = float_rows(port.read("src"), word.src_dtype)
    partitions, columns = values.shape[0], elements(dst)
    require_elements(word, "src", values, _PACK * columns)
    require_elements(word, "scale", scale, columns)
    rows = _scale_rows(word, scale, partitions, "scale")
    groups = values.reshape(partitions // _ROWS, _ROWS, columns, _PACK)
    out, store = raw_rows_out(dst)
    bytes_out = out.view(np.uint8).reshape(groups.shape)
    target = raw_view(scale)

    def quantize() -> None:
        most = np.abs(groups).max(axis=1).max(axis=2)
        exponent = np.frexp(most)[1] - 1 - (largest_exponent - 1)
        exponent = np.where(most == 0, -_BIAS, np.clip(exponent, -_BIAS, _BIAS))
        finite = np.isfinite(most)
        # Powers of two that fp32 holds, so that the products are exact wherever the narrow type keeps them apart.
        shift = np.where(finite, np.ldexp(np.float32(1.0), -exponent), np.float32(np.nan))[:, None, :, None]
        np.copyto(bytes_out, (groups * shift).astype(narrow).view(np.uint8))
        codes = np.where(finite, exponent + _BIAS, _NAN_SCALE).astype(np.uint8)
        for row, line in zip(rows, codes, strict=True):
            target[row] = line.reshape(target.shape[1:])

    return chain(load, quantize, store)


@cache
def _table(kind: Dtype) -> Array:
    """Return the fp32 value of every bit pattern of an element: a look-up is much faster than a cast."""
    if kind is Dtype.FLOAT4E2_X4:
        table: Array = np.arange(16, dtype=np.uint8).view(ml_dtypes.float4_e2m1fn).astype(np.float32)
    else:
        table = np.arange(256, dtype=np.uint8).view(_QUANTIZED[kind][0]).astype(np.float32)
    return table


class _Side:
    """One factor: packed elements and scales, as fp32 (4 * partitions, columns)."""

    def __init__(self, word: isa.MatMulMx, port: Port, name: str, code: int) -> None:
        view, scale = port.read(name), port.read(f"{name}_scale")
        self.kind = element_type(code)
        if self.kind not in (*_QUANTIZED, Dtype.FLOAT4E2_X4):
            raise UnsupportedError(f"MATMUL_MX of {self.kind.spelling} elements is not documented")
        self.columns = elements(view)
        require_elements(word, f"{name}_scale", scale, self.columns)
        self.rows = _scale_rows(word, scale, view.shape[0], f"{name}_scale")
        self.packed, self.fetch = raw_rows(view)
        self.scale, self.fetch_scale = raw_rows(scale)
        self.values = scratch((view.shape[0], _PACK, self.columns), np.float32)

    def load(self) -> Array:
        """Return the factor's values times their scales."""
        self.fetch()
        self.fetch_scale()
        partitions = self.packed.shape[0]
        if self.kind is Dtype.FLOAT4E2_X4:
            elements_of = self.packed[:, :, None] >> np.arange(0, 16, 4, dtype=np.uint16) & np.uint16(15)
        else:
            elements_of = self.packed.view(np.uint8).reshape(partitions, self.columns, _PACK)
        values = np.take(_table(self.kind), elements_of)
        codes = self.scale[self.rows].astype(np.int32)
        factors = np.where(codes == _NAN_SCALE, np.nan, np.ldexp(1.0, codes - _BIAS)).astype(np.float32)
        np.copyto(self.values, values.transpose(0, 2, 1))
        np.multiply(self.values, np.repeat(factors, _ROWS, axis=0)[:, None, :], self.values)
        return self.values.reshape(_PACK * partitions, self.columns)


@executes(isa.MatMulMx, lasting=True)
def matmul_mx(word: isa.MatMulMx, port: Port) -> Step:
    """Return dst (+)= stationaryᵀ · moving over partitions and packed elements, in fp32."""
    state: PeState = port.pe
    moving = _Side(word, port, "src", word.src_dtype)
    stationary = _Side(word, port, "stationary", word.stationary_dtype)
    dst = port.write("dst")
    if dst.shape[0] != stationary.columns:
        raise refuse(
            word, "stationary columns and output differ", "dst", f"{stationary.columns} partitions", f"{dst.shape[0]}"
        )
    require_elements(word, "dst", dst, moving.columns)
    product = scratch((dst.shape[0], moving.columns), np.float32)
    store = bind_store(product.reshape(dst.shape), dst, word.dst_dtype)
    before, fetch = bind_load(dst, word.dst_dtype)
    adds = bool(word.accumulate)

    def multiply() -> None:
        if state.pending:
            state.flush()
        np.matmul(stationary.load().T, moving.load(), product)
        if adds:
            if fetch is not None:
                fetch()
            np.add(before.reshape(product.shape), product, product)
        store()

    return multiply
