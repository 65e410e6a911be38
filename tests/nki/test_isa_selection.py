"""Selections, predicated copies and accumulating instructions of the Vector engine against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import neurontools.nki as nki
import neurontools.nki.isa as nisa
import neurontools.nki.language as nl
from formats.isa import ReduceCommand
from neurontools.nki import NkiValidationError
from tests.nki.direct import CASES, TARGETS, Layout, dtype_of, layouts, run, seeds, tile, values_of
from tests.nki.support import trace_body

CMD = nisa.reduce_cmd
FP32_MIN = np.finfo(np.float32).min
DTYPES = st.sampled_from(["float32", "bfloat16", "float16", "int8", "uint16"])
FLOATS = st.sampled_from(["float32", "bfloat16", "float16"])


@CASES
@given(rng=seeds(), dtype=st.sampled_from(["float32", "bfloat16", "int32", "uint8"]), reverse=st.booleans(),
       predicate=st.sampled_from(["uint8", "uint16", "uint32"]), number=st.booleans(), src=layouts(psum=True),
       test=layouts(), dst=layouts(psum=True), target=st.sampled_from(TARGETS))  # fmt: skip
def test_copy_predicated(
    rng: np.random.Generator, dtype: str, reverse: bool, predicate: str, number: bool, src: Layout, test: Layout,
    dst: Layout, target: str,
) -> None:  # fmt: skip
    old, new = values_of(rng, (16, 9), dtype), values_of(rng, (16, 9), dtype)
    flags = rng.integers(0, 3, (16, 9)).astype(predicate)

    def body() -> Any:
        out, mask = tile(16, 9, dtype_of(dtype), dst), tile(16, 9, dtype_of(predicate), test)
        given = [(out, old), (mask, flags)]
        if number:
            nisa.tensor_copy_predicated(out, 3, mask, reverse)
        else:
            source = tile(16, 9, dtype_of(dtype), src)
            nisa.tensor_copy_predicated(out, source, mask, reverse)
            given.append((source, new))
        return given, [out]

    chosen = (flags == 0) if reverse else (flags != 0)
    assert (run(body, target)[0] == np.where(chosen, np.array(3).astype(dtype) if number else new, old)).all()


@CASES
@given(rng=seeds(), dtype=DTYPES, result=FLOATS, reverse=st.booleans(), column=st.booleans(), src=layouts(psum=True),
       test=layouts(), target=st.sampled_from(TARGETS))  # fmt: skip
def test_select_reduce(
    rng: np.random.Generator, dtype: str, result: str, reverse: bool, column: bool, src: Layout, test: Layout,
    target: str,
) -> None:  # fmt: skip
    data, flags = values_of(rng, (16, 9), dtype), rng.integers(0, 2, (16, 9))
    others = values_of(rng, (16, 1), "float32")

    def body() -> Any:
        source, mask = tile(16, 9, dtype_of(dtype), src), tile(16, 9, nl.uint8, test)
        out, most, other = tile(16, 9, dtype_of(result)), tile(16, 1, nl.float32), tile(16, 1, nl.float32)
        nisa.select_reduce(out, mask, source, other if column else -2.5, most, CMD.reset_reduce, reverse_pred=reverse)
        nisa.select_reduce(out, mask, source, 100.0, None, CMD.idle)
        nisa.select_reduce(out, mask, source, other if column else -2.5, None, CMD.idle, reverse_pred=reverse)
        return [(source, data), (mask, flags), (other, others)], [out, most]

    chosen = (flags == 0) if reverse else (flags != 0)
    expected = np.where(chosen, data.astype(np.float32), others if column else np.float32(-2.5))
    out, most = run(body, target)
    assert (out == expected.astype(result)).all() and (most[:, 0] == expected.max(axis=1)).all()


BOUNDS = st.sampled_from(["equal", "less", "less_equal", "greater", "greater_equal"])


@CASES
@given(rng=seeds(), dtype=FLOATS, result=FLOATS, op0=BOUNDS, op1=BOUNDS, start=st.integers(-5, 5),
       src=layouts(psum=True), dst=layouts(), target=st.sampled_from(TARGETS[1:]))  # fmt: skip
def test_range_select(
    rng: np.random.Generator, dtype: str, result: str, op0: str, op1: str, start: int, src: Layout, dst: Layout,
    target: str,
) -> None:  # fmt: skip
    data = values_of(rng, (16, 12), dtype)
    bounds = rng.integers(-6, 18, (2, 16, 1)).astype(np.float32)

    def body() -> Any:
        source, out = tile(16, 12, dtype_of(dtype), src), tile(16, 12, dtype_of(result), dst)
        first, second, most = (tile(16, 1, nl.float32) for _ in range(3))
        nisa.range_select(out, source, getattr(nl, op0), getattr(nl, op1), first, second, reduce_res=most,
                          range_start=start, on_false_value=-3.4028235e38)  # fmt: skip
        return [(source, data), (first, bounds[0]), (second, bounds[1])], [out, most]

    places = np.arange(12, dtype=np.float32) + start
    inside = getattr(np, op0)(places, bounds[0]) & getattr(np, op1)(places, bounds[1])
    expected = np.where(inside, data.astype(np.float32), FP32_MIN)
    out, most = run(body, target)
    with np.errstate(all="ignore"):
        assert (out == expected.astype(result)).all()
    assert (most[:, 0] == expected.max(axis=1)).all()  # fp32, whatever the output was rounded to


def ordered(op: Any, start: Any, values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Fold fp32 columns one after the other."""
    total = np.broadcast_to(np.float32(start), values.shape[:1]).copy()
    for column in values.T:
        total = op(total, column)
    return total


