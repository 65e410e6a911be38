"""Searches for eight values and batch statistics against NumPy."""

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

DTYPES = st.sampled_from(["float32", "bfloat16", "float16", "int16", "uint8"])


@CASES
@given(rng=seeds(), elements=st.integers(8, 40), dtype=DTYPES, result=st.sampled_from(["float32", "bfloat16"]),
       src=layouts(psum=True), dst=layouts(psum=True), target=st.sampled_from(TARGETS))  # fmt: skip
def test_max8(
    rng: np.random.Generator, elements: int, dtype: str, result: str, src: Layout, dst: Layout, target: str
) -> None:
    data = values_of(rng, (16, elements), dtype)

    def body() -> Any:
        source, out = tile(16, elements, dtype_of(dtype), src), tile(16, 8, dtype_of(result), dst)
        nisa.max8(out, source)
        return [(source, data)], [out]

    expected = [sorted(row, reverse=True)[:8] for row in data.astype(np.float32).tolist()]
    assert (run(body, target)[0] == np.array(expected).astype(result)).all()


@CASES
@given(rng=seeds(), elements=st.integers(8, 40), dtype=DTYPES, index=st.sampled_from(["uint16", "uint32"]),
       src=layouts(psum=True), vals=layouts(), target=st.sampled_from(TARGETS))  # fmt: skip
def test_find_index8(
    rng: np.random.Generator, elements: int, dtype: str, index: str, src: Layout, vals: Layout, target: str
) -> None:
    data, wanted = values_of(rng, (16, elements), dtype), values_of(rng, (16, 8), dtype)

    def body() -> Any:
        source, values = tile(16, elements, dtype_of(dtype), src), tile(16, 8, dtype_of(dtype), vals)
        out = tile(16, 8, dtype_of(index))
        nisa.nc_find_index8(out, source, values)
        return [(source, data), (values, wanted)], [out]

    (got,) = run(body, target)
    for p in range(16):
        for i in range(8):
            # The n-th of equal values is paired with the n-th place.
            places = [j for j in range(elements) if data[p, j] == wanted[p, i]]
            earlier = sum(bool(one == wanted[p, i]) for one in wanted[p, :i])
            assert got[p, i] == (places[earlier] if earlier < len(places) else np.iinfo(index).max)


@CASES
@given(rng=seeds(), elements=st.integers(8, 40), dtype=st.sampled_from(["float32", "bfloat16"]),
       with_index=st.booleans(),
       result=st.sampled_from(["float32", "bfloat16"]), src=layouts(), in_place=st.booleans(),
       target=st.sampled_from(TARGETS))  # fmt: skip
def test_match_replace8(
    rng: np.random.Generator, elements: int, dtype: str, with_index: bool, result: str, src: Layout, in_place: bool,
    target: str,
) -> None:  # fmt: skip
    data, wanted = values_of(rng, (16, elements), dtype), values_of(rng, (16, 8), dtype)

    def body() -> Any:
        source, values = tile(16, elements, dtype_of(dtype), src), tile(16, 8, dtype_of(dtype))
        out = source if in_place else tile(16, elements, dtype_of(result))
        places = tile(16, 8, nl.uint32)
        nisa.nc_match_replace8(out, source, values, float("-inf"), places if with_index else None)
        return [(source, data), (values, wanted)], [out, places] if with_index else [out]

    got = run(body, target)
    expected, places = data.astype(np.float32), np.full((16, 8), 0xFFFFFFFF)
    for p in range(16):
        left = data[p].astype(float).tolist()
        for i in range(7, -1, -1):
            value = float(wanted[p, i])
            if value in left:
                place = left.index(value)
                left[place] = None
                expected[p, place], places[p, i] = -np.inf, place
    assert (got[0] == expected.astype(dtype if in_place else result)).all()
    if with_index:
        assert (got[1] == places).all()


def test_duplicates_are_paired_as_documented() -> None:
    def body() -> Any:
        data, values = tile(1, 11, nl.float32), tile(1, 8, nl.float32)
        out, places = tile(1, 11, nl.float32), tile(1, 8, nl.uint32)
        nisa.nc_match_replace8(out, data, values, 0.0, places)
        return [(data, [[1, 2, 3, 4, 8, 8, 8, 8, 8, 8, 8]]), (values, [[3, 8, 8, 8, 8, 8, 8, 8]])], [places]

    assert run(body)[0].tolist() == [[2, 10, 9, 8, 7, 6, 5, 4]]


