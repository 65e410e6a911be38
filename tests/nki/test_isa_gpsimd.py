"""GpSimd instructions against NumPy, over types, access patterns, partitions and targets."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import neurontools.nki as nki
import neurontools.nki.isa as nisa
import neurontools.nki.language as nl
from emulator.faults import FaultError
from neurontools.nki import NkiValidationError
from tests.nki.direct import CASES, TARGETS, Layout, dtype_of, layouts, run, seeds, tile, values_of
from tests.nki.support import trace_body

PATTERNS = st.lists(st.tuples(st.integers(-5, 5), st.integers(1, 4)), min_size=1, max_size=4)


def walk(pattern: list[tuple[int, int]], offset: int, multiplier: int, partitions: int) -> np.ndarray[Any, Any]:
    """Return the documented loop's values, as Python integers."""
    rows = []
    for channel in range(partitions):
        values = [offset + channel * multiplier]
        for step, count in pattern:
            values = [value + index * step for value in values for index in range(count)]
        rows.append(values)
    return np.array(rows, object)


@CASES
@given(pattern=PATTERNS, offset=st.integers(-(2**31), 2**31 - 1), multiplier=st.integers(-(2**31), 2**31 - 1),
       partitions=st.integers(1, 32), layout=layouts(), target=st.sampled_from(TARGETS))  # fmt: skip
def test_iota_is_exact_in_32_bits(
    pattern: list[tuple[int, int]], offset: int, multiplier: int, partitions: int, layout: Layout, target: str
) -> None:
    expected = walk(pattern, offset, multiplier, partitions)

    def body() -> Any:
        dst = tile(partitions, expected.shape[1], nl.int32, layout)
        nisa.iota(dst, [list(one) for one in pattern], offset, multiplier)
        return [], [dst]

    (got,) = run(body, target)
    assert got.tolist() == ((expected + 2**31) % 2**32 - 2**31).tolist()


@CASES
@given(pattern=PATTERNS, offset=st.integers(-100, 100), multiplier=st.integers(-9, 9),
       dtype=st.sampled_from(["float32", "bfloat16", "uint32", "int16", "uint8"]))  # fmt: skip
def test_iota_casts_to_any_type(pattern: list[tuple[int, int]], offset: int, multiplier: int, dtype: str) -> None:
    expected = walk(pattern, offset, multiplier, 4).astype(np.int64)

    def body() -> Any:
        dst = tile(4, expected.shape[1], dtype_of(dtype))
        nisa.iota(dst, [list(one) for one in pattern], offset, multiplier)
        return [], [dst]

    if dtype == "uint8":
        expected = expected.clip(0, 255)
    with np.errstate(all="ignore"):
        assert (run(body)[0] == expected.astype(dtype)).all()


@CASES
@given(rng=seeds(), pattern=PATTERNS, offset=st.integers(-9, 9), multiplier=st.integers(-4, 4), src=layouts(),
       dst=layouts(), types=st.sampled_from([("float32", "float32"), ("bfloat16", "float32"), ("int32", "int32"),
                                             ("float32", "bfloat16"), ("uint8", "float16")]),
       op=st.sampled_from(["equal", "not_equal", "less", "less_equal", "greater", "greater_equal"]))  # fmt: skip
def test_affine_select(
    rng: np.random.Generator, pattern: Any, offset: int, multiplier: int, src: Layout, dst: Layout, types: Any, op: str
) -> None:
    places = walk(pattern, offset, multiplier, 8).astype(np.int64)
    data = values_of(rng, places.shape, types[0])

    def body() -> Any:
        kept, out = tile(8, data.shape[1], dtype_of(types[0]), src), tile(8, data.shape[1], dtype_of(types[1]), dst)
        nisa.affine_select(out, [list(one) for one in pattern], multiplier, kept, 7, getattr(nl, op), offset=offset)
        return [(kept, data)], [out]

    chosen = getattr(np, op)(places, 0)
    assert (run(body)[0] == np.where(chosen, data.astype(np.float32), 7).astype(types[1])).all()


@CASES
@given(rng=seeds(), elements=st.integers(1, 40), count=st.integers(1, 60), source=layouts(), places=layouts(),
       dst=layouts(), dtype=st.sampled_from(["float32", "bfloat16", "int8", "uint32"]))  # fmt: skip
def test_n_gather(
    rng: np.random.Generator, elements: int, count: int, source: Layout, places: Layout, dst: Layout, dtype: str
) -> None:
    data = values_of(rng, (16, elements), dtype)
    chosen = rng.integers(0, elements, (16, count))

    def body() -> Any:
        src, indices = tile(16, elements, dtype_of(dtype), source), tile(16, count, nl.uint32, places)
        out = tile(16, count, dtype_of(dtype), dst)
        nisa.nc_n_gather(out, src, indices)
        return [(src, data), (indices, chosen)], [out]

    expected = np.array([[data[p, i] for i in chosen[p]] for p in range(16)])
    assert (run(body)[0] == expected).all()


