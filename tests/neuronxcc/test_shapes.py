"""Shapes that kernels of courses combine: reductions over any free axes, operands of fewer dimensions, columns."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import neurontools.neuronxcc.nki as nki
import neurontools.neuronxcc.nki.isa as nisa
import neurontools.neuronxcc.nki.language as nl
from neurontools.nki.errors import NkiValidationError

RANDOM = np.random.default_rng(8)
X = RANDOM.standard_normal((128, 6, 8), np.float32)
COLUMN = RANDOM.standard_normal((128, 1), np.float32)
ROW = RANDOM.standard_normal((128, 8), np.float32)


def run(body: Any, *args: Any) -> Any:
    """Return what a function of loaded tiles gives, stored in HBM."""

    def kernel(*tensors: Any) -> Any:
        result = body(*map(nl.load, tensors))
        out = nl.ndarray(result.shape, result.dtype, buffer=nl.shared_hbm)
        nl.store(out, result)
        return out

    return nki.jit(kernel)(*args)


AXES = [(1,), (2,), (1, 2), (3,), (1, 3), (2, 4), (2, 3, 4), (-4, -2)]


@pytest.mark.parametrize("axes", AXES)
@pytest.mark.parametrize("keepdims", [False, True])
def test_reductions_over_any_free_axes(axes: tuple[int, ...], keepdims: bool) -> None:
    shape = (128, 3, 2, 4, 2)
    want = X.reshape(shape).max(axes, keepdims=keepdims)
    sums = X.reshape(shape).sum(axes, keepdims=keepdims)
    of_isa = run(lambda x: nisa.tensor_reduce(nl.max, x.reshape(shape), axis=axes, keepdims=keepdims), X)
    of_language = run(lambda x: nl.max(x.reshape(shape), axis=axes, keepdims=keepdims), X)
    assert of_isa.shape == of_language.shape == want.shape
    np.testing.assert_array_equal(of_isa, want)
    np.testing.assert_array_equal(of_language, want)
    got = run(lambda x: nisa.tensor_reduce(np.add, x.reshape(shape), axis=list(axes), negate=True), X)
    np.testing.assert_allclose(got.reshape(sums.shape), -sums, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("rows", [128, 70])
@pytest.mark.parametrize("columns", [6, 4])
def test_reductions_under_a_mask_of_kept_and_of_reduced_axes(rows: int, columns: int) -> None:
    def kernel(x: Any) -> Any:
        out = nl.full((128, 8), 9.0, nl.float32, buffer=nl.shared_hbm)
        kept = nl.full((128, 6), 9.0, nl.float32, buffer=nl.shared_hbm)
        i, j, k = nl.arange(128)[:, None, None], nl.arange(6)[None, :, None], nl.arange(8)[None, None, :]
        tile, mask = nl.load(x), (i < rows) & (j < columns)
        into = nl.full((128, 8), 9.0, nl.float32, buffer=nl.sbuf)
        into[...] = nisa.tensor_reduce(nl.add, tile, axis=[1], mask=mask)
        nl.store(out, into)
        rest = nl.full((128, 6), 9.0, nl.float32, buffer=nl.sbuf)
        rest[...] = nl.sum(tile, axis=2, mask=mask & (k < 5))
        nl.store(kept, rest)
        return out, kept

    want, rest = np.full((128, 8), 9, np.float32), np.full((128, 6), 9, np.float32)
    want[:rows] = X[:rows, :columns].sum(1)
    rest[:rows, :columns] = X[:rows, :columns, :5].sum(2)
    for got, one in zip(nki.jit(kernel)(X), (want, rest), strict=True):
        np.testing.assert_allclose(got, one, rtol=1e-4, atol=1e-4)


def test_means_and_softmax_over_a_middle_axis() -> None:
    np.testing.assert_allclose(run(lambda x: nl.mean(x, axis=1), X), X.mean(1), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(run(lambda x: nl.var(x, axis=1), X), X.var(1, keepdims=True), rtol=1e-3, atol=1e-4)
    powers = np.exp(X)
    np.testing.assert_allclose(
        run(lambda x: nl.softmax(x, axis=1), X), powers / powers.sum(1, keepdims=True), rtol=1e-3, atol=1e-5
    )


@pytest.mark.parametrize("axis", [0, [0, 1], [1, 1], 3, []])
def test_axes_that_cannot_be_reduced(axis: Any) -> None:
    for reduce in (lambda x: nl.max(x, axis=axis), lambda x: nisa.tensor_reduce(nl.max, x, axis=axis)):
        with pytest.raises(NkiValidationError, match="must name free dimensions, 1 to 2"):
            run(reduce, X)


@pytest.mark.parametrize("combine", [
    lambda x, y: nisa.tensor_tensor(x, y, op=nl.add), lambda x, y: nisa.tensor_tensor(y, x, op=nl.add), nl.add,
    lambda x, y: x + y, lambda x, y: y + x,
])  # fmt: skip
@pytest.mark.parametrize(("other", "wide"), [(COLUMN, COLUMN[:, :, None]), (ROW, ROW[:, None])])
def test_operands_of_fewer_dimensions_follow_the_partitions(combine: Any, other: Any, wide: Any) -> None:
    np.testing.assert_array_equal(run(combine, X, other), X + wide)


def test_as_many_elements_in_another_shape() -> None:
    flat = X.reshape(128, 48)
    np.testing.assert_array_equal(run(lambda x, y: nisa.tensor_tensor(x, y, nl.add), X, flat), X + X)
    np.testing.assert_array_equal(run(lambda x, y: nisa.tensor_tensor(x, y, nl.add), flat, X), flat + flat)


def test_shapes_that_do_not_go_together() -> None:
    for combine in (nl.add, lambda x, y: nisa.tensor_tensor(x, y, nl.add), lambda x, y: x * y):
        with pytest.raises(NkiValidationError, match=r"tiles of \(128, 6, 8\) and \(128, 5\) do not broadcast"):
            run(combine, X, COLUMN * np.ones((1, 5), np.float32))


def test_columns_of_narrow_floats_are_scalars() -> None:
    half, column = X.astype(np.float16), COLUMN.astype(np.float16)
    got = run(lambda x, y: nisa.tensor_scalar(x, nl.add, y, op1=nl.multiply, operand1=y), half, column)
    want = (half.astype(np.float32) + column[:, :, None]) * column[:, :, None]
    np.testing.assert_allclose(got.astype(np.float32), want, rtol=1e-3, atol=1e-3)


def test_what_the_harnesses_of_courses_ask_of_a_benchmark(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert logging.getLevelName(logging.OFF) == "OFF" and logging.OFF > logging.CRITICAL  # type: ignore[attr-defined]

    @nki.jit
    def kernel(x: Any) -> Any:
        out = nl.ndarray(x.shape, x.dtype, buffer=nl.hbm)
        nl.store(out, nl.load(x) * 2.0)
        return out

    file = tmp_path / "file.neff"
    for bench in (
        nki.benchmark(kernel, warmup=1, iters=10, save_neff_name=str(file), save_trace_name="file.ntff"),
        nki.benchmark(warmup=1, iters=10)(kernel),
    ):
        np.testing.assert_array_equal(bench(X), X * 2)
        assert 1 < bench.benchmark_result.nc_latency.get_latency_percentile(99) < 1000
    from formats.neff import open_neff

    assert open_neff(file.read_bytes()) is not None
    assert "save_trace_name: no trace is written" in capsys.readouterr().err


def test_the_files_that_baremetal_and_profile_are_asked_for(tmp_path: Path) -> None:
    from formats.neff import open_neff

    def kernel(x: Any) -> Any:
        out = nl.ndarray(x.shape, x.dtype, buffer=nl.hbm)
        nl.store(out, nl.load(x) * 2.0)
        return out

    ways = nki.baremetal(save_neff_name=str(tmp_path / "bare.neff")), nki.profile(
        working_directory=tmp_path, save_neff_name="profiled.neff", profile_nth=2)  # fmt: skip
    for way in ways:
        np.testing.assert_array_equal(way(kernel)[1](X), X * 2)
    for name in ("bare", "profiled"):
        assert open_neff((tmp_path / f"{name}.neff").read_bytes()).inputs[0].name == "x"


@pytest.mark.parametrize("use", [
    lambda x: nl.load(nl.broadcast_to(x[3:4], (16, 8))), lambda x: nl.load(x[3:4].broadcast_to((16, 8))),
    lambda x: nl.add(nl.zeros((16, 8), nl.float32), x[3:4]),
    lambda x: nisa.tensor_tensor(nl.zeros((16, 8), nl.float32), x[3:4], np.add),
])  # fmt: skip
def test_a_row_in_hbm_is_repeated_and_not_the_rows_behind_it(use: Any) -> None:
    def kernel(x: Any) -> Any:
        out = nl.ndarray((16, 8), nl.float32, buffer=nl.shared_hbm)
        nl.store(out, use(x))
        return out

    x = np.arange(256, dtype=np.float32).reshape(32, 8)
    np.testing.assert_array_equal(nki.simulate_kernel(nki.jit(kernel), x), np.broadcast_to(x[3], (16, 8)))


def test_a_row_in_hbm_is_assigned_to_all_rows_of_a_tile() -> None:
    def kernel(x: Any) -> Any:
        tile, out = nl.ndarray((16, 8), nl.float32), nl.ndarray((16, 8), nl.float32, buffer=nl.shared_hbm)
        tile[...] = x[3:4]
        nl.store(out, tile)
        return out

    x = np.arange(256, dtype=np.float32).reshape(32, 8)
    np.testing.assert_array_equal(nki.simulate_kernel(nki.jit(kernel), x), np.broadcast_to(x[3], (16, 8)))


def test_a_tile_of_fewer_dimensions_is_repeated_behind_its_partitions() -> None:
    def kernel(x: Any) -> Any:
        out = nl.ndarray((128, 6, 4), x.dtype, buffer=nl.shared_hbm)
        tile = nl.load(x)
        cube = nl.ndarray((nl.par_dim(128), 6, 4), x.dtype, buffer=nl.sbuf)
        cube[0:128, 0:6, 0:1] = tile[0:128, 2:3]
        cube[:, 0:3, 1:4] = tile[:, 1:4]
        cube[:, 3:6, 1:4] = nl.exp(tile[:, 0:1])
        nl.store(out, cube)
        return out

    x = np.random.default_rng(4).standard_normal((128, 4)).astype(np.float32)
    want = np.broadcast_to(x[:, None, 2:3], (128, 6, 4)).copy()
    want[:, 0:3, 1:4] = x[:, None, 1:4]
    want[:, 3:6, 1:4] = np.exp(x[:, None, 0:1])
    np.testing.assert_allclose(nki.simulate_kernel(nki.jit(kernel), x), want, rtol=1e-6)