@CASES
@given(rng=seeds(), sizes=st.lists(st.integers(1, 12), min_size=1, max_size=3), dtype=DTYPES, src=layouts(psum=True),
       target=st.sampled_from(TARGETS))  # fmt: skip
def test_statistics(rng: np.random.Generator, sizes: list[int], dtype: str, src: Layout, target: str) -> None:
    parts = [values_of(rng, (16, size), dtype) for size in sizes]

    def body() -> Any:
        statistics, out, inputs = nl.ndarray((16, 6 * len(parts)), nl.float32), tile(16, 2, nl.float32), []
        for i, part in enumerate(parts):
            source = tile(16, part.shape[1], dtype_of(dtype), src)
            nisa.bn_stats(statistics[:, 6 * i : 6 * i + 6], source)
            inputs.append((source, part))
        nisa.bn_aggr(out, statistics)
        return inputs, [statistics, out]

    statistics, out = run(body, target)
    whole = np.concatenate(parts, axis=1).astype(np.float64)
    np.testing.assert_allclose(out[:, 0], whole.mean(axis=1), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(out[:, 1], whole.var(axis=1), rtol=1e-4, atol=1e-4)
    even, odd = parts[0][:, ::2].astype(np.float64), parts[0][:, 1::2].astype(np.float64)
    assert (statistics[:, 0] == even.shape[1]).all() and (statistics[:, 3] == odd.shape[1]).all()
    np.testing.assert_allclose(statistics[:, 2], even.var(axis=1) * even.shape[1], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("target", TARGETS)
def test_sixteen_largest_from_start_to_end(target: str) -> None:
    def largest(x: Any) -> Any:
        out = nl.ndarray((x.shape[0], 16), nl.float32, nl.shared_hbm)
        index = nl.ndarray((x.shape[0], 16), nl.uint32, nl.shared_hbm)
        data, values = nl.load(x), nl.ndarray((x.shape[0], 16), nl.float32)
        places = nl.ndarray((x.shape[0], 16), nl.uint32)
        for i in range(2):
            nisa.max8(values[:, 8 * i : 8 * i + 8], data)
            nisa.nc_find_index8(places[:, 8 * i : 8 * i + 8], data, values[:, 8 * i : 8 * i + 8])
            nisa.nc_match_replace8(data, data, values[:, 8 * i : 8 * i + 8], float("-inf"))
        nl.store(out, values)
        nl.store(index, places)
        return out, index

    x = np.random.default_rng(1).normal(size=(128, 100)).astype(np.float32)
    values, places = nki.jit(platform_target=target)(largest)(x)
    assert (values == -np.sort(-x, axis=1)[:, :16]).all()
    assert (np.take_along_axis(x, places.astype(np.int64), axis=1) == values).all()


def t(*shape: int, dtype: Any = nl.float32) -> Any:
    return nl.ndarray(shape, dtype, nl.sbuf)


LIMITS: list[tuple[Any, str]] = [
    (lambda: nisa.max8(t(8, 8), t(8, 7)), "elements per partition of src is 7, must be 8 to 16384"),
    (lambda: nisa.max8(t(8, 8), t(8, 16385)), "is 16385, must be 8 to 16384"),
    (lambda: nisa.max8(t(8, 9), t(8, 9)), "elements per partition of dst is 9, must be 8"),
    (lambda: nisa.nc_find_index8(t(8, 8), t(8, 9), t(8, 8)), "dst is of float32, must be uint16 or uint32"),
    (lambda: nisa.nc_match_replace8(t(8, 9), t(8, 9), t(8, 7), 0.0), "elements per partition of vals is 7, must be 8"),
    (lambda: nisa.bn_stats(t(8, 6), t(8, 513)), "is 513, at most 512"),
    (lambda: nisa.bn_aggr(t(8, 2), t(8, 5)), "is 5, must be a multiple of 3"),
]


@pytest.mark.parametrize(("call", "message"), LIMITS, ids=[str(i) for i in range(len(LIMITS))])
def test_limits(call: Any, message: str) -> None:
    with pytest.raises(NkiValidationError) as error:
        trace_body(call)
    assert message in str(error.value)
