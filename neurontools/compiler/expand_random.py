"""Expansion of random bits by a stated algorithm: ThreeFry 2x32-20 and Philox 4x32-10 in 32-bit integers.

How a state becomes counters and where the words go in the result is XLA's: compiler.md 3.7.
"""

from __future__ import annotations

from math import prod

import numpy as np

from formats.hlo.random_constants import PARITY, PHILOX, ROTATIONS, WEYL
from neurontools.compiler.element_types import ELEMENT_TYPES, is_integer
from neurontools.compiler.graph import Node, Value
from neurontools.compiler.rewriting import Builder, Rule

__all__ = ["RANDOM", "is_expanded"]

_STATES = (4, 6)  # words: a key of two, a counter of two or four


def is_expanded(node: Node) -> bool:
    """Return whether random bits become integer operations: an algorithm with a state of 32-bit words.

    A state of 64-bit ones is known where it is made of 32-bit words by a bitcast, as JAX makes it.
    """
    made = node.results[1]
    known = made.dtype in ELEMENT_TYPES and is_integer(made.dtype) and ELEMENT_TYPES[made.dtype].given <= 4
    words = _words(node.operands[0])
    return (
        node.attrs["algorithm"] in ("rng_three_fry", "rng_philox")
        and known
        and words is not None
        and words.size in _STATES
    )


def _words(state: Value) -> Value | None:
    """Return the 32-bit words of a state, None where it has none."""
    if state.dtype == "u32" and len(state.shape) == 1:
        return state
    source = state.node
    if state.dtype == "u64" and source.opcode == "bitcast-convert" and source.operands[0].dtype == "u32":
        return source.operands[0]
    return None


def _bitcast(b: Builder, node: Node, operands: list[Value]) -> list[Value] | None:
    """Take what was a bitcast there and back as it was: 64-bit integers would lose their upper words on the way."""
    source = operands[0].node
    if source.opcode != "bitcast-convert":
        return None
    (given,) = source.operands
    result = node.result
    return [given] if (given.dtype, given.shape) == (result.dtype, result.shape) else None


def _random(b: Builder, node: Node, operands: list[Value]) -> list[Value] | None:
    if not is_expanded(node):
        return None
    (state,) = operands
    held = _words(state)
    assert held is not None  # it is expanded
    line = b.reshape(held, (held.size,))
    words = [b.reshape(b.part(line, 0, place, 1), ()) for place in range(held.size)]
    made = node.results[1]
    expand = _threefry_bits if node.attrs["algorithm"] == "rng_three_fry" else _philox_bits
    bits, counter = expand(b, words, made.shape)
    following = [*words[:2], *counter, *words[2 + len(counter) :]]
    after = b.reshape(b.concatenate([b.reshape(one, (1,)) for one in following], 0), held.shape)
    if held is not state:
        after = b.graph.add("bitcast-convert", (after,), state.dtype, state.shape)
    return [after, b.convert(b.reshape(bits, made.shape), made.dtype)]


def _number(b: Builder, number: int, like: Value) -> Value:
    return b.full(number, "u32", like.shape)


def _spread(b: Builder, value: Value, like: Value) -> Value:
    return b.broadcast(value, like.shape, ()) if value.shape != like.shape else value


def _advanced(b: Builder, words: list[Value], by: Value) -> list[Value]:
    """Return a counter, its lowest word first, with a number of 32 bits added to it."""
    found, carry = [], by
    for word in words:
        total = b.op("add", _spread(b, word, by), carry)
        carry = b.convert(b.compare("LT", total, carry), "u32")
        found.append(total)
    return found


