"""DMA at indices that the device reads: gather, scatter, dynamic starts, read-modify-write; and DMA that adds."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neurontools import nki
from neurontools.nki import isa as nisa
from neurontools.nki import language as nl
from neurontools.nki.errors import KernelFaultError, NkiValidationError
from tests.nki.support import trace_body

TARGETS = ("trn1", "trn2", "trn3")
RNG = np.random.default_rng(7)


@pytest.fixture(params=TARGETS)
def target(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("NEURON_PLATFORM_TARGET_OVERRIDE", request.param)
    return str(request.param)


def load(tensor: Any, dtype: Any = None) -> Any:
    tile = nl.ndarray(tensor.shape, dtype or tensor.dtype, nl.sbuf)
    nisa.dma_copy(tile, tensor)
    return tile


def store(tile: Any) -> Any:
    output = nl.ndarray(tile.shape, tile.dtype, nl.shared_hbm)
    nisa.dma_copy(output, tile)
    return output


@nki.jit
def gather(data: Any, indices: Any, dtype: Any, oob_mode: Any, form: str) -> Any:
    rows, width = indices.shape[0], data.shape[1]
    index = load(indices)
    tile = nl.ndarray((rows, width), dtype, nl.sbuf)
    nisa.memset(tile, 0.0)
    if form == "ap":
        view = data.ap([[width, rows], [1, width]], vector_offset=index, indirect_dim=0)
    else:
        view = data.vector_select(0, index)
    nisa.dma_copy(tile, view, oob_mode=oob_mode)
    return store(tile)


@nki.jit
def scatter(source: Any, indices: Any, output: Any, times: int, oob_mode: Any) -> Any:
    rows, width = source.shape
    tile, index = load(source), load(indices)
    view = output.ap([[width, rows], [1, width]], vector_offset=index)
    nisa.dma_copy(view, tile, oob_mode=oob_mode)
    for _ in range(times):
        nisa.dma_compute(view, [view, tile], nl.add, oob_mode=oob_mode)
    return output


@nki.jit
def gather_add(data: Any, indices: Any, start: Any) -> Any:
    rows, width = start.shape
    tile, index = load(start), load(indices)
    nisa.dma_compute(tile, (tile, data.ap([[width, rows], [1, width]], vector_offset=index)), nl.add)
    return store(tile)


@nki.jit
def dynamic_start(data: Any, at: Any, dim: int) -> Any:
    view = data.select(dim, load(at))
    tile = nl.ndarray(view.shape, data.dtype, nl.sbuf)
    nisa.dma_copy(tile, view)
    return store(tile)


@nki.jit
def turned(data: Any, indices: Any) -> Any:
    index = load(indices)
    rows, width = index.size, data.shape[1]
    tile = nl.ndarray((width, rows), data.dtype, nl.sbuf)
    view = data.ap([[width, rows], [1, width]], vector_offset=index)
    nisa.dma_transpose(tile, view, axes=(1, 0))
    return store(tile)


@nki.jit
def added(a: Any, b: Any, c: Any, dtype: Any) -> Any:
    tile = nl.ndarray(a.shape, dtype, nl.sbuf)
    nisa.dma_compute(tile, [a, load(b), c], nl.add, scales=[1.0, 1.0, 1.0])
    return store(tile)


def rows_of(data: np.ndarray[Any, Any], indices: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return the rows at the indices, zeros for those that do not exist."""
    flat = indices[:, 0].astype(np.int64)
    known = (flat >= 0) & (flat < len(data))
    return np.where(known[:, None], data[np.where(known, flat, 0)], 0).astype(data.dtype)


