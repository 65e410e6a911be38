"""Launches that only warn of limits of partitions and capacity; what does not fit at all is an error still."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import neurontools.nki as nki
import neurontools.nki.isa as nisa
import neurontools.nki.language as nl
from formats.errors import NeuronError
from neurontools.nki.errors import NkiValidationError

X = np.random.default_rng(12).standard_normal((128, 64), np.float32)


def lower_rows(x: Any) -> Any:
    """Compute on rows 16 to 79, which no engine begins at."""
    out = nl.ndarray((64, 64), nl.float32, buffer=nl.shared_hbm)
    tile, result = nl.load(x), nl.ndarray((128, 64), nl.float32, buffer=nl.sbuf)
    nisa.tensor_scalar(result[16:80], tile[16:80], nl.multiply, 2.0)
    nisa.dma_copy(out, result[16:80])
    return out


def spare(x: Any) -> Any:
    """Allocate tiles that no memory has, and use none of them."""
    nl.ndarray((256, 4), nl.float32, buffer=nl.sbuf)
    nl.ndarray((128, 1 << 20), nl.float32, buffer=nl.sbuf)
    placed = nl.ndarray((128, 64), nl.float32, buffer=nl.sbuf, address=(64, 0))
    nisa.dma_copy(placed, x)
    out = nl.ndarray(x.shape, nl.float32, buffer=nl.shared_hbm)
    nisa.dma_copy(out, placed)
    return out


def too_many_partitions(x: Any) -> Any:
    tile = nl.ndarray((256, 32), nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(tile, x.reshape((256, 32)))
    out = nl.ndarray((256, 32), nl.float32, buffer=nl.shared_hbm)
    nisa.dma_copy(out, tile)
    return out


def too_many_bytes(x: Any) -> Any:
    tile = nl.ndarray((128, 1 << 20), nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(tile[:, 0:64], x)
    out = nl.ndarray((128, 64), nl.float32, buffer=nl.shared_hbm)
    nisa.dma_copy(out, tile[:, 0:64])
    return out


@pytest.mark.parametrize(("kernel", "want", "warnings"), [
    (lower_rows, 2 * X[16:80], ["64 partitions must start at 0 or 64"] * 2),
    (spare, X, ["is 256 partitions, at most 128", "bytes per partition, at most", "puts 128 partitions past 128"]),
])  # fmt: skip
def test_limits_are_warnings_and_the_kernel_runs(
    kernel: Any, want: Any, warnings: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(NkiValidationError):
        nki.simulate(kernel)(X)
    np.testing.assert_array_equal(nki.simulate(kernel, lenient=True)(X), want)
    told = [line for line in capsys.readouterr().err.splitlines() if line.startswith("neurontools: warning: ")]
    assert len(told) == len(warnings) and all("test_lenient.py:" in line for line in told), told
    assert all(text in line for text, line in zip(warnings, told, strict=True)), told
    with pytest.raises(NkiValidationError):  # a launch that was built before answers for its own kind only
        nki.simulate(kernel)(X)


@pytest.mark.parametrize(("kernel", "words"), [
    (too_many_partitions, "tile of 256 partitions does not fit in the 128 partitions of SBUF"),
    (too_many_bytes, "SBUF is full: tile needs 4194304 bytes per partition"),
])  # fmt: skip
def test_what_does_not_fit_is_one_error(kernel: Any, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(NeuronError, match=words) as raised:
        nki.simulate(kernel, lenient=True)(X)
    assert "\n" not in str(raised.value) and "test_lenient.py:" in str(raised.value)
    assert "neurontools: warning: " in capsys.readouterr().err


def test_the_environment_and_the_kernel_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEURONTOOLS_LENIENT", "1")
    np.testing.assert_array_equal(nki.jit(lower_rows)(X), 2 * X[16:80])
    with pytest.raises(NkiValidationError):
        nki.simulate(lower_rows, lenient=False)(X)
    monkeypatch.setenv("NEURONTOOLS_LENIENT", "0")
    with pytest.raises(NkiValidationError):
        nki.jit(lower_rows)(X)
    np.testing.assert_array_equal(nki.jit(lower_rows, lenient=True)(X), 2 * X[16:80])


@pytest.mark.parametrize(("first", "width"), [(0, 1024), (256, 512), (100, 1300), (0, 512)])
@pytest.mark.parametrize("dims", [1, 2])
def test_a_product_wider_than_a_bank_takes_several(
    first: int, width: int, dims: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NEURON_PLATFORM_TARGET_OVERRIDE", "trn2")
    wide = np.random.default_rng(13).standard_normal((128, 1536), np.float32)

    def kernel(x: Any) -> Any:
        tile, total = nl.load(x), nl.ndarray((64, 2048), nl.float32, buffer=nl.psum)
        part, moving = total[:, first : first + width], tile[:, 0:width]
        if dims == 2:
            part, moving = part.reshape((64, 2, width // 2)), moving.reshape((128, 2, width // 2))
        nisa.nc_matmul(part, tile[:, 0:64], moving)
        nisa.nc_matmul(part, tile[:, 64:128], moving)
        out = nl.ndarray((64, width), nl.float32, buffer=nl.shared_hbm)
        nl.store(out, total[:, first : first + width])
        return out

    want = (wide[:, :64] + wide[:, 64:128]).T @ wide[:, :width]
    np.testing.assert_allclose(nki.simulate(kernel, lenient=True)(wide), want, rtol=1e-3, atol=1e-3)
