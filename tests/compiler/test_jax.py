"""Functions that JAX traces, through `neurontools.jax.jit` and `neurontools.compile`; without JAX they are skipped."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import neurontools
from tests.compiler.support import floats

jax = pytest.importorskip("jax", reason="needs jax (pip install 'neurontools[jax]')")


def test_gradients_and_batches() -> None:
    from neurontools.jax import jit

    def loss(w, x):  # type: ignore[no-untyped-def]
        return (jax.numpy.tanh(x @ w) ** 2).sum()

    w, x = floats(8, 4), floats(3, 8, seed=1)
    run = jit(jax.grad(loss))
    np.testing.assert_allclose(run(w, x), jax.grad(loss)(w, x), rtol=1e-4, atol=1e-5)
    assert run.result.time_ps > 0
    np.testing.assert_allclose(jit(jax.vmap(jax.numpy.sort))(x), np.sort(x, 1))
    np.testing.assert_allclose(jax.grad(jit(loss))(w, x), jax.grad(loss)(w, x), rtol=1e-6)


def test_trees_truth_values_and_empty_results() -> None:
    from neurontools.jax import jit

    x = floats(4, 5)
    made = jit(lambda d: {"where": d["x"] > 0, "sum": d["x"].sum(), "none": d["x"][:0]})({"x": x})
    assert made["where"].dtype == bool
    assert (np.asarray(made["where"]) == (x > 0)).all()
    np.testing.assert_allclose(made["sum"], x.sum(), rtol=1e-5)
    assert made["none"].shape == (0, 5)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16", "bool", "int8", "uint32", "complex64"])
def test_results_without_elements_keep_their_type(dtype: str) -> None:
    from neurontools.jax import jit

    none, _ = jit(lambda x: (x[:0].astype(dtype), x * 2))(floats(4, 5))
    assert none.shape == (0, 5) and none.dtype.name == dtype


def test_a_function_becomes_a_file(tmp_path: Path) -> None:
    def grown(x):  # type: ignore[no-untyped-def]
        return x + 1

    # JAX notes the line of the call as well, so that both are made on one.
    first, second = (neurontools.compile(grown, floats(4), cache=tmp_path) for _ in range(2))
    assert [one.name for one in tmp_path.glob("*/MODULE_*/model.done")] == ["model.done"]
    (got,) = neurontools.run(second, {"input0": floats(4)}).outputs.values()
    np.testing.assert_allclose(got, floats(4) + 1)
    assert first.verify() == []
