"""Operands at places that depend on data: tensor indirection of gen4 (`NkiTensor.indirect`), selects in SBUF.

What a column is comes from the documentation alone: element i of a partition is at index[i % G, i // G] of its group of
G partitions, 16, or 32 for the Tensor engine.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import neurontools.nki as nki
import neurontools.nki.isa as nisa
import neurontools.nki.language as nl
from formats import isa
from formats.errors import UnsupportedError
from neurontools.api import build
from neurontools.api import run as run_neff
from neurontools.nki import NkiValidationError
from tests.nki.direct import CASES, Layout, dtype_of, layouts, run, seeds, tile, values_of
from tests.nki.support import compute_ops, trace_body

Array = np.ndarray[Any, Any]
ENGINE, CMD = nisa.engine, nisa.reduce_cmd
PARTITIONS = 32


def columns_of(indices: Array, group: int, count: int) -> Array:
    """Return the column of each partition's element i: the documented formula, as it is written."""
    p, i = np.indices((indices.shape[0], count))
    start = p - p % group
    return indices[start + i % group, i // group].astype(np.int64)


def gathered(data: Array, indices: Array, group: int, count: int) -> Array:
    return np.take_along_axis(data, columns_of(indices, group, count), 1)


def scattered(before: Array, values: Array, indices: Array, group: int, where: Array | None = None) -> Array:
    after, columns = before.copy(), columns_of(indices, group, values.shape[1])
    rows = np.arange(len(values))
    for i in range(values.shape[1]):
        chosen = rows if where is None else rows[where[:, i]]
        after[chosen, columns[chosen, i]] = values[chosen, i]
    return after


def index_tile(partitions: int, width: int, start: int = 0) -> Any:
    return tile(partitions, width, nl.uint16, Layout(start))


@CASES
@given(rng=seeds(), dtype=st.sampled_from(["float32", "bfloat16", "uint8", "int32"]),
       layout=layouts(), partitions=st.sampled_from([16, 32]), width=st.integers(1, 40), count=st.integers(1, 32),
       engine=st.sampled_from(["vector", "scalar"]))  # fmt: skip
def test_copy_gathers(
    rng: np.random.Generator, dtype: str, layout: Layout, partitions: int, width: int, count: int, engine: str
) -> None:
    if engine == "scalar" and dtype == "int32":
        dtype = "float32"
    data = values_of(rng, (partitions, width), dtype)
    indices = rng.integers(0, width, (partitions, 2)).astype(np.uint16)

    def body() -> Any:
        src, index = tile(partitions, width, dtype_of(dtype), layout), index_tile(partitions, 2, layout.start)
        dst = tile(partitions, count, dtype_of(dtype))
        nisa.tensor_copy(dst, src.indirect(index, num_elem=count), engine=ENGINE[engine])
        return [(src, data), (index, indices)], [dst]

    (found,) = run(body, "trn3")
    assert (found == gathered(data, indices, 16, count)).all()


@CASES
@given(rng=seeds(), dtype=st.sampled_from(["float32", "bfloat16", "uint16"]), layout=layouts(psum=True),
       width=st.integers(1, 24), count=st.integers(1, 32), both=st.booleans())  # fmt: skip
def test_copy_scatters(
    rng: np.random.Generator, dtype: str, layout: Layout, width: int, count: int, both: bool
) -> None:
    data, before = values_of(rng, (PARTITIONS, 30), dtype), values_of(rng, (PARTITIONS, width), dtype)
    source = rng.integers(0, 30, (PARTITIONS, 2)).astype(np.uint16)
    indices = rng.integers(0, width, (PARTITIONS, 2)).astype(np.uint16)

    def body() -> Any:
        src, dst = tile(PARTITIONS, 30, dtype_of(dtype)), tile(PARTITIONS, width, dtype_of(dtype), layout)
        index, chosen = index_tile(PARTITIONS, 2), index_tile(PARTITIONS, 2)
        value = src.indirect(chosen, count) if both else src[:, :count] if count <= 30 else src.indirect(chosen, count)
        nisa.tensor_copy(dst.indirect(index, num_elem=count), value)
        return [(src, data), (dst, before), (index, indices), (chosen, source)], [dst]

    (found,) = run(body, "trn3")
    values = gathered(data, source, 16, count) if both or count > 30 else data[:, :count]
    assert (found == scattered(before, values, indices, 16)).all()


@CASES
@given(rng=seeds(), count=st.integers(1, 32), predicate=st.booleans(), result=st.booleans(), reverse=st.booleans(),
       number=st.booleans())  # fmt: skip
def test_predicated_copy(
    rng: np.random.Generator, count: int, predicate: bool, result: bool, reverse: bool, number: bool
) -> None:
    width = 20 if result else count
    before, data = values_of(rng, (PARTITIONS, width), "float32"), values_of(rng, (PARTITIONS, count), "float32")
    tests = rng.integers(0, 2, (PARTITIONS, 40 if predicate else count)).astype(np.uint8)
    indices = rng.integers(0, width, (PARTITIONS, 2)).astype(np.uint16)
    asked = rng.integers(0, tests.shape[1], (PARTITIONS, 2)).astype(np.uint16)

    def body() -> Any:
        dst, src = tile(PARTITIONS, width, nl.float32), tile(PARTITIONS, count, nl.float32)
        test = tile(PARTITIONS, tests.shape[1], nl.uint8)
        index, chosen = index_tile(PARTITIONS, 2), index_tile(PARTITIONS, 2)
        nisa.tensor_copy_predicated(
            dst.indirect(index, count) if result else dst,
            7.5 if number else src,
            test.indirect(chosen, count) if predicate else test,
            reverse_pred=reverse,
        )
        return [(dst, before), (src, data), (test, tests), (index, indices), (chosen, asked)], [dst]

    (found,) = run(body, "trn3")
    holds = (gathered(tests, asked, 16, count) if predicate else tests) != reverse
    values = np.full_like(data, 7.5) if number else data
    if result:
        assert (found == scattered(before, values, indices, 16, holds)).all()
    else:
        assert (found == np.where(holds, values, before)).all()


Call = Callable[[Any, Any], Any]
COLUMN = np.arange(PARTITIONS, dtype=np.float32).reshape(-1, 1)
# Instruction, what it computes of the gathered columns, engines it may run on.
UNARY: dict[str, tuple[Call, Callable[[Array], Array]]] = {
    "tensor_scalar": (lambda dst, x: nisa.tensor_scalar(dst, x, nl.multiply, 3.0), lambda x: x * np.float32(3)),
    "tensor_scalar on Scalar": (
        lambda dst, x: nisa.tensor_scalar(dst, x, nl.multiply, 2.0, engine=ENGINE.scalar), lambda x: x * np.float32(2)),
    "tensor_scalar_cumulative": (
        lambda dst, x: nisa.tensor_scalar_cumulative(dst, x, nl.add, nl.add, 0.0, reduce_cmd=CMD.reset_reduce),
        lambda x: np.cumsum(x, axis=1, dtype=np.float32)),
    "activation": (lambda dst, x: nisa.activation(dst, nl.square, x), lambda x: x * x),
    "activation_reduce": (
        lambda dst, x: nisa.activation_reduce(dst, nl.square, x, nl.add, tile(PARTITIONS, 1, nl.float32)),
        lambda x: x * x),
    "activate2": (
        lambda dst, x: nisa.activate2(dst, nl.square, x, imm0=2.0, imm1=1.0, op0=nl.multiply, op1=nl.add),
        lambda x: (x * np.float32(2) + np.float32(1)) ** 2),
    "exponential": (lambda dst, x: nisa.exponential(dst, x), lambda x: np.exp(x)),
    "tensor_scalar_reduce": (
        lambda dst, x: nisa.tensor_scalar_reduce(dst, x, nl.add, 1.0, nl.add, tile(PARTITIONS, 1, nl.float32)),
        lambda x: x + np.float32(1)),
    "tensor_reduce": (
        lambda dst, x: nisa.tensor_reduce(dst, nl.maximum, x, axis=1), lambda x: x.max(1, keepdims=True)),
}  # fmt: skip


@pytest.mark.parametrize("name", UNARY)
@CASES
@given(rng=seeds(), count=st.integers(1, 32), width=st.integers(32, 40), result=st.booleans())
def test_instructions_of_one_tile(name: str, rng: np.random.Generator, count: int, width: int, result: bool) -> None:
    call, reference = UNARY[name]
    data = rng.integers(-4, 5, (PARTITIONS, width)).astype(np.float32)
    before = np.zeros((PARTITIONS, width), np.float32)
    chosen = rng.integers(0, width, (PARTITIONS, 2)).astype(np.uint16)
    places = np.stack([rng.permutation(width)[:32] for _ in range(2)]).astype(np.uint16)
    indices = np.concatenate([row.reshape(2, 16).T for row in places])  # no place twice in a group
    made = 1 if name == "tensor_reduce" else count

    def body() -> Any:
        src, dst = tile(PARTITIONS, width, nl.float32), tile(PARTITIONS, width, nl.float32)
        index, asked = index_tile(PARTITIONS, 2), index_tile(PARTITIONS, 2)
        call(dst.indirect(index, made) if result else dst[:, :made], src.indirect(asked, count))
        return [(src, data), (dst, before), (index, indices), (asked, chosen)], [dst]

    (found,) = run(body, "trn3")
    wanted = reference(gathered(data, chosen, 16, count))
    after = before.copy()
    after[:, :made] = wanted
    expected = scattered(before, wanted, indices, 16) if result else after
    np.testing.assert_allclose(found, expected, rtol=2e-6 if name == "exponential" else 0)


@CASES
@given(rng=seeds(), count=st.integers(1, 32), engine=st.sampled_from(["vector", "gpsimd"]))
def test_tensor_tensor(rng: np.random.Generator, count: int, engine: str) -> None:
    data, other = values_of(rng, (PARTITIONS, 40), "float32"), values_of(rng, (PARTITIONS, count), "float32")
    chosen = rng.integers(0, 40, (PARTITIONS, 2)).astype(np.uint16)

    def body() -> Any:
        src, second = tile(PARTITIONS, 40, nl.float32), tile(PARTITIONS, count, nl.float32)
        dst, index = tile(PARTITIONS, count, nl.float32), index_tile(PARTITIONS, 2)
        nisa.tensor_tensor(dst, src.indirect(index, count), second, nl.add, engine=ENGINE[engine])
        return [(src, data), (second, other), (index, chosen)], [dst]

    (found,) = run(body, "trn3")
    assert (found == gathered(data, chosen, 16, count) + other).all()


@CASES
@given(rng=seeds(), partitions=st.sampled_from([32, 64, 128]), sides=st.sampled_from([(1, 0), (0, 1), (1, 1)]))
def test_matmul_gathers(rng: np.random.Generator, partitions: int, sides: tuple[int, int]) -> None:
    left = rng.integers(-4, 5, (partitions, 32)).astype(ml_dtypes.bfloat16)
    right = rng.integers(-4, 5, (partitions, 50)).astype(ml_dtypes.bfloat16)
    chosen = rng.integers(0, 32, (partitions, 2)).astype(np.uint16)

    def body() -> Any:
        stationary, moving = tile(partitions, 32, nl.bfloat16), tile(partitions, 50, nl.bfloat16)
        index, dst = index_tile(partitions, 2), nl.ndarray((32, 50), nl.float32, nl.psum)
        nisa.nc_matmul(
            dst,
            stationary.indirect(index, 32) if sides[0] else stationary,
            moving.indirect(index, 50) if sides[1] else moving,
        )
        return [(stationary, left), (moving, right), (index, chosen)], [dst]

    (found,) = run(body, "trn3")
    a, b = left.astype(np.float32), right.astype(np.float32)
    a = gathered(a, chosen, 32, 32) if sides[0] else a
    b = gathered(b, chosen, 32, 50) if sides[1] else b
    assert (found == a.T @ b).all()


def snake(columns: Array, group: int) -> Array:
    """Return one group's indices, (group, columns / group), for a list of columns."""
    return np.ascontiguousarray(columns.reshape(-1, group).T).astype(np.uint16)


@nki.jit
def products(a: Any, b: Any, places: Any) -> Any:
    """Put products into columns of a tile: two in the same ones, whose sum the life of the tile decides."""
    left, right, index = nl.load(a), nl.load(b), nl.load(places)
    total = nl.ndarray((32, 96), nl.float32, nl.psum)
    nisa.nc_matmul(total.indirect(index[:, 0:1], 32), left, right)
    nisa.nc_matmul(total.indirect(index[:, 0:1], 32), left, right)
    nisa.nc_matmul(total.indirect(index[:, 1:2], 32), left, right)
    nisa.nc_matmul(total.indirect(index[:, 2:3], 32), left, right, accumulate=False)
    result, out = nl.ndarray((32, 96), nl.float32), nl.ndarray((32, 96), nl.float32, nl.shared_hbm)
    nisa.tensor_copy(result, total)
    nl.store(out, result)
    return out


def products_case() -> tuple[tuple[Array, Array, Array], Array]:
    rng = np.random.default_rng(5)
    a, b = (rng.integers(-3, 4, (64, 32)).astype(ml_dtypes.bfloat16) for _ in range(2))
    columns = rng.permutation(96).reshape(3, 32)
    one = a.astype(np.float32).T @ b.astype(np.float32)
    expected = np.zeros((32, 96), np.float32)
    for factor, places in zip((2, 1, 1), columns, strict=True):
        expected[:, places] = factor * one
    return (a, b, snake(columns.reshape(-1), 32)), expected


def test_matmul_scatters_into_the_life_of_its_tile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEURON_PLATFORM_TARGET_OVERRIDE", "trn3")
    arguments, expected = products_case()
    assert (nki.simulate(products)(*arguments) == expected).all()


def test_matmul_mx_gathers_data_with_their_scales() -> None:
    rng = np.random.default_rng(3)
    codes = rng.integers(0, 256, (32, 8, 4)).astype(np.uint8) & 0x77
    scales = rng.integers(125, 130, (32, 8)).astype(np.uint8)
    picked = rng.integers(0, 8, (32, 1)).astype(np.uint16)

    def body(gather: bool) -> Any:
        data, scale = tile(32, 8, nl.float8_e4m3fn_x4), tile(32, 8, nl.uint8)
        index, dst = index_tile(32, 1), nl.ndarray((8, 4), nl.float32, nl.psum)
        moving, its = (data.indirect(index, 4), scale.indirect(index, 4)) if gather else (data[:, :4], scale[:, :4])
        nisa.nc_matmul_mx(dst, data, moving, scale, its)
        return [(data, codes.view(np.uint32)[..., 0]), (scale, scales), (index, picked)], [dst]

    (plain,) = run(lambda: body(False), "trn3")
    (found,) = run(lambda: body(True), "trn3")
    whole = np.zeros((8, 8), np.float32)
    for half in (0, 4):

        def shifted(half: int = half) -> Any:
            data, scale = tile(32, 8, nl.float8_e4m3fn_x4), tile(32, 8, nl.uint8)
            dst = nl.ndarray((8, 4), nl.float32, nl.psum)
            nisa.nc_matmul_mx(dst, data, data[:, half : half + 4], scale, scale[:, half : half + 4])
            return [(data, codes.view(np.uint32)[..., 0]), (scale, scales)], [dst]

        (whole[:, half : half + 4],) = run(shifted, "trn3")
    assert (whole[:, :4] == plain).all()
    assert (found == whole[:, picked[:4, 0]]).all()


@nki.jit
def scatter_into_fresh(data: Any, places: Any) -> Any:
    """Scatter 16 columns into a new tile of 20, and store it."""
    src, index = nl.load(data), nl.load(places)
    dst, out = nl.ndarray((16, 20), nl.float32), nl.ndarray((16, 20), nl.float32, nl.shared_hbm)
    nisa.tensor_copy(dst.indirect(index), src)
    nl.store(out, dst)
    return out


def test_checks_see_columns() -> None:
    """Columns that no index names stay undefined, the others are defined; nothing races."""
    places = np.arange(16, dtype=np.uint16).reshape(16, 1)
    data = np.ones((16, 16), np.float32)
    neff = build(scatter_into_fresh, data, places, target="trn3")
    found = run_neff(neff, {"data": data, "places": places}, checks=("initcheck", "racecheck", "memcheck")).findings
    (finding,) = [one for one in found if one.serious]
    assert finding.kind == "undefined-output" and finding.details["bytes"] == 16 * 4 * 4


def test_an_index_out_of_bounds_is_a_fault() -> None:
    places = np.full((16, 1), 20, np.uint16)
    data = np.ones((16, 16), np.float32)
    neff = build(scatter_into_fresh, data, places, target="trn3")
    fault = run_neff(neff, {"data": data, "places": places}).fault
    assert fault is not None and "an index is out of bounds" in fault.message and fault.got == "20"


def test_columns_are_moved_around_the_instruction_on_its_engine() -> None:
    def body() -> None:
        src, index = nl.ndarray((16, 8), nl.float32), nl.ndarray((16, 1), nl.uint16)
        dst = nl.ndarray((16, 8), nl.float32)
        nisa.activation(dst.indirect(index, 4), nl.exp, src.indirect(index, 4), name="e")

    trace = trace_body(body, "trn3")
    assert [(op.instruction, op.engine) for op in compute_ops(trace)] == [
        (isa.IndirectRead, "Activation"), (isa.Activate, "Activation"), (isa.IndirectWrite, "Activation")]  # fmt: skip


def tiles(partitions: int = 32, dtype: Any = None, **more: Any) -> tuple[Any, Any, Any]:
    kind = dtype or nl.float32
    return (nl.ndarray((partitions, 8), kind, **more), nl.ndarray((partitions, 1), nl.uint16),
            nl.ndarray((partitions, 8), nl.float32))  # fmt: skip


def placed(dtype: Any, partition: int, byte: int, partitions: int = 32) -> Any:
    return nl.ndarray((partitions, 8), dtype, nl.sbuf, address=(partition, byte))


def _view_problem(target: str, made: Callable[[Any, Any], Any]) -> str:
    def body() -> None:
        src, index, _ = tiles()
        made(src, index)

    with pytest.raises((NkiValidationError, UnsupportedError)) as caught:
        trace_body(body, target)
    return str(caught.value)


def test_views_that_cannot_be() -> None:
    assert "needs gen4" in _view_problem("trn2", lambda src, index: src.indirect(index))
    assert "uint16" in _view_problem("trn3", lambda src, _: src.indirect(nl.ndarray((32, 1), nl.uint32)))
    assert "16 partitions for 32" in _view_problem("trn3", lambda src, _: src.indirect(nl.ndarray((16, 1), nl.uint16)))
    assert "in SBUF" in _view_problem("trn3", lambda src, _: src.indirect(nl.ndarray((32, 1), nl.uint16, nl.psum)))
    assert "num_elem is 0" in _view_problem("trn3", lambda src, index: src.indirect(index, 0))
    assert "without further views" in _view_problem("trn3", lambda src, index: src.indirect(index)[:, 0:4])
    assert "already" in _view_problem("trn3", lambda src, index: src.indirect(index).indirect(index))
    hbm = nl.shared_hbm
    assert "in SBUF or PSUM" in _view_problem("trn3", lambda _, i: nl.ndarray((32, 8), nl.float32, hbm).indirect(i))


Problem = tuple[Callable[[], Any], str]


def _copy_default_count() -> None:
    src, index, _ = tiles()
    assert src.indirect(index).shape == (32, 32) and src.indirect(index).is_indirect()
    nisa.tensor_copy(nl.ndarray((32, 32), nl.float32), src.indirect(index))


def _odd_group() -> None:
    src, index, dst = tiles(24)
    nisa.tensor_copy(dst, src.indirect(index, 8))


def _gpsimd() -> None:
    src, index, dst = tiles()
    nisa.tensor_copy(dst, src.indirect(index, 8), engine=ENGINE.gpsimd)


def _second_input() -> None:
    src, index, dst = tiles()
    nisa.tensor_tensor(dst, dst, src.indirect(index, 8), nl.add)


def _no_indirection() -> None:
    src, index, dst = tiles()
    nisa.reciprocal(dst, src.indirect(index, 8))


def _transfer() -> None:
    src, index, dst = tiles()
    nisa.dma_copy(dst, src.indirect(index, 8))


def _scalar_to_psum() -> None:
    src, index, _ = tiles()
    out = nl.ndarray((32, 8), nl.float32, nl.psum)
    nisa.activation(out.indirect(index, 8), nl.exp, src)


def _index_start() -> None:
    index = nl.ndarray((32, 1), nl.uint16, nl.sbuf, address=(16, 0))
    src, _, dst = tiles()
    nisa.tensor_copy(dst, src.indirect(index, 8))


def _other_partitions() -> None:
    index = nl.ndarray((32, 1), nl.uint16, nl.sbuf, address=(32, 4096))
    nisa.tensor_copy(placed(nl.float32, 0, 0), placed(nl.float32, 64, 0).indirect(index, 8))


def _other_result_partitions() -> None:
    index = nl.ndarray((32, 1), nl.uint16, nl.sbuf, address=(32, 4096))
    nisa.tensor_copy(placed(nl.float32, 0, 0).indirect(index, 8), placed(nl.float32, 64, 0))


def _product(**more: Any) -> Callable[[], Any]:
    def call() -> None:
        stationary, index, _ = tiles(dtype=more.pop("dtype", nl.bfloat16))
        moving = nl.ndarray((32, 8), stationary.dtype)
        dst = nl.ndarray((8, 8), stationary.dtype if more.get("is_transpose") else nl.float32, nl.psum)
        left, right = stationary, moving
        if more.pop("moving", False):
            right = moving.indirect(index, 8)
        else:
            left = stationary.indirect(index, 8)
        nisa.nc_matmul(dst, left, right, **more)

    return call


def _mx_pair() -> None:
    data, scale = nl.ndarray((32, 8), nl.float8_e4m3fn_x4), nl.ndarray((32, 8), nl.uint8)
    index, dst = nl.ndarray((32, 1), nl.uint16), nl.ndarray((8, 8), nl.float32, nl.psum)
    nisa.nc_matmul_mx(dst, data, data.indirect(index, 8), scale, scale)


PROBLEMS: list[Problem] = [
    (_copy_default_count, "hold at most 16"),
    (_odd_group, "24, must be a multiple of 16"),
    (_gpsimd, "engine is"),
    (_second_input, "data2 is an indirect view"),
    (_no_indirection, "cannot be indirect"),
    (_transfer, "cannot be indirect"),
    (_scalar_to_psum, "scatters to SBUF only"),
    (_index_start, "must start on a multiple of 32"),
    (_other_partitions, "must start where the index of src does"),
    (_other_result_partitions, "must start where the src does"),
    (_product(tile_position=(32, 0), tile_size=(32, 128)), "must be (0, 0)"),
    (_product(is_transpose=True, moving=True), "with is_transpose"),
    (_product(dtype=nl.float32), "must be float16 or bfloat16"),
    (_mx_pair, "with the same index"),
]


@pytest.mark.parametrize(("body", "said"), PROBLEMS, ids=[said for _, said in PROBLEMS])
def test_operands_that_cannot_be(body: Callable[[], Any], said: str) -> None:
    with pytest.raises((NkiValidationError, UnsupportedError)) as caught:
        trace_body(body, "trn3")
    assert said in str(caught.value) and "(gen4)" in str(caught.value)


@nki.jit
def select_in_sbuf(data: Any, place: Any) -> Any:
    """Read and write what a number of the device selects of tiles in SBUF."""
    src, dst, copied = (nl.ndarray(data.shape, nl.float32) for _ in range(3))
    nisa.dma_copy(src, data)
    nisa.memset(dst, 1.0)
    nisa.memset(copied, 2.0)
    index = nl.ndarray((1, 1), nl.int32)
    nisa.dma_copy(index, place)
    register = nisa.register_alloc()
    nisa.register_load(register, index)
    nisa.tensor_tensor(dst.select(1, index), src.select(1, register), src[:, 0], nl.add)
    nisa.activation(dst[:, 0], nl.square, src.select(1, index))
    mask = nl.ndarray((data.shape[0], data.shape[2]), nl.uint8)
    nisa.memset(mask, 0)
    nisa.memset(mask[:, 0:2], 1)
    nisa.tensor_copy_predicated(copied.select(1, index), src[:, 0], mask)
    output = nl.ndarray((2, *data.shape), nl.float32, nl.shared_hbm)
    nisa.dma_copy(output[0], dst)
    nisa.dma_copy(output[1], copied)
    return output


@pytest.mark.parametrize("target", ["trn1", "trn2", "trn3"])
@pytest.mark.parametrize("place", [1, 5])
def test_a_dynamic_select_of_a_tile_is_an_operand(target: str, place: int) -> None:
    data = np.arange(128 * 6 * 4, dtype=np.float32).reshape(128, 6, 4) % 97
    index = np.array([[place]], np.int32)
    neff = build(select_in_sbuf, data, index, target=target)
    for seed in (None, 1):
        ran = run_neff(neff, {"data": data, "place": index}, seed=seed, checks=("racecheck", "initcheck"))
        assert ran.fault is None and not [one for one in ran.findings if one.serious]
        (found,) = ran.outputs.values()
        expected = np.stack([np.ones_like(data), np.full_like(data, 2)])
        expected[0, :, place] = data[:, place] + data[:, 0]
        expected[0, :, 0] = data[:, place] ** 2
        expected[1, :, place, 0:2] = data[:, 0, 0:2]
        np.testing.assert_array_equal(found, expected)


def test_selects_that_are_no_operands() -> None:
    def body(space: Any) -> Callable[[], None]:
        def select() -> None:
            src, index = nl.ndarray((32, 4, 8), nl.float32, space), nl.ndarray((1, 1), nl.int32)
            nisa.tensor_copy(nl.ndarray((32, 8), nl.float32), src.select(1, index))

        return select

    with pytest.raises(UnsupportedError, match="an indirect view as an operand"):
        trace_body(body(nl.psum))
    with pytest.raises(NkiValidationError, match="must be in SBUF or PSUM"):
        trace_body(body(nl.shared_hbm))
