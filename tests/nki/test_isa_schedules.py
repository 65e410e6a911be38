"""Kernels of many engines' instructions give the same bits under every schedule, and no race is found in them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import neurontools.nki as nki
import neurontools.nki.isa as nisa
import neurontools.nki.language as nl
from neurontools.program.configuration import RunConfiguration
from neurontools.program.launches import Launches, using

P, F = 64, 32


def everything(x: Any) -> Any:
    """Chain instructions of GpSimd, Vector and Scalar through few tiles, so that each waits for another."""
    data, places = nl.load(x), nl.ndarray((P, F), nl.uint32)
    nisa.iota(places, [[-1, F]], offset=F - 1)
    turned, kept = nl.ndarray((P, F), nl.float32), nl.ndarray((P, F), nl.float32)
    results = []
    for step in range(3):
        nisa.nc_n_gather(turned, data, places)
        nisa.affine_select(kept, [[1, F]], -1, turned, -5.0, nl.greater_equal, offset=step)
        nisa.activation(turned, nl.tanh, kept)
        flags = nl.ndarray((P, F), nl.uint8)
        nisa.tensor_scalar(flags, data, nl.greater, 0.0)
        nisa.tensor_copy_predicated(kept, turned, flags)
        best, index, total = nl.ndarray((P, 8), nl.float32), nl.ndarray((P, 8), nl.uint32), nl.zeros((P, 1), nl.float32)
        nisa.max8(best, kept)
        nisa.nc_find_index8(index, kept, best)
        nisa.nc_match_replace8(kept, kept, best, 0.25)
        nisa.tensor_scalar_reduce(data, kept, nl.multiply, 1.5, nl.add, total)
        folded = nl.ndarray((1, F), nl.float32)
        nisa.tensor_partition_reduce(folded, nl.maximum, data)
        for tile in (best, index, total, folded):
            out = nl.ndarray(tile.shape, tile.dtype, nl.shared_hbm)
            nl.store(out, tile)
            results.append(out)
    return tuple(results)


@pytest.mark.parametrize("target", ["trn1", "trn2", "trn3"])
def test_schedules_agree(target: str) -> None:
    x = np.random.default_rng(4).normal(size=(P, F)).astype(np.float32)
    kernel = nki.jit(platform_target=target)(everything)
    first = kernel(x)
    for seed in range(4):
        launches = Launches(RunConfiguration(seed=seed, checks=("race",)))
        with using(launches):
            again = kernel(x)
        (launch,) = launches.done
        assert [finding for finding in launch.made.result.findings if finding.severity == "error"] == []
        for one, two in zip(first, again, strict=True):
            np.testing.assert_array_equal(one, two)
    expected = np.where(np.arange(F) - np.arange(P)[:, None] >= 0, x[:, ::-1], -5)
    kept = np.where(x > 0, np.tanh(expected), expected)
    np.testing.assert_allclose(first[0], -np.sort(-kept, axis=1)[:, :8], rtol=1e-5)
