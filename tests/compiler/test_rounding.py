"""Products of operands rounded to 16 bits: the bits of 16-bit tensors, in no more time than fp32 takes."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import neurontools
from neurontools.compiler.graph import Value
from neurontools.compiler.options import CompileOptions
from neurontools.compiler.rewriting import Builder
from tests.compiler.support import OURS, compiled, floats, run, run_graph
from tests.compiler.test_codes import _graph

_CAST = OURS._replace(auto_cast="matmult")


def _dot(b: Builder, left: Value, right: Value, turned: tuple[int, int] = (1, 0)) -> Value:
    """Append left @ right, of which `turned` are the dimensions that are contracted."""
    shape = left.shape[1 - turned[0]], right.shape[1 - turned[1]]
    return b.graph.add("dot", (left, right), "f32", shape, lhs_batch=(), rhs_batch=(), lhs_contracting=(turned[0],),
                       rhs_contracting=(turned[1],), precision=())  # fmt: skip


def _sides(rows: int, inner: int, columns: int, turned: tuple[int, int]) -> list[np.ndarray[Any, Any]]:
    left, right = floats(rows, inner), floats(inner, columns, seed=1)
    return [np.ascontiguousarray(left if turned[0] else left.T), np.ascontiguousarray(right.T if turned[1] else right)]


def _time(make: Any, inputs: list[np.ndarray[Any, Any]], options: CompileOptions) -> int:
    made = compiled(make, *inputs, options=options)
    given = dict(zip(made.names.inputs, inputs, strict=True))
    return neurontools.run(neurontools.open_neff(made.neff), given).time_ps


_TURNED = [(0, 0), (0, 1), (1, 0), (1, 1)]


@pytest.mark.parametrize("turned", _TURNED)
@pytest.mark.parametrize("shape", [(64, 256, 512), (128, 128, 128), (100, 300, 200), (256, 384, 640)])
def test_16_bits_are_not_slower_than_32(shape: tuple[int, int, int], turned: tuple[int, int]) -> None:
    inputs = _sides(*shape, turned)
    times = [_time(lambda b, x, y: _dot(b, x, y, turned), inputs, one) for one in (OURS, _CAST)]
    assert times[1] <= times[0]


@pytest.mark.parametrize("turned", _TURNED)
@pytest.mark.parametrize("shape", [(8, 64, 32), (1, 128, 16), (32, 1024, 64)])
def test_small_products_pay_for_the_rounding_only(shape: tuple[int, int, int], turned: tuple[int, int]) -> None:
    """What the array saves is less than an instruction on 128 lanes; a tensor more in device memory took 5 us."""
    inputs = _sides(*shape, turned)
    times = [_time(lambda b, x, y: _dot(b, x, y, turned), inputs, one) for one in (OURS, _CAST)]
    assert times[1] <= times[0] + 300_000


@pytest.mark.parametrize("sizes", [(32, 64, 128, 10), (64, 128, 256, 64), (128, 512, 512, 128)])
def test_a_layer_of_16_bits_is_faster(sizes: tuple[int, int, int, int]) -> None:
    rows, inner, hidden, out = sizes
    inputs = [floats(rows, inner), floats(inner, hidden, seed=1), floats(hidden, seed=2), floats(hidden, out, seed=3)]

    def layer(b: Builder, x: Value, w: Value, bias: Value, v: Value) -> Value:
        return _dot(b, b.op("tanh", b.op("add", _dot(b, x, w), b.broadcast(bias, (rows, hidden), (1,)))), v)

    times = [_time(layer, inputs, one) for one in (OURS, _CAST)]
    assert times[1] < times[0]


@pytest.mark.parametrize("lnc", [1, 2])
@pytest.mark.parametrize("turned", _TURNED)
@pytest.mark.parametrize(("kind", "dtype"), [("bf16", ml_dtypes.bfloat16), ("fp16", np.float16)])
def test_the_bits_are_those_of_rounded_tensors(kind: Any, dtype: Any, turned: tuple[int, int], lnc: int) -> None:
    inputs = _sides(300, 200, 150, turned)
    inputs[0].reshape(-1)[:4] = [np.inf, 0.0, 65519.0, -1e-30]
    options = _CAST._replace(auto_cast_type=kind, lnc=lnc)
    (found,) = run_graph(lambda b, x, y: _dot(b, x, y, turned), *inputs, options=options)
    rounded = [one.astype(dtype) for one in inputs]
    (wanted,) = run_graph(lambda b, x, y: _dot(b, x, y, turned), *rounded, options=OURS._replace(lnc=lnc))
    assert np.array_equal(found.view(np.uint32), wanted.view(np.uint32))


def _rounded(make: Any, *kinds: tuple[str, tuple[int, ...]]) -> list[tuple[str, Any]]:
    from neurontools.compiler.rounding import round_in_products

    return [(one.opcode, one.attrs.get("rounded")) for one in round_in_products(_graph(make, *kinds)).nodes
            if one.opcode != "parameter"]  # fmt: skip


def test_only_conversions_that_products_alone_read_are_taken() -> None:
    x, y = ("f32", (16, 16)), ("bf16", (16, 16))
    assert _rounded(lambda b, x, y: _dot(b, b.convert(x, "bf16"), y), x, y) == [("dot", "bf16")]
    kept = [("convert", None), ("dot", None)]

    def both(b: Builder, x: Value, y: Value) -> list[Value]:
        short = b.convert(x, "bf16")
        return [_dot(b, short, y), short]

    assert _rounded(both, x, y) == kept
    # Behind other element-wise operations a conversion is free.
    assert _rounded(lambda b, x, y: _dot(b, b.convert(b.op("tanh", x), "bf16"), y), x, y)[1:] == kept
    # Rounded on one side only, the product is one of fp32.
    assert _rounded(lambda b, x, y: _dot(b, b.convert(x, "bf16"), y), x, x) == kept
    assert _rounded(lambda b, x, y: _dot(b, b.convert(x, "f32"), y), y, x) == kept
    # Loaded for each block of columns, a short tensor is better.
    big = [("f32", (4096, 4096)), ("bf16", (4096, 4096))]
    assert _rounded(lambda b, x, y: _dot(b, b.convert(x, "bf16"), y), *big) == kept
    assert _rounded(lambda b, y, x: _dot(b, x, b.convert(y, "bf16")), *big) == [("dot", "bf16")]


def test_products_in_loops_round_too() -> None:
    def loop(b: Builder, x: Value, w: Value) -> Value:
        graph = b.graph
        test, body = type(graph)("test"), type(graph)("body")
        number = test.parameter("s32", ())
        test.parameter("f32", x.shape)
        test.parameter("f32", w.shape)
        test.roots = [Builder(test).compare("LT", number, Builder(test).constant(2, "s32"))]
        number, value, weight = (body.parameter(*one) for one in (("s32", ()), ("f32", x.shape), ("f32", w.shape)))
        inner = Builder(body)
        short = [inner.convert(one, "bf16") for one in (value, weight)]
        body.roots = [inner.op("add", number, inner.constant(1, "s32")), _dot(inner, *short), weight]
        kinds = [("s32", ()), ("f32", x.shape), ("f32", w.shape)]
        return graph.node("while", (b.constant(0, "s32"), x, w), kinds, {"condition": test, "body": body}).results[1]

    x, w = floats(16, 16), floats(16, 16, seed=1)
    wanted = x
    for _ in range(2):
        wanted = run_graph(lambda b, x, y: _dot(b, x, y),
                           *(one.astype(ml_dtypes.bfloat16) for one in (wanted, w)))[0]  # fmt: skip
    made = compiled(loop, x, w)
    assert np.array_equal(run(made, x, w)[0], wanted)