def _threefry_bits(b: Builder, state: list[Value], dimensions: tuple[int, ...]) -> tuple[Value, list[Value]]:
    """Return bits and the next counter: two neighbours along a dimension have the words of one counter."""
    shape = list(dimensions) or [1]
    along = next((axis for axis, size in enumerate(shape) if size % 2 == 0), int(np.argmax(shape)))
    half = [-(-size // 2) if axis == along else size for axis, size in enumerate(shape)]
    count = prod(half)
    x, y = _threefry(b, _advanced(b, state[2:4], b.iota("u32", (count,), 0)), state[:2])
    parts = [b.reshape(one, (*half[: along + 1], 1, *half[along + 1 :])) for one in (x, y)]
    joined = b.concatenate(parts, along + 1)
    doubled = b.reshape(joined, [2 * size if axis == along else size for axis, size in enumerate(half)])
    bits = b.slice(doubled, [0] * len(shape), shape)
    return bits, _advanced(b, state[2:4], _number(b, count, state[2]))


def _threefry(b: Builder, counter: list[Value], key: list[Value]) -> tuple[Value, Value]:
    x, y = counter
    parity = b.op("xor", b.op("xor", key[0], key[1]), _number(b, PARITY, key[0]))
    keys = [_spread(b, one, x) for one in (*key, parity)]
    x, y = b.op("add", x, keys[0]), b.op("add", y, keys[1])
    for group in range(5):
        for turn in ROTATIONS[:4] if group % 2 == 0 else ROTATIONS[4:]:
            x = b.op("add", x, y)
            left = b.op("shift-left", y, _number(b, turn, y))
            right = b.op("shift-right-logical", y, _number(b, 32 - turn, y))
            y = b.op("xor", b.op("or", left, right), x)
        x = b.op("add", x, keys[(group + 1) % 3])
        y = b.op("add", b.op("add", y, keys[(group + 2) % 3]), _number(b, group + 1, y))
    return x, y


def _philox_bits(b: Builder, state: list[Value], dimensions: tuple[int, ...]) -> tuple[Value, list[Value]]:
    """Return bits and the next counter: four elements in a row have the words of one counter.

    A state of four words has its key again as the counter's upper half.
    """
    size = prod(dimensions)
    blocks = -(-size // 4)
    upper = state[4:6] if len(state) > 4 else state[:2]
    words = _philox(b, _advanced(b, [*state[2:4], *upper], b.iota("u32", (blocks,), 0)), state[:2])
    rows = b.concatenate([b.reshape(one, (blocks, 1)) for one in words], 1)
    bits = b.part(b.reshape(rows, (4 * blocks,)), 0, 0, size)
    following = _advanced(b, [*state[2:4], *upper], _number(b, blocks, state[2]))
    return bits, following[: len(state) - 2]


def _philox(b: Builder, counter: list[Value], key: list[Value]) -> list[Value]:
    c, keys = counter, [_spread(b, one, counter[0]) for one in key]
    for turn in range(10):
        own = [
            b.op("add", one, _number(b, turn * step & 0xFFFFFFFF, one)) for one, step in zip(keys, WEYL, strict=True)
        ]
        (high0, low0), (high1, low1) = _product(b, c[0], PHILOX[0]), _product(b, c[2], PHILOX[1])
        c = [b.op("xor", b.op("xor", high1, c[1]), own[0]), low1, b.op("xor", b.op("xor", high0, c[3]), own[1]), low0]
    return c


def _product(b: Builder, x: Value, factor: int) -> tuple[Value, Value]:
    """Return the high and the low word of a product of 32-bit numbers, the high one from those of their halves."""

    def upper(one: Value) -> Value:
        return b.op("shift-right-logical", one, _number(b, 16, one))

    def lower(one: Value) -> Value:
        return b.op("and", one, _number(b, 0xFFFF, one))

    def times(one: Value, number: int) -> Value:
        return b.op("multiply", one, _number(b, number, one))

    low, high = lower(x), upper(x)
    one, other = times(low, factor >> 16), times(high, factor & 0xFFFF)
    middle = b.op("add", b.op("add", upper(times(low, factor & 0xFFFF)), lower(one)), lower(other))
    top = b.op("add", b.op("add", times(high, factor >> 16), upper(one)), b.op("add", upper(other), upper(middle)))
    return top, times(x, factor)


RANDOM: dict[str, Rule] = {"bitcast-convert": _bitcast, "rng-bit-generator": _random}
