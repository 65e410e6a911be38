"""ALU operators against Python's own numbers and math."""

from __future__ import annotations

import math
import operator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator import alu
from formats.errors import UnsupportedError
from formats.isa import AluOp

FLOATS = st.floats(width=32, allow_nan=False, allow_infinity=False)
INT32 = st.integers(-(1 << 31), (1 << 31) - 1)
UINT32 = st.integers(0, (1 << 32) - 1)

# What each operator computes on Python floats; one rounding to fp32 follows.
REFERENCE = {
    AluOp.BYPASS: lambda a, b: a,
    AluOp.ADD: operator.add,
    AluOp.SUBTRACT: operator.sub,
    AluOp.MULTIPLY: operator.mul,
    AluOp.DIVIDE: lambda a, b: a / b if b else math.copysign(math.inf, a) * math.copysign(1, b) if a else math.nan,
    AluOp.MAX: max,
    AluOp.MIN: min,
    AluOp.FMOD: lambda a, b: math.fmod(a, b) if b else math.nan,
    AluOp.MOD: lambda a, b: a % b if b else math.nan,
    AluOp.EQUAL: operator.eq,
    AluOp.NOT_EQUAL: operator.ne,
    AluOp.GREATER: operator.gt,
    AluOp.GREATER_EQUAL: operator.ge,
    AluOp.LESS: operator.lt,
    AluOp.LESS_EQUAL: operator.le,
    AluOp.LOGICAL_AND: lambda a, b: bool(a) and bool(b),
    AluOp.LOGICAL_OR: lambda a, b: bool(a) or bool(b),
    AluOp.LOGICAL_XOR: lambda a, b: bool(a) != bool(b),
    AluOp.LOGICAL_NOT: lambda a, b: not a,
    AluOp.ABS_MAX: lambda a, b: a if abs(a) > abs(b) else b,
    AluOp.ABS_MIN: lambda a, b: a if abs(a) < abs(b) else b,
    AluOp.ABS: lambda a, b: abs(a),
    AluOp.SQUARE: lambda a, b: a * a,
    AluOp.RELU: lambda a, b: max(a, 0.0),
    AluOp.SIGN: lambda a, b: (a > 0) - (a < 0),
    AluOp.NEGATIVE: lambda a, b: -a,
    AluOp.RECIPROCAL: lambda a, b: 1 / a if a else math.copysign(math.inf, a),
}
# Two roundings, or a library function: compared with a tolerance below.
APPROXIMATE = {AluOp.RSQRT, AluOp.POWER}


def compute(op: AluOp, a: float, b: float) -> np.float32:
    out = np.empty(1, np.float32)
    with np.errstate(all="ignore"):
        alu.float32(op)(np.array([a], np.float32), np.float32(b), out)
    return out[0]


def test_every_operator_has_a_reference_or_a_reason() -> None:
    assert set(REFERENCE) | APPROXIMATE | alu.BITWISE == set(AluOp)


@pytest.mark.parametrize("op", REFERENCE, ids=lambda op: op.name)
@given(a=FLOATS, b=FLOATS)
def test_fp32_operators_round_once(op: AluOp, a: float, b: float) -> None:
    with np.errstate(all="ignore"):
        expected = np.float32(REFERENCE[op](a, b))
    got = compute(op, a, b)
    if op in (AluOp.MOD, AluOp.FMOD) and np.isfinite(expected):
        # The remainder itself is exact in fp32; a result next to the divisor may round to it.
        assert abs(float(got) - float(expected)) <= abs(b) * 2.0**-23
    else:
        assert got == expected or (np.isnan(got) and np.isnan(expected))


@given(a=st.floats(2.0**-100, 2.0**100, width=32), b=st.floats(-3, 3, width=32))
def test_power_and_rsqrt_are_within_two_units(a: float, b: float) -> None:
    assert compute(AluOp.RSQRT, a, 0) == pytest.approx(1 / math.sqrt(a), rel=2.5e-7)
    exact = a**b
    if 1e-37 < exact < 1e38:
        assert compute(AluOp.POWER, a, b) == pytest.approx(exact, rel=2.5e-7)


@given(seed=st.integers(0, 1 << 30), special=st.booleans(), single=st.booleans(), place=st.sampled_from("oab"))
def test_remainders_of_tiles_keep_every_bit(seed: int, special: bool, single: bool, place: str) -> None:
    random = np.random.default_rng(seed)
    a, b = (random.normal(size=(8, 40)) * 10.0 ** random.integers(-3, 7) for _ in range(2))
    a = np.where(random.random(a.shape) < 0.3, b * random.integers(-3, 4, a.shape), a).astype(np.float32)
    b = b.astype(np.float32)
    if special:
        choice = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-44, -1e-44], np.float32)
        a, b = (np.where(random.random(a.shape) < 0.1, random.choice(choice, a.shape), each) for each in (a, b))
    divisor = b[0, 0] if single else b
    with np.errstate(all="ignore"):
        expected = np.array([math_mod(x, y) for x, y in np.broadcast(a, divisor)], np.float32).reshape(a.shape)
        out = a if place == "a" else b if place == "b" and not single else np.empty_like(a)
        alu.float32(AluOp.MOD)(a, divisor, out)
    assert np.array_equal(out, expected, equal_nan=True)
    numbers = ~np.isnan(expected)
    assert np.array_equal(np.signbit(out[numbers]), np.signbit(expected[numbers]))


def math_mod(a: np.float32, b: np.float32) -> float:
    """Give a remainder with the sign of the divisor."""
    if math.isnan(a) or math.isnan(b) or math.isinf(a) or b == 0:
        return math.nan
    rest = np.float32(math.fmod(a, b))
    if rest == 0:
        return math.copysign(0.0, b)
    return float(rest) if (rest < 0) == (b < 0) else float(rest + b)


