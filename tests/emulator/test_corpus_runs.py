"""Real compiler output on the emulator against NumPy: nothing but the files and the public kernel sources.

Needs NEURONTOOLS_CORPUS with checkouts of nkipy and trainium-kernel-fusion; skips without.
"""

from __future__ import annotations

import os
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from emulator.runtime import Result, run

SEED = 20260101


def _file(corpus: Path, *parts: str) -> Path:
    path = corpus.joinpath(*parts)
    if not path.is_file():
        pytest.skip(f"corpus has no {'/'.join(parts)}")
    return path


def excess(value: np.ndarray, x: np.ndarray, y: np.ndarray) -> float:
    """Return how far fp16 values are beyond half an ulp of the exact product x @ y.

    The unit is what one rounding of an fp32 sum can be off, 2**-24 of the sum of magnitudes; below 4 the values are
    fp32 products rounded to fp16.
    """
    wide = x.astype(np.float64), y.astype(np.float64)
    exact, magnitude = wide[0] @ wide[1], np.abs(wide[0]) @ np.abs(wide[1])
    half_ulp = 2.0 ** (np.floor(np.log2(np.maximum(np.abs(exact), 2.0**-14))) - 11)
    return float(((np.abs(value.astype(np.float64) - exact) - half_ulp) / (magnitude * 2.0**-24)).max())


@pytest.fixture(scope="module")
def matmul_small(corpus: Path) -> tuple[Result, np.ndarray, np.ndarray]:
    path = _file(corpus, "nkipy", "spike", "tests", "artifacts", "matmul_small.neff")
    rng = np.random.default_rng(SEED)
    x = rng.standard_normal((128, 256)).astype(np.float16)
    y = rng.standard_normal((256, 128)).astype(np.float16)
    return run(path, {"x": x, "y": y}), x, y


def test_matmul_small_is_the_rounded_product(matmul_small: tuple[Result, np.ndarray, np.ndarray]) -> None:
    result, x, y = matmul_small
    assert result.ok and not result.warnings
    output = result.outputs["output0"]
    assert output.dtype == np.float16 and output.shape == (128, 128)
    assert excess(output, x, y) < 4
    # The last bit differs from NumPy's only where the order of an fp32 sum decides.
    expected = (x.astype(np.float32) @ y.astype(np.float32)).astype(np.float16)
    assert (output == expected).mean() > 0.99
    assert len(result.outputs_by_core) == 2


def test_matmul_small_does_not_depend_on_the_schedule(
    corpus: Path, matmul_small: tuple[Result, np.ndarray, np.ndarray]
) -> None:
    path = _file(corpus, "nkipy", "spike", "tests", "artifacts", "matmul_small.neff")
    result, x, y = matmul_small
    inputs, expected = {"x": x, "y": y}, result.outputs["output0"].tobytes()
    for seed in range(5):
        assert run(path, inputs, seed=seed).outputs["output0"].tobytes() == expected
    assert run(path, inputs, timing=False).outputs["output0"].tobytes() == expected


def attention(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Return softmax(q' k) v' in float64; inputs are (head, sequence)."""
    q, k, v = (array.astype(np.float64) for array in (q, k, v))
    scores = q.T @ k
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return (weights / weights.sum(axis=1, keepdims=True)) @ v.T


@pytest.mark.parametrize(
    ("folder", "name", "limit"),
    [
        ("artifacts/baseline_fp32_s512", "baseline", 1e-5),
        ("artifacts/fused_fp32_s512", "fused", 1e-5),
        ("artifacts/baseline_bf16_s512", "baseline", 1e-2),
        ("artifacts/fused_bf16_s512", "fused", 1e-2),
        ("artifacts/baseline_fp32_s1024", "baseline", 1e-5),
        ("artifacts/fused_bf16_s1024", "fused", 1e-2),
        ("baseline_attention", "baseline", 1e-5),
        ("fused_attention", "fused", 1e-5),
    ],
)
def test_attention(corpus: Path, folder: str, name: str, limit: float) -> None:
    path = _file(corpus, "trainium-kernel-fusion", "profiling", *folder.split("/"), f"{name}.neff")
    dtype = ml_dtypes.bfloat16 if "bf16" in folder else np.float32
    length = 1024 if "1024" in folder else 512
    rng = np.random.default_rng(SEED)
    arrays = [(rng.random((128, length), np.float32) * 2 - 1).astype(dtype) for _ in range(3)]
    result = run(path, dict(zip(("q_ref", "k_ref", "v_ref"), arrays, strict=True)), seed=1)
    assert result.ok, result.fault or result.hang
    output = result.outputs["kernel_out"]
    assert output.shape == (length, 128)
    assert np.abs(output.astype(np.float64) - attention(*arrays)).max() < limit


@pytest.mark.skipif("NEURONTOOLS_LARGE" not in os.environ, reason="needs 14 GB and two minutes: set NEURONTOOLS_LARGE")
def test_matmul_large_is_the_rounded_product(corpus: Path) -> None:
    path = _file(corpus, "nkipy", "spike", "tests", "artifacts", "matmul_large.neff")
    depth, width, block = 32768, 65536, 1024
    rng = np.random.default_rng(SEED)
    x = (rng.standard_normal((128, depth)) * 0.25).astype(np.float16)
    # No two rows or columns of the 4 GiB operand are alike: one random strip, shifted from block to block.
    strip = (rng.standard_normal((block, width + 4099)) * 0.25).astype(np.float16)
    y = np.empty((depth, width), np.float16)
    for start in range(0, depth, block):
        shift = start // block * 127
        y[start : start + block] = strip[:, shift : shift + width]
    result = run(path, {"x": x, "y": y})
    assert result.ok and not result.warnings
    output = result.outputs["output0"].astype(np.float32)
    expected = np.zeros((128, width), np.float32)
    for start in range(0, depth, block):
        expected += x[:, start : start + block].astype(np.float32) @ y[start : start + block].astype(np.float32)
    half_ulp = 2.0 ** (np.floor(np.log2(np.maximum(np.abs(expected), 2.0**-14))) - 11)
    assert (output == expected.astype(np.float16)).mean() > 0.99
    # An fp32 sum of 32,768 products of this size is off by less than 2**-14.
    assert (np.abs(output - expected) - half_ulp).max() < 2.0**-14