def test_an_index_out_of_bounds_is_a_fault() -> None:
    def body() -> Any:
        src, indices, out = tile(4, 8, nl.float32), tile(4, 3, nl.uint32), tile(4, 3, nl.float32)
        nisa.nc_n_gather(out, src, indices)
        return [(src, 0), (indices, 8)], [out]

    with pytest.raises(FaultError, match="index is out of bounds"):
        run(body)


@CASES
@given(rng=seeds(), groups=st.integers(1, 2), columns=st.integers(1, 4), run_=st.sampled_from([1, 2, 4]),
       spare=st.integers(0, 15), dtype=st.sampled_from(["float32", "bfloat16", "uint8"]))  # fmt: skip
def test_local_gather(rng: np.random.Generator, groups: int, columns: int, run_: int, spare: int, dtype: str) -> None:
    partitions, valid = 16 * groups, 16 * columns - spare
    data = values_of(rng, (partitions, 24), dtype)
    index = rng.integers(0, 25 - run_, (partitions, columns))

    def body() -> Any:
        src, places = tile(partitions, 24, dtype_of(dtype)), tile(partitions, columns, nl.uint16)
        out = tile(partitions, valid * run_, dtype_of(dtype))
        nisa.local_gather(out, src, places, run_, valid)
        return [(src, data), (places, index)], [out]

    expected = np.empty((partitions, valid, run_), dtype)
    for p in range(partitions):
        flat = index[p // 16 * 16 : p // 16 * 16 + 16].flatten(order="F")[:valid]
        for k, start in enumerate(flat):
            expected[p, k] = data[p, start : start + run_]
    assert (run(body)[0] == expected.reshape(partitions, -1)).all()


@CASES
@given(rng=seeds(), elements=st.integers(1, 40), offset=st.integers(-50, 50), padding=st.integers(-5, 5),
       src=layouts(), dst=layouts(), dtype=st.sampled_from(["float32", "int32"]))  # fmt: skip
def test_nonzero_with_count(
    rng: np.random.Generator, elements: int, offset: int, padding: int, src: Layout, dst: Layout, dtype: str
) -> None:
    data = rng.integers(0, 2, (32, elements)).astype(dtype)

    def body() -> Any:
        view, out = tile(32, elements, dtype_of(dtype), src), tile(32, elements + 1, nl.int32, dst)
        nisa.nonzero_with_count(out, view, offset, padding)
        return [(view, data), (out, 99)], [out]

    (got,) = run(body)
    for p in range(32):
        if p % 16:
            assert (got[p] == 99).all()
            continue
        found = [i + offset for i in range(elements) if data[p, i] != 0]
        assert got[p].tolist() == [*found, *[padding] * (elements - len(found)), len(found)]


@CASES
@given(ids=st.lists(st.integers(0, 3), min_size=1, max_size=30), dtype=st.sampled_from(["float32", "int32"]))
def test_sequence_bounds(ids: list[int], dtype: str) -> None:
    def body() -> Any:
        src, out = tile(1, len(ids), dtype_of(dtype)), nl.ndarray((1, 2, len(ids)), dtype_of(dtype))
        nisa.sequence_bounds(out, src)
        return [(src, [ids])], [out]

    starts, ends = [], []
    for i, one in enumerate(ids):
        first = last = i
        while first and ids[first - 1] == one:
            first -= 1
        while last + 1 < len(ids) and ids[last + 1] == one:
            last += 1
        starts.append(first if one else len(ids))
        ends.append(last + 1 if one else -1)
    assert run(body)[0].reshape(2, -1).tolist() == [starts, ends]


def test_sequence_bounds_as_documented() -> None:
    def body() -> Any:
        src, out = tile(1, 9, nl.int32), tile(1, 18, nl.int32)
        nisa.sequence_bounds(out, src)
        return [(src, [[0, 1, 1, 2, 2, 2, 0, 3, 3]])], [out]

    assert run(body)[0].tolist() == [[9, 1, 1, 3, 3, 3, 9, 7, 7, -1, 3, 3, 6, 6, 6, -1, 9, 9]]


@CASES
@given(rng=seeds(), count=st.integers(8, 60), wanted=st.integers(1, 8), groups=st.integers(1, 2))
def test_topk(rng: np.random.Generator, count: int, wanted: int, groups: int) -> None:
    columns = -(-count // 16)
    data = rng.permutation(16 * groups * columns).reshape(16 * groups, columns).astype("bfloat16")

    def body() -> Any:
        src = tile(16 * groups, columns, nl.bfloat16)
        values, places = tile(16 * groups, wanted, nl.bfloat16), tile(16 * groups, wanted, nl.uint32)
        nisa.topk(values, places, src, count)
        return [(src, data)], [values, places]

    values, places = run(body)
    for p in range(16 * groups):
        snake = [float(data[p // 16 * 16 + i % 16, i // 16]) for i in range(count)]
        assert values[p].astype(float).tolist() == sorted(snake)[-wanted:]
        assert [snake[i] for i in places[p]] == values[p].astype(float).tolist()


@CASES
@given(rng=seeds(), partitions=st.integers(1, 32), elements=st.integers(1, 9), src=layouts(),
       op=st.sampled_from(["add", "average", "maximum", "bitwise_or", "bitwise_and"]))  # fmt: skip
def test_tensor_partition_reduce(
    rng: np.random.Generator, partitions: int, elements: int, src: Layout, op: str
) -> None:
    dtype = "int32" if op.startswith("bitwise") else "float32"
    data = values_of(rng, (partitions, elements), dtype)

    def body() -> Any:
        view, out = tile(partitions, elements, dtype_of(dtype), src), tile(1, elements, dtype_of(dtype))
        nisa.tensor_partition_reduce(out, getattr(nl, op), view)
        return [(view, data)], [out]

    fold = {"add": np.sum, "average": np.mean, "maximum": np.max, "bitwise_or": np.bitwise_or.reduce,
            "bitwise_and": np.bitwise_and.reduce}[op]  # fmt: skip
    np.testing.assert_allclose(run(body)[0], fold(data, axis=0)[None], rtol=1e-6)


@pytest.mark.parametrize("target", TARGETS)
def test_a_kernel_gathers_from_start_to_end(target: str) -> None:
    def reverse(x: Any) -> Any:
        out = nl.ndarray(x.shape, x.dtype, nl.shared_hbm)
        data, places = nl.load(x), nl.ndarray(x.shape, nl.uint32)
        nisa.iota(places, [[-1, x.shape[1]]], offset=x.shape[1] - 1)
        result = nl.gather_flattened(data, places)
        nl.store(out, result)
        return out

    x = np.random.default_rng(0).normal(size=(64, 50)).astype(np.float32)
    assert (nki.jit(platform_target=target)(reverse)(x) == x[:, ::-1]).all()


def t(*shape: int, dtype: Any = nl.float32, buffer: Any = nl.sbuf) -> Any:
    return nl.ndarray(shape, dtype, buffer)


def gather(**change: Any) -> None:
    given = {"dst": t(16, 16), "src_buffer": t(16, 64), "index": t(16, 1, dtype=nl.uint16)}
    nisa.local_gather(**(given | change))


LIMITS: list[tuple[str, Any, str]] = [
    ("trn2", lambda: nisa.iota(t(8, 4, buffer=nl.psum), [[1, 4]]), "in PSUM, must be in SBUF"),
    ("trn2", lambda: nisa.iota(t(8, 4), [[1, 5]]), "elements of pattern is 5, must be the 4 elements"),
    ("trn2", lambda: nisa.iota(t(8, 4), [[1, 4]], offset=1 << 31), "offset is 2147483648, must fit in int32"),
    ("trn2", lambda: nisa.iota(t(8, 1), [[1, 1]] * 5), "is 5-dimensional, must have 1 to 4 dimensions"),
    ("trn2", lambda: nisa.iota(t(8, 4), [1, 4]), "must be a list of [step, num]"),
    ("trn2", lambda: nisa.affine_select(t(8, 4), [[1, 4]], 0, t(8, 4), 0.0, nl.add), "must be a comparison"),
    ("trn2", lambda: nisa.nc_n_gather(t(8, 4), t(8, 4), t(8, 4, dtype=nl.int32)), "must be uint32"),
    ("trn2", lambda: nisa.nc_n_gather(t(8, 4, dtype=nl.int8), t(8, 4), t(8, 4, dtype=nl.uint32)), "type of data"),
    ("trn2", lambda: gather(src_buffer=t(8, 64)), "partition count of dst, src_buffer and index is 16 and 8 and 16"),
    ("trn2", lambda: gather(num_elem_per_idx=3), "num_elem_per_idx is 3, must be one of 1, 2, 4, 8, 16, 32"),
    ("trn2", lambda: gather(num_valid_indices=17), "num_valid_indices is 17, must be 1 to 16"),
    ("trn2", lambda: gather(index=t(16, 1, dtype=nl.int32)), "index is of int32, must be uint16"),
    ("trn1", lambda: nisa.nonzero_with_count(t(8, 5, dtype=nl.int32), t(8, 4)), "nonzero_with_count: needs gen3"),
    ("trn2", lambda: nisa.nonzero_with_count(t(8, 4, dtype=nl.int32), t(8, 4)), "must be 5, one over src"),
    ("trn2", lambda: nisa.sequence_bounds(t(2, 8), t(2, 4)), "partition count of dst is 2, must be 1"),
    ("trn2", lambda: nisa.topk(t(16, 8, dtype=nl.bfloat16), t(16, 8, dtype=nl.uint32), t(16, 2, dtype=nl.bfloat16), 33),
     "elements per partition of src is 2, at least 3"),
    ("trn2", lambda: nisa.tensor_partition_reduce(t(1, 4), nl.multiply, t(8, 4)), "must be add, average, max"),
]  # fmt: skip


@pytest.mark.parametrize(("target", "call", "message"), LIMITS, ids=[str(i) for i in range(len(LIMITS))])
def test_limits(target: str, call: Any, message: str) -> None:
    with pytest.raises(NkiValidationError) as error:
        trace_body(call, target)
    assert message in str(error.value)
