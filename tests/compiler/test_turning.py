"""Transposes of products: operands change places where nothing else sees it, and the sums stay."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import neurontools
from neurontools.compiler.canonicalise import canonicalise
from neurontools.compiler.expand import expand
from neurontools.compiler.graph import Graph, Value
from neurontools.compiler.rewriting import Builder, scalar_body
from tests.compiler.support import compiled, floats, run, run_graph

GROUPS = ((0, 1),)


def product(b: Builder, x: Value, y: Value, batch: int = 0) -> Value:
    """Append the product of two operands over their last dimension; the first `batch` are those of a batch."""
    shape = (*x.shape[:-1], *y.shape[batch:-1])
    left, right, axes = (len(x.shape) - 1,), (len(y.shape) - 1,), tuple(range(batch))
    return b.graph.add("dot", (x, y), "f32", shape, lhs_contracting=left, rhs_contracting=right, lhs_batch=axes,
                       rhs_batch=axes, precision=("DEFAULT", "HIGHEST"))  # fmt: skip


def reduced(b: Builder, value: Value, one_program: bool) -> Value:
    return b.graph.add("all-reduce", (value,), "f32", value.shape, groups=GROUPS, pairs=(), dimension=None,
                       one_program=one_program, body=scalar_body("add", "f32"))  # fmt: skip


def graph_of(make: Any, *shapes: tuple[int, ...]) -> Graph:
    graph = Graph("test")
    found = make(Builder(graph), *(graph.parameter("f32", shape) for shape in shapes))
    graph.roots = found if isinstance(found, list) else [found]
    return canonicalise(expand(graph))


@pytest.mark.parametrize(("left", "right", "batch", "order"), [
    ((70, 33), (300, 33), 0, (1, 0)), ((3, 20, 33), (3, 130, 33), 1, (0, 2, 1)), ((5, 6, 33), (7, 33), 0, (2, 0, 1)),
])  # fmt: skip
def test_the_product_is_made_transposed(
    left: tuple[int, ...], right: tuple[int, ...], batch: int, order: tuple[int, ...]
) -> None:
    def turned(b: Builder, x: Value, y: Value) -> Value:
        return b.transpose(product(b, x, y, batch), order)

    found = graph_of(turned, left, right)
    assert [node.opcode for node in found.nodes] == ["parameter", "parameter", "dot"]
    assert found.nodes[-1].attrs["precision"] == ("HIGHEST", "DEFAULT")
    x, y = np.round(floats(*left) * 8), np.round(floats(*right, seed=1) * 8)  # sums are exact in any order
    (got,) = run_graph(turned, x, y)
    (plain,) = run_graph(lambda b, x, y: product(b, x, y, batch), x, y)
    np.testing.assert_array_equal(got, np.transpose(plain, order))
    free = "abc"[: len(left) - batch - 1]
    axes = ("n" * batch) + free + "k", ("n" * batch) + "z" + "k", ("n" * batch) + free + "z"
    np.testing.assert_array_equal(plain, np.einsum(f"{axes[0]},{axes[1]}->{axes[2]}", x, y))


def test_what_is_used_twice_or_otherwise_stays() -> None:
    def twice(b: Builder, x: Value, y: Value) -> list[Value]:
        made = product(b, x, y)
        return [b.transpose(made, (1, 0)), made]

    def batch_moves(b: Builder, x: Value, y: Value) -> Value:
        return b.transpose(product(b, x, y, 1), (1, 0, 2))

    assert "transpose" in [node.opcode for node in graph_of(twice, (8, 4), (6, 4)).nodes]
    assert "transpose" in [node.opcode for node in graph_of(batch_moves, (3, 8, 4), (3, 6, 4)).nodes]


@pytest.mark.parametrize("one_program", [True, False])
def test_through_an_all_reduce_of_one_program_only(one_program: bool) -> None:
    """Ranks of other programs would add up elements of other places: what does not say that all run it stays."""

    def make(b: Builder, x: Value, y: Value) -> Value:
        return b.transpose(reduced(b, product(b, x, y), one_program), (1, 0))

    opcodes = [node.opcode for node in graph_of(make, (40, 16), (24, 16)).nodes]
    assert ("transpose" in opcodes) is not one_program
    x, y = [floats(40, 16, seed=rank) for rank in (0, 1)], [floats(24, 16, seed=rank) for rank in (2, 3)]
    made = compiled(make, x[0], y[0])
    inputs = [dict(zip(made.names.inputs, each, strict=True)) for each in zip(x, y, strict=True)]
    found = neurontools.run_ranks(neurontools.open_neff(made.neff), inputs, instance="trn2.48xlarge")
    want = sum((one @ other.T).T for one, other in zip(x, y, strict=True))
    for rank in found.results:
        np.testing.assert_allclose(rank.outputs[made.names.outputs[0]], want, rtol=1e-5, atol=1e-5)


def test_a_body_that_uses_the_product_counts() -> None:
    """A value that a loop's body names is used there too."""

    def make(b: Builder, x: Value) -> Value:
        y = b.transpose(product(b, x, x), (1, 0))
        return b.op("add", y, y)

    x = floats(9, 5)
    (got,) = run(compiled(make, x), x)
    np.testing.assert_allclose(got, 2 * (x @ x.T).T, rtol=1e-5)
