"""Operations on the representation of numbers: bitcasts and reduced precision."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from formats.errors import UnsupportedError
from formats.hlo import Instruction
from neurontools.hlo_interpreter.registry import Array, Evaluator, Value, dtype, elementwise, operation

__all__: list[str] = []


@elementwise("reduce-precision")
def reduce_precision(instruction: Instruction, operands: list[Value], _: Evaluator) -> Value:
    """Round to fewer bits of mantissa and exponent: too large is infinite, too small is zero (compiler.md 3.1)."""
    values: Array = operands[0]
    if not np.isinf(np.array(np.inf).astype(values.dtype)):
        raise UnsupportedError(f"%{instruction.name}: reduce-precision of {values.dtype.name} is not modelled")
    facts = ml_dtypes.finfo(values.dtype)  # type: ignore[no-untyped-call]  # it has no types
    exponent, mantissa = int(facts.nexp), int(facts.nmant)
    kind = np.dtype(f"u{values.dtype.itemsize}")
    one = kind.type(1)
    bits = np.ascontiguousarray(values).view(kind).reshape(values.shape)
    sign = bits & (one << kind.type(exponent + mantissa))
    dropped = mantissa - min(instruction.mantissa_bits, mantissa)
    if dropped:
        last = bits >> kind.type(dropped) & one
        # Half of what is dropped, less one, and the last bit that stays: ties to even. A carry goes into the exponent,
        # as it has to.
        bits = (bits + last + ((one << kind.type(dropped - 1)) - one)) & ~((one << kind.type(dropped)) - one)
    if instruction.exponent_bits < exponent:
        bias = (1 << (exponent - 1)) - 1
        reduced = (1 << (instruction.exponent_bits - 1)) - 1
        field = bits & kind.type(((1 << exponent) - 1) << mantissa)
        too_large = field > kind.type((bias + reduced) << mantissa)
        # Exponent 0 of the shorter type: its numbers below the normal ones are zero too.
        too_small = field <= kind.type((bias - reduced) << mantissa)
        infinite = kind.type(((1 << exponent) - 1) << mantissa)
        bits = np.where(too_large, sign | infinite, np.where(too_small, sign, bits)).astype(kind)
    found = bits.view(values.dtype).reshape(values.shape)
    return np.where(np.isnan(values.astype(np.float64)), values, found)


@operation("bitcast-convert")
def bitcast_convert(instruction: Instruction, operands: list[Value], _: Evaluator) -> Value:
    """Take the bits as another type; a change of width adds or takes the last dimension."""
    values, kind = np.ascontiguousarray(operands[0]), dtype(instruction)
    before = instruction.operands[0].shape.element_type.bits
    after = instruction.shape.element_type.bits
    if before == after:
        return values.view(kind).reshape(operands[0].shape)
    if min(before, after) < 8:
        raise UnsupportedError(f"%{instruction.name}: bitcasts between {before} and {after} bits are not modelled")
    return np.frombuffer(values.tobytes(), kind).reshape(instruction.shape.dimensions)


@operation("bitcast")
def bitcast(instruction: Instruction, operands: list[Value], evaluator: Evaluator) -> Value:
    """Take the bytes as another shape; only where no layout turns them round."""
    shapes = (instruction.shape, instruction.operands[0].shape)
    if any(shape.layout is not None and not shape.layout.is_default for shape in shapes):
        raise UnsupportedError(f"%{instruction.name}: bitcasts between layouts are not modelled")
    return np.frombuffer(np.ascontiguousarray(operands[0]).tobytes(), dtype(instruction)).reshape(
        instruction.shape.dimensions
    )
