"""Mistakes that authors of kernels make, each beside the same kernel without it: kind and line, and nothing else.

Origin: written for this suite, after the faults of `tests/faults`; a comment `# fault` marks the line to be named.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import neurontools.nki.isa as nisa
import neurontools.nki.language as nl
from neurontools.nki.launch import build_neff
from tests.checks.support import checked, serious

P, W = 128, 32
UNDEFINED, UNWRITTEN, OUTSIDE = ("initcheck:undefined-output",), ("initcheck:output-unwritten",), ("memcheck:oob",)
RACES = ("racecheck:write-read", "racecheck:read-write", "racecheck:write-write")
OVERLAP, UNREAD, LOST = ("racecheck:overlap",), ("memcheck:psum-unread",), ("memcheck:tile-overlap",)
FAULTS = ("initcheck:undefined-fault", "initcheck:undefined-output", "memcheck:oob")
NOT_FINITE = ("nancheck:nan", "nancheck:inf")
ROWS = np.arange(P, dtype=np.int32).reshape(P, 1)


def tile(*shape: int, dtype: Any = nl.float32, buffer: Any = nl.sbuf) -> Any:
    return nl.ndarray(shape, dtype=dtype, buffer=buffer)


def shared(*shape: int) -> Any:
    return nl.ndarray(shape, dtype=nl.float32, buffer=nl.shared_hbm)


def private(*shape: int) -> Any:
    return nl.ndarray(shape, dtype=nl.float32, buffer=nl.private_hbm)


def division_by_a_column_of_zeros(x: Any, bad: Any) -> Any:
    out, a, s = shared(P, W), tile(P, W), tile(P, 1)
    nisa.dma_copy(dst=a, src=x)
    nisa.memset(dst=s, value=0.0 if bad else 2.0)
    nisa.tensor_scalar(a, a, nl.divide, s)  # fault
    nisa.dma_copy(dst=out, src=a)
    return out


def tail_tile_reduced_whole(x: Any, bad: Any) -> Any:
    out, ones = shared(1, W), tile(P, 1)
    nisa.memset(dst=ones, value=1.0)
    t = tile(1, W, buffer=nl.psum)
    for i in range(3):
        n = min(P, 300 - i * P)
        a = tile(P, W)
        nisa.dma_copy(dst=a[0:n], src=x[i * P : i * P + n])
        m = P if bad else n
        nisa.nc_matmul(dst=t, stationary=ones[0:m], moving=a[0:m])  # fault
    q = tile(1, W)
    nisa.tensor_copy(dst=q, src=t)
    nisa.dma_copy(dst=out, src=q)
    return out


def a_middle_dimension_is_stored_up_to_the_last_but_one(x: Any, bad: Any) -> Any:
    out = shared(P, 8, W)
    a = tile(P, 8, W)
    nisa.dma_copy(dst=a, src=x)
    n = 7 if bad else 8
    nisa.dma_copy(dst=out[0:P, 0:n, 0:W], src=a[0:P, 0:n, 0:W])  # fault
    return out


def a_prefix_over_chunks_reads_the_chunk_before_the_first(x: Any, bad: Any) -> Any:
    out, c = shared(P, 4 * W), tile(P, 5)
    if not bad:
        nisa.memset(dst=c[0:P, 0:1], value=0.0)
    for i in range(4):
        a = tile(P, W)
        nisa.dma_copy(dst=a, src=x[0:P, i * W : i * W + W])
        nisa.tensor_scalar(a, a, nl.add, c[0:P, i : i + 1])  # fault
        nisa.tensor_reduce(dst=c[0:P, i + 1 : i + 2], op=nl.add, data=a, axis=1)
        nisa.dma_copy(dst=out[0:P, i * W : i * W + W], src=a)
    return out


def a_product_is_computed_twice_into_one_bank(a: Any, b: Any, bad: Any) -> Any:
    out, w, r, q = shared(P, W), tile(P, P), tile(P, W), tile(P, W)
    nisa.dma_copy(dst=w, src=a)
    nisa.dma_copy(dst=r, src=b)
    t = tile(P, W, buffer=nl.psum)
    nisa.nc_matmul(dst=t, stationary=w, moving=r, accumulate=False)
    if bad:
        nisa.nc_matmul(dst=t, stationary=w, moving=r, accumulate=False)  # fault
    nisa.tensor_copy(dst=q, src=t)
    nisa.dma_copy(dst=out, src=q)
    return out


def four_products_in_flight_over_three_banks(a: Any, b: Any, bad: Any) -> Any:
    out, w, r = shared(4, P, W), tile(P, P), tile(P, W)
    nisa.dma_copy(dst=w, src=a)
    nisa.dma_copy(dst=r, src=b)
    n = 3 if bad else 4
    ts = [nl.ndarray((P, W), dtype=nl.float32, buffer=nl.psum, address=(0, 2048 * (i % n))) for i in range(4)]
    for i in range(4):
        nisa.nc_matmul(dst=ts[i], stationary=w, moving=r)
    for i in range(4):
        q = tile(P, W)  # fault
        nisa.tensor_copy(dst=q, src=ts[i])  # fault
        nisa.dma_copy(dst=out[i], src=q)
    return out


def vector_adds_to_a_bank_that_was_never_cleared(a: Any, b: Any, bad: Any) -> Any:
    out, r, t, q = shared(P, W), tile(P, W), tile(P, W, buffer=nl.psum), tile(P, W)
    nisa.dma_copy(dst=r, src=b)
    if not bad:
        nisa.memset(dst=t, value=0.0)
    for _ in range(3):
        nisa.tensor_tensor(t, t, r, nl.add)  # fault
    nisa.tensor_copy(dst=q, src=t)
    nisa.dma_copy(dst=out, src=q)
    return out


def a_transpose_of_a_block_with_a_missing_corner(a: Any, bad: Any) -> Any:
    out, w, t, q = shared(P, P), tile(P, P), tile(P, P, buffer=nl.psum), tile(P, P)
    nisa.dma_copy(dst=w[0:64], src=a[0:64])
    n = 64 if bad else P
    nisa.dma_copy(dst=w[64:P, 0:n], src=a[64:P, 0:n])
    nisa.nc_transpose(dst=t, data=w)  # fault
    nisa.tensor_copy(dst=q, src=t)
    nisa.dma_copy(dst=out, src=q)
    return out


def a_rotating_pool_one_slot_too_small_for_its_distance(x: Any, bad: Any) -> Any:
    out = shared(4 * P, W)
    n = 2 if bad else 3
    ts = [nl.ndarray((P, W), dtype=nl.float32, buffer=nl.sbuf, address=(0, 1024 + (i % n) * 4 * W)) for i in range(6)]
    for i in range(6):
        nisa.dma_copy(dst=ts[i], src=x[i * P : i * P + P])
        if i >= 2:
            r = tile(P, W)
            nisa.tensor_tensor(r, ts[i], ts[i - 2], nl.add)  # fault
            nisa.dma_copy(dst=out[(i - 2) * P : (i - 1) * P], src=r)
    return out


def constants_live_where_the_loop_writes(x: Any, bad: Any) -> Any:
    out = shared(P, W)
    one = nl.ndarray((P, 1), dtype=nl.float32, buffer=nl.sbuf, address=(0, 512))
    nisa.memset(dst=one, value=1.0)
    r = tile(P, W)
    nisa.dma_copy(dst=r, src=x)
    for _ in range(2):
        s = nl.ndarray((P, W), dtype=nl.float32, buffer=nl.sbuf, address=(0, 512 if bad else 1024))
        nisa.tensor_scalar(s, r, nl.multiply, 2.0)
        nisa.tensor_scalar(r, s, nl.add, one)  # fault
    nisa.dma_copy(dst=out, src=r)
    return out


def the_last_index_is_one_too_large(x: Any, idx: Any, bad: Any) -> Any:
    out, i, a = shared(P, W), tile(P, 1, dtype=nl.int32), tile(P, W)
    nisa.dma_copy(dst=i, src=idx)
    nisa.dma_copy(dst=a, src=x.ap([[W, P], [1, W]], vector_offset=i, indirect_dim=0))  # fault
    nisa.dma_copy(dst=out, src=a)
    return out


def indices_multiplied_by_the_row_length_twice(x: Any, bad: Any) -> Any:
    out, i, a = shared(P, W), tile(P, 1, dtype=nl.int32), tile(P, W)
    nisa.iota(dst=i, pattern=[[0, 1]], channel_multiplier=1)
    if bad:
        nisa.tensor_scalar(i, i, nl.multiply, W)
    nisa.dma_copy(dst=a, src=x.ap([[W, P], [1, W]], vector_offset=i, indirect_dim=0))  # fault
    nisa.dma_copy(dst=out, src=a)
    return out


def half_the_indices_come_from_an_iota(x: Any, bad: Any) -> Any:
    out, i, a = shared(P, W), tile(P, 1, dtype=nl.int32), tile(P, W)
    n = 64 if bad else P
    nisa.iota(dst=i[0:n], pattern=[[0, 1]], channel_multiplier=1)
    nisa.dma_copy(dst=a, src=x.ap([[W, P], [1, W]], vector_offset=i, indirect_dim=0))  # fault
    nisa.dma_copy(dst=out, src=a)
    return out


def a_copy_onto_itself_shifted_by_a_row(x: Any, bad: Any) -> Any:
    out, a, s = shared(P, W), tile(P, W), private(P + 1, W)
    nisa.memset(dst=a, value=1.0)
    nisa.dma_copy(dst=s[0:P], src=a)
    nisa.dma_copy(dst=s[P : P + 1], src=x[0:1])
    if bad:
        nisa.dma_copy(dst=s[1 : P + 1], src=s[0:P])  # fault
    else:
        nisa.dma_copy(dst=a, src=s[0:P])
        nisa.dma_copy(dst=s[1 : P + 1], src=a)
    nisa.dma_copy(dst=out, src=s[0:P])
    return out


def a_shift_left_within_a_tile_by_one_dma(x: Any, bad: Any) -> Any:
    out, a, b = shared(P, 4 * W), tile(P, 4 * W), tile(P, 4 * W)
    nisa.dma_copy(dst=a, src=x)
    if bad:
        nisa.dma_copy(dst=a[0:P, 0 : 4 * W - 1], src=a[0:P, 1 : 4 * W])  # fault
    else:
        nisa.dma_copy(dst=b, src=a)
        nisa.dma_copy(dst=a[0:P, 0 : 4 * W - 1], src=b[0:P, 1 : 4 * W])
    nisa.dma_copy(dst=out, src=a)
    return out


def a_sum_of_both_parts_without_a_barrier(x: Any, bad: Any) -> Any:
    r = nl.program_id(0)
    out, s = shared(P, W), shared(2, P, W)
    a, b = tile(P, W), tile(P, W)
    nisa.dma_copy(dst=a, src=x[r * P : r * P + P])
    nisa.dma_copy(dst=s[r], src=a)
    if not bad:
        nisa.core_barrier(s, (0, 1))
    if r == 0:
        nisa.dma_copy(dst=a, src=s[0])  # fault
        nisa.dma_copy(dst=b, src=s[1])  # fault
        nisa.tensor_tensor(a, a, b, nl.add)
        nisa.dma_copy(dst=out, src=a)
    return out


def a_shared_slot_is_overwritten_in_the_next_turn(x: Any, bad: Any) -> Any:
    r = nl.program_id(0)
    out, s = shared(2 * P, W), shared(P, W)
    a, b = tile(P, W), tile(P, W)
    for i in range(2):
        if r == 0:
            nisa.dma_copy(dst=a, src=x[i * P : i * P + P])
            nisa.dma_copy(dst=s, src=a)  # fault
        nisa.core_barrier(s, (0, 1))
        if r == 1:
            nisa.dma_copy(dst=b, src=s)  # fault
            nisa.dma_copy(dst=out[i * P : i * P + P], src=b)
        if not bad:
            nisa.core_barrier(s, (0, 1))
    return out


def the_halves_leave_a_row_between_them(x: Any, bad: Any) -> Any:
    r = nl.program_id(0)
    out = shared(2 * P, W)
    a = tile(P, W)
    nisa.dma_copy(dst=a, src=x[r * P : r * P + P])
    n = P - 1 if bad and r == 0 else P
    nisa.dma_copy(dst=out[r * P : r * P + n], src=a[0:n])  # fault
    return out


def the_carried_sum_is_begun_inside_the_loop_only_sometimes(x: Any, bad: Any) -> Any:
    out, acc = shared(P, W), tile(P, W)
    if not bad:
        nisa.memset(dst=acc, value=0.0)
    for i in nl.dynamic_range(0, 4 * P, P):
        a = tile(P, W)
        nisa.dma_copy(dst=a, src=x.ap([[W, P], [1, W]], scalar_offset=i, indirect_dim=0))
        nisa.tensor_tensor(acc, acc, a, nl.add)  # fault
    nisa.dma_copy(dst=out, src=acc)
    return out


def the_last_turn_reads_beyond(x: Any, bad: Any) -> Any:
    out, late = shared(4 * P, W), W if bad else 0
    for i in nl.dynamic_range(0, 4 * P, P):
        a = tile(P, W)
        nisa.dma_copy(dst=a, src=x.ap([[W, P], [1, W]], scalar_offset=i, indirect_dim=0, offset=late))  # fault
        nisa.dma_copy(dst=out.ap([[W, P], [1, W]], scalar_offset=i, indirect_dim=0), src=a)
    return out


def a_value_doubles_in_every_turn_until_it_overflows(x: Any, bad: Any) -> Any:
    out, a = shared(P, W), tile(P, W)
    nisa.dma_copy(dst=a, src=x[0:P])
    for _ in nl.dynamic_range(0, 200 if bad else 3, 1):
        nisa.tensor_scalar(a, a, nl.multiply, 2.0)  # fault
    nisa.dma_copy(dst=out, src=a)
    return out


INFNAN = ("nancheck:nan", "nancheck:inf")
NT = ("all", "nancheck")
UNW = ("initcheck:output-unwritten",)
OOB = ("memcheck:oob",)
REG = ("initcheck:undefined-register",)
LIM = ("memcheck:rule", "memcheck:partitions", "memcheck:operand", "memcheck:access", "memcheck:oob")


def adds_by_dma_to_an_output_that_nothing_cleared(x: Any, bad: Any) -> Any:
    out, a, z = shared(P, W), tile(P, W), tile(P, W)
    nisa.dma_copy(dst=a, src=x)
    nisa.memset(dst=z, value=0.0)
    if not bad:
        nisa.dma_copy(dst=out, src=z)
    nisa.dma_compute(dst=out, srcs=[out, a], reduce_op=nl.add)  # fault
    return out


def both_cores_add_by_dma_to_one_tensor(x: Any, bad: Any) -> Any:
    r = nl.program_id(0)
    out = shared(P, W)
    a, z = tile(P, W), tile(P, W)
    nisa.dma_copy(dst=a, src=x)
    nisa.memset(dst=z, value=0.0)
    if r == 0:
        nisa.dma_copy(dst=out, src=z)
    nisa.core_barrier(out, (0, 1))
    if r == 0:
        nisa.dma_compute(dst=out, srcs=[out, a], reduce_op=nl.add)  # fault
    if not bad:
        nisa.core_barrier(out, (0, 1))
    if r == 1:
        nisa.dma_compute(dst=out, srcs=[out, a], reduce_op=nl.add)  # fault
    return out


def a_half_of_a_scratch_tensor_is_never_stored(x: Any, bad: Any) -> Any:
    out, first, second, a = shared(P, W), private(P, W), private(P, W), tile(P, W)
    nisa.dma_copy(dst=a, src=x)
    nisa.dma_copy(dst=first, src=a)
    n = W // 2 if bad else W
    nisa.dma_copy(dst=second[0:P, 0:n], src=a[0:P, 0:n])
    nisa.dma_copy(dst=a, src=first)
    nisa.dma_copy(dst=out, src=a)
    nisa.dma_copy(dst=a, src=second)  # fault
    nisa.dma_copy(dst=out, src=a)
    return out


CASES: tuple[tuple[Callable[..., Any], tuple[str, ...], tuple[Any, ...], int], ...] = (
    (division_by_a_column_of_zeros, NOT_FINITE, ((P, W),), 1),
    (tail_tile_reduced_whole, UNDEFINED, ((300, W),), 1),
    (a_middle_dimension_is_stored_up_to_the_last_but_one, UNWRITTEN, ((P, 8, W),), 1),
    (a_prefix_over_chunks_reads_the_chunk_before_the_first, UNDEFINED, ((P, 4 * W),), 1),
    (
        a_product_is_computed_twice_into_one_bank,
        UNREAD,
        (
            (P, P),
            (P, W),
        ),
        1,
    ),
    (
        four_products_in_flight_over_three_banks,
        LOST,
        (
            (P, P),
            (P, W),
        ),
        1,
    ),
    (
        vector_adds_to_a_bank_that_was_never_cleared,
        UNDEFINED,
        (
            (P, P),
            (P, W),
        ),
        1,
    ),
    (a_transpose_of_a_block_with_a_missing_corner, UNDEFINED, ((P, P),), 1),
    (a_rotating_pool_one_slot_too_small_for_its_distance, LOST, ((6 * P, W),), 1),
    (constants_live_where_the_loop_writes, LOST, ((P, W),), 1),
    (
        the_last_index_is_one_too_large,
        OUTSIDE,
        (
            (P, W),
            [ROWS, ROWS + 1],
        ),
        1,
    ),
    (indices_multiplied_by_the_row_length_twice, OUTSIDE, ((P, W),), 1),
    (half_the_indices_come_from_an_iota, FAULTS, ((P, W),), 1),
    (a_copy_onto_itself_shifted_by_a_row, OVERLAP, ((P, W),), 1),
    (a_shift_left_within_a_tile_by_one_dma, OVERLAP, ((P, 4 * W),), 1),
    (a_sum_of_both_parts_without_a_barrier, RACES, ((2 * P, W),), 2),
    (a_shared_slot_is_overwritten_in_the_next_turn, RACES, ((4 * P, W),), 2),
    (the_halves_leave_a_row_between_them, UNWRITTEN, ((2 * P, W),), 2),
    (the_carried_sum_is_begun_inside_the_loop_only_sometimes, UNDEFINED, ((4 * P, W),), 1),
    (the_last_turn_reads_beyond, OUTSIDE, ((4 * P, W),), 1),
    (a_value_doubles_in_every_turn_until_it_overflows, NOT_FINITE, ((4 * P, W),), 1),
    (adds_by_dma_to_an_output_that_nothing_cleared, UNDEFINED, ((P, W),), 1),
    (both_cores_add_by_dma_to_one_tensor, RACES, ((P, W),), 2),
    (a_half_of_a_scratch_tensor_is_never_stored, UNDEFINED, ((P, W),), 1),
)


def _given(shape: Any, bad: bool) -> Any:
    """Return random numbers of a shape, or the first of two arrays, the second where the kernel is to be wrong."""
    if isinstance(shape, list):
        return shape[bad]
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def _found(kernel: Any, kinds: tuple[str, ...], shapes: tuple[Any, ...], lnc: int, bad: bool) -> Any:
    arrays = [_given(shape, bad) for shape in shapes]
    neff: Any = build_neff(kernel, (*arrays, bad), {}, target="trn2", lnc=lnc)
    inputs = {tensor.name: array for tensor, array in zip(neff.inputs, arrays, strict=True)}
    tools = ("all", "nancheck") if kinds is NOT_FINITE else ("all",)
    return serious(checked(neff, inputs, tools)[0])


@pytest.mark.parametrize(("kernel", "kinds", "shapes", "lnc"), CASES, ids=[row[0].__name__ for row in CASES])
def test_the_mistake_is_told_and_its_twin_is_clean(
    kernel: Any, kinds: tuple[str, ...], shapes: tuple[Any, ...], lnc: int
) -> None:
    lines, first = inspect.getsourcelines(kernel)
    wanted = {first + at for at, line in enumerate(lines) if "# fault" in line}
    found = [one for one in _found(kernel, kinds, shapes, lnc, True) if f"{one.tool}:{one.kind}" in kinds]
    named = {getattr(site.source, "line", None) for one in found for site in (one.site, *one.others)}
    assert wanted & named, (wanted, named)
    assert _found(kernel, kinds, shapes, lnc, False) == []


def test_a_finding_names_the_variable_of_the_scratchpad() -> None:
    (found,) = _found(a_half_of_a_scratch_tensor_is_never_stored, UNDEFINED, ((P, W),), 1, True)
    assert found.tensor == "second" and "bytes of second that nothing wrote" in found.message
