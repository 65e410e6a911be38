"""Piecewise cubics from tables: lookup against a slow reference, special values, folding; the public table."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from emulator import activation_functions
from emulator.activation_tables import PiecewiseCubics, bind_table
from emulator.device import Device
from emulator.errors import InputError
from formats.errors import FormatError, UnsupportedError
from formats.neff import open_neff
from formats.neff.activation import ActivationFunction, ActivationSet, Buckets, Controls
from tests.corpus import files

INF, NAN = float("inf"), float("nan")
# Exponents 2**-2 to 2**2, four buckets each, for positive values; the same again for negative ones; then four for what
# is small or large.
EXPONENTS, PER = range(125, 130), 4
COUNT = len(EXPONENTS) * PER
SMALL_POS, SMALL_NEG, LARGE_POS, LARGE_NEG = range(2 * COUNT, 2 * COUNT + 4)


def bits(value: float) -> int:
    return int(struct.unpack("<I", struct.pack("<f", value))[0])


def tables(pieces: list[tuple[float, ...]], controls: list[tuple[int, int, int]]) -> ActivationSet:
    buckets = b"".join(struct.pack("<5f", *piece) + bytes(12) for piece in pieces)
    words = b"".join((bucket | shift << 11 | log2 << 16).to_bytes(4, "little") + bytes(28)
                     for bucket, shift, log2 in controls)  # fmt: skip
    return ActivationSet("set", 0, (), Buckets(buckets, "b"), Controls(words, "c"), {})


def function(**changes: int) -> ActivationFunction:
    profile = {
        "exp_offset": EXPONENTS[0] - 127, "pwl_control_base_pos": 0, "pwl_control_base_neg": len(EXPONENTS),
        "small_pos_signal_exp_threshold": EXPONENTS[0], "small_neg_signal_exp_threshold": EXPONENTS[0],
        "large_pos_signal_exp_threshold": EXPONENTS[-1], "large_neg_signal_exp_threshold": EXPONENTS[-1] + 1,
        "large_pos_signal_mantissa_threshold": 0x400000, "large_neg_signal_mantissa_threshold": 0,
        "pos_small_signal_pwl_control": SMALL_POS, "neg_small_signal_pwl_control": SMALL_NEG,
        "pos_large_signal_pwl_control": LARGE_POS, "neg_large_signal_pwl_control": LARGE_NEG,
        "fnan_result": bits(-1.0), "fpinf_result": bits(111.0), "fninf_result": bits(222.0), "fzero_result": bits(7.0),
        **changes,
    }  # fmt: skip
    return ActivationFunction(7, "tanh", "set", COUNT, profile)


def numbered() -> ActivationSet:
    """Return tables in which the value of a function is the number of its bucket."""
    controls = [(place * PER, 21, 2) for place in range(2 * len(EXPONENTS))]
    return tables([(float(number), 0.0, 0.0, 0.0, 0.0) for number in range(2 * COUNT + 4)], controls)


def slow(x: float, *, folds: bool = False) -> float:
    """Return the bucket that formats.md 3.10 gives."""
    word = bits(x)
    negative, exponent, mantissa = word >> 31 and not folds, word >> 23 & 0xFF, word & 0x7FFFFF
    if exponent < EXPONENTS[0]:
        return SMALL_NEG if negative else SMALL_POS
    if negative and exponent > EXPONENTS[-1]:
        return LARGE_NEG
    if not negative and (exponent, mantissa) >= (EXPONENTS[-1], 0x400000):
        return LARGE_POS
    place = exponent - EXPONENTS[0] + (len(EXPONENTS) if negative else 0)
    return place * PER + (mantissa >> 21)


def points() -> np.ndarray:
    random = np.random.default_rng(3)
    found = (random.uniform(-1, 1, 4000) * np.exp2(random.uniform(-4, 5, 4000))).astype(np.float32)
    edges = [s * e * m for s in (1, -1) for e in (0.25, 0.5, 1, 2, 4, 8) for m in (1, 1.25, 1.5, 1.75, 1.9999999)]
    return np.concatenate([found, np.array([*edges, 1e-40, -1e-40, 3e38, -3e38], np.float32)])


def test_lookup_is_the_references() -> None:
    x = points()
    got = PiecewiseCubics(function(), numbered()).evaluate(x)
    assert got.dtype == np.float32
    assert got.tolist() == [slow(float(value)) for value in x]


@pytest.mark.parametrize("odd", [0, 1])
def test_folding_uses_the_positive_half(odd: int) -> None:
    x = points()
    made = PiecewiseCubics(function(symmetry_opt_en=1, sym_invert_sign_point=odd), numbered())
    sign = [-1 if odd and value < 0 else 1 for value in x]
    assert made.evaluate(x).tolist() == [s * slow(float(v), folds=True) for s, v in zip(sign, x, strict=True)]
    apart = PiecewiseCubics(function(symmetry_opt_en=1, symmetry_opt_use_neg_region=1), numbered())
    assert apart.evaluate(x).tolist() == [slow(float(value)) for value in x]


def test_special_values_have_their_own_results() -> None:
    x = np.array([0.0, -0.0, INF, -INF, NAN], np.float32)
    assert PiecewiseCubics(function(), numbered()).evaluate(x).tolist() == [7.0, 7.0, 111.0, 222.0, -1.0]


def test_cubics_around_a_point() -> None:
    piece = (0.5, -1.25, 2.0, 0.75, 1.5)
    made = PiecewiseCubics(function(), tables([piece] * (2 * COUNT + 4), [(0, 21, 2)] * 10))
    x = np.array([[1.0, 1.5], [-2.0, 3.0]], np.float32)
    t = x.astype(np.float64) - 1.5
    np.testing.assert_allclose(made.evaluate(x), 0.5 - 1.25 * t + 2 * t**2 + 0.75 * t**3, rtol=1e-6)


def test_one_bucket_needs_no_mantissa() -> None:
    single = tables([(float(n), 0.0, 0.0, 0.0, 0.0) for n in range(2 * COUNT + 4)], [(3, 0, 0)] * 10)
    assert set(PiecewiseCubics(function(), single).evaluate(np.array([1.0, 1.99], np.float32)).tolist()) == {3.0}


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"fma_const_0": 1}, UnsupportedError, "uses fma_const_0"),
        ({"use_multipass": 1}, UnsupportedError, "uses use_multipass"),
        ({"pos_large_signal_pwl_control": 999}, FormatError, "points outside its buckets"),
        ({"pwl_control_base_pos": 60}, FormatError, "points outside its controls"),
        ({"exp_offset": 5}, FormatError, "points outside its controls"),
    ],
)
def test_profiles_that_cannot_be_followed(changes: dict[str, int], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        PiecewiseCubics(function(**changes), numbered())


def test_the_number_at_fault_is_named() -> None:
    with pytest.raises(FormatError, match="neg_large_signal_pwl_control"):
        PiecewiseCubics(function(neg_large_signal_pwl_control=999), numbered())


def test_a_shift_that_would_reach_past_its_buckets() -> None:
    reaching = tables([(0.0,) * 5] * (2 * COUNT + 4), [(0, 20, 2)] * 10)  # three bits of mantissa for four buckets
    with pytest.raises(FormatError, match=r"chooses among more buckets than it has.*21 or more.*20"):
        PiecewiseCubics(function(), reaching)


def test_controls_outside_the_buckets_and_missing_numbers() -> None:
    with pytest.raises(FormatError, match="control points outside"):
        PiecewiseCubics(function(), tables([(0.0,) * 5] * (2 * COUNT + 4), [(2 * COUNT + 2, 21, 2)] * 10))
    short = function()
    del short.profile["fzero_result"]  # type: ignore[attr-defined]
    with pytest.raises(FormatError, match="fzero_result: activation profile is incomplete"):
        PiecewiseCubics(short, numbered())


def test_without_a_table_and_for_copies_the_exact_function() -> None:
    assert bind_table(function()._replace(pieces=0), numbered()) is activation_functions.bind("tanh")
    assert bind_table(function()._replace(name="copy"), numbered()) is activation_functions.COPY


def test_a_device_computes_one_way_or_the_other() -> None:
    with pytest.raises(InputError, match="exact or table, not 'fast'"):
        Device("trn2", act="fast")


# Functions of the public table, their largest relative error, and the range.
PUBLIC = {"exp": (1.2e-5, 40), "tanh": (2.5e-7, 12), "identity": (0, 5), "relu": (0, 5), "square": (0, 5),
          "abs": (0, 5), "sign": (0, 5), "is_finite": (0, 5), "memset_zero": (0, 5)}  # fmt: skip


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_the_public_table_is_as_exact_as_documented(corpus: Path, name: str) -> None:
    (tables_,) = open_neff(files.find(corpus, files.MATMUL_SMALL)).subgraphs[0].activation_sets
    (known,) = (one for one in tables_.functions if one.name == name)
    limit, reach = PUBLIC[name]
    x = (np.random.default_rng(5).uniform(-reach, reach, 20_000)).astype(np.float32).reshape(100, 200)
    exact: Any = np.empty_like(x)
    activation_functions.bind(name)(x, exact, 0.0)
    got = PiecewiseCubics(known, tables_).evaluate(x)
    nonzero = exact != 0
    assert (got[~nonzero] == 0).all()
    error = np.abs(got[nonzero].astype(np.float64) / exact[nonzero] - 1) if nonzero.any() else np.zeros(1)
    assert error.max() <= limit
    if limit:
        assert error.max() > limit / 4  # the table was used, not the library
