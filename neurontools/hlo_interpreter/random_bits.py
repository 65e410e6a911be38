"""Counter-based random bits: Philox 4x32-10 and ThreeFry 2x32-20, as published by Salmon et al. (2011).

How a state becomes counters and where the words go in the result is XLA's: compiler.md 3.7.
"""

from __future__ import annotations

import math

import numpy as np

from formats.errors import UnsupportedError
from formats.hlo import Instruction, dtype_of
from formats.hlo.random_constants import PARITY, PHILOX, ROTATIONS, WEYL
from neurontools.hlo_interpreter.numbers import rounded
from neurontools.hlo_interpreter.registry import Array, Evaluator, Value, dtype, operation

__all__ = ["philox", "threefry"]

_U32 = np.uint32
_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)


def threefry(counter: tuple[Array, Array], key: tuple[int, int]) -> tuple[Array, Array]:
    """Return two words of 32 bits for each counter of two words."""
    keys = [_U32(key[0]), _U32(key[1]), _U32(key[0] ^ key[1] ^ PARITY)]
    a, b = counter[0] + keys[0], counter[1] + keys[1]
    for group in range(5):
        for turn in ROTATIONS[:4] if group % 2 == 0 else ROTATIONS[4:]:
            a = a + b
            b = ((b << _U32(turn)) | (b >> _U32(32 - turn))) ^ a
        a = a + keys[(group + 1) % 3]
        b = b + keys[(group + 2) % 3] + _U32(group + 1)
    return a, b


def philox(counter: list[Array], key: tuple[int, int]) -> list[Array]:
    """Return four words of 32 bits for each counter of four words."""
    c, (k0, k1) = counter, key
    for _ in range(10):
        first = c[0].astype(np.uint64) * np.uint64(PHILOX[0])
        second = c[2].astype(np.uint64) * np.uint64(PHILOX[1])
        high0, low0 = (first >> _HALF).astype(_U32), (first & _LOW).astype(_U32)
        high1, low1 = (second >> _HALF).astype(_U32), (second & _LOW).astype(_U32)
        c = [high1 ^ c[1] ^ _U32(k0), low1, high0 ^ c[3] ^ _U32(k1), low0]
        k0, k1 = (k0 + WEYL[0]) & 0xFFFFFFFF, (k1 + WEYL[1]) & 0xFFFFFFFF
    return c


@operation("rng-bit-generator")
def rng_bit_generator(instruction: Instruction, operands: list[Value], _: Evaluator) -> Value:
    """Return the next state and random bits.  The default algorithm is Philox, as on a CPU."""
    state = np.asarray(operands[0])
    shape = instruction.shape.tuple_shapes[1]
    bits = shape.element_type.bits
    if not (shape.element_type.is_integral and bits in (8, 16, 32, 64)):
        raise UnsupportedError(f"%{instruction.name}: random bits of {shape.element_type.text} are not modelled")
    words = state.view(np.uint64) if state.dtype != np.uint64 else state
    if instruction.rng_algorithm == "rng_three_fry":
        found, after = _threefry_bits(words, shape.dimensions, bits)
    else:
        found, after = _philox_bits(words, shape.size, bits)
    unsigned = found.astype(np.dtype(f"u{bits // 8}")).reshape(shape.dimensions)
    return after.view(state.dtype).reshape(state.shape), unsigned.view(dtype_of(shape.element_type))


def _philox_bits(state: Array, count: int, bits: int) -> tuple[Array, Array]:
    """Return four words for each counter of 128 bits, which number on from the state, and the next state.

    A state of two words has its key again as the counter's upper half.
    """
    key = int(state[0])
    start = int(state[1]) | (int(state[2] if len(state) > 2 else state[0]) << 64)
    each = 2 if bits == 64 else 4
    blocks = -(-count // each)
    low = np.uint64(start & (1 << 64) - 1) + np.arange(blocks, dtype=np.uint64)
    carry = (low < np.uint64(start & (1 << 64) - 1)).astype(np.uint64)
    high = np.uint64(start >> 64) + carry
    words = philox(
        [(low & _LOW).astype(_U32), (low >> _HALF).astype(_U32), (high & _LOW).astype(_U32),
         (high >> _HALF).astype(_U32)], (key & 0xFFFFFFFF, key >> 32)
    )  # fmt: skip
    if bits == 64:
        found = np.stack([_joined(words[0], words[1]), _joined(words[2], words[3])], axis=-1)
    else:
        found = np.stack(words, axis=-1)
    end = (start + blocks) & ((1 << 128) - 1)
    after = state.copy()
    after[1] = end & ((1 << 64) - 1)
    if len(state) > 2:
        after[2] = end >> 64
    return found.reshape(-1)[:count], after


def _joined(low: Array, high: Array) -> Array:
    return low.astype(np.uint64) | (high.astype(np.uint64) << _HALF)


def _threefry_bits(state: Array, dimensions: tuple[int, ...], bits: int) -> tuple[Array, Array]:
    """Give 64 bits to each element, or 32 to each of two neighbours along the first even dimension.

    Where none is even it is the first of the longest, and the last word goes.
    """
    key, start = int(state[0]), state[1]
    shape = list(dimensions) or [1]
    along = next((dim for dim, size in enumerate(shape) if size % 2 == 0), int(np.argmax(shape)))
    half = [-(-size // 2) if dim == along and bits != 64 else size for dim, size in enumerate(shape)]
    counter = start + np.arange(math.prod(half), dtype=np.uint64)
    a, b = threefry(
        ((counter & _LOW).astype(_U32), (counter >> _HALF).astype(_U32)), (key & 0xFFFFFFFF, key >> 32)
    )  # fmt: skip
    after = state.copy()
    after[1] = start + np.uint64(math.prod(half))
    if bits == 64:
        return _joined(a, b), after
    pairs = np.stack([a.reshape(half), b.reshape(half)], axis=along + 1)
    doubled = [2 * size if dim == along else size for dim, size in enumerate(half)]
    found = pairs.reshape(doubled)[tuple(slice(0, size) for size in shape)]
    return found.reshape(-1), after


@operation("rng")
def rng(instruction: Instruction, operands: list[Value], _: Evaluator) -> Value:
    """Refuse random numbers whose seed nobody states: no two implementations agree on them."""
    raise UnsupportedError(
        f"%{instruction.name}: rng takes its seed from the device; rng-bit-generator has a state that is known"
    )


@operation("rng-get-and-update-state")
def rng_state(instruction: Instruction, operands: list[Value], evaluator: Evaluator) -> Value:
    """Refuse the device's own state for the same reason."""
    return rng(instruction, operands, evaluator)


@operation("stochastic-convert")
def stochastic_convert(instruction: Instruction, operands: list[Value], _: Evaluator) -> Value:
    """Round up where the random bits are below the share of the distance to the next number."""
    if instruction.shape.element_type.is_float:
        raise UnsupportedError(f"%{instruction.name}: stochastic-convert to floating point is not modelled")
    values, random = operands
    whole = np.trunc(values.astype(np.float64))
    share = np.abs(values.astype(np.float64) - whole)
    threshold = np.ldexp(share, 8 * random.dtype.itemsize)
    up = random.astype(np.float64) < threshold
    return rounded(whole + np.where(up, np.copysign(1, values.astype(np.float64)), 0), dtype(instruction))
