"""Random numbers: the documented recurrence, states that go out and in, distributions, seeds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import neurontools.nki as nki
import neurontools.nki.isa as nisa
import neurontools.nki.language as nl
from neurontools.nki import NkiValidationError
from tests.nki.direct import CASES, TARGETS, Layout, dtype_of, layouts, run, seeds, tile, values_of
from tests.nki.support import trace_body

MASK = 0xFFFFFFFF


def xorwow(state: list[int], count: int) -> tuple[list[int], list[int]]:
    """Return numbers and the state after them. Source: Marsaglia, Xorshift RNGs (2003), the generator xorwow."""
    x, y, z, w, v, d = state
    numbers = []
    for _ in range(count):
        t = (x ^ (x >> 2)) & MASK
        x, y, z, w = y, z, w, v
        v = ((v ^ (v << 4)) ^ (t ^ (t << 1))) & MASK
        d = (d + 362437) & MASK
        numbers.append((d + v) & MASK)
    return numbers, [x, y, z, w, v, d]


@CASES
@given(rng=seeds(), count=st.integers(1, 9), start=st.sampled_from([0, 32, 96]), target=st.sampled_from(TARGETS[1:]),
       dtype=st.sampled_from(["uint32", "int16", "uint8"]))  # fmt: skip
def test_gpsimd_runs_one_generator_per_lane(
    rng: np.random.Generator, count: int, start: int, target: str, dtype: str
) -> None:
    states = rng.integers(0, 2**32, (16, 6), np.uint32)

    def body() -> Any:
        given, after, out = (
            nl.ndarray((start + 16, n), kind)[start:]
            for n, kind in ((6, nl.uint32), (6, nl.uint32), (count, dtype_of(dtype)))
        )
        nisa.rand_set_state(given)
        nisa.rng(out, engine=nisa.gpsimd_engine)
        nisa.rand_get_state(after)
        return [(given, states)], [out, after]

    out, after = run(body, target)
    for p in range(16):
        numbers, left = xorwow([int(one) for one in states[p]], count)
        assert out[p].tolist() == np.array(numbers, np.uint32).astype(dtype).tolist() and after[p].tolist() == left


@CASES
@given(rng=seeds(), count=st.integers(1, 9))
def test_vector_runs_four_generators_per_lane(rng: np.random.Generator, count: int) -> None:
    states = rng.integers(0, 2**32, (16, 24), np.uint32)

    def body() -> Any:
        given, out = tile(16, 24, nl.uint32), tile(16, count, nl.uint32)
        nisa.rand_set_state(given, engine=nisa.vector_engine)
        nisa.rng(out)
        return [(given, states)], [out]

    (out,) = run(body, "trn3")
    for p in range(16):
        lanes = [xorwow([int(one) for one in states[p, 6 * g : 6 * g + 6]], 3)[0] for g in range(4)]
        assert out[p].tolist() == [lanes[i % 4][i // 4] for i in range(count)]


@CASES
@given(rng=seeds(), low=st.floats(-5, 0), width=st.floats(0.5, 5), column=st.booleans())
def test_rand2_stays_between_its_bounds(rng: np.random.Generator, low: float, width: float, column: bool) -> None:
    lows = rng.uniform(-3, 3, (16, 1)).astype(np.float32)

    def body() -> Any:
        first, last, out = tile(16, 1, nl.float32), tile(16, 1, nl.float32), tile(16, 64, nl.float32)
        nisa.rand2(out, first if column else low, last if column else low + width)
        return [(first, lows), (last, lows + 1)], [out]

    (out,) = run(body, "trn3")
    smallest, largest = (lows, lows + 1) if column else (np.float32(low), np.float32(low + width))
    assert (out >= smallest).all() and (out <= largest).all() and len(np.unique(out)) > 900


@CASES
@given(rng=seeds(), seed=st.integers(0, 2**32 - 1), dtype=st.sampled_from(["float32", "bfloat16", "int32", "uint8"]),
       chances=st.sampled_from(["number", "float32", "bfloat16"]),
       src=layouts(psum=True), dst=layouts(psum=True), target=st.sampled_from(TARGETS))  # fmt: skip
def test_one_seed_gives_one_sequence_and_dropout_compares_it_with_its_chance(
    rng: np.random.Generator, seed: int, dtype: str, chances: str, src: Layout, dst: Layout, target: str
) -> None:
    data = values_of(rng, (16, 9), dtype) + np.array(50).astype(dtype)
    chances = "float32" if "int" in dtype and chances == "bfloat16" else chances
    columns = rng.choice([0.0, 0.25, 0.5, 1.0], (16, 1)).astype("float32" if chances == "number" else chances)

    def body() -> Any:
        first, bits, again = (tile(*shape, nl.uint32) for shape in ((1, 1), (16, 9), (16, 9)))
        source = tile(16, 9, dtype_of(dtype), src)
        out, chance = tile(16, 9, dtype_of(dtype), dst._replace(start=0)), tile(16, 1, dtype_of(str(columns.dtype)))
        for call in (lambda: nisa.rng(bits), lambda: nisa.rng(again), lambda: nisa.dropout(
                out, source, 0.75 if chances == "number" else chance)):  # fmt: skip
            nisa.set_rng_seed(first)
            call()
        return [(first, np.array([[seed]], np.uint32)), (source, data), (chance, columns)], [bits, again, out]

    bits, again, out = run(body, target)
    assert (bits == again).all() and len(np.unique(bits)) > 140
    chance = np.float64(0.75) if chances == "number" else columns.astype(np.float64)
    assert (out == np.where((bits >> 8) * 2.0**-24 < chance, np.array(0).astype(dtype), data)).all()


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int32"])
@pytest.mark.parametrize("target", TARGETS)
def test_dropout(dtype: str, target: str) -> None:
    data = np.arange(1, 128 * 64 + 1).reshape(128, 64).astype(dtype)
    chances = np.repeat(np.float32([0.0, 0.25, 0.75, 1.0]), 32).reshape(128, 1)

    def body() -> Any:
        source, out = tile(128, 64, dtype_of(dtype)), tile(128, 64, dtype_of(dtype))
        chance, half = tile(128, 1, nl.float32), tile(128, 64, dtype_of(dtype))
        nisa.dropout(out, source, chance)
        nisa.dropout(half, source, 0.5)
        return [(source, data), (chance, chances)], [out, half]

    out, half = run(body, target)
    for one in (out, half):
        assert ((one == 0) | (one == data)).all()
    shares = (out == 0).reshape(4, -1).mean(axis=1)
    assert shares[0] == 0 and shares[3] == 1 and abs(shares[1] - 0.25) < 0.05 and abs(shares[2] - 0.75) < 0.05
    assert abs((half == 0).mean() - 0.5) < 0.03


@pytest.mark.parametrize("target", TARGETS)
def test_a_seed_repeats_and_numbers_are_even(target: str) -> None:
    def kernel() -> Any:
        results = []
        for seed in (42, 42, 43):
            nl.random_seed(nl.full((1, 1), seed, dtype=nl.int32))
            for _ in range(2):
                out = nl.ndarray((128, 100), nl.float32, nl.shared_hbm)
                nl.store(out, nl.rand((128, 100), dtype=nl.float32))
                results.append(out)
        return tuple(results)

    first, second, again, more, other, _ = nki.jit(platform_target=target)(kernel)()
    assert (first == again).all() and (second == more).all()
    assert (first != second).mean() > 0.99 and (first != other).mean() > 0.99
    assert first.min() >= 0 and first.max() < 1
    counts = np.histogram(np.concatenate([first, second]), bins=16, range=(0, 1))[0]
    assert (np.abs(counts - 1600) < 5 * np.sqrt(1600)).all()
    assert (np.abs(np.corrcoef(first[:8])[np.triu_indices(8, 1)]) < 0.5).all()


def test_functional_dropout() -> None:
    def kernel(x: Any) -> Any:
        out = nl.ndarray(x.shape, x.dtype, nl.shared_hbm)
        nl.store(out, nl.dropout(nl.load(x), 0.5))
        return out

    x = np.ones((128, 64), np.float32)
    assert 0.45 < nki.jit(kernel)(x).mean() < 0.55


def t(*shape: int, dtype: Any = nl.float32, buffer: Any = nl.sbuf) -> Any:
    return nl.ndarray(shape, dtype, buffer)


LIMITS: list[tuple[str, Any, str]] = [
    ("trn2", lambda: nisa.rng(t(8, 4)), "dst is of float32, must be of an integer type"),
    ("trn1", lambda: nisa.rng(t(8, 4, dtype=nl.int32), nisa.gpsimd_engine), "engine is gpsimd, needs gen3"),
    ("trn2", lambda: nisa.rng(t(8, 4, dtype=nl.int32, buffer=nl.psum), nisa.gpsimd_engine), "no access to PSUM"),
    ("trn2", lambda: nisa.set_rng_seed(t(2, 1)), "must be of shape (1, 1)"),
    ("trn2", lambda: nisa.set_rng_seed(t(1, 1, dtype=nl.int16)), "must be of 32 bits"),
    ("trn1", lambda: nisa.rand_set_state(t(8, 6, dtype=nl.uint32)), "rand_set_state: needs gen3"),
    ("trn2", lambda: nisa.rand_set_state(t(8, 24, dtype=nl.uint32), nisa.vector_engine), "needs gen4"),
    ("trn2", lambda: nisa.rand_get_state(t(8, 24, dtype=nl.uint32)), "is 24, must be 6"),
    ("trn2", lambda: nisa.rand2(t(8, 4), 0.0, 1.0), "rand2: needs gen4"),
    ("trn3", lambda: nisa.rand2(t(8, 4), 1.0, 1.0), "min is 1.0, must be less than max, 1.0"),
    ("trn2", lambda: nisa.dropout(t(8, 4), t(8, 4, dtype=nl.int8), 0.5), "must have the type of data"),
    ("trn2", lambda: nl.rand((8, 4), nl.int32), "dtype is int32, must be a float type"),
]


@pytest.mark.parametrize(("target", "call", "message"), LIMITS, ids=[str(i) for i in range(len(LIMITS))])
def test_limits(target: str, call: Any, message: str) -> None:
    with pytest.raises(NkiValidationError) as error:
        trace_body(call, target)
    assert message in str(error.value)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float8_e4m3", "float32"])
def test_numbers_of_every_type_stay_below_one(dtype: str) -> None:
    def kernel() -> Any:
        out = nl.ndarray((128, 512), dtype, nl.shared_hbm)
        nl.store(out, nl.rand((128, 512), dtype))
        return out

    numbers = nki.jit(kernel)().astype(np.float64)
    assert numbers.min() >= 0 and numbers.max() < 1 and abs(numbers.mean() - 0.5) < 0.05
