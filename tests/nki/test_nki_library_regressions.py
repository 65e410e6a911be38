"""What AWS's nki-library asks of a toolkit beyond single instructions, in kernels of our own."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import neurontools.nki as nki
import neurontools.nki.isa as nisa
import neurontools.nki.language as nl
from neurontools.builder import AllocationError
from neurontools.nki.dtype import float8_e5m2_x4, is_packed

P, N = 128, 512


def rows_of_products(x: Any, w: Any, rows: int, late: bool) -> Any:
    """Multiply into `rows` whole banks of PSUM; read them all at the end (`late`), or each at once."""
    out = nl.ndarray((rows, P, N), nl.float32, nl.shared_hbm)
    left, right = nl.ndarray((P, P), x.dtype, nl.sbuf), nl.ndarray((P, N), x.dtype, nl.sbuf)
    nisa.dma_copy(left, x)
    nisa.dma_copy(right, w)

    def read(row: int, bank: Any) -> None:
        result = nl.ndarray((P, N), nl.float32, nl.sbuf)
        nisa.tensor_scalar(result, bank, nl.add, float(row))
        nisa.dma_copy(out[row], result)

    banks = [nl.ndarray((P, N), nl.float32, nl.psum) for _ in range(rows)]
    for row, bank in enumerate(banks):
        nisa.nc_matmul(bank, left, right)
        nisa.nc_matmul(bank, left, right)
        if not late:
            read(row, bank)
    if late:
        for row, bank in enumerate(banks):
            read(row, bank)
    return out


@pytest.mark.parametrize("target", ["trn1", "trn2", "trn3"])
def test_more_banks_are_filled_than_there_are(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As `bwmm_shard_on_I.py` does with 12 tiles; the reads go between the products, and no bit changes."""
    monkeypatch.setenv("NEURON_PLATFORM_TARGET_OVERRIDE", target)
    rng = np.random.default_rng(0)
    x, w = (rng.standard_normal(shape).astype(ml_dtypes.bfloat16) for shape in ((P, P), (P, N)))
    late, early = (nki.simulate(rows_of_products)(x, w, 12, order) for order in (True, False))
    np.testing.assert_array_equal(late, early)
    product = x.astype(np.float32).T @ w.astype(np.float32)
    np.testing.assert_allclose(late, [2 * product + row for row in range(12)], rtol=1e-5, atol=1e-4)


def test_what_is_really_needed_at_once_is_still_refused() -> None:
    def sums(x: Any) -> Any:
        out = nl.ndarray((P, N), nl.float32, nl.shared_hbm)
        banks = [nl.ndarray((P, N), nl.float32, nl.psum) for _ in range(9)]
        total = nl.load(x)
        for bank in banks:
            nisa.memset(bank, 1.0)
            nisa.tensor_tensor(total, total, bank, nl.add)
        for bank in banks:  # each once more, with what all of them add up to
            nisa.tensor_tensor(total, total, bank, nl.add)
        nl.store(out, total)
        return out

    with pytest.raises(AllocationError, match=r"PSUM is full: .* 16384 of 16384 are taken by 8 live tensors"):
        nki.simulate(sums)(np.zeros((P, N), np.float32))


def loaded_anew(x: Any, rounds: int) -> Any:
    """Fill a row of tiles in each round, as `bwmm_shard_on_block.py` does, with as many others alive in between."""
    out = nl.ndarray((rounds, 2, 12, P, 4096), nl.bfloat16, nl.shared_hbm)
    tiles = [nl.ndarray((P, 4096), nl.bfloat16, nl.sbuf) for _ in range(12)]
    for turn in range(rounds):
        for number, tile in enumerate(tiles):
            nisa.dma_copy(tile, x)
            nisa.dma_copy(out[turn, 0, number], tile)
        others = [nl.ndarray((P, 4096), nl.bfloat16, nl.sbuf) for _ in range(20)]
        for other in others:
            nisa.dma_copy(other, x)
        for number in range(12):
            nisa.tensor_tensor(others[number], others[number], others[number + 8], nl.add)
            nisa.dma_copy(out[turn, 1, number], others[number])
    return out


def test_tiles_that_are_loaded_anew_give_their_bytes_away_in_between() -> None:
    x = np.random.default_rng(1).integers(-8, 8, (P, 4096)).astype(ml_dtypes.bfloat16)
    found = nki.simulate(loaded_anew)(x, 2).astype(np.float32)
    values = x.astype(np.float32)
    np.testing.assert_array_equal(found[:, 0], np.broadcast_to(values, found[:, 0].shape))
    np.testing.assert_array_equal(found[:, 1, :8], np.broadcast_to(2 * values, found[:, 1, :8].shape))
    np.testing.assert_array_equal(found[:, 1, 8:], np.broadcast_to(2 * values, found[:, 1, 8:].shape))


def quantized(x: Any) -> tuple[Any, Any]:
    data, scale = nl.ndarray((32, 4), nl.float8_e5m2_x4, nl.sbuf), nl.ndarray((32, 4), nl.uint8, nl.sbuf)
    nisa.memset(scale, 0)
    nisa.quantize_mx(data, nl.load(x), scale)
    out, scales = (nl.ndarray((32, 4), kind, nl.shared_hbm) for kind in (nl.float8_e5m2_x4, nl.uint8))
    nisa.dma_copy(out, data)
    nisa.dma_copy(scales, scale)
    return out, scales


def test_packed_results_go_by_the_name_that_a_package_registers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Test suites register the x4 types with NumPy and expect results of them; else they are the integers as ever."""
    monkeypatch.setenv("NEURON_PLATFORM_TARGET_OVERRIDE", "trn3")
    x = np.random.default_rng(2).standard_normal((32, 16)).astype(ml_dtypes.bfloat16)
    plain, scales = nki.simulate(quantized)(x)
    assert plain.dtype == np.uint32 and scales.dtype == np.uint8
    four = np.dtype([("lanes", "u1", (4,))])
    monkeypatch.setitem(np._core.sctypeDict, "float8_e5m2_x4", four)  # type: ignore[attr-defined]
    named, again = nki.simulate(quantized)(x)
    assert named.dtype == four and named.tobytes() == plain.tobytes()
    np.testing.assert_array_equal(again, scales)


def test_arrays_of_registered_packed_types_are_known_by_their_name() -> None:
    assert is_packed(SimpleNamespace(name=str(float8_e5m2_x4)))  # type: ignore[arg-type]
    assert not any(is_packed(np.dtype(kind)) for kind in (np.uint32, np.float32, ml_dtypes.bfloat16, "V4"))
