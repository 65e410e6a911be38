"""DMA, registers and the exchange between two cores against NumPy, from kernel to result; many cases in one launch."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import neurontools.nki as nki
import neurontools.nki.isa as nisa
import neurontools.nki.language as nl
from tests.nki import reference
from tests.nki.direct import TARGETS, dtype_of, seeds, values_of
from tests.nki.test_property_elementwise import any_bits, same

TOGETHER = 10
LAUNCHES = settings(max_examples=20, deadline=None)  # of TOGETHER cases each
NUMBERS = st.sampled_from(["float32", "bfloat16", "float16", "int8", "uint8", "int16", "uint16", "int32", "uint32"])
ANY = st.sampled_from(TARGETS)
F32 = np.float32


def several(*parts: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Any]]:
    return st.lists(st.tuples(*parts), min_size=TOGETHER, max_size=TOGETHER)


def numbers(rng: np.random.Generator, shape: tuple[int, ...], dtype: str, whole_range: bool = False) -> Any:
    return any_bits(rng, dtype, shape) if whole_range and "int" in dtype else values_of(rng, shape, dtype)


def sbuf(shape: tuple[int, ...], dtype: str, start: int = 0, lead: int = 0, step: int = 1) -> Any:
    """Return a view of a new tile that begins at a partition and an element, with gaps between its last elements."""
    whole = nl.ndarray((start + shape[0], *shape[1:-1], lead + shape[-1] * step), dtype_of(dtype), nl.sbuf)
    return whole[(slice(start, start + shape[0]), *[slice(None)] * (len(shape) - 2), slice(lead, None, step))]


def kept(view: Any) -> Any:
    out = nl.ndarray(view.shape, view.dtype, nl.shared_hbm)
    nisa.dma_copy(out, view)
    return out


COPY = (NUMBERS, NUMBERS, NUMBERS, st.permutations([0, 1, 2]), st.integers(1, 40), st.integers(1, 4), st.integers(1, 9),
        st.integers(0, 64), st.integers(0, 3), st.integers(1, 3), st.booleans())  # fmt: skip


@LAUNCHES
@given(rng=seeds(), cases=several(*COPY), target=ANY)
def test_dma_copy_casts_through_fp32_between_any_two_places(
    rng: np.random.Generator, cases: list[Any], target: str
) -> None:
    inputs = [numbers(rng, (p, a, b), first, True) for first, _, _, _, p, a, b, *_ in cases]

    def kernel(xs: Any) -> Any:
        results = []
        for x, (_, second, third, order, _, _, _, start, lead, step, direct) in zip(xs, cases, strict=True):
            turned = x.permute(order)
            tile = sbuf(turned.shape, second, start, lead, step)
            nisa.dma_copy(tile, turned)
            if not direct:
                other = sbuf(turned.shape, second)
                nisa.dma_copy(other, tile)
                tile = other
            out = nl.ndarray(x.shape, dtype_of(third), nl.shared_hbm)
            nisa.dma_copy(out.permute(order), tile)
            results.append(out)
        return results

    for got, data, (first, second, third, *_) in zip(
        nki.jit(kernel, platform_target=target)(inputs), inputs, cases, strict=True
    ):
        middle = data if first == second else reference.cast(data.astype(F32), second)
        same(got, middle if second == third else reference.cast(middle.astype(F32), third))


@LAUNCHES
@given(rng=seeds(), cases=several(NUMBERS, st.integers(1, 4), st.integers(1, 4), st.integers(1, 16)), target=ANY)
def test_dma_copy_takes_different_shapes_of_one_size(rng: np.random.Generator, cases: list[Any], target: str) -> None:
    inputs = [numbers(rng, (a * b * c,), dtype, True) for dtype, a, b, c in cases]

    def kernel(xs: Any) -> Any:
        results = []
        for x, (_, a, b, c) in zip(xs, cases, strict=True):
            tile = nl.ndarray((a, b, c), x.dtype, nl.sbuf)
            nisa.dma_copy(tile, x)
            out = nl.ndarray((a * b, c), x.dtype, nl.shared_hbm)
            nisa.dma_copy(out, tile)
            results.append(out)
        return results

    for got, data, (_, a, b, c) in zip(nki.jit(kernel, platform_target=target)(inputs), inputs, cases, strict=True):
        same(got, data.reshape(a * b, c))


SHAPES = st.lists(st.integers(1, 20), min_size=2, max_size=2) | st.lists(st.integers(1, 7), min_size=3, max_size=4)


@LAUNCHES
@given(rng=seeds(), cases=several(NUMBERS, SHAPES, st.booleans()), target=ANY)
def test_dma_transpose_permutes_by_rank(rng: np.random.Generator, cases: list[Any], target: str) -> None:
    inputs = [numbers(rng, tuple(shape), dtype, True) for dtype, shape, _ in cases]
    orders = [{2: (1, 0), 3: (2, 1, 0), 4: (3, 1, 2, 0)}[len(shape)] for _, shape, _ in cases]

    def kernel(xs: Any) -> Any:
        results = []
        for x, order, (_, shape, on_chip) in zip(xs, orders, cases, strict=True):
            source = x
            if on_chip:
                source = nl.ndarray(x.shape, x.dtype, nl.sbuf)
                nisa.dma_copy(source, x)
            tile = nl.ndarray(tuple(shape[one] for one in order), x.dtype, nl.sbuf)
            nisa.dma_transpose(tile, source)
            results.append(kept(tile))
        return results

    for got, data, order in zip(nki.jit(kernel, platform_target=target)(inputs), inputs, orders, strict=True):
        same(got, data.transpose(order))


@LAUNCHES
@given(rng=seeds(), cases=several(st.lists(NUMBERS, min_size=2, max_size=5), NUMBERS, st.booleans()), target=ANY)
def test_dma_compute_adds_in_fp32(rng: np.random.Generator, cases: list[Any], target: str) -> None:
    inputs = [[numbers(rng, (5, 7), dtype) for dtype in types] for types, _, _ in cases]

    def kernel(groups: Any) -> Any:
        results = []
        for xs, (_, result, on_chip) in zip(groups, cases, strict=True):
            sources = [nl.load(x) if on_chip and number % 2 else x for number, x in enumerate(xs)]
            out = nl.ndarray((5, 7), dtype_of(result), nl.sbuf if on_chip else nl.shared_hbm)
            nisa.dma_compute(out, sources, nl.add)
            results.append(kept(out) if on_chip else out)
        return results

    for got, group, (_, result, _) in zip(nki.jit(kernel, platform_target=target)(inputs), inputs, cases, strict=True):
        same(got, reference.cast(np.add.reduce([one.astype(F32) for one in group]), result))  # exact in any order


@LAUNCHES
@given(rng=seeds(), cases=several(st.integers(1, 16), st.integers(1, 30), st.integers(1, 9), NUMBERS, st.booleans(),
       st.booleans()), target=ANY)  # fmt: skip
def test_dma_by_index_gathers_scatters_and_skips(rng: np.random.Generator, cases: list[Any], target: str) -> None:
    tables = [numbers(rng, (many, width), dtype, True) for _, many, width, dtype, _, _ in cases]
    places = [rng.permutation(max(rows, many) + 3)[:rows, None].astype(np.int32) for rows, many, *_ in cases]
    updates = [numbers(rng, (rows, width), dtype, True) for rows, _, width, dtype, _, _ in cases]

    def kernel(tables: Any, places: Any, updates: Any) -> Any:
        results = []
        for table, place, update, (rows, _, width, _, scatter, selected) in zip(
            tables, places, updates, cases, strict=True
        ):
            index, tile = nl.load(place), nl.load(update)
            changed = nl.ndarray(table.shape, table.dtype, nl.shared_hbm)
            nisa.dma_copy(changed, table)
            if selected:
                view = changed.vector_select(0, index)
            else:
                view = changed.ap([[width, rows], [1, width]], vector_offset=index, indirect_dim=0)
            to, source = (view, tile) if scatter else (tile, view)
            nisa.dma_copy(to, source, oob_mode=nisa.oob_mode.skip)
            results.append(changed if scatter else kept(tile))
        return results

    found = nki.jit(kernel, platform_target=target)(tables, places, updates)
    for got, table, place, update, case in zip(found, tables, places, updates, cases, strict=True):
        flat = place[:, 0]
        inside = flat < len(table)
        expected = table.copy() if case[4] else update.copy()
        if case[4]:
            expected[flat[inside]] = update[inside]
        else:
            expected[inside] = table[flat[inside]]
        same(got, expected)


@LAUNCHES
@given(rng=seeds(), cases=several(st.integers(-(2**31), 2**31 - 1), st.integers(0, 7), st.sampled_from(
       ["int32", "uint32", "float32", "int16", "uint8"])), target=ANY)  # fmt: skip
def test_registers_carry_32_bits_and_start_addresses(rng: np.random.Generator, cases: list[Any], target: str) -> None:
    data = numbers(rng, (8, 5), "float32")
    words = [any_bits(rng, kind, (1, 1)) if "int" in kind else rng.normal(size=(1, 1)).astype(kind)
             for _, _, kind in cases]  # fmt: skip

    def kernel(data: Any, words: Any) -> Any:
        results = []
        for word, (constant, start, _) in zip(words, cases, strict=True):
            moved, loaded, copied = nisa.register_alloc(constant), nisa.register_alloc(), nisa.register_alloc(None)
            nisa.register_load(loaded, word)
            nisa.register_move(copied, loaded)
            first, second = nl.ndarray((1, 1), nl.int32, nl.shared_hbm), nl.ndarray((1, 1), word.dtype, nl.shared_hbm)
            nisa.register_store(first, moved)
            nisa.register_store(second, copied)
            row = nl.ndarray((1, 5), nl.float32, nl.sbuf)
            nisa.dma_copy(row, data.ap([[5, 1], [1, 5]], scalar_offset=nisa.register_alloc(start), indirect_dim=0))
            results.append((first, second, kept(row)))
        return results

    for (first, second, row), word, (constant, start, kind) in zip(
        nki.jit(kernel, platform_target=target)(data, words), words, cases, strict=True
    ):
        assert first[0, 0] == constant
        if np.dtype(kind).itemsize == 4:
            assert second.view(np.uint32) == word.view(np.uint32)
        else:
            assert second == word
        same(row[0], data[start])


@LAUNCHES
@given(rng=seeds(), cases=several(NUMBERS, st.integers(1, 32), st.integers(1, 9), st.sampled_from([0, 32, 64]),
       st.booleans()), target=st.sampled_from(TARGETS[1:]))  # fmt: skip
def test_two_cores_exchange_tiles_and_meet_at_barriers(rng: np.random.Generator, cases: list[Any], target: str) -> None:
    inputs = [numbers(rng, (2, p, f), dtype, True) for dtype, p, f, _, _ in cases]

    def kernel(xs: Any) -> Any:
        me, results = nl.program_id(0), []
        for number, (x, (dtype, p, f, start, gpsimd)) in enumerate(zip(xs, cases, strict=True)):
            mine, theirs = sbuf((p, f), dtype, start), sbuf((p, f), dtype, start)
            nisa.dma_copy(mine, x[me])
            way = nisa.dma_engine.gpsimd_dma if gpsimd else nisa.dma_engine.dma
            nisa.sendrecv(mine, theirs, 1 - me, 1 - me, number, way)
            out = nl.ndarray(x.shape, x.dtype, nl.shared_hbm)
            nisa.dma_copy(out[me], theirs)
            nisa.core_barrier(out, (0, 1))
            both = nl.ndarray((p, f), x.dtype, nl.sbuf)
            nisa.dma_copy(both, out[1 - me])  # what the other core has written before the barrier: this core's own
            again = nl.ndarray(x.shape, x.dtype, nl.shared_hbm)
            nisa.dma_copy(again[me], both)
            results += [out, again]
        return results

    found = nki.jit(kernel, platform_target=target)[2](inputs)
    for out, again, data in zip(found[::2], found[1::2], inputs, strict=True):
        same(out, data[::-1])
        same(again, data)