FOLDS = {"add": (np.add, 0), "multiply": (np.multiply, 1), "maximum": (np.maximum, -np.inf),
         "minimum": (np.minimum, np.inf)}  # fmt: skip


@CASES
@given(rng=seeds(), dtype=DTYPES, op=st.sampled_from(["add", "subtract", "multiply", "maximum"]),
       fold=st.sampled_from(sorted(FOLDS)), command=st.sampled_from(["reset_reduce", "reduce", "load_reduce"]),
       negate=st.booleans(), column=st.booleans(), src=layouts(psum=True), target=st.sampled_from(TARGETS))  # fmt: skip
def test_tensor_scalar_reduce(
    rng: np.random.Generator, dtype: str, op: str, fold: str, command: str, negate: bool, column: bool, src: Layout,
    target: str,
) -> None:  # fmt: skip
    data, columns = values_of(rng, (16, 7), dtype), rng.normal(size=(16, 1)).astype(np.float32)

    def body() -> Any:
        source, out = tile(16, 7, dtype_of(dtype), src), tile(16, 7, nl.float32)
        operand, result, before = (tile(16, 1, nl.float32) for _ in range(3))
        nisa.tensor_scalar_reduce(out, source, nl.add, 0.5, nl.add, before)
        nisa.tensor_scalar_reduce(
            out, source, getattr(nl, op), operand if column else 1.3, getattr(nl, fold), result,
            reduce_cmd=CMD[command], reduce_init=operand if command == "load_reduce" else None,
            reduce_res_negate=negate)  # fmt: skip
        return [(source, data), (operand, columns)], [out, before, result]

    out, before, result = run(body, target)
    with np.errstate(all="ignore"):
        expected = getattr(np, op)(data.astype(np.float32), columns if column else np.float32(1.3))
        function, identity = FOLDS[fold]
        start = {"reset_reduce": identity, "reduce": before[:, 0], "load_reduce": columns[:, 0]}[command]
        total = ordered(function, start, expected)
    assert (out == expected).all()
    np.testing.assert_array_equal(result[:, 0], -total if negate else total)
    assert (before[:, 0] == ordered(np.add, 0, data.astype(np.float32) + np.float32(0.5))).all()


@CASES
@given(rng=seeds(), dtype=DTYPES, op0=st.sampled_from(["add", "multiply", "maximum"]),
       op1=st.sampled_from(["add", "subtract", "multiply", "maximum", "minimum"]),
       command=st.sampled_from(["reset_reduce", "reduce", "load_reduce"]), src=layouts(), dst=layouts(psum=True),
       target=st.sampled_from(TARGETS))  # fmt: skip
