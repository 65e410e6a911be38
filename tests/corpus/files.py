"""The public files that the corpus tests read, and what their kernels compute."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

__all__ = ["ATTENTION", "CAPTURES", "EARLIER_CAPTURES", "MATMUL_LARGE", "MATMUL_SMALL", "SEED", "attention",
           "attention_inputs", "excess", "find", "matmul_small_inputs"]  # fmt: skip

SEED = 20260101
MATMUL_SMALL = "nkipy/spike/tests/artifacts/matmul_small.neff"
MATMUL_LARGE = "nkipy/spike/tests/artifacts/matmul_large.neff"
_PROFILING = "trainium-kernel-fusion/profiling"
_FOLDERS = [
    ("baseline_attention", "baseline"),
    ("fused_attention", "fused"),
    *((f"artifacts/{kind}_{dtype}_s{length}", kind)
      for kind in ("baseline", "fused") for dtype in ("bf16", "fp32") for length in (512, 1024)),
]  # fmt: skip
ATTENTION = [f"{_PROFILING}/{folder}/{kind}.neff" for folder, kind in _FOLDERS]
# (capture, NEFF, profile that AWS's profiler printed of the capture)
CAPTURES = [
    (f"{_PROFILING}/{folder}/{kind}_exec_2.ntff", f"{_PROFILING}/{folder}/{kind}.neff",
     f"{_PROFILING}/{folder}/json_reports/{kind}_exec_2_profile_full.json")
    for folder, kind in _FOLDERS
]  # fmt: skip
# Captures of versions 4 and 5; the NEFF of each has its name.
_SMALLER = [f"conv2d_{number}_{dtype}_smaller" for number in range(1, 6) for dtype in ("float16", "float32")]
_CONVOLUTIONS = [f"my_{kind}_{dtype}_smaller" for kind in ("conv_kernel", "convpool_kernel", "convpool_kernel_pool")
                 for dtype in ("float16", "float32")]  # fmt: skip
EARLIER_CAPTURES = [
    *(f"CS149-asst4/part1/stream_256k_fd{size}k.ntff" for size in (1, 2)),
    *(f"{folder}/part1/stream_256k_fd{size}k.ntff" for folder in ("asst4-trainium2", "cs149-pa4") for size in (1, 2)),
    "asst4-trainium2/part1/transpose_1024.ntff", "cs149-pa4/part1/transpose_1024_0.ntff",
    *(f"asst4-trainium2/part2/{name}.ntff" for name in ("conv2d_2_float16", *_SMALLER)),
    *(f"cs149-pa4/part2/{name}.ntff" for name in _CONVOLUTIONS),
]  # fmt: skip


def find(corpus: Path, name: str) -> Path:
    """Return a file or folder of the corpus; skip where it was not fetched."""
    path = corpus / name
    if not path.exists():
        pytest.skip(f"corpus has no {name}")
    return path


def matmul_small_inputs() -> dict[str, Any]:
    """Return x and y of the small product."""
    rng = np.random.default_rng(SEED)
    x = rng.standard_normal((128, 256)).astype(np.float16)
    return {"x": x, "y": rng.standard_normal((256, 128)).astype(np.float16)}


def attention_inputs(name: str) -> dict[str, Any]:
    """Return q, k and v as the file takes them, from -1 to 1."""
    dtype = ml_dtypes.bfloat16 if "bf16" in name else np.float32
    length = 1024 if "1024" in name else 512
    rng = np.random.default_rng(SEED)
    return {key: (rng.random((128, length), np.float32) * 2 - 1).astype(dtype) for key in ("q_ref", "k_ref", "v_ref")}


def attention(q: Any, k: Any, v: Any) -> Any:
    """Return softmax(q' k) v' in float64; inputs are (head, sequence)."""
    q, k, v = (array.astype(np.float64) for array in (q, k, v))
    scores = q.T @ k
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return (weights / weights.sum(axis=1, keepdims=True)) @ v.T


def excess(value: Any, x: Any, y: Any) -> float:
    """Return how far fp16 values are beyond half an ulp of the exact product x @ y.

    The unit is what one rounding of an fp32 sum can be off, 2**-24 of the sum of magnitudes; below 4 the values are
    fp32 products rounded to fp16.
    """
    wide = x.astype(np.float64), y.astype(np.float64)
    exact, magnitude = wide[0] @ wide[1], np.abs(wide[0]) @ np.abs(wide[1])
    half_ulp = 2.0 ** (np.floor(np.log2(np.maximum(np.abs(exact), 2.0**-14))) - 11)
    return float(((np.abs(value.astype(np.float64) - exact) - half_ulp) / (magnitude * 2.0**-24)).max())
