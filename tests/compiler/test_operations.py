"""Reductions, products, windows, sorts, indices and loops against NumPy."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from formats.hlo.attributes import (
    ConvolutionDimensionNumbers,
    GatherDimensionNumbers,
    ScatterDimensionNumbers,
    WindowDimension,
)
from neurontools.compiler.graph import Graph, Value
from neurontools.compiler.options import CompileOptions
from neurontools.compiler.rewriting import Builder, scalar_body
from tests.compiler.support import OURS, compiled, floats, integers, run, run_graph, run_shared

Array = np.ndarray[Any, Any]


@pytest.mark.parametrize("axes", [(0,), (1,), (2,), (0, 2), (0, 1, 2), (1, 2)])
def test_sums_over_any_dimensions(axes: tuple[int, ...]) -> None:
    x = floats(7, 50, 33)
    (got,) = run_graph(lambda b, x: b.reduce(x, axes, "add", 0.0), x)
    np.testing.assert_allclose(got.reshape(-1), x.sum(axes).reshape(-1), rtol=1e-4, atol=1e-4)


_FOLDS = [
    ("maximum", -np.inf, np.max),
    ("minimum", np.inf, np.min),
    ("multiply", 1.0, np.prod),
    ("maximum", 1.5, None),
]


@pytest.mark.parametrize(("fold", "start", "function"), _FOLDS)
def test_other_folds_and_starts(fold: str, start: float, function: Any) -> None:
    x = floats(40, 9)
    (got,) = run_graph(lambda b, x: b.reduce(x, (1,), fold, start), x)
    want = function(x, 1) if function else np.maximum(x.max(1), np.float32(1.5))
    np.testing.assert_allclose(got, want, rtol=1e-5)


def test_a_long_sum_is_folded_in_parts() -> None:
    x = floats(2, 100_003)
    (got,) = run_graph(lambda b, x: b.reduce(x, (1,), "add", 0.0), x)
    np.testing.assert_allclose(got, x.astype(np.float64).sum(1), rtol=1e-4, atol=1e-2)


def test_integer_sums_are_exact() -> None:
    x = integers(30, 37)
    got = run_graph(lambda b, x: [b.reduce(x, (1,), "add", 5), b.reduce(x, (0,), "maximum", -(2**31))], x)
    assert (got[0] == (x.astype(np.int64).sum(1) + 5).astype(np.int32)).all()
    assert (got[1] == x.max(0)).all()


def test_two_results_of_one_reduction() -> None:
    x = floats(20, 31)
    body = Graph("argmax")
    a, i, c, j = (body.parameter(one, ()) for one in ("f32", "s32", "f32", "s32"))
    b = Builder(body)
    first = b.compare("GE", a, c)
    body.roots = [b.op("select", first, a, c), b.op("select", first, i, j)]

    def make(b: Builder, x: Value) -> list[Value]:
        starts = b.constant(-np.inf, "f32"), b.constant(0, "s32")
        operands = (x, b.iota("s32", x.shape, 1), *starts)
        kinds = [("f32", (20,)), ("s32", (20,))]
        return list(b.graph.node("reduce", operands, kinds, {"dimensions": (1,), "body": body}).results)

    got = run_graph(make, x)
    assert (got[0] == x.max(1)).all()
    assert (got[1] == x.argmax(1)).all()


def _dot(
    b: Builder, a: Value, c: Value, spec: tuple[tuple[int, ...], ...], dtype: str, shape: tuple[int, ...]
) -> Value:
    lb, rb, lc, rc = spec
    return b.graph.add("dot", (a, c), dtype, shape, lhs_batch=lb, rhs_batch=rb, lhs_contracting=lc, rhs_contracting=rc,
                       precision=())  # fmt: skip


@pytest.mark.parametrize(
    ("left", "right", "spec", "equation"),
    [
        ((130, 257), (257, 70), ((), (), (1,), (0,)), "ij,jk->ik"),
        ((257, 30), (70, 257), ((), (), (0,), (1,)), "ji,kj->ik"),
        ((3, 20, 40), (3, 50, 40), ((0,), (0,), (2,), (2,)), "bij,bkj->bik"),
        ((4, 5, 6, 2), (6, 4, 3, 2), ((3, 0), (3, 1), (2,), (0,)), "aijb,jakb->baik"),
        ((5, 6, 7), (7, 5, 4), ((), (), (0, 2), (1, 0)), "iaj,jik->ak"),
        ((9,), (9,), ((), (), (0,), (0,)), "i,i->"),
    ],
)
def test_products_of_any_dimensions(left: Any, right: Any, spec: Any, equation: str) -> None:
    a, c = floats(*left), floats(*right, seed=1)
    want = np.einsum(equation, a, c)
    (got,) = run_graph(lambda b, a, c: _dot(b, a, c, spec, "f32", want.shape), a, c)
    np.testing.assert_allclose(got.reshape(want.shape), want, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("dtype", [np.int32, np.int8, np.uint16])
def test_products_of_integers_are_exact(dtype: Any) -> None:
    a, c = integers(6, 9, dtype=dtype), integers(9, 5, seed=1, dtype=dtype)
    with np.errstate(over="ignore"):
        want = a.astype(np.int64) @ c.astype(np.int64)
    (got,) = run_graph(lambda b, a, c: _dot(b, a, c, ((), (), (1,), (0,)), "s32", (6, 5)), a, c)
    assert (got == want.astype(np.int32)).all()


def test_products_of_bfloat16_are_summed_in_fp32() -> None:
    a, c = floats(64, 300, dtype=ml_dtypes.bfloat16), floats(300, 40, seed=1, dtype=ml_dtypes.bfloat16)
    want = a.astype(np.float32) @ c.astype(np.float32)
    (got,) = run_graph(lambda b, a, c: _dot(b, a, c, ((), (), (1,), (0,)), "f32", (64, 40)), a, c)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-4)


def test_auto_cast_rounds_operands_of_products_only() -> None:
    a, c = floats(20, 30), floats(30, 10, seed=1)
    options = CompileOptions(auto_cast="matmult")

    def make(b: Builder, a: Value, c: Value) -> list[Value]:
        return [_dot(b, a, c, ((), (), (1,), (0,)), "f32", (20, 10)), b.op("add", a, a)]

    made = compiled(make, a, c, options=options)
    got = run(made, a, c)
    round_ = lambda x: x.astype(ml_dtypes.bfloat16).astype(np.float32)  # noqa: E731
    np.testing.assert_allclose(got[0], round_(a) @ round_(c), rtol=1e-5, atol=1e-5)
    assert not np.allclose(got[0], a @ c, rtol=1e-5, atol=1e-5)
    assert (got[1] == a + a).all()
    assert [(one.opcode, one.operand, one.target, one.file, one.line) for one in made.casts] == [
        ("dot", 0, "bf16", "model.py", 42), ("dot", 1, "bf16", "model.py", 42)
    ]  # fmt: skip


@pytest.mark.parametrize(("kind", "dtype"), [("fp16", np.float16), ("tf32", None)])
def test_auto_cast_types(kind: Any, dtype: Any) -> None:
    a, c = floats(20, 30), floats(30, 10, seed=1)
    options = CompileOptions(auto_cast="all", auto_cast_type=kind)
    (got,) = run_graph(lambda b, a, c: _dot(b, a, c, ((), (), (1,), (0,)), "f32", (20, 10)), a, c, options=options)

    def rounded(x: Array) -> Array:
        if dtype is not None:
            return x.astype(dtype).astype(np.float32)
        bits = x.view(np.uint32)
        return ((bits + 0xFFF + (bits >> 13 & 1)) & 0xFFFFE000).astype(np.uint32).view(np.float32)

    np.testing.assert_allclose(got, rounded(a) @ rounded(c), rtol=1e-5, atol=1e-5)


def _slow_convolution(x: Array, w: Array, stride: int, low: int, high: int, base: int, step: int) -> Array:
    """Return a one-dimensional convolution of (batch, place, feature), element by element."""
    spread = np.zeros((x.shape[0], (x.shape[1] - 1) * base + 1, x.shape[2]))
    spread[:, ::base] = x
    padded = np.pad(spread, ((0, 0), (low, high), (0, 0)))
    count = (padded.shape[1] - (w.shape[0] - 1) * step - 1) // stride + 1
    out = np.zeros((x.shape[0], count, w.shape[2]))
    for place in range(count):
        for k in range(w.shape[0]):
            out[:, place] += padded[:, place * stride + k * step] @ w[k]
    return out


@pytest.mark.parametrize("case", [(1, 0, 0, 1, 1), (2, 1, 2, 1, 1), (1, 2, 0, 2, 1), (1, 1, 1, 1, 2), (3, 4, 3, 2, 2)])
def test_convolutions(case: tuple[int, int, int, int, int]) -> None:
    stride, low, high, base, step = case
    x, w = floats(2, 11, 3), floats(3, 3, 5, seed=1)
    want = _slow_convolution(x, w, stride, low, high, base, step)
    numbers = ConvolutionDimensionNumbers(0, 2, (1,), 1, 2, (0,), 0, 2, (1,))
    window = (WindowDimension(3, stride, low, high, step, base),)
    (got,) = run_graph(
        lambda b, x, w: b.graph.add("convolution", (x, w), "f32", want.shape, numbers=numbers, window=window,
                                    feature_groups=1, batch_groups=1), x, w)  # fmt: skip
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("size", [1, 3, 7, 16])
@pytest.mark.parametrize("stride", [1, 2])
def test_windows(size: int, stride: int) -> None:
    x = floats(4, 40)
    window = (WindowDimension(), WindowDimension(size, stride, 2, 1))
    padded = np.pad(x, ((0, 0), (2, 1)))
    count = (43 - size) // stride + 1
    want = np.stack([padded[:, i * stride : i * stride + size].sum(1) for i in range(count)], 1)
    (got,) = run_graph(
        lambda b, x: b.graph.add("reduce-window", (x, b.constant(0, "f32")), "f32", want.shape, window=window,
                                 body=scalar_body("add", "f32")), x)  # fmt: skip
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("count", [1, 2, 5, 16, 33])
def test_sorts_are_stable(count: int) -> None:
    keys = np.random.default_rng(0).integers(0, 5, (3, count)).astype(np.float32)
    places = np.tile(np.arange(count, dtype=np.int32), (3, 1))
    body = Graph("less")
    a, b_, _, _ = (body.parameter(one, ()) for one in ("f32", "f32", "s32", "s32"))
    body.roots = [Builder(body).compare("LT", a, b_)]

    def make(b: Builder, x: Value, p: Value) -> list[Value]:
        kinds = [("f32", x.shape), ("s32", x.shape)]
        return list(b.graph.node("sort", (x, p), kinds, {"dimension": 1, "stable": True, "body": body}).results)

    got = run_graph(make, keys, places)
    order = np.argsort(keys, 1, kind="stable")
    assert (got[0] == np.take_along_axis(keys, order, 1)).all()
    assert (got[1] == order).all()


def test_rows_are_gathered_by_number_and_brought_into_range() -> None:
    table, rows = floats(50, 17), np.array([[3, 49, 0], [77, -4, 3]], np.int32)
    numbers = GatherDimensionNumbers((2,), (0,), (0,), 2)
    (got,) = run_graph(
        lambda b, t, r: b.graph.add("gather", (t, r), "f32", (2, 3, 17), numbers=numbers, slice_sizes=(1, 17)),
        table, rows)  # fmt: skip
    assert (got == table[np.clip(rows, 0, 49)]).all()


@pytest.mark.parametrize("opcode", ["add", "maximum", "assign"])
def test_rows_are_scattered_in_order_and_those_out_of_range_left_out(opcode: str) -> None:
    # Which of two rows stays that are assigned to one place is open, in XLA and on the device.
    again = 5 if opcode == "assign" else 3
    table, rows, new = floats(9, 5), np.array([3, 8, again, 12, -1, 0], np.int32), floats(6, 5, seed=1)
    body = scalar_body("add" if opcode == "assign" else opcode, "f32")
    if opcode == "assign":
        body.roots = [body.parameters[1]]
    numbers = ScatterDimensionNumbers((1,), (0,), (0,), 1)
    (got,) = run_graph(
        lambda b, t, r, n: b.graph.add("scatter", (t, r, n), "f32", (9, 5), numbers=numbers, unique=False, body=body),
        table, rows, new)  # fmt: skip
    want = table.copy()
    for row, line in zip(rows, new, strict=True):
        if 0 <= row < 9:
            want[row] = {"add": want[row] + line, "maximum": np.maximum(want[row], line), "assign": line}[opcode]
    np.testing.assert_allclose(got, want, rtol=1e-6)


@pytest.mark.parametrize("start", [-3, 0, 4, 100])
def test_slices_at_run_time_stay_inside(start: int) -> None:
    x, new, at = floats(9, 7), floats(2, 7, seed=1), np.array(start, np.int32)

    def make(b: Builder, x: Value, n: Value, at: Value) -> list[Value]:
        zero = b.constant(0, "s32")
        return [b.graph.add("dynamic-slice", (x, at, zero), "f32", (3, 7), sizes=(3, 7)),
                b.graph.add("dynamic-update-slice", (x, n, at, zero), "f32", (9, 7))]  # fmt: skip

    got = run_graph(make, x, new, at)
    first, second = np.clip(start, 0, 6), np.clip(start, 0, 7)
    want = x.copy()
    want[second : second + 2] = new
    assert (got[0] == x[first : first + 3]).all()
    assert (got[1] == want).all()


@pytest.mark.parametrize("turns", [0, 1, 5])
def test_a_loop_of_the_device_swaps_its_state(turns: int) -> None:
    """Fibonacci on arrays: both values change places, so that neither may be overwritten too early."""
    a, c, n = floats(3, 4), floats(3, 4, seed=1), np.array(turns, np.int32)
    kinds = [("s32", ()), ("s32", ()), ("f32", (3, 4)), ("f32", (3, 4))]
    body, condition = Graph("body"), Graph("condition")
    i, most, x, y = (body.parameter(*one) for one in kinds)
    b = Builder(body)
    body.roots = [b.op("add", i, b.constant(1, "s32")), most, y, b.op("add", x, y)]
    j, last, *_ = (condition.parameter(*one) for one in kinds)
    condition.roots = [Builder(condition).compare("LT", j, last)]

    def make(b: Builder, a: Value, c: Value, n: Value) -> list[Value]:
        start = (b.constant(0, "s32"), n, a, c)
        return list(b.graph.node("while", start, kinds, {"body": body, "condition": condition}).results)[2:]

    got = run_graph(make, a, c, n)
    for _ in range(turns):
        a, c = c, a + c
    np.testing.assert_allclose(got[0], a, rtol=1e-6)
    np.testing.assert_allclose(got[1], c, rtol=1e-6)


@pytest.mark.parametrize("number", [-1, 0, 1, 2, 9])
def test_branches(number: int) -> None:
    x = floats(5)
    branches = []
    for factor in (2.0, 3.0, 5.0):
        branch = Graph(f"times {factor}")
        value = branch.parameter("f32", (5,))
        b = Builder(branch)
        branch.roots = [b.op("multiply", value, b.like(factor, value))]
        branches.append(branch)

    def make(b: Builder, x: Value, n: Value) -> Value:
        attrs = {"branches": branches, "counts": [1, 1, 1]}
        return b.graph.node("conditional", (n, x, x, x), [("f32", (5,))], attrs).result

    (got,) = run_graph(make, x, np.array(number, np.int32))
    assert (got == x * np.float32((2, 3, 5)[number] if 0 <= number < 3 else 5)).all()


def test_schedules_give_the_same_bits() -> None:
    x = floats(40, 60)

    def make(b: Builder, x: Value) -> Value:
        grown = b.op(
            "exponential", b.op("subtract", x, b.broadcast(b.reduce(x, (1,), "maximum", -np.inf), x.shape, (0,)))
        )
        return b.op("divide", grown, b.broadcast(b.reduce(grown, (1,), "add", 0.0), x.shape, (0,)))

    made = compiled(make, x)
    first = run(made, x)[0]
    np.testing.assert_allclose(first.sum(1), 1, rtol=1e-5)
    assert all(run(made, x, seed=seed)[0].tobytes() == first.tobytes() for seed in range(1, 6))


def test_a_tensor_may_be_input_and_output_at_once() -> None:
    """The caller may give one piece of memory both names; so it does here, by writing the output over the input."""
    x, y = floats(300, 20), floats(300, 20, seed=1)
    turned = floats(40, 40)

    def elementwise(b: Builder, x: Value, y: Value) -> list[Value]:
        return [b.op("add", x, y), b.op("subtract", x, y)]

    def transposed(b: Builder, x: Value) -> Value:
        return b.op("add", b.transpose(x, (1, 0)), b.reverse(x, (0,)))

    def product(b: Builder, x: Value) -> Value:
        return _dot(b, x, x, ((), (), (1,), (0,)), "f32", x.shape)

    for make, inputs, want in (
        (elementwise, (x, y), [x + y, x - y]),
        (transposed, (turned,), [turned.T + turned[::-1]]),
        (product, (turned,), [turned @ turned]),
    ):
        for shared in range(len(inputs)):
            got = run_shared(compiled(make, *inputs), inputs, shared)
            for mine, one in zip(got, want, strict=True):
                np.testing.assert_allclose(mine, one, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("lnc", [1, 2])
def test_logical_cores_of_one_or_two(lnc: int) -> None:
    """Both cores have the same tensors; the file says how many there are."""
    x = floats(300, 20)
    made = compiled(lambda b, x: b.op("tanh", x), x, options=CompileOptions(target="trn2", lnc=lnc))
    assert len(made.report.cores) == lnc
    (got,) = run(made, x)
    np.testing.assert_allclose(got, np.tanh(x), rtol=1e-6)


def test_halves_of_wide_integers() -> None:
    """Inside a program the lower halves of 64-bit integers are held; their bits are those halves."""
    x = np.array([[7, 0], [0xFFFFFFFF, 0]], np.uint32)

    def make(b: Builder, x: Value) -> list[Value]:
        wide = b.graph.add("bitcast-convert", (x,), "u64", (2,))
        return [wide, b.graph.add("bitcast-convert", (wide,), "u32", (2, 2))]

    got = run_graph(make, x)
    assert got[0].tolist() == [7, 0xFFFFFFFF]
    assert (got[1] == x).all()


@pytest.mark.parametrize("fold", ["minimum", "maximum"])
def test_folds_of_64_bits_begin_at_the_ends_of_their_type(fold: str) -> None:
    """What begins such a fold has a lower word that is no end of 32 bits: -1, or 0."""
    least = fold == "minimum"
    values = (np.arange(24, dtype=np.int64).reshape(6, 4) + 3) * (1 if least else -1)
    start = np.iinfo(np.int64).max if least else np.iinfo(np.int64).min

    def make(b: Builder, x: Value) -> Value:
        body = scalar_body(fold, x.dtype)
        return b.graph.add("reduce", (x, b.constant(start, x.dtype)), x.dtype, (6,), dimensions=(1,), body=body)

    (found,) = run_graph(make, values)
    np.testing.assert_array_equal(found, values.min(axis=1) if least else values.max(axis=1))


@pytest.mark.parametrize("count", [6, 7, 64])
def test_what_a_fold_reads_stays_for_those_behind_it(count: int) -> None:
    """Folds that no instruction does are done by halves, in a kernel whose other operations read the same tile."""
    x = np.random.default_rng(1).integers(-1000, 1000, (9, count), dtype=np.int32)

    def centred(b: Builder, x: Value) -> Value:
        grown = b.op("multiply", x, b.like(3, x))
        return b.op("subtract", grown, b.broadcast(b.reduce(grown, (1,), "add", 0), x.shape, (0,)))

    (got,) = run_graph(centred, x)
    np.testing.assert_array_equal(got, 3 * x - (3 * x).sum(1, keepdims=True))


@pytest.mark.parametrize("mixed", [True, False])
def test_softmax_of_short_floats(mixed: bool) -> None:
    x = floats(2, 4, 6).astype(ml_dtypes.bfloat16)

    def softmax(b: Builder, x: Value) -> Value:
        most = b.broadcast(b.reduce(x, (2,), "maximum", -np.inf), x.shape, (0, 1))
        grown = b.op("exponential", b.op("subtract", x, most))
        return b.op("divide", grown, b.broadcast(b.reduce(grown, (2,), "add", 0.0), x.shape, (0, 1)))

    (got,) = run_graph(softmax, x, options=OURS._replace(mixed_precision_accumulation=mixed))
    wide = np.exp(x.astype(np.float64) - x.astype(np.float64).max(-1, keepdims=True))
    np.testing.assert_allclose(got.astype(np.float64), wide / wide.sum(-1, keepdims=True), rtol=3e-2)
