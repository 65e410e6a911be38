"""`nisa.core_barrier`: engines, what is ordered, tiles in SBUF, and the order in which cores come to several."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import neurontools.nki as nki
import neurontools.nki.isa as nisa
import neurontools.nki.language as nl
from emulator import runtime
from formats.isa import CoreBarrier
from neurontools.nki import NkiValidationError
from neurontools.nki.launch import build_neff
from tests.nki.support import trace_body

A = np.arange(128 * 16, dtype=np.float32).reshape(128, 16)
ENGINE = nisa.engine


@pytest.fixture(autouse=True)
def _target(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEURON_PLATFORM_TARGET_OVERRIDE", "trn2")


@nki.jit
def swap_twice(data: Any, first: Any, second: Any) -> Any:
    """Each core gives the other its tile through a shared board, twice, meeting on the engines named."""
    me = nl.program_id(0)
    board = nl.ndarray((2, 2, *data.shape), data.dtype, nl.shared_hbm)
    tile = nl.ndarray(data.shape, data.dtype)
    nisa.dma_copy(tile, data)
    nisa.tensor_scalar(tile, tile, nl.add, float(me))
    for turn, engine in enumerate((first, second)):
        nisa.dma_copy(board[turn, me], tile)
        nisa.core_barrier(board, (0, 1), engine=getattr(ENGINE, engine))
        other = nl.ndarray(data.shape, data.dtype)
        nisa.dma_copy(other, board[turn, 1 - me])
        nisa.tensor_tensor(tile, tile, other, nl.add)
    output = nl.ndarray((2, *data.shape), data.dtype, nl.shared_hbm)
    nisa.dma_copy(output[me], tile)
    return output


@pytest.mark.parametrize("first", ["tensor", "vector", "scalar", "gpsimd", "sync"])
@pytest.mark.parametrize("second", ["gpsimd", "sync"])
def test_barriers_on_any_engine(first: str, second: str) -> None:
    neff = build_neff(swap_twice, (A, first, second), {}, lnc=2)
    for seed in (None, 1, 2):
        ran = runtime.run(neff, {"data": A}, seed=seed, checks=("racecheck", "synccheck"))
        assert ran.ok and not [one for one in ran.findings if one.serious]
        (found,) = ran.outputs.values()
        np.testing.assert_array_equal(found, np.stack([2 * (2 * A + 1)] * 2))
    names = {"tensor": "PE", "vector": "DVE", "scalar": "Activation", "gpsimd": "Pool", "sync": "SP"}
    for core in neff.subgraphs:
        at = [(engine, word.barrier_id) for engine, words in core.streams.items() for word in words
              if isinstance(word, CoreBarrier)]  # fmt: skip
        assert sorted(at, key=lambda one: one[1]) == [(names[first], 0), (names[second], 1)]


@nki.jit
def meet_about_a_tile(data: Any) -> Any:
    """Two barriers with nothing in shared memory between them, on two engines, one about a tile."""
    me = nl.program_id(0)
    tile = nl.ndarray(data.shape, data.dtype)
    nisa.dma_copy(tile, data)
    nisa.tensor_scalar(tile, tile, nl.add, float(me))
    nisa.core_barrier(tile, (0, 1), engine=ENGINE.vector)
    nisa.core_barrier(tile, (0, 1), engine=ENGINE.scalar)
    nisa.tensor_scalar(tile, tile, nl.multiply, 2.0)
    output = nl.ndarray((2, *data.shape), data.dtype, nl.shared_hbm)
    nisa.dma_copy(output[me], tile)
    return output


def test_a_tile_counts_as_used_by_its_barrier() -> None:
    neff = build_neff(meet_about_a_tile, (A,), {}, lnc=2)
    for seed in (None, 3, 4, 5):
        ran = runtime.run(neff, {"data": A}, seed=seed, checks=("racecheck", "synccheck"))
        assert ran.ok and not [one for one in ran.findings if one.serious]
        (found,) = ran.outputs.values()
        np.testing.assert_array_equal(found, np.stack([2 * A, 2 * (A + 1)]))


def test_what_a_barrier_cannot_meet_about() -> None:
    def body(buffer: Any) -> Any:
        return lambda: nisa.core_barrier(nl.ndarray((128, 4), nl.float32, buffer), (0, 1))

    for buffer in (nl.private_hbm, nl.psum):
        with pytest.raises(NkiValidationError, match="must be in shared HBM"):
            trace_body(body(buffer), "trn2", grid=(2,))
    with pytest.raises(NkiValidationError, match="needs a launch on two cores"):
        trace_body(body(nl.shared_hbm), "trn2")


def test_cores_that_cannot_meet() -> None:
    """`(0)`, which public kernels write for a launch on one core, is a number: the message says what to write."""

    def meeting(cores: Any) -> Any:
        return lambda: nisa.core_barrier(nl.ndarray((128, 4), nl.float32, nl.shared_hbm), cores)

    for cores in (0, 1, (0,), (1, 0), (0, 1, 2), None, "01"):
        with pytest.raises(NkiValidationError, match=re.escape(f"cores is {cores}, must be (0, 1)")):
            trace_body(meeting(cores), "trn2", grid=(2,))
        with pytest.raises(NkiValidationError, match=r"LNC is 1, .* leave it out where nl\.num_programs\(0\) is 1"):
            trace_body(meeting(cores), "trn2")
    for cores in ([0, 1], range(2)):
        trace_body(meeting(cores), "trn2", grid=(2,))
