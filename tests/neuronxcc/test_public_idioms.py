"""What public kernels of the first generation do beyond the documented examples: blocks, masks, folds over loops."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import neurontools.neuronxcc.nki as nki
import neurontools.neuronxcc.nki.isa as nisa
import neurontools.neuronxcc.nki.language as nl
from formats.errors import UnsupportedError
from neurontools.neuronxcc.nki import compiler
from neurontools.neuronxcc.nki.language.constants import sizeinbytes
from neurontools.nki.errors import NkiValidationError

RANDOM = np.random.default_rng(2)
A = RANDOM.standard_normal((128, 512), np.float32)


def run(kernel: Any, *args: Any, grid: Any = None) -> Any:
    return nki.simulate_kernel(nki.jit(kernel) if grid is None else nki.jit(kernel)[grid], *args)


def test_blocks_may_be_larger_together_than_the_memory() -> None:
    def kernel(x: Any) -> Any:
        out = nl.ndarray((16, 128, 512), nl.float32, buffer=nl.shared_hbm)
        psum = nl.zeros((4, 4, nl.par_dim(128), 512), nl.float32, buffer=nl.psum)  # 32 KiB of 16
        tile = nl.load(x)
        for i in nl.affine_range(4):
            row = psum[i]
            for j in nl.affine_range(4):
                row[j] += nisa.nc_matmul(tile[:, 0:128], tile)
                psum[i, j, :, 0:1] += 1.0 * (4 * i + j)
                nl.store(out[4 * i + j], psum[i, j])
        return out

    out = run(kernel, A)
    product = A[:, :128].T @ A
    for number in range(16):
        want = product.copy()
        want[:, 0] += number
        np.testing.assert_allclose(out[number], want, rtol=1e-4, atol=1e-3)


def test_a_look_across_blocks_joins_them() -> None:
    def kernel(x: Any) -> Any:
        out = nl.ndarray((128, 3 * 64), nl.float32, buffer=nl.shared_hbm)
        tiles = nl.full((3, nl.par_dim(128), 64), 7.0, nl.float32, buffer=nl.sbuf)
        tiles[1] = nl.load(x[:, 0:64])
        i_p, i_b, i_f = nl.arange(128)[:, None, None], nl.arange(3)[None, :, None], nl.arange(64)[None, None, :]
        nl.store(out[i_p, 64 * i_b + i_f], tiles[i_b, i_p, i_f])
        tiles[0] = nl.load(x[:, 64:128])
        nl.store(out[:, 0:64], tiles[0])
        assert tiles.shape == (3, 128, 64) and tiles.dtype == nl.float32 and tiles.buffer is nl.sbuf
        return out

    want = np.full((128, 192), 7, np.float32)
    want[:, :64], want[:, 64:128] = A[:, 64:128], A[:, :64]
    np.testing.assert_array_equal(run(kernel, A), want)
    with pytest.raises(NkiValidationError, match="block 3 is outside dimension 0 of 3"):
        run(lambda x: nl.zeros((3, nl.par_dim(4), 4), nl.float32)[3], A)


@pytest.mark.parametrize("chosen", [True, False])
def test_a_mask_of_numbers_does_all_or_nothing(chosen: bool) -> None:
    def kernel(x: Any) -> Any:
        names = ("copy", "sum", "product", "turned", "reduced")
        shapes = ((128, 512), (128, 1), (64, 512), (64, 128), (128, 1))
        outs = [nl.zeros(shape, nl.float32, buffer=nl.shared_hbm) for shape in shapes]
        tile = nl.load(x)
        mask = np.bool_(chosen)
        kept = {name: nl.full(shape, 5.0, nl.float32, buffer=nl.psum if name == "product" else nl.sbuf)
                for name, shape in zip(names, shapes, strict=True)}  # fmt: skip
        kept["copy"][...] = nl.copy(tile, mask=mask)
        kept["sum"][:, 0] = nl.sum(tile, axis=1, mask=mask)
        kept["product"][...] += nisa.nc_matmul(tile[:, 0:64], tile, mask=mask)
        kept["turned"][...] = nisa.nc_transpose(tile[:, 0:64], mask=mask)
        kept["reduced"][...] = nisa.tensor_reduce(np.max, tile, axis=(1,), mask=mask)
        for out, name in zip(outs, names, strict=True):
            nl.store(out, kept[name])
        return tuple(outs)

    copy, total, product, turned, reduced = run(kernel, A)
    if not chosen:
        assert all((one == 5).all() for one in (copy, total, product, turned, reduced))
        return
    np.testing.assert_array_equal(copy, A)
    np.testing.assert_allclose(total[:, 0], A.sum(1), rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(product, A[:, :64].T @ A + 5, rtol=1e-4, atol=1e-3)
    np.testing.assert_array_equal(turned, A[:, :64].T)
    np.testing.assert_array_equal(reduced[:, 0], A.max(1))


def test_assigning_a_masked_result_changes_the_masked_part_only() -> None:
    def kernel(x: Any) -> Any:
        outs = [nl.ndarray(shape, nl.float32, buffer=nl.shared_hbm) for shape in ((128, 512), (512, 128))]
        i_p, i_f = nl.mgrid[0:128, 0:512]
        tile, turned = nl.full((128, 512), 3.0, nl.float32), nl.full((128, 128), 3.0, nl.float32)
        tile[i_p, i_f] = nl.load(x[i_p, i_f], mask=(i_p >= 40) & (i_f < 300))
        nl.store(outs[0], tile)
        for block in nl.affine_range(4):
            first, second = nl.mgrid[0:128, 0:128]
            turned[...] = nisa.nc_transpose(tile[first, 128 * block + second], mask=(first < 64) & (second < 100))
            nl.store(outs[1][128 * block : 128 * block + 128], turned)
        return tuple(outs)

    tile, turned = run(kernel, A)
    want = np.full_like(A, 3)
    want[40:, :300] = A[40:, :300]
    np.testing.assert_array_equal(tile, want)
    blocks = np.full((4, 128, 128), 3, np.float32)
    blocks[:, :100, :64] = want.T.reshape(4, 128, 128)[:, :100, :64]
    np.testing.assert_array_equal(turned, blocks.reshape(512, 128))


def test_columns_stay_columns() -> None:
    def kernel(x: Any, bias: Any) -> Any:
        out = nl.ndarray((128, 512), nl.float32, buffer=nl.shared_hbm)
        table, column = nl.load(x[:, 0:4]), nl.load(bias)
        assert table[:, 1].shape == table[:, 1][:, 0].shape == column.shape == (128, 1)
        nl.store(out, nisa.activation(op=nl.copy, data=nl.load(x), bias=table[:, 1], scale=column))
        return out

    bias = RANDOM.standard_normal(128).astype(np.float32)
    np.testing.assert_allclose(run(kernel, A, bias), A * bias[:, None] + A[:, 1:2], rtol=1e-5, atol=1e-5)


def test_partitions_that_engines_do_not_reach_go_by_dma() -> None:
    def kernel(x: Any) -> Any:
        out = nl.ndarray((40, 512), nl.float32, buffer=nl.shared_hbm)
        tile, result = nl.load(x[0:40]), nl.ndarray((nl.par_dim(40), 512), nl.float32)
        for row in nl.affine_range(40):
            result[row, :] = nl.multiply(tile[39 - row, :], 2.0)
            result[row, 0] = float(row)
        nl.store(out, result)
        return out

    want = 2 * A[39::-1]
    want[:, 0] = np.arange(40)
    np.testing.assert_array_equal(run(kernel, A), want)


def test_loop_reduce_tells_the_turns_of_other_loops_apart_where_some_are_left_out() -> None:
    """As causal attention does: parts that a turn has nothing for are skipped by an `if` of the kernel."""

    def kernel(x: Any) -> Any:
        out = nl.ndarray(A.shape, np.float32, buffer=nl.shared_hbm)
        for again in range(2):  # what a run through the loops before has folded is no part of the next
            sums = nl.zeros((4, nl.par_dim(A.shape[0]), A.shape[1]), np.float32, buffer=nl.sbuf)
            for turn in nl.affine_range(3):
                for part in nl.affine_range(4):
                    if turn <= part:
                        tile = nl.multiply(nl.load(x), 1.0 + turn + 10 * part + again)
                        sums[part] = nl.loop_reduce(tile, op=np.add, loop_indices=[turn], dtype=nl.float32)
        total = nl.zeros(A.shape, np.float32, buffer=nl.sbuf)
        for part in nl.affine_range(4):
            total[...] = total + sums[part] * float(10**part)
        nl.store(out, total)
        return out

    want = sum(10**part * sum(2 + turn + 10 * part for turn in range(3) if turn <= part) for part in range(4))
    np.testing.assert_allclose(run(kernel, A), A * want, rtol=1e-5)


def test_loop_reduce_folds_over_the_turns_of_its_loops() -> None:
    def kernel(x: Any) -> Any:
        outs = [nl.ndarray(shape, nl.float32, buffer=nl.shared_hbm) for shape in ((2, 128, 512), (128, 512))]
        sums = nl.ndarray((2, nl.par_dim(128), 512), nl.float32, buffer=nl.sbuf)
        for outer in nl.affine_range(2):
            for turn in nl.affine_range(3):
                for part in nl.affine_range(2):
                    tile = nl.multiply(nl.load(x), float(1 + turn + 10 * part + 100 * outer))
                    sums[part] = nl.loop_reduce(tile, op=np.add, loop_indices=[turn], dtype=nl.float32)
            if outer == 1:
                for part in nl.affine_range(2):
                    nl.store(outs[0][part], sums[part])
        for turn in nl.sequential_range(3):
            largest = nl.loop_reduce(nl.multiply(nl.load(x), 1.0 - turn), nl.max, [turn], mask=turn != 0)
        nl.store(outs[1], largest)
        return tuple(outs)

    sums, largest = run(kernel, np.round(A))
    for part in range(2):
        np.testing.assert_array_equal(sums[part], np.round(A) * (1 + 2 + 3 + 3 * (10 * part + 100)))
    np.testing.assert_array_equal(largest, np.maximum(0 * A, -np.round(A)))
    with pytest.raises(NkiValidationError, match="indices of loops"):
        run(lambda x: nl.loop_reduce(nl.load(x), np.add, [3]), A)


def test_double_rows_read_modify_write_and_rows_by_index_behind_a_number() -> None:
    def double(a: Any, b: Any) -> Any:
        out = nl.ndarray((16, 64), nl.float32, buffer=nl.shared_hbm)
        nl.store(out, nisa.nc_matmul(nl.load(a), nl.load(b), perf_mode="double_row_gen3"))
        return out

    a, b = (RANDOM.integers(-4, 5, (128, 2, n)).astype(ml_dtypes.float8_e5m2) for n in (16, 64))
    want = np.einsum("kti,ktj->ij", a.astype(np.float32), b.astype(np.float32))
    np.testing.assert_array_equal(nki.jit(double, platform_target="trn2")(a, b), want)

    def rows(x: Any, places: Any) -> Any:
        gathered = nl.zeros((64, 8), nl.float32, buffer=nl.shared_hbm)
        added = nl.ndarray((32, 8), nl.float32, buffer=nl.shared_hbm)
        index, (i_p, i_f) = nl.load(places), nl.mgrid[0:64, 0:8]
        part = nl.load(x[1, index, nl.arange(8)[None, :]], mask=i_p < 60)
        nl.store(gathered[i_p, i_f], part, mask=i_p < 60)
        nl.store(added, nl.full((32, 8), 1.0, nl.float32))
        nisa.dma_copy(dst=added[nl.load(places[0:5]), nl.arange(8)[None, :]], src=nl.load(x[0, 0:5]), dst_rmw_op=np.add)
        return gathered, added

    x = RANDOM.standard_normal((2, 32, 8), np.float32)
    places = RANDOM.permutation(64).astype(np.int32).reshape(64, 1) % 32
    places[:5, 0], places[60:] = [3, 1, 7, 0, 30], 9999  # the mask leaves out what is out of bounds
    gathered, added = run(rows, x, places)
    np.testing.assert_array_equal(gathered[:60], x[1, places[:60, 0]])
    want = np.ones((32, 8), np.float32)
    want[places[:5, 0]] += x[0, :5]
    np.testing.assert_array_equal(added, want)
    with pytest.raises(UnsupportedError, match="behind an index expression"):
        run(lambda x, p: nl.load(x[nl.arange(2)[:, None], nl.load(p), 0]), x, places)


def test_reductions_over_any_free_axes_and_division_of_integers() -> None:
    def kernel(x: Any) -> Any:
        outs = [nl.ndarray(shape, nl.float32, buffer=nl.shared_hbm) for shape in ((128, 16, 8), (128, 4))]
        i = nl.mgrid[0:128, 0:16, 0:4, 0:8]
        tile = nl.load(x)
        walked = tile[i[0], 32 * i[1] + 8 * i[2] + i[3]]
        nl.store(outs[0], nl.sum(walked, axis=[2]))
        numbers = nisa.iota(nl.arange(128)[:, None] * 4 + nl.arange(4)[None, :], dtype=nl.int32)
        nl.store(outs[1], nl.floor(numbers / 15))
        return tuple(outs)

    sums, floors = run(kernel, A)
    np.testing.assert_allclose(sums, A.reshape(128, 16, 4, 8).sum(2), rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(floors, np.arange(512).reshape(128, 4) // 15)


def test_names_outside_of_kernels() -> None:
    assert nl.static_cast(np.array([1.0, 2.5]), nl.bfloat16).dtype == ml_dtypes.bfloat16
    assert float(nl.finfo(nl.bfloat16).min) == float(ml_dtypes.finfo(ml_dtypes.bfloat16).min)
    assert sizeinbytes(nl.bfloat16) == 2 and sizeinbytes(np.float32) == 4
    assert nki.tensor is nki.typing.tensor


def test_loops_take_directives_and_results_stay_ordered() -> None:
    def kernel(x: Any) -> Any:
        out = nl.ndarray((128, 512), nl.float32, buffer=nl.shared_hbm)
        tile = nl.load(x)
        for turn in nl.sequential_range(1, 4, directives=compiler.no_reorder()):
            tile[...] = nl.add(tile, float(turn))
        nl.store(out, tile)
        return out

    np.testing.assert_allclose(run(kernel, A), A + 6, rtol=1e-6)


@pytest.mark.parametrize(("loop", "widths"), [
    (nl.affine_range, (8, 8, 8)), (nl.sequential_range, (8, 8, 8)), (nl.static_range, (8, 4, 2)),
])  # fmt: skip
def test_a_loop_that_is_traced_once_begins_each_turn_with_the_same_numbers(loop: Any, widths: tuple[int, ...]) -> None:
    """Course kernels halve a width at the end of a body, for what is behind the loop."""
    seen = []

    def kernel(x: Any) -> Any:
        out = nl.ndarray((3, 128, 8), nl.float32, buffer=nl.shared_hbm)
        width, label = 8, "wide"
        tile = nl.load(x)
        for turn in loop(3):
            for inner in loop(2):
                height = 4 + inner
                height = height // 2
            seen.append((width, label))
            nl.store(out[turn, :, 0:width], tile[:, 0:width])
            width, label = width // 2, "narrow"
        assert (width, label) == (widths[-1] // 2, "narrow") and height == 2
        return out

    got = run(kernel, A)
    assert tuple(width for width, _ in seen) == widths
    for turn, width in enumerate(widths):
        np.testing.assert_array_equal(got[turn, :, :width], A[:, :width])


@pytest.mark.parametrize(("ask", "words"), [
    (lambda t: nl.sofmax(t), "neuronxcc.nki.language has no sofmax in this toolkit; did you mean softmax?"),
    (lambda t: nisa.tensor_tenser(t), "neuronxcc.nki.isa has no tensor_tenser in this toolkit; did you mean tensor_te"),
    (lambda t: t.brodcast_to((1,)), "an NKI tensor has no brodcast_to; did you mean broadcast_to?"),
    (np.asarray, "tile: a tensor has no values while the kernel is traced"),
])  # fmt: skip
def test_what_kernels_of_the_first_generation_may_have_meant(ask: Any, words: str) -> None:
    def helper(tile: Any) -> None:
        ask(tile)

    def kernel(x: Any) -> None:
        tile = nl.load(x)
        helper(tile)

    with pytest.raises(NkiValidationError) as raised:
        run(kernel, A)
    assert words in str(raised.value) and "called from" in str(raised.value)
    assert not hasattr(nl, "no_such_name") and not hasattr(nisa, "no_such_name")


def test_a_tile_is_shown_by_what_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    def kernel(x: Any) -> Any:
        tile = nl.load(x)
        print(tile, nisa.nc_matmul(tile[:, 0:64], tile))
        out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
        nl.store(out, np.float32(2) * tile)
        return out

    np.testing.assert_array_equal(run(kernel, A), 2 * A)
    shown = capsys.readouterr().out
    for text in ("sbuf float32 (128, 512)>, whose values exist once", "<Product that is not in one place>"):
        assert text in shown


def test_a_block_that_the_kernel_holds_on_to_is_written_behind_a_look_across_blocks() -> None:
    def kernel(x: Any) -> Any:
        tiles = nl.full((2, nl.par_dim(128), 8), 1.0, nl.float32, buffer=nl.sbuf)
        held = tiles[0]
        held[:, 0:4] = 3.0
        i_p, i_b, i_f = nl.arange(128)[:, None, None], nl.arange(2)[None, :, None], nl.arange(8)[None, None, :]
        before = nl.copy(tiles[i_b, i_p, i_f])
        held[...] = 5.0
        out, behind = (nl.ndarray((2, 128, 8), nl.float32, buffer=nl.shared_hbm) for _ in range(2))
        nl.store(out[i_b, i_p, i_f], before)
        nl.store(behind[0], tiles[0])
        nl.store(behind[1], tiles[1])
        return out, behind

    want = np.ones((2, 128, 8), np.float32)
    want[0, :, :4] = 3
    out, behind = run(kernel, A)
    np.testing.assert_array_equal(out, want)
    want[0] = 5
    np.testing.assert_array_equal(behind, want)


def test_a_part_of_a_block_from_before_a_look_across_blocks_is_refused() -> None:
    def kernel(x: Any) -> Any:
        tiles = nl.full((2, nl.par_dim(128), 8), 1.0, nl.float32, buffer=nl.sbuf)
        part = tiles[1][:, 0:4]
        i_p, i_b, i_f = nl.arange(128)[:, None, None], nl.arange(2)[None, :, None], nl.arange(8)[None, None, :]
        nl.copy(tiles[i_b, i_p, i_f])
        part[...] = 7.0
        return nl.copy(tiles[1])

    with pytest.raises(NkiValidationError, match="taken in part before a look across its blocks would reach a copy"):
        run(kernel, A)


def test_a_number_goes_to_rows_by_index() -> None:
    def kernel(x: Any) -> Any:
        out = nl.ndarray((64, 8), nl.float32, buffer=nl.shared_hbm)
        nl.store(out, nl.load(x))
        rows = nisa.iota(nl.arange(8)[:, None] * 2, nl.uint32)
        nl.store(out[rows, nl.arange(8)[None, :]], 0.0)
        nl.store(out[rows, nl.arange(8)[None, :]], 3.0, mask=nl.arange(8)[:, None] < 2)
        return out

    want = A[:64, :8].copy()
    want[0:16:2], want[0:4:2] = 0, 3
    np.testing.assert_array_equal(run(kernel, A[:64, :8]), want)


def test_bounds_of_loops_by_their_names_and_seeds_under_a_mask() -> None:
    def kernel(x: Any) -> Any:
        out = nl.zeros((1, 4), nl.float32, buffer=nl.shared_hbm)
        for place in nl.affine_range(1, stop=7, step=3):
            nl.store(out[:, place // 3 : place // 3 + 1], 1.0 * place)
        nl.random_seed(7, mask=False)
        nl.random_seed(nl.full((1, 1), 7, nl.int32), mask=None)
        assert nl.num_programs((0, 1)) == 6 and nl.num_programs([1]) == 3
        return out

    np.testing.assert_array_equal(run(kernel, A, grid=(2, 3)), [[1, 4, 0, 0]])


@pytest.mark.parametrize("use", [
    lambda product: nl.copy(product), lambda product: nl.add(product, 0.0),
    lambda product: nl.copy(product, dtype=nl.float32) * 0.5 + nl.copy(product) * 0.5,
])  # fmt: skip
def test_a_product_is_of_what_its_operands_held_when_it_was_called_for(use: Any) -> None:
    def kernel(x: Any) -> Any:
        left, right = nl.load(x[0:64, 0:16]), nl.load(x[0:64, 16:32])
        product, other = nisa.nc_matmul(left, right), nl.matmul(left, right, transpose_x=True)
        left[...] = 0.0
        right *= 2.0
        sums = nl.zeros((16, 16), nl.float32, buffer=nl.psum)
        sums += nisa.nc_matmul(nl.load(x[0:64, 0:16]), nl.load(x[0:64, 0:16]))
        sums += other
        out = nl.ndarray((3, 16, 16), nl.float32, buffer=nl.shared_hbm)
        nl.store(out[0], use(product))
        nl.store(out[1], nl.copy(sums))
        nl.store(out[2], nl.copy(nisa.nc_matmul(nl.load(x[0:64, 0:16]), right)))
        return out

    a, b = A[:64, :16], A[:64, 16:32]
    got = run(kernel, A)
    for one, want in zip(got, (a.T @ b, a.T @ a + a.T @ b, 2 * (a.T @ b)), strict=True):
        np.testing.assert_allclose(one, want, rtol=1e-4, atol=1e-4)


def test_a_product_put_in_earlier_keeps_what_is_known_of_copies() -> None:
    def kernel(x: Any) -> Any:
        left = nl.load(x[0:64, 0:16])
        product = nisa.nc_matmul(left, left)
        tiles = nl.full((2, nl.par_dim(64), 8), 1.0, nl.float32, buffer=nl.sbuf)
        i_p, i_b, i_f = nl.arange(64)[:, None, None], nl.arange(2)[None, :, None], nl.arange(8)[None, None, :]
        tiles[0][...] = 3.0
        both = nl.copy(tiles[i_b, i_p, i_f])
        left[...] = 0.0
        out = nl.ndarray((16, 16), nl.float32, buffer=nl.shared_hbm)
        nl.store(out, nl.add(product, both[0:16].reshape((16, 16))))
        return out

    a = A[:64, :16]
    want = a.T @ a + np.repeat([3.0, 1.0], 8)
    np.testing.assert_allclose(run(kernel, A), want, rtol=1e-4, atol=1e-4)


def test_a_column_of_indices_computed_with_bits_permutes_a_state_in_place() -> None:
    """A state vector is permuted by exchanging bits of its places; amounts of shifts come from a tensor."""
    perm = np.array([[0, 2], [1, 0], [2, 1]], np.uint32)  # bit to bit
    table = np.concatenate([perm, 1 << perm], 1)

    def kernel(table: Any, base: Any, state: Any) -> Any:
        out = nl.ndarray(state.shape, state.dtype, buffer=nl.shared_hbm)
        places = nl.load(base)
        moved = nl.copy(places)
        for row in nl.sequential_range(3):
            a, b, of_a, of_b = (nl.load(table[row][column]) for column in range(4))
            moved[:] = nl.bitwise_and(moved, nl.invert(of_b))
            chosen = nl.bitwise_and(places, of_a)
            # one of the two amounts is negative, as a whole number without a sign huge: nothing is left of the bits
            moved[:] = nl.bitwise_or(moved, nl.left_shift(chosen, b - a))
            moved[:] = nl.bitwise_or(moved, nl.right_shift(chosen, a - b))
        for column in nl.affine_range(2):
            tile = nl.load(state[moved[:, column].as_tile()])
            nl.store(out[moved[:, column].as_tile()], nl.multiply(tile, 2.0))
            nl.store(out[places[:, column].as_tile(), 0:1], tile[:, 1:2])
        return out

    base = np.stack([np.arange(128), 128 + np.arange(128)], 1).astype(np.uint32)
    state = RANDOM.standard_normal((256, 2), np.float32)
    moved = base & ~np.uint32(7)
    for a, b in perm.astype(int):
        moved = moved | ((base >> a & 1) << b).astype(np.uint32)
    want = np.zeros_like(state)
    for column in range(2):
        want[moved[:, column]] = 2 * state[moved[:, column]]
        want[base[:, column], 0] = state[moved[:, column], 1]
    np.testing.assert_array_equal(run(kernel, table, base, state), want)
