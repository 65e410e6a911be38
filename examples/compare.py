"""Compare a kernel's result with NumPy's, print one line, and end the script accordingly."""

import sys

import numpy as np


def compare(name, got, want, tolerance):
    """Print the largest error relative to the largest value; exit with 1 when it is over `tolerance`."""
    got, want = np.asarray(got, np.float64), np.asarray(want, np.float64)
    error = float(np.abs(got - want).max() / np.abs(want).max()) if got.shape == want.shape else float("inf")
    right = error <= tolerance  # false for NaN too
    print(f"{name}: {'ok' if right else 'WRONG'}, shape {got.shape}, largest relative error {error:.1e}")
    if not right:
        sys.exit(1)
