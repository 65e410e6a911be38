"""Triangular systems and Cholesky factors against NumPy in double precision; what the documented limits refuse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from neurontools.compiler.errors import UnsupportedGraphError
from neurontools.compiler.expand_linear import LARGEST
from neurontools.compiler.graph import Value
from neurontools.compiler.options import CompileOptions
from neurontools.compiler.rewriting import Builder
from tests.compiler.support import compiled, floats, run

Array = np.ndarray[Any, Any]
PLAIN, TRANSPOSED, ADJOINT = 1, 2, 3


def _solver(shape: tuple[int, ...], **attrs: Any) -> Any:
    def make(b: Builder, a: Value, given: Value) -> Value:
        return b.graph.add("triangular-solve", (a, given), a.dtype, shape, **attrs)

    return make


def _solved(a: Array, given: Array, *, left: bool, lower: bool, unit: bool, transpose: int) -> Array:
    """Return what NumPy gives for the triangle that counts."""
    a = a.astype(np.float64)
    a = np.tril(a) if lower else np.triu(a)
    if unit:
        a = np.where(np.eye(a.shape[-1], dtype=bool), 1, a)
    a = a if transpose == PLAIN else np.swapaxes(a, -1, -2)
    if left:
        return np.linalg.solve(a, given)
    return np.swapaxes(np.linalg.solve(np.swapaxes(a, -1, -2), np.swapaxes(given, -1, -2)), -1, -2)


@pytest.mark.parametrize("size", [1, 5, 40])
@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize(
    ("lower", "unit", "transpose"),
    [(True, False, PLAIN), (False, False, TRANSPOSED), (True, True, ADJOINT), (False, True, PLAIN)],
)
def test_systems(size: int, left: bool, lower: bool, unit: bool, transpose: int) -> None:
    a = 0.2 * floats(2, size, size) + 3 * np.eye(size, dtype=np.float32)
    other = np.float32(np.nan) * np.ones_like(a)  # on the other side of the diagonal, where nothing is looked at
    a = np.tril(a) + np.triu(other, 1) if lower else np.triu(a) + np.tril(other, -1)
    given = floats(*((2, size, 3) if left else (2, 3, size)), seed=1)
    attrs = {"left": left, "lower": lower, "unit": unit, "transpose": transpose}
    (got,) = run(compiled(_solver(given.shape, **attrs), a, given), a, given)
    expected = _solved(np.nan_to_num(a), given, **attrs)
    np.testing.assert_allclose(got, expected, rtol=0, atol=1e-5 * np.abs(expected).max())


@pytest.mark.parametrize("size", [1, 6, 45])
@pytest.mark.parametrize("lower", [True, False])
def test_factors(size: int, lower: bool) -> None:
    a = floats(2, size, size)
    a = a @ np.swapaxes(a, -1, -2) + size * np.eye(size, dtype=np.float32)
    kept = np.tril(a) if lower else np.triu(a)  # the other triangle is that of a symmetric matrix, and not read
    make = lambda b, x: b.graph.add("cholesky", (x,), "f32", a.shape, lower=lower)  # noqa: E731
    (got,) = run(compiled(make, kept), kept)
    expected = np.linalg.cholesky(a.astype(np.float64))
    expected = expected if lower else np.swapaxes(expected, -1, -2)
    np.testing.assert_allclose(got, expected, rtol=0, atol=1e-5 * np.abs(expected).max())


def test_what_is_not_positive_definite_has_no_factor() -> None:
    a = np.array([[4, 2, 2], [2, -3, 1], [2, 1, 9]], np.float32)
    (got,) = run(compiled(lambda b, x: b.graph.add("cholesky", (x,), "f32", (3, 3), lower=True), a), a)
    assert got[:, 0].tolist() == [2, 1, 1]
    assert np.isnan(got[1:, 1]).all() and np.isnan(got[2, 2])


@pytest.mark.parametrize("opcode", ["triangular-solve", "cholesky"])
def test_limits(opcode: str) -> None:
    attrs = {"left": True, "lower": True, "unit": False, "transpose": PLAIN}

    def make(b: Builder, x: Value) -> Value:
        operands = (x, x) if opcode == "triangular-solve" else (x,)
        return b.graph.add(opcode, operands, x.dtype, x.shape, **attrs)

    with pytest.raises(UnsupportedGraphError, match=f"EVRF001.*{opcode} is not supported at model.py:42"):
        compiled(make, floats(4, 4), options=CompileOptions(lnc=1))
    with pytest.raises(UnsupportedGraphError, match=f"EVRF001.*{opcode} of f16 is not supported"):
        compiled(make, floats(4, 4, dtype=np.float16))
    large = LARGEST + 1
    with pytest.raises(UnsupportedGraphError, match=f"EVRF001.*{opcode} of more than {LARGEST} rows"):
        compiled(make, floats(large, large))
