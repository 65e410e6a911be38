"""Fourier transforms as products with the matrix of the transform, one dimension after the other.

A matrix of n x n constants is cheap for the lengths that models have; longer transforms are refused by verification.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from neurontools.compiler.complex_math import Pair
from neurontools.compiler.graph import Value
from neurontools.compiler.rewriting import Builder

__all__ = ["LONGEST", "transformed"]

LONGEST = 1024  # elements of a dimension; the matrix has that squared


def transformed(b: Builder, kind: str, lengths: Sequence[int], given: Value | Pair) -> Value | Pair:
    """Return the transform over the last dimensions, `kind` as HLO names it."""
    first = len((given.real if isinstance(given, Pair) else given).shape) - len(lengths)
    axes = list(range(first, first + len(lengths)))
    if kind == "RFFT":
        assert isinstance(given, Value)  # complex numbers have no such transform
        cosine, sine = _matrix(lengths[-1], lengths[-1] // 2 + 1)
        turned = Pair(_along(b, given, cosine, axes[-1]), _along(b, given, sine, axes[-1]))
        return _complex(b, turned, axes[:-1], lengths, inverse=False)
    assert isinstance(given, Pair)
    if kind == "IRFFT":
        count = lengths[-1]
        turned = _complex(b, given, axes[:-1], lengths, inverse=True)
        kept = count // 2 + 1
        twice = np.where((np.arange(kept) == 0) | (2 * np.arange(kept) == count), 1.0, 2.0)[:, None] / count
        cosine, sine = (one.T[:kept] * twice for one in _matrix(count, kept))
        return b.op("add", _along(b, turned.real, cosine, axes[-1]), _along(b, turned.imaginary, sine, axes[-1]))
    return _complex(b, given, axes, lengths, inverse=kind == "IFFT")


def _complex(b: Builder, z: Pair, axes: Sequence[int], lengths: Sequence[int], *, inverse: bool) -> Pair:
    for axis, count in zip(axes, lengths, strict=False):
        cosine, sine = _matrix(count, count)
        if inverse:
            cosine, sine = cosine / count, -sine / count
        real = b.op("subtract", _along(b, z.real, cosine, axis), _along(b, z.imaginary, sine, axis))
        z = Pair(real, b.op("add", _along(b, z.real, sine, axis), _along(b, z.imaginary, cosine, axis)))
    return z


def _matrix(count: int, kept: int) -> tuple[np.ndarray[tuple[int, ...], np.dtype[np.float64]], ...]:
    """Return real and imaginary parts of exp(-2 pi i n k / count) for every n and the first k; exact multiples."""
    turns = np.outer(np.arange(count), np.arange(kept)) % max(count, 1)
    angles = -2.0 * np.pi * turns / max(count, 1)
    return np.cos(angles), np.sin(angles)


def _along(b: Builder, x: Value, matrix: np.ndarray[tuple[int, ...], np.dtype[np.float64]], axis: int) -> Value:
    """Return the product with a matrix along a dimension, which stays where it is."""
    rank, table = len(x.shape), b.constant(matrix, "f32")
    others = [one for one in range(rank) if one != axis]
    shape = (*(x.shape[one] for one in others), matrix.shape[1])
    made = b.graph.add("dot", (x, table), "f32", shape, lhs_contracting=(axis,), rhs_contracting=(0,), lhs_batch=(),
                       rhs_batch=(), precision=())  # fmt: skip
    order = [*range(axis), rank - 1, *range(axis, rank - 1)]
    return b.transpose(made, order)