@pytest.mark.parametrize("op", [AluOp.LOGICAL_AND, AluOp.LOGICAL_OR, AluOp.LOGICAL_XOR, AluOp.MOD, AluOp.FMOD])
def test_either_operand_may_be_one_number(op: AluOp) -> None:
    tile = np.array([[0.0, -0.0, 1.5, -2.5], [np.inf, 1e-44, -1.0, 7.0]], np.float32)
    for number in (np.float32(0.0), np.float32(-3.0), np.float32(2.0)):
        full, got, expected = np.full_like(tile, number), np.empty_like(tile), np.empty_like(tile)
        with np.errstate(all="ignore"):
            for a, b in ((tile, number), (number, tile)):
                alu.float32(op)(a, b, got)
                alu.float32(op)(full if a is number else a, full if b is number else b, expected)
                assert np.array_equal(got, expected, equal_nan=True)


def test_max_keeps_nan_so_that_bytes_never_written_show() -> None:
    for op in (AluOp.MAX, AluOp.MIN, AluOp.ABS_MAX, AluOp.ABS_MIN):
        assert np.isnan(compute(op, math.nan, 1.0)) and np.isnan(compute(op, 1.0, math.nan))


@pytest.mark.parametrize("op", [AluOp.ADD, AluOp.SUBTRACT, AluOp.MULTIPLY])
@given(a=INT32 | UINT32, b=INT32 | UINT32)
def test_integers_wrap_at_32_bits(op: AluOp, a: int, b: int) -> None:
    function = alu.int64(op)
    assert function is not None
    out = np.empty(1, np.int64)
    with np.errstate(all="ignore"):
        function(np.array([a], np.int64), np.int64(b), out)
    assert int(out[0]) % (1 << 32) == REFERENCE[op](a, b) % (1 << 32)


@pytest.mark.parametrize(
    "op",
    [
        AluOp.MAX,
        AluOp.MIN,
        AluOp.EQUAL,
        AluOp.NOT_EQUAL,
        AluOp.LESS,
        AluOp.LESS_EQUAL,
        AluOp.GREATER,
        AluOp.GREATER_EQUAL,
        AluOp.LOGICAL_AND,
        AluOp.LOGICAL_OR,
        AluOp.LOGICAL_XOR,
        AluOp.LOGICAL_NOT,
        AluOp.ABS,
        AluOp.SIGN,
        AluOp.NEGATIVE,
        AluOp.RELU,
        AluOp.ABS_MAX,
        AluOp.ABS_MIN,
    ],
)
@given(a=INT32, b=INT32)
def test_integers_compare_exactly(op: AluOp, a: int, b: int) -> None:
    function = alu.int64(op)
    assert function is not None
    out = np.empty(1, np.int64)
    function(np.array([a], np.int64), np.int64(b), out)
    assert int(out[0]) == int(REFERENCE[op](a, b))


@given(a=INT32, b=INT32.filter(bool), e=st.integers(0, 40))
def test_integer_remainders_and_powers(a: int, b: int, e: int) -> None:
    out = np.empty(1, np.int64)
    for op, expected in ((AluOp.MOD, a % b), (AluOp.FMOD, int(math.copysign(abs(a) % abs(b), a)))):
        alu.int64(op)(np.array([a], np.int64), np.int64(b), out)  # type: ignore[misc]
        assert int(out[0]) == expected
    alu.int64(AluOp.POWER)(np.array([a], np.int64), np.int64(e), out)  # type: ignore[misc]
    assert int(out[0]) % (1 << 32) == pow(a, e, 1 << 32)


def test_integer_results_that_are_not_public_are_refused() -> None:
    a, out = np.array([5], np.int64), np.empty(1, np.int64)
    for op, b in ((AluOp.MOD, 0), (AluOp.FMOD, 0), (AluOp.POWER, -1)):
        with pytest.raises(UnsupportedError, match="not modelled"):
            alu.int64(op)(a, np.int64(b), out)  # type: ignore[misc]
    assert alu.int64(AluOp.DIVIDE) is None and alu.int64(AluOp.RSQRT) is None


@pytest.mark.parametrize("width", [8, 16, 32])
@given(a=UINT32, b=UINT32, count=st.integers(0, 70))
def test_bit_patterns(width: int, a: int, b: int, count: int) -> None:
    mask = (1 << width) - 1
    dtype = np.dtype(f"u{width // 8}")
    x, y, out = np.array([a & mask], dtype), np.array([b & mask], dtype), np.empty(1, dtype)
    expected = {AluOp.BITWISE_AND: a & b, AluOp.BITWISE_OR: a | b, AluOp.BITWISE_XOR: a ^ b, AluOp.INVERT: ~a}
    for op, value in expected.items():
        alu.bitwise(op)(x, y, out)
        assert int(out[0]) == value & mask
    shift = dtype.type(count)
    alu.bitwise(AluOp.LEFT_SHIFT)(x, shift, out)
    assert int(out[0]) == ((a & mask) << count) & mask
    alu.bitwise(AluOp.RIGHT_SHIFT)(x, shift, out)
    assert int(out[0]) == (a & mask) >> count


def test_unknown_codes_and_mixed_kinds_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="0x3 is not known"):
        alu.alu_op(3)
    with pytest.raises(UnsupportedError, match="BITWISE_AND works on integer bit patterns"):
        alu.float32(AluOp.BITWISE_AND)
    with pytest.raises(UnsupportedError, match="ADD computes numbers"):
        alu.bitwise(AluOp.ADD)