@settings(max_examples=25, deadline=None)
@given(
    st.integers(1, 128),
    st.integers(1, 300),
    st.integers(1, 70),
    st.sampled_from([np.int32, np.uint32]),
    st.sampled_from(["ap", "select"]),
    st.integers(0, 1 << 32),
)
def test_a_gather_takes_the_rows(rows: int, many: int, width: int, kind: Any, form: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    data = rng.standard_normal((many, width)).astype(np.float32)
    indices = rng.integers(0, many + 3, (rows, 1)).astype(kind)
    got = gather(data, indices, nl.float32, nisa.oob_mode.skip, form)
    np.testing.assert_array_equal(got, rows_of(data, indices))


def test_a_gather_casts_and_leaves_out_negative_indices(target: str) -> None:
    data = RNG.standard_normal((50, 33)).astype(np.float32)
    indices = RNG.integers(-1, 50, (100, 1)).astype(np.int32)
    got = gather(data, indices, nl.bfloat16, nisa.oob_mode.skip, "ap")
    np.testing.assert_array_equal(got, rows_of(data, indices).astype(ml_dtypes.bfloat16))


def test_an_index_out_of_bounds_is_a_fault_by_default(target: str) -> None:
    with pytest.raises(KernelFaultError, match=r"'data' out of bounds.*, at nc0 Pool pc \d \(.*:\d+\); found index 8"):
        gather(np.zeros((8, 4), np.float32), np.array([[3], [8]], np.int32), nl.float32, nisa.oob_mode.error, "ap")


def test_a_scatter_writes_and_adds_in_place(target: str) -> None:
    output = RNG.standard_normal((200, 24)).astype(np.float32)
    source = RNG.standard_normal((90, 24)).astype(np.float32)
    indices = RNG.permutation(200)[:90].reshape(90, 1).astype(np.uint32)
    indices[4] = 200
    wanted = output.copy()
    keep = np.arange(90) != 4
    wanted[indices[keep, 0]] = source[keep] + source[keep] + source[keep]
    scatter(source, indices, output, 2, nisa.oob_mode.skip)
    np.testing.assert_array_equal(output, wanted)


def test_a_gather_may_add_to_a_tile(target: str) -> None:
    data = RNG.standard_normal((40, 16)).astype(np.float32)
    start = RNG.standard_normal((30, 16)).astype(np.float32)
    indices = RNG.integers(0, 40, (30, 1)).astype(np.int32)
    np.testing.assert_array_equal(gather_add(data, indices, start), start + data[indices[:, 0]])


@pytest.mark.parametrize("dim", [0, 1, 2])
def test_a_dynamic_select_starts_where_the_number_says(target: str, dim: int) -> None:
    data = RNG.standard_normal((6, 7, 8)).astype(np.float32)
    for at in (0, 5):
        got = dynamic_start(data, np.array([[at]], np.int32), dim)
        np.testing.assert_array_equal(got, data.take(at, dim))


@pytest.mark.parametrize("columns", [1, 2])
def test_a_transpose_counts_indices_down_the_partitions(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEURON_PLATFORM_TARGET_OVERRIDE", "trn2")
    data = RNG.standard_normal((300, 48)).astype(ml_dtypes.bfloat16)
    indices = RNG.integers(0, 300, (128, columns)).astype(np.uint32)
    np.testing.assert_array_equal(turned(data, indices), data[indices.T.flatten()].T)


def test_dma_adds_in_fp32_from_hbm_and_sbuf(target: str) -> None:
    a, b, c = (RNG.standard_normal((100, 3, 11)).astype(ml_dtypes.bfloat16) for _ in range(3))
    wanted = (a.astype(np.float32) + b.astype(np.float32) + c.astype(np.float32)).astype(ml_dtypes.bfloat16)
    np.testing.assert_array_equal(added(a, b, c, nl.bfloat16), wanted)


@nki.jit
def by_register(data: Any, at: Any, narrow: Any) -> Any:
    first, second = nisa.register_alloc(3), nisa.register_alloc()
    nisa.register_load(second, at)
    third = nisa.register_alloc(load(narrow)[1:2, 0:1])
    tile = nl.ndarray((4, data.shape[1]), data.dtype, nl.sbuf)
    for row, register in enumerate((first, second, third)):
        nisa.dma_copy(tile[row : row + 1], data.ap([[1, data.shape[1]]], scalar_offset=register, indirect_dim=0))
    nisa.register_move(second, first)
    nisa.register_move(first, 1)
    nisa.dma_copy(tile[3:4], data.select(0, first))
    number = nl.ndarray((1, 1), nl.uint32, nl.shared_hbm)
    nisa.register_store(number, second)
    return store(tile), number


def test_registers_give_starts_and_come_back(target: str) -> None:
    data = RNG.standard_normal((9, 20)).astype(np.float32)
    got, number = by_register(data, np.array([[7]], np.uint32), np.array([[0], [5]], np.int16))
    np.testing.assert_array_equal(got, data[[3, 7, 5, 1]])
    assert number[0, 0] == 3


def test_what_registers_cannot_do_is_said() -> None:
    def body() -> None:
        register = nisa.register_alloc()
        for act in (bool, int, range):
            with pytest.raises(TypeError, match="not known while the kernel is traced"):
                act(register)
        for bad, message in ((1 << 32, "32 bits"), ("x", "must be an integer"), (1.5, "must be an integer")):
            with pytest.raises(NkiValidationError, match=message):
                nisa.register_move(register, bad)
        with pytest.raises(NkiValidationError, match="must have one element"):
            nisa.register_load(register, nl.ndarray((2, 1), nl.int32, nl.sbuf))
        with pytest.raises(NkiValidationError, match="must be a register"):
            nisa.register_store(nl.ndarray((1, 1), nl.int32, nl.sbuf), 3)

    trace_body(body)


def test_what_indices_cannot_do_is_said() -> None:
    def body() -> None:
        data, tile = nl.ndarray((8, 4), nl.float32, nl.shared_hbm), nl.ndarray((8, 4), nl.float32, nl.sbuf)
        one, many = nl.ndarray((1, 1), nl.int32, nl.sbuf), nl.ndarray((8, 1), nl.int32, nl.sbuf)
        cases: list[tuple[Any, str]] = [
            (lambda: data.ap([[4, 8], [1, 4]], scalar_offset=many), "must be one"),
            (lambda: data.ap([[4, 8], [1, 4]], scalar_offset=one, vector_offset=many), "not both"),
            (lambda: data.ap([[4, 9], [1, 4]], vector_offset=many), "for 9 elements"),
            (lambda: data.select(0, one).ap([[1, 4]], scalar_offset=one), "indirect already"),
            (lambda: tile.select(0, one), "partition dimension"),
            (lambda: tile.vector_select(0, many), "in HBM"),
            (lambda: data.vector_select(1, many), "must be 0"),
            (lambda: data.vector_select(0, nl.ndarray((8, 1), nl.float32, nl.sbuf)), "integers in SBUF"),
            (lambda: nisa.dma_copy(tile[0:4], data.vector_select(0, many)[0:4]), "dimension 0 must be the 8"),
            (lambda: nisa.dma_copy(data.vector_select(0, many), data.vector_select(0, many)), "one side may be"),
            (lambda: nisa.dma_compute(tile, [tile], nl.add), "must be 2 to 16"),
            (lambda: nisa.dma_compute(tile, [tile, data], nl.multiply), "must be nl.add"),
            (lambda: nisa.dma_compute(tile, [tile, data], nl.add, scales=[1.0, 2.0]), "times 1.0"),
            (lambda: nisa.dma_compute(tile, [data, data.vector_select(0, many)], nl.add), "one of them must be dst"),
        ]
        assert data.select(0, one).is_indirect() and not data.is_indirect()
        for act, message in cases:
            with pytest.raises(NkiValidationError, match=message):
                act()

    trace_body(body)
