"""Attention as one node: when it is one, what it computes, and how long it takes beside the kernel of the examples."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import neurontools
from neurontools.compiler.attention import fuse_attention
from neurontools.compiler.canonicalise import canonicalise
from neurontools.compiler.graph import Graph, Value
from neurontools.compiler.rewriting import Builder
from tests.compiler.support import compiled, floats, run, run_graph


def _softmax(b: Builder, scores: Value) -> Value:
    last = len(scores.shape) - 1
    rows = tuple(range(last))
    largest = b.reduce(scores, (last,), "maximum", float("-inf"))
    powers = b.op("exponential", b.op("subtract", scores, b.broadcast(largest, scores.shape, rows)))
    total = b.reduce(powers, (last,), "add", 0.0)
    return b.op("divide", powers, b.broadcast(total, scores.shape, rows))


def _dot(
    b: Builder, left: Value, right: Value, shape: tuple[int, ...], inner: tuple[int, int], batch: int = 0
) -> Value:
    lead = tuple(range(batch))
    return b.graph.add("dot", (left, right), "f32", shape, lhs_batch=lead, rhs_batch=lead, lhs_contracting=(inner[0],),
                       rhs_contracting=(inner[1],), precision=())  # fmt: skip


def _scaled(b: Builder, scores: Value, factor: float) -> Value:
    return b.op("multiply", scores, b.broadcast(b.constant(factor, "f32"), scores.shape, ()))


def _attention(b: Builder, q: Value, k: Value, v: Value, *extras: Value, between: Any = None, side: int = 0) -> Value:
    batch = len(q.shape) - 2
    rows, keys = q.shape[-2], k.shape[-2]
    scores = _dot(b, q, k, (*q.shape[:-1], keys), (batch + 1, batch + 1), batch)
    scores = _scaled(b, scores, 0.125) if between is None else between(b, scores, *extras)
    shares = _softmax(b, scores)
    wide = v.shape[-1]
    if side == 0:
        return _dot(b, shares, v, (*q.shape[:-2], rows, wide), (batch + 1, batch), batch)
    return _dot(b, v, shares, (*q.shape[:-2], wide, rows), (batch, batch + 1), batch)


def _want(q: Any, k: Any, v: Any, change: Any = lambda scores: scores * 0.125) -> Any:
    q, k, v = (one.astype(np.float64) for one in (q, k, v))
    scores = change(q @ np.swapaxes(k, -1, -2))
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True) @ v


def _is_fused(make: Any, *shapes: tuple[int, ...]) -> bool:
    graph = Graph("test")
    found = make(Builder(graph), *(graph.parameter("f32", one) for one in shapes))
    graph.roots = [found] if isinstance(found, Value) else list(found)
    return any(node.opcode == "attention" for node in fuse_attention(canonicalise(graph)).nodes)


@pytest.mark.parametrize(
    ("lead", "rows", "keys", "depth", "wide"),
    [
        ((), 200, 200, 64, 64),
        ((), 130, 700, 32, 48),
        ((2, 3), 40, 24, 16, 8),
        ((2,), 5, 1100, 160, 20),
        ((1, 1), 7, 3, 4, 5),
    ],
)
def test_attention_of_any_shape(lead: tuple[int, ...], rows: int, keys: int, depth: int, wide: int) -> None:
    q, k, v = floats(*lead, rows, depth, seed=1), floats(*lead, keys, depth, seed=2), floats(*lead, keys, wide, seed=3)
    assert _is_fused(_attention, q.shape, k.shape, v.shape)
    (found,) = run_graph(_attention, q, k, v)
    assert np.allclose(found, _want(q, k, v), 1e-4, 1e-5)


def _masked(b: Builder, scores: Value, mask: Value) -> Value:
    fill = b.broadcast(b.constant(-1e9, "f32"), scores.shape, ())
    wide = b.broadcast(mask, scores.shape, tuple(range(len(scores.shape) - 2, len(scores.shape))))
    return b.op("select", wide, _scaled(b, scores, 0.5), fill)


def _biased(b: Builder, scores: Value, bias: Value) -> Value:
    capped = _scaled(b, b.op("tanh", _scaled(b, scores, 0.1)), 10.0)
    return b.op("add", capped, bias)


def test_attention_under_a_mask() -> None:
    q, k, v = (floats(2, 150, 32, seed=seed) for seed in range(3))
    mask = np.tril(np.ones((150, 150), bool))
    make = lambda *args: _attention(*args, between=_masked)  # noqa: E731  a graph for two uses
    (found,) = run_graph(make, q, k, v, mask)
    assert np.allclose(found, _want(q, k, v, lambda s: np.where(mask, s * 0.5, -1e9)), 1e-4, 1e-5)
    assert "attention" in compiled(make, q, k, v, mask).listing


def test_attention_with_any_expression_of_its_scores() -> None:
    q, k, v = (floats(140, 32, seed=seed) for seed in range(3))
    bias = floats(140, 140, seed=9)
    make = lambda *args: _attention(*args, between=_biased)  # noqa: E731  a graph for two uses
    (found,) = run_graph(make, q, k, v, bias)
    assert np.allclose(found, _want(q, k, v, lambda s: np.tanh(s * 0.1) * 10 + bias), 1e-4, 1e-5)
    assert "attention" in compiled(make, q, k, v, bias).listing


@pytest.mark.parametrize("lead", [(), (2,)])
def test_the_shares_may_be_on_the_right(lead: tuple[int, ...]) -> None:
    q, k, v = (floats(*lead, 70, 16, seed=seed) for seed in range(3))
    (found,) = run_graph(lambda *args: _attention(*args, side=1), q, k, v)
    assert np.allclose(found, np.swapaxes(_want(q, k, v), -1, -2), 1e-4, 1e-5)
    order = (*range(len(lead)), len(lead) + 1, len(lead))
    (turned,) = run_graph(lambda b, *args: _scaled(b, b.transpose(_attention(b, *args, side=1), order), 2.0), q, k, v)
    assert np.allclose(turned, 2 * _want(q, k, v), 1e-4, 1e-5)


def test_shares_in_sixteen_bits() -> None:
    q, k, v = (floats(96, 32, seed=seed) for seed in range(3))
    half = v.astype(ml_dtypes.bfloat16)

    def make(b: Builder, q: Value, k: Value, v: Value) -> Value:
        shares = b.convert(_softmax(b, _dot(b, q, k, (96, 96), (1, 1))), "bf16")
        return _dot(b, shares, v, (96, 32), (1, 0))

    (found,) = run_graph(make, q, k, half)
    assert np.allclose(found, _want(q, k, half, lambda s: s), 2e-2, 1e-2)
    assert "attention" in compiled(make, q, k, half).listing


def test_rows_that_are_masked_whole_are_as_they_would_be() -> None:
    q, k, v = (floats(4, 8, seed=seed) for seed in range(3))
    mask = np.ones((4, 4), bool)
    mask[1] = False
    (found,) = run_graph(lambda *args: _attention(*args, between=_masked), q, k, v, mask)
    assert np.allclose(found[1], v.mean(0), 1e-4, 1e-5)  # all scores alike, none of them minus infinity


def test_what_is_read_elsewhere_stays() -> None:
    def kept(b: Builder, q: Value, k: Value, v: Value) -> list[Value]:
        shares = _softmax(b, _scaled(b, _dot(b, q, k, (16, 16), (1, 1)), 0.25))
        return [shares, _dot(b, shares, v, (16, 16), (1, 0))]

    def negative(b: Builder, scores: Value) -> Value:
        return b.op("negate", scores)

    assert not _is_fused(kept, (16, 16), (16, 16), (16, 16))
    assert _is_fused(lambda *args: _attention(*args, between=negative), (16, 16), (16, 16), (16, 16))
    assert not _is_fused(_attention, (2, 16), (9000, 16), (9000, 16))
    q, k, v = (floats(16, 16, seed=seed) for seed in range(3))
    shares, mixed = run_graph(kept, q, k, v)
    assert np.allclose(mixed, shares @ v, 1e-4, 1e-5)


@pytest.mark.parametrize(("length", "depth"), [(256, 64), (384, 32), (512, 128)])
def test_attention_takes_at_most_one_and_a_half_times_the_example(
    length: int, depth: int, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", [str(root / "examples"), *sys.path])
    neurontools.nki.install()
    import attention as example  # the examples are not a package

    q, k, v = (floats(length, depth, seed=seed) for seed in range(3))
    turned = [np.ascontiguousarray(q.T), np.ascontiguousarray(k.T), v]
    kernel = neurontools.build(example.attention, *turned)
    given = dict(zip((one.name for one in kernel.inputs), turned, strict=True))
    want = neurontools.run(kernel, given)
    made = compiled(lambda b, q, k, v: _attention(b, b.transpose(q, (1, 0)), b.transpose(k, (1, 0)), v), *turned)
    mine = neurontools.run(neurontools.open_neff(made.neff), dict(zip(made.names.inputs, turned, strict=True)))
    assert mine.time_ps <= 1.5 * want.time_ps
    assert np.allclose(mine.outputs["output0"], _want(q, k, v), 1e-4, 1e-5)
    rowwise = compiled(_attention, q, k, v)
    again = neurontools.run(
        neurontools.open_neff(rowwise.neff), dict(zip(rowwise.names.inputs, (q, k, v), strict=True))
    )
    assert again.time_ps <= 1.5 * want.time_ps
    assert run(rowwise, q, k, v)[0].shape == (length, depth)