def test_tensor_scalar_cumulative(
    rng: np.random.Generator, dtype: str, op0: str, op1: str, command: str, src: Layout, dst: Layout, target: str
) -> None:
    data, columns = values_of(rng, (16, 7), dtype), rng.normal(size=(16, 1)).astype(np.float32)

    def body() -> Any:
        source, first, out = tile(16, 7, dtype_of(dtype), src), tile(16, 7, nl.float32), tile(16, 7, nl.float32, dst)
        initial = tile(16, 1, nl.float32)
        nisa.tensor_scalar_cumulative(first, source, nl.add, nl.add, 0.1)
        nisa.tensor_scalar_cumulative(out, source, getattr(nl, op0), getattr(nl, op1), 1.1, initial,
                                      reduce_cmd=CMD[command])  # fmt: skip
        return [(source, data), (initial, columns)], [first, out]

    first, out = run(body, target)
    identity = {"add": 0, "subtract": 0, "multiply": 1, "maximum": -np.inf, "minimum": np.inf}[op1]
    register = {"reset_reduce": np.full(16, identity, np.float32), "reduce": first[:, -1],
                "load_reduce": columns[:, 0]}[command]  # fmt: skip
    with np.errstate(all="ignore"):
        values = getattr(np, op0)(data.astype(np.float32), np.float32(1.1))
        for i in range(7):
            register = getattr(np, op1)(values[:, i], register)
            np.testing.assert_array_equal(out[:, i], register)


@CASES
@given(rng=seeds(), dtype=DTYPES, command=st.sampled_from(["reset_reduce", "load_reduce"]), column=st.booleans(),
       src=layouts(psum=True), dst=layouts())  # fmt: skip
def test_exponential(
    rng: np.random.Generator, dtype: str, command: str, column: bool, src: Layout, dst: Layout
) -> None:
    data, most = values_of(rng, (16, 7), dtype), values_of(rng, (16, 1), "float32")

    def body() -> Any:
        source, out = tile(16, 7, dtype_of(dtype), src), tile(16, 7, nl.float32, dst)
        maxima, total = tile(16, 1, nl.float32), tile(16, 1, nl.float32)
        nisa.exponential(out, source, maxima if column else 2.0, None, CMD[command],
                         3.0 if command == "load_reduce" else 0.0)  # fmt: skip
        nisa.exponential(out, source, maxima if column else 2.0, total, CMD.reduce)
        return [(source, data), (maxima, most)], [out, total]

    out, total = run(body, "trn3")
    expected = np.exp(data.astype(np.float32) - (most if column else np.float32(2.0)))
    np.testing.assert_allclose(out, expected, rtol=1e-6)
    twice = ordered(np.add, 3 if command == "load_reduce" else 0, np.concatenate([expected, expected], axis=1))
    np.testing.assert_allclose(total[:, 0], twice, rtol=1e-5)


def masked_softmax(x: Any, bound: Any) -> Any:
    """Return the sums of exp(x - max) over the elements before a bound per row."""
    out = nl.ndarray((x.shape[0], 1), nl.float32, nl.shared_hbm)
    data, high = nl.load(x), nl.load(bound)
    low = nl.zeros((x.shape[0], 1), nl.float32)
    kept, most = nl.ndarray(x.shape, nl.float32), nl.ndarray((x.shape[0], 1), nl.float32)
    nisa.range_select(kept, data, nl.greater_equal, nl.less, low, high, reduce_res=most)
    shifted, total = nl.ndarray(x.shape, nl.float32), nl.ndarray((x.shape[0], 1), nl.float32)
    nisa.tensor_scalar_reduce(shifted, kept, nl.subtract, most, nl.maximum)
    nisa.activation_reduce(kept, nl.exp, shifted, nl.add, total)
    nl.store(out, total)
    return out


