"""Element-wise instructions against NumPy, over types, access patterns, partition starts, memories and generations."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import neurontools.nki.isa as nisa
import neurontools.nki.language as nl
from tests.nki import reference
from tests.nki.direct import CASES, TARGETS, Layout, dtype_of, layouts, run, seeds, tile, values_of

NUMBERS = st.sampled_from(["float32", "bfloat16", "float16", "int8", "uint8", "int16", "uint16", "int32", "uint32"])
INTEGERS = st.sampled_from(["int8", "uint8", "int16", "uint16", "int32", "uint32"])
WIDE = st.sampled_from(["int32", "uint32"])
ANY = st.sampled_from(TARGETS)
SHAPE = (16, 9)
F32 = np.float32


def shaped(rng: np.random.Generator, dtype: str) -> np.ndarray[Any, Any]:
    return values_of(rng, SHAPE, dtype)


def any_bits(rng: np.random.Generator, dtype: str, shape: tuple[int, ...] = SHAPE) -> np.ndarray[Any, Any]:
    """Return integers of the whole range, its ends and neighbours of powers of two among them."""
    width = 8 * np.dtype(dtype).itemsize
    most = (1 << width) - 1
    ends = np.array([0, 1, most, most >> 1, (most >> 1) + 1, (1 << 24) + 1 & most], np.uint64)
    chosen = np.where(rng.random(shape) < 0.3, rng.choice(ends, shape), rng.integers(0, 1 << width, shape, np.uint64))
    return chosen.astype(f"u{width // 8}").view(dtype)


def same(got: Any, expected: Any) -> None:
    np.testing.assert_array_equal(got.astype(np.float64), expected.astype(np.float64))


@CASES
@given(rng=seeds(), types=st.tuples(NUMBERS, NUMBERS, NUMBERS), op=st.sampled_from(sorted(reference.BINARY)),
       one=layouts(psum=True), other=layouts(), dst=layouts(psum=True), swap=st.booleans(), target=ANY)  # fmt: skip
def test_tensor_tensor_computes_in_fp32_and_casts(
    rng: np.random.Generator, types: tuple[str, str, str], op: str, one: Layout, other: Layout, dst: Layout,
    swap: bool, target: str,
) -> None:  # fmt: skip
    if all(kind in ("int32", "uint32") for kind in types):
        types = (*types[:2], "float32")  # exact integers have a test of their own
    a, b = shaped(rng, types[0]), shaped(rng, types[1])
    b = np.where(b == 0, np.array(3).astype(b.dtype), b) if op in ("divide", "mod", "fmod") else b
    places = (other, one) if swap else (one, other)

    def body() -> Any:
        x, y = (tile(*SHAPE, dtype_of(kind), place) for kind, place in zip(types[:2], places, strict=True))
        out = tile(*SHAPE, dtype_of(types[2]), dst)
        nisa.tensor_tensor(out, x, y, getattr(nl, op), engine=nisa.engine.vector)
        return [(x, a), (y, b)], [out]

    expected = reference.binary(op, a.astype(F32), b.astype(F32))
    same(run(body, target)[0], reference.cast(expected, types[2]))


@CASES
@given(rng=seeds(), types=st.tuples(WIDE, WIDE, WIDE), op=st.sampled_from(reference.INTEGER), one=layouts(),
       other=layouts(), dst=layouts(), target=ANY)  # fmt: skip
def test_tensor_tensor_is_exact_in_32_bits_on_gpsimd(
    rng: np.random.Generator, types: tuple[str, str, str], op: str, one: Layout, other: Layout, dst: Layout, target: str
) -> None:
    a, b = any_bits(rng, types[0]), any_bits(rng, types[1])

    def body() -> Any:
        x, y = tile(*SHAPE, dtype_of(types[0]), one), tile(*SHAPE, dtype_of(types[1]), other)
        out = tile(*SHAPE, dtype_of(types[2]), dst)
        nisa.tensor_tensor(out, x, y, getattr(nl, op))
        return [(x, a), (y, b)], [out]

    same(run(body, target)[0], reference.wrapped(op, a, b, types[2]))


@CASES
@given(rng=seeds(), dtype=INTEGERS, op=st.sampled_from(reference.BITS), one=layouts(psum=True), other=layouts(),
       dst=layouts(psum=True), target=ANY)  # fmt: skip
def test_tensor_tensor_takes_bit_patterns(
    rng: np.random.Generator, dtype: str, op: str, one: Layout, other: Layout, dst: Layout, target: str
) -> None:
    a, b = any_bits(rng, dtype), any_bits(rng, dtype)
    if op.endswith("shift"):
        b = rng.integers(0, 8 * a.dtype.itemsize, SHAPE).astype(dtype)

    def body() -> Any:
        x, y, out = (tile(*SHAPE, dtype_of(dtype), place) for place in (one, other, dst))
        nisa.tensor_tensor(out, x, y, getattr(nl, op))
        return [(x, a), (y, b)], [out]

    same(run(body, target)[0], reference.bits(op, a, b))


@CASES
@given(rng=seeds(), exponents=st.sampled_from(["float32", "int32"]), dst=layouts(), target=ANY)
def test_power_runs_on_gpsimd(rng: np.random.Generator, exponents: str, dst: Layout, target: str) -> None:
    a, b = rng.uniform(0.25, 4, SHAPE).astype(F32), rng.integers(-3, 4, SHAPE).astype(exponents)

    def body() -> Any:
        x, y, out = tile(*SHAPE, nl.float32), tile(*SHAPE, dtype_of(exponents)), tile(*SHAPE, nl.float32, dst)
        nisa.tensor_tensor(out, x, y, nl.power)
        return [(x, a), (y, b)], [out]

    np.testing.assert_allclose(run(body, target)[0], a.astype(np.float64) ** b, rtol=1e-6)


@CASES
@given(rng=seeds(), types=st.tuples(NUMBERS, NUMBERS), op0=st.sampled_from(reference.EXACT),
       op1=st.sampled_from([None, *reference.EXACT]), columns=st.tuples(st.booleans(), st.booleans()),
       reverse=st.tuples(st.booleans(), st.booleans()), src=layouts(psum=True), dst=layouts(psum=True),
       pointers=layouts(psum=True), target=ANY)  # fmt: skip
def test_tensor_scalar(
    rng: np.random.Generator, types: tuple[str, str], op0: str, op1: str | None, columns: tuple[bool, bool],
    reverse: tuple[bool, bool], src: Layout, dst: Layout, pointers: Layout, target: str,
) -> None:  # fmt: skip
    data = shaped(rng, types[0])
    given_columns = (rng.integers(1, 9, (2, 16, 1)) * 0.375).astype(F32)
    if "mod" in f"{op0} {op1}":
        data, reverse = np.where(data == 0, np.array(1).astype(data.dtype), data), (False, False)

    def body() -> Any:
        x, out = tile(*SHAPE, dtype_of(types[0]), src), tile(*SHAPE, dtype_of(types[1]), dst)
        first, second = (tile(16, 1, nl.float32, pointers) for _ in range(2))
        a, b = (one if column else 1.125 for one, column in zip((first, second), columns, strict=True))
        nisa.tensor_scalar(out, x, getattr(nl, op0), a, reverse[0], op1 and getattr(nl, op1), b if op1 else None,
                           reverse[1])  # fmt: skip
        return [(x, data), (first, given_columns[0]), (second, given_columns[1])], [out]

    expected = data.astype(F32)
    for op, column, values, turned in zip((op0, op1), columns, given_columns, reverse, strict=True):
        if op:
            operand = np.broadcast_to(values if column else F32(1.125), SHAPE)
            expected = reference.binary(op, *((operand, expected) if turned else (expected, operand)))
    same(run(body, target)[0], reference.cast(expected, types[1]))


@CASES
@given(rng=seeds(), dtype=NUMBERS, op=st.sampled_from(sorted(reference.UNARY)), src=layouts(psum=True), target=ANY)
def test_tensor_scalar_with_one_operand(
    rng: np.random.Generator, dtype: str, op: str, src: Layout, target: str
) -> None:
    data = shaped(rng, dtype)

    def body() -> Any:
        x, out = tile(*SHAPE, dtype_of(dtype), src), tile(*SHAPE, nl.float32)
        nisa.tensor_scalar(out, x, getattr(nl, op), None)
        return [(x, data)], [out]

    same(run(body, target)[0], reference.unary(op, data.astype(F32)))


@CASES
@given(rng=seeds(), dtype=INTEGERS, ops=st.lists(st.sampled_from(reference.BITS), min_size=1, max_size=2),
       operands=st.tuples(st.integers(0, 7), st.integers(0, 7)), columns=st.tuples(st.booleans(), st.booleans()),
       kind=WIDE, src=layouts(psum=True), dst=layouts(psum=True), target=ANY)  # fmt: skip
def test_tensor_scalar_takes_bit_patterns(
    rng: np.random.Generator, dtype: str, ops: list[str], operands: tuple[int, int], columns: tuple[bool, bool],
    kind: str, src: Layout, dst: Layout, target: str,
) -> None:  # fmt: skip
    data, values = any_bits(rng, dtype), rng.integers(0, 8, (2, 16, 1)).astype(kind)

    def body() -> Any:
        x, out = tile(*SHAPE, dtype_of(dtype), src), tile(*SHAPE, dtype_of(dtype), dst)
        pointers = [tile(16, 1, dtype_of(kind)) for _ in range(2)]
        a, b = (one if column else operand for one, column, operand in zip(pointers, columns, operands, strict=True))
        more = {"op1": getattr(nl, ops[1]), "operand1": b} if len(ops) > 1 else {}
        nisa.tensor_scalar(out, x, getattr(nl, ops[0]), a, **more)
        return [(x, data), *zip(pointers, values, strict=True)], [out]

    expected = data
    chosen = [value if column else operand for value, column, operand in zip(values, columns, operands, strict=True)]
    for op, operand in zip(ops, chosen, strict=False):
        expected = reference.bits(op, expected, operand)
    same(run(body, target)[0], expected)


@CASES
@given(rng=seeds(), types=st.tuples(NUMBERS, NUMBERS, NUMBERS), ops=st.tuples(*[st.sampled_from(reference.EXACT)] * 2),
       column=st.booleans(), reverse=st.tuples(st.booleans(), st.booleans()), src=layouts(psum=True), other=layouts(),
       dst=layouts(psum=True), target=ANY)  # fmt: skip
def test_scalar_tensor_tensor(
    rng: np.random.Generator, types: tuple[str, str, str], ops: tuple[str, str], column: bool,
    reverse: tuple[bool, bool], src: Layout, other: Layout, dst: Layout, target: str,
) -> None:  # fmt: skip
    a, b = shaped(rng, types[0]), shaped(rng, types[1])
    values = (rng.integers(1, 9, (16, 1)) * 0.375).astype(F32)
    if any("mod" in op for op in ops):
        b, reverse = np.where(b == 0, np.array(1).astype(b.dtype), b), (False, False)

    def body() -> Any:
        x, y, out = tile(*SHAPE, dtype_of(types[0]), src), tile(*SHAPE, dtype_of(types[1]), other), tile(
            *SHAPE, dtype_of(types[2]), dst)  # fmt: skip
        operand = tile(16, 1, nl.float32)
        nisa.scalar_tensor_tensor(out, x, getattr(nl, ops[0]), operand if column else -1.5, getattr(nl, ops[1]), y,
                                  *reverse)  # fmt: skip
        return [(x, a), (y, b), (operand, values)], [out]

    expected = a.astype(F32)
    for op, operand, turned in zip(ops, (values if column else F32(-1.5), b.astype(F32)), reverse, strict=True):
        operand = np.broadcast_to(operand, SHAPE)
        expected = reference.binary(op, *((operand, expected) if turned else (expected, operand)))
    same(run(body, target)[0], reference.cast(expected, types[2]))


SCANS = st.sampled_from(["add", "subtract", "multiply", "maximum", "minimum", "less", "logical_or"])


@CASES
@given(rng=seeds(), types=st.tuples(NUMBERS, NUMBERS, NUMBERS), ops=st.tuples(SCANS, SCANS), column=st.booleans(),
       reverse=st.tuples(st.booleans(), st.booleans()), one=layouts(psum=True), other=layouts(),
       dst=layouts(psum=True), target=ANY)  # fmt: skip
def test_tensor_tensor_scan(
    rng: np.random.Generator, types: tuple[str, str, str], ops: tuple[str, str], column: bool,
    reverse: tuple[bool, bool], one: Layout, other: Layout, dst: Layout, target: str,
) -> None:  # fmt: skip
    a, b = shaped(rng, types[0]), shaped(rng, types[1])
    start = rng.normal(size=(16, 1)).astype(F32)

    def body() -> Any:
        x, y, out = tile(*SHAPE, dtype_of(types[0]), one), tile(*SHAPE, dtype_of(types[1]), other), tile(
            *SHAPE, dtype_of(types[2]), dst)  # fmt: skip
        initial = tile(16, 1, nl.float32)
        nisa.tensor_tensor_scan(out, x, y, initial if column else 0.7, getattr(nl, ops[0]), getattr(nl, ops[1]),
                                *reverse)  # fmt: skip
        return [(x, a), (y, b), (initial, start)], [out]

    got = run(body, target)[0]
    previous = start[:, 0] if column else np.full(16, F32(0.7))
    for i in range(SHAPE[1]):
        x, y = a[:, i].astype(F32), b[:, i].astype(F32)
        middle = reference.binary(ops[0], *((previous, x) if reverse[0] else (x, previous)))
        previous = reference.binary(ops[1], *((y, middle) if reverse[1] else (middle, y)))
        same(got[:, i], reference.cast(previous, types[2]))


@CASES
@given(rng=seeds(), types=st.tuples(NUMBERS, st.sampled_from(["float32", "bfloat16", "float16"])),
       src=layouts(psum=True), dst=layouts(psum=True), target=ANY)  # fmt: skip
def test_reciprocal(rng: np.random.Generator, types: tuple[str, str], src: Layout, dst: Layout, target: str) -> None:
    data = shaped(rng, types[0])
    data = np.where(data == 0, np.array(3).astype(data.dtype), data)

    def body() -> Any:
        x, out = tile(*SHAPE, dtype_of(types[0]), src), tile(*SHAPE, dtype_of(types[1]), dst)
        nisa.reciprocal(out, x)
        return [(x, data)], [out]

    same(run(body, target)[0], reference.cast(F32(1) / data.astype(F32), types[1]))
