"""The problem of the tutorial: softmax over long rows, and how far a result is from the right one."""

import numpy as np

ROWS, COLUMNS = 128, 1024


def data():
    """Return scores as a model gives them: most are small, a few are large."""
    random = np.random.default_rng(0)
    scores = random.standard_normal((ROWS, COLUMNS)).astype(np.float32)
    scores[:, ::100] *= 40
    return scores


def report(result):
    """Print how far a result is from the softmax of the data, in double precision."""
    scores = data().astype(np.float64)
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    right = powers / powers.sum(axis=1, keepdims=True)
    print(f"largest error {np.abs(np.asarray(result, np.float64) - right).max():.2e}")
