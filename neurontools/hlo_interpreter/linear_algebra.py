"""Fourier transforms, triangular systems, Cholesky factors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from formats.hlo import Instruction
from neurontools.hlo_interpreter.numbers import exact, rounded
from neurontools.hlo_interpreter.registry import Array, Evaluator, Value, dtype, operation

__all__: list[str] = []


@operation("fft")
def fourier(instruction: Instruction, operands: list[Value], _: Evaluator) -> Value:
    """Transform along the last dimensions, in double precision."""
    values, lengths = exact(operands[0]), instruction.fft_length
    axes = tuple(range(values.ndim - len(lengths), values.ndim))
    function: dict[str, Callable[..., Any]] = {
        "FFT": np.fft.fftn,
        "IFFT": np.fft.ifftn,
        "RFFT": np.fft.rfftn,
        "IRFFT": np.fft.irfftn,
    }
    return rounded(function[instruction.fft_type](values, lengths, axes), dtype(instruction))


@operation("triangular-solve")
def triangular_solve(instruction: Instruction, operands: list[Value], _: Evaluator) -> Value:
    """Solve a x = b, or x a = b, by substitution; what lies on the other side of the diagonal is not looked at."""
    options = instruction.triangular_solve
    a, b = exact(operands[0]), exact(operands[1])
    a = np.tril(a) if options.lower else np.triu(a)
    if options.unit_diagonal:
        eye = np.eye(a.shape[-1], dtype=bool)
        a = np.where(eye, 1, a)
    # XLA's numbers: 1 is no transpose, 2 transpose, 3 adjoint.
    if options.transpose_a > 1:
        a = np.swapaxes(a, -1, -2)
        if options.transpose_a == 3:
            a = a.conj()
    lower = options.lower == (options.transpose_a <= 1)
    if options.left_side:
        found = _substituted(a, b, lower=lower)
    else:
        found = np.swapaxes(_substituted(np.swapaxes(a, -1, -2), np.swapaxes(b, -1, -2), lower=not lower), -1, -2)
    return rounded(found, dtype(instruction))


def _substituted(a: Array, b: Array, *, lower: bool) -> Array:
    size = a.shape[-1]
    found = np.zeros_like(b)
    for row in range(size) if lower else range(size - 1, -1, -1):
        known = np.matmul(a[..., row : row + 1, :], found)[..., 0, :]
        found[..., row, :] = (b[..., row, :] - known) / a[..., row, row][..., None]
    return found


@operation("cholesky")
def cholesky(instruction: Instruction, operands: list[Value], _: Evaluator) -> Value:
    """Return the triangular factor; NaN where the matrix is not positive definite."""
    values = exact(operands[0])
    if not instruction.cholesky_lower:
        values = np.swapaxes(values, -1, -2).conj()
    size = values.shape[-1]
    found = np.zeros_like(values)
    for column in range(size):
        row = found[..., column, :column]
        left = values[..., column, column].real - (row * row.conj()).sum(-1).real
        found[..., column, column] = np.sqrt(np.where(left > 0, left, np.nan))
        below = values[..., column + 1 :, column] - np.matmul(
            found[..., column + 1 :, :column], row.conj()[..., None]
        )[..., 0]  # fmt: skip
        found[..., column + 1 :, column] = below / found[..., column, column][..., None]
    return rounded(found if instruction.cholesky_lower else np.swapaxes(found, -1, -2).conj(), dtype(instruction))
