"""Kernels as the first generation of NKI writes them: index expressions, masks, tiles as results, launch grids."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import neurontools
import neurontools.neuronxcc.nki as nki
import neurontools.neuronxcc.nki.isa as nisa
import neurontools.neuronxcc.nki.language as nl
from formats.errors import UnsupportedError
from neurontools.builder.trace import MatmulOp
from neurontools.neuronxcc.nki import compiler, typing
from neurontools.neuronxcc.nki.affine import Mask
from neurontools.neuronxcc.nki.masks import masked_box
from neurontools.nki.errors import NkiValidationError
from neurontools.nki.tracer import tracer

RANDOM = np.random.default_rng(0)
A = RANDOM.standard_normal((128, 512), np.float32)
B = RANDOM.standard_normal((128, 64), np.float32)


def test_a_mask_is_the_box_that_numpy_finds() -> None:
    i, j = nl.mgrid[0:20, 0:30]
    grid_i, grid_j = np.mgrid[0:20, 0:30]

    def cases(p: Any, f: Any) -> list[Any]:
        return [p < 7, (p * 3 + 2 <= 20) & (f >= 5), (2 * f > 9) & (p > 3), (p == 4), (100 - 4 * f > 3), (p < 0)]

    for mine, want in zip(cases(i, j), cases(grid_i, grid_j), strict=True):
        assert isinstance(mine, Mask)
        got = np.zeros((20, 30), bool)
        got[tuple(slice(low, high) for low, high in masked_box(mine, (20, 30)) or ((0, 20), (0, 30)))] = True
        np.testing.assert_array_equal(got, want)
    assert masked_box(i + j >= 0, (20, 30)) is None
    with pytest.raises(UnsupportedError, match="a mask that leaves 20 boxes of places"):
        masked_box(i < j, (20, 30))


def test_arange_and_grids_walk_the_same_elements_as_numpy() -> None:
    @nki.jit(mode="simulation")
    def kernel(x: Any) -> Any:
        out = nl.ndarray((64, 100), dtype=x.dtype, buffer=nl.shared_hbm)
        i_p, i_f = nl.arange(64)[:, None], nl.arange(100)[None, :]
        tile = nl.load(x[2 * i_p, 3 * i_f + 5])
        nl.store(out[i_p, i_f], tile[i_p, 99 - i_f])
        return out

    np.testing.assert_array_equal(kernel(A), A[::2, 5:305:3][:, ::-1])


def test_masks_leave_the_rest_alone() -> None:
    @nki.jit
    def kernel(x: Any) -> Any:
        out = nl.zeros((128, 512), dtype=x.dtype, buffer=nl.shared_hbm)
        i_p, i_f = nl.mgrid[0:128, 0:512]
        tile = nl.load(x[i_p, i_f], mask=(i_p < 100) & (i_f < 300))
        done = nl.multiply(tile, 2.0, mask=(i_p < 100) & (i_f < 300))
        nl.store(out[i_p, i_f], done, mask=(i_p < 100) & (i_f < 300))
        return out

    want = np.zeros_like(A)
    want[:100, :300] = 2 * A[:100, :300]
    np.testing.assert_array_equal(kernel(A[:100, :300]), want)


def test_products_accumulate_in_psum_and_blocks_have_a_partition_dimension() -> None:
    @nki.jit
    def kernel(a: Any, b: Any) -> Any:
        out = nl.ndarray((64, 64), dtype=nl.float32, buffer=nl.shared_hbm)
        tiles = nl.ndarray((2, nl.par_dim(128), 64), dtype=a.dtype, buffer=nl.sbuf)
        for turn in nl.affine_range(2):
            tiles[turn] = nl.load(a[turn])
        total = nl.zeros((nl.par_dim(64), 64), dtype=nl.float32, buffer=nl.psum)
        right = nl.load(b)
        for turn in nl.affine_range(2):
            total += nisa.nc_matmul(tiles[turn], right)
        nl.store(out, total)
        return out

    a = RANDOM.standard_normal((2, 128, 64), np.float32)
    np.testing.assert_allclose(kernel(a, B), a[0].T @ B + a[1].T @ B, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("target", ["trn1", "trn2", "trn3"])
def test_assigning_a_product_overwrites_what_a_tile_in_psum_holds(target: str) -> None:
    @nki.jit(platform_target=target)
    def kernel(a: Any, b: Any) -> Any:
        outs = [nl.ndarray((2, 64, 64), dtype=nl.float32, buffer=nl.shared_hbm) for _ in range(2)]
        right, kept = nl.load(b), nl.zeros((64, 64), dtype=nl.float32, buffer=nl.psum)
        for turn in nl.affine_range(2):
            left = nl.load(a[turn])
            kept[...] = nisa.nc_matmul(left, right)
            nl.store(outs[0][turn], kept)
            kept[...] = nl.matmul(left, right, transpose_x=True)
            kept[...] += nisa.nc_matmul(left, right)
            nl.store(outs[1][turn], kept)
        return tuple(outs)

    a = RANDOM.standard_normal((2, 128, 64), np.float32)
    want = np.einsum("tki,kj->tij", a, B)
    once, twice = kernel(a, B)
    np.testing.assert_allclose(once, want, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(twice, 2 * want, rtol=1e-4, atol=1e-4)


def test_isa_calls_return_tiles() -> None:
    @nki.jit
    def kernel(x: Any) -> Any:
        outs = [nl.ndarray(shape, dtype=nl.float32, buffer=nl.shared_hbm)
                for shape in ((128, 1), (128, 512), (128, 512), (64, 128))]  # fmt: skip
        tile = nl.load(x)
        nl.store(outs[0], nisa.tensor_reduce(np.add, tile, axis=[1]))
        nl.store(outs[1], nisa.activation(op=nl.exp, data=tile, scale=0.5))
        i_p, i_f = nl.mgrid[0:128, 0:512]
        nl.store(outs[2], nisa.affine_select(pred=i_f <= i_p, on_true_tile=tile, on_false_value=-7.0))
        nl.store(outs[3], nisa.nc_transpose(tile[:, 0:64]))
        return tuple(outs)

    sums, powers, lower, turned = kernel(A)
    np.testing.assert_allclose(sums, A.sum(1, keepdims=True), rtol=1e-4, atol=1e-3)
    np.testing.assert_allclose(powers, np.exp(A / 2), rtol=1e-5)
    np.testing.assert_array_equal(lower, np.where(np.arange(512) <= np.arange(128)[:, None], A, -7))
    np.testing.assert_array_equal(turned, A[:, :64].T)


def test_operators_of_tiles_and_functions_with_dtype() -> None:
    @nki.jit
    def kernel(x: Any, scale: Any) -> Any:
        out = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.shared_hbm)
        tile, factor = nl.load(x), nl.load(scale)
        result = (tile * 2.0 + 1.0) / factor - nl.maximum(tile, 0.0)
        result[...] += nl.square(tile)
        nl.store(out, nl.copy(result, dtype=nl.bfloat16))
        return out

    scale = np.abs(B[:, :1]) + 1
    want = (A * 2 + 1) / scale - np.maximum(A, 0) + A * A
    np.testing.assert_allclose(kernel(A, scale), want, rtol=1e-2)


def test_a_launch_grid_runs_every_program_on_shared_tensors() -> None:
    @nki.jit
    def kernel(x: Any) -> Any:
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        row = nl.program_id(0) * 32 + nl.arange(32)[:, None]
        column = nl.program_id(1) * 256 + nl.arange(256)[None, :]
        assert (nl.num_programs(0), nl.program_ndim()) == (4, 2)
        nl.store(out[row, column], nl.load(x[row, column]) + 1.0)
        return out

    np.testing.assert_array_equal(kernel[4, 2](A), A + 1)


@pytest.mark.parametrize("grid", [0, (0, 1), (nl.spmd_dim(64 // 128, nl.nc(2)), 1)], ids=str)
def test_a_launch_grid_of_no_programs_is_one(grid: Any) -> None:
    @nki.jit
    def kernel(x: Any) -> Any:
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        nl.store(out, nl.load(x) + (nl.program_id(0) + nl.num_programs(0)))
        return out

    np.testing.assert_array_equal(kernel[grid](A), A + 1)
    with pytest.raises(NkiValidationError, match="must be positive integers"):
        kernel[-1]


def test_rows_by_index() -> None:
    @nki.jit
    def kernel(x: Any, places: Any) -> Any:
        out = nl.ndarray((64, 512), dtype=x.dtype, buffer=nl.shared_hbm)
        index = nl.load(places)
        nl.store(out, nl.load(x[index[:, 0], nl.arange(512)[None, :]]))
        return out

    places = RANDOM.permutation(128)[:64].astype(np.int32).reshape(64, 1)
    np.testing.assert_array_equal(kernel(A, places), A[places[:, 0]])


def test_the_ways_to_run_a_kernel() -> None:
    def plain(x: typing.tensor, out: typing.mutable_tensor[128, 512]) -> None:
        nl.store(out, nl.load(x) * 2.0)

    out = np.zeros_like(A)
    assert nki.simulate_kernel(plain, A, out) is None
    np.testing.assert_array_equal(out, 2 * A)

    def doubled(x: Any) -> Any:
        result = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        plain(x, result)
        return result

    for way in (nki.jit, nki.baremetal, nki.benchmark(warmup=1, iters=2), nki.jit(mode="baremetal"), nki.trace):
        np.testing.assert_array_equal(way(doubled)(A), 2 * A)
    kernel = compiler.skip_middle_end_transformations(nki.jit(platform_target="trn1")(doubled))
    np.testing.assert_array_equal(kernel(A), 2 * A)
    inner = nki.jit(doubled)
    np.testing.assert_array_equal(nki.jit(lambda x: inner(x))(A), 2 * A)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (lambda x: nl.load(x, mode="odd"), "load with mode="),
        (lambda x: nl.arange(4) // 2, "division of an index expression"),
        (lambda x: nl.all_reduce(nl.load(x), np.add, [0]), "all_reduce over programs is not supported"),
        (lambda x: nisa.nc_matmul(nl.load(x), nl.load(x), perf_mode="double_pixel"), "perf_mode"),
        (lambda x: nisa.nc_matmul(nl.load(x), nl.load(x), mask=nl.arange(128)[:, None] < 3), "mask over its elements"),
        (lambda x: [nl.loop_reduce(nl.load(x), np.subtract, [i]) for i in nl.affine_range(2)], "loop_reduce with op="),
    ],
)
def test_what_is_not_supported_says_so(body: Any, message: str) -> None:
    with pytest.raises(UnsupportedError, match=message):
        nki.simulate_kernel(body, A)


def test_index_expressions_out_of_bounds_are_errors() -> None:
    def kernel(x: Any) -> Any:
        return nl.load(x[nl.arange(128)[:, None], nl.arange(512)[None, :] + 1])

    with pytest.raises(NkiValidationError, match="test_first_generation"):
        nki.simulate_kernel(kernel, A)


def test_import_neuronxcc_finds_it(root: Path) -> None:
    code = (
        "import neuronxcc.nki as nki, neuronxcc.nki.language as nl, neuronxcc.nki.isa as nisa\n"
        "from neuronxcc.nki.typing import tensor\nimport neurontools.neuronxcc.nki as ours\n"
        "print(nki is ours, nl is ours.language, nisa is ours.isa, tensor[128, 2] is tensor)\n"
    )
    for path, first in ((root, "import neurontools.nki as n; n.install()\n"), (root / "neurontools" / "nki_path", "")):
        done = subprocess.run(
            [sys.executable, "-c", first + code], capture_output=True, text=True, check=False, timeout=60,
            env={**os.environ, "PYTHONPATH": os.pathsep.join([str(root), str(path)])},
        )  # fmt: skip
        assert done.stdout.split() == ["True"] * 4, done.stderr


def test_a_product_has_the_line_that_called_for_it() -> None:
    """It is carried out where its tile is used first, or added to another; findings go by the call."""
    noted: list[int] = []

    @nki.jit
    def kernel(x: Any) -> Any:
        out = nl.ndarray((128, 128), dtype=nl.float32, buffer=nl.shared_hbm)
        a = nl.load(x[0:128, 0:128])
        first = nl.matmul(a, a, transpose_x=True)  # FIRST
        second = nisa.nc_matmul(a, a)  # SECOND
        total = nl.zeros((nl.par_dim(128), 128), dtype=nl.float32, buffer=nl.psum)
        total += second
        nl.store(out, nl.add(first, total))
        noted.extend(op.source[1] for op in tracer().ops if isinstance(op, MatmulOp))
        return out

    want = 2 * (A[:, :128].T @ A[:, :128])
    np.testing.assert_allclose(nki.simulate_kernel(kernel, A), want, rtol=1e-4, atol=1e-4)
    lines = Path(__file__).read_text().splitlines()
    marked = [number for number, line in enumerate(lines, 1) if line.endswith(("  # FIRST", "  # SECOND"))]
    assert sorted(set(noted)) == marked


def test_a_file_is_built_of_what_a_launch_would_run() -> None:
    @nki.jit
    def kernel(x: Any) -> Any:
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        i_p, i_f = nl.arange(128)[:, None], nl.arange(64)[None, :]
        nl.store(out[i_p, i_f], nl.load(x[i_p, i_f]) * 2.0)
        return out

    # `build` took the function as one of the present generation, to which index expressions say nothing
    result = neurontools.run(neurontools.build(kernel, B, target="trn2"), {"x": B})
    np.testing.assert_array_equal(next(iter(result.outputs.values())), 2 * B)


@pytest.mark.parametrize(("call", "words"), [
    (lambda t: nisa.tensor_scalar(t), "nisa.tensor_scalar() missing 2 required positional arguments: 'op0' and "
     "'operand0'; it is nisa.tensor_scalar(data, op0, operand0, reverse0=, op1=, operand1=, reverse1=, dtype=, mask="),
    (lambda t: nl.sum(t), "sum() missing 1 required positional argument: 'axis'; it is nl.sum(x, axis, dtype=, mask="),
    (lambda t: nl.random_seed(3, maks=None), "'maks'; it is nl.random_seed(seed, mask=); did you mean mask?, on"),
    (lambda t: nl.gather_flattened(t), "it is nl.gather_flattened(data, indices, mask=, dtype=), on"),
    (lambda t: t.expand_dims(3), "expand_dims: axis 3 of a 2-dimensional tile"),
    (lambda t: 3 in t, "does not take in; write nl.equal(a, b)"),
])  # fmt: skip
def test_calls_that_do_not_fit_show_how_this_generation_writes_them(call: Any, words: str) -> None:
    with pytest.raises(NkiValidationError) as raised:
        nki.jit(lambda x: call(nl.load(x)))(np.ones((128, 64), np.float32))
    assert words in str(raised.value) and "\n" not in str(raised.value)