@pytest.mark.parametrize("target", TARGETS[1:])
def test_a_masked_softmax_from_start_to_end(target: str) -> None:
    rng = np.random.default_rng(3)
    x, bound = rng.normal(size=(128, 40)).astype(np.float32), rng.integers(1, 40, (128, 1)).astype(np.float32)
    masked = np.where(np.arange(40) < bound, x, -np.inf)
    expected = np.exp(masked - masked.max(axis=1, keepdims=True)).sum(axis=1, keepdims=True)
    got = nki.jit(platform_target=target)(masked_softmax)(x, bound)
    np.testing.assert_allclose(got, expected, rtol=1e-5)


def t(*shape: int, dtype: Any = nl.float32, buffer: Any = nl.sbuf) -> Any:
    return nl.ndarray(shape, dtype, buffer)


def ranged(**change: Any) -> None:
    given: dict[str, Any] = {"on_true_tile": t(8, 4), "comp_op0": nl.less, "comp_op1": nl.less, "bound0": t(8, 1),
                             "bound1": t(8, 1)}  # fmt: skip
    nisa.range_select(t(8, 4), **(given | change))


LIMITS: list[tuple[str, Any, str]] = [
    ("trn1", lambda: ranged(), "range_select: needs gen3, on trn1"),
    ("trn2", lambda: ranged(on_false_value=0.0), "on_false_value is 0.0, must be FP32_MIN"),
    ("trn2", lambda: ranged(comp_op0=nl.not_equal), "comp_op0 is nl.not_equal, must be nl.equal, nl.less"),
    ("trn2", lambda: ranged(reduce_op=nl.add), "reduce_op is nl.add, must be nl.maximum"),
    ("trn2", lambda: ranged(on_true_tile=t(8, 4, dtype=nl.int8)), "must be of a float type"),
    ("trn2", lambda: ranged(range_start=1 << 24), "places must stay within 2**24"),
    ("trn2", lambda: nisa.exponential(t(8, 4), t(8, 4)), "exponential: needs gen4, on trn2"),
    ("trn3", lambda: nisa.exponential(t(8, 4), t(8, 4), reduce_init=1.0), "is for reduce_cmd.load_reduce only"),
    ("trn3", lambda: nisa.exponential(t(8, 4), t(8, 4), reduce_res=t(8, 1)), "needs a reduce_cmd other than idle"),
    ("trn2", lambda: nisa.tensor_scalar_cumulative(t(8, 4, dtype=nl.int32), t(8, 4), nl.add, nl.add, 1.0),
     "dst is of int32, cannot be a 32-bit integer"),
    ("trn2", lambda: nisa.tensor_scalar_reduce(t(8, 4), t(8, 4), nl.add, 1.0, nl.subtract), "reduce_op is nl.subtract"),
    ("trn2", lambda: nisa.tensor_scalar_reduce(t(8, 4), t(8, 4), nl.add, 1.0, nl.add, reverse0=True), "reverse0"),
    ("trn2", lambda: nisa.tensor_scalar_reduce(t(8, 4), t(8, 4), nl.bitwise_and, 1, nl.add), "arithmetic operator"),
    ("trn2", lambda: nisa.tensor_copy_predicated(t(8, 4), 1.0, t(8, 4)), "predicate is of float32, must be uint8"),
    ("trn2", lambda: nisa.tensor_copy_predicated(t(8, 4), t(8, 4, dtype=nl.int32), t(8, 4, dtype=nl.uint8)),
     "src is of int32, must have the type of dst, float32"),
    ("trn2", lambda: nisa.select_reduce(t(8, 4), t(8, 4, dtype=nl.int32), t(8, 4), 0.0), "predicate is of int32"),
    ("trn2", lambda: nisa.select_reduce(t(8, 4), t(8, 4, dtype=nl.int8, buffer=nl.psum), t(8, 4, buffer=nl.psum), 0.0),
     "both in PSUM, at most one may be"),
]  # fmt: skip


@pytest.mark.parametrize(("target", "call", "message"), LIMITS, ids=[str(i) for i in range(len(LIMITS))])
def test_limits(target: str, call: Any, message: str) -> None:
    with pytest.raises(NkiValidationError) as error:
        trace_body(call, target)
    assert message in str(error.value) and __file__ in str(error.value)


def test_commands_have_their_documented_values() -> None:
    assert [(one.name, one.value) for one in CMD] == [(one.name.lower(), one.value) for one in ReduceCommand]
