"""Values written where they are assigned: which copies are left out, which stay, and that no result changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import neurontools
import neurontools.neuronxcc.nki as old
import neurontools.neuronxcc.nki.isa as old_isa
import neurontools.neuronxcc.nki.language as old_nl
import neurontools.nki as nki
import neurontools.nki.isa as nisa
import neurontools.nki.language as nl
from formats import isa
from neurontools.builder.trace import ComputeOp
from neurontools.nki import launch
from neurontools.nki.launch import trace_kernel

RANDOM = np.random.default_rng(11)
A, B = (RANDOM.standard_normal((128, 64), np.float32) for _ in range(2))
Body = Callable[[Any, Any, Any, Any], None]


def traced(body: Body) -> list[ComputeOp]:
    """Return the operations of compute engines that a body leaves, between loads and a store."""
    (one,) = trace_kernel(around(body), (A, B), target="trn2")
    assert all(allocation.born <= len(one.trace.ops) for allocation in one.trace.allocations)
    return [op for op in one.trace.ops if isinstance(op, ComputeOp)]


def around(body: Body) -> Any:
    """Return a kernel that hands two inputs, in SBUF, and two tiles of zeros to a body, and gives back the tiles."""

    def kernel(a: Any, b: Any) -> Any:
        outs = [nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.shared_hbm) for _ in range(2)]
        x, y, s, t = (nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.sbuf) for _ in range(4))
        nisa.dma_copy(dst=x, src=a)
        nisa.dma_copy(dst=y, src=b)
        nisa.memset(s, 0)
        nisa.memset(t, 0)
        body(x, y, s, t)
        nisa.dma_copy(dst=outs[0], src=s)
        nisa.dma_copy(dst=outs[1], src=t)
        return tuple(outs)

    return kernel


def results(body: Body) -> list[Any]:
    return [np.asarray(one) for one in nki.jit(around(body), platform_target="trn2")(A, B)]


def copies(body: Body) -> int:
    return sum(op.instruction in (isa.Copy, isa.Cast) for op in traced(body))


def whole(x: Any, y: Any, s: Any, t: Any) -> None:
    s[...] = nl.add(x, y)


def rows(x: Any, y: Any, s: Any, t: Any) -> None:
    s[64:128] = nl.exp(x[0:64])


def columns_behind_each_other(x: Any, y: Any, s: Any, t: Any) -> None:
    flat = s.reshape((128, 2, 32))
    flat[:, 1] = nl.multiply(x[:, 0:32], 2.0)


def by_element(x: Any, y: Any, s: Any, t: Any) -> None:
    s[...] = x
    s[...] = nl.add(s, y)


def several_lines(x: Any, y: Any, s: Any, t: Any) -> None:
    s[...] = nl.add(
        x,
        y,
    )


def sequence(x: Any, y: Any, s: Any, t: Any) -> None:
    s[...] = nl.add(nl.add(x, y), y)


@pytest.mark.parametrize("body", [whole, rows, columns_behind_each_other, several_lines, sequence])
def test_no_copy_is_left(body: Body) -> None:
    assert copies(body) == 0


def test_by_element_in_place() -> None:
    kept = traced(by_element)
    assert [op.instruction for op in kept[2:]] == [isa.Copy, isa.TensorTensor]  # of a tile that has a name, and the sum
    assert kept[-1].operands["dst"].allocation is kept[-1].operands["src0"].allocation


def held(x: Any, y: Any, s: Any, t: Any) -> None:
    value = nl.add(x, y)
    s[...] = value
    t[...] = value


def part_of_it(x: Any, y: Any, s: Any, t: Any) -> None:
    s[:, 0:32] = nl.add(x, y)[:, 0:32]


def shifted(x: Any, y: Any, s: Any, t: Any) -> None:
    s[...] = x
    s[:, 1:64] = nl.add(s[:, 0:63], y[:, 1:64])


def gaps(x: Any, y: Any, s: Any, t: Any) -> None:
    s[:, 0:64:2] = nl.add(x[:, 0:32], 1.0)


def in_between(x: Any, y: Any, s: Any, t: Any) -> None:
    def value() -> Any:
        made = nl.add(x, y)
        nisa.tensor_copy(dst=t, src=s)  # reads what is assigned to afterwards
        return made

    s[...] = value()


def named(x: Any, y: Any, s: Any, t: Any) -> None:
    value = nl.add(x, y)
    s[...] = value


def swapped(x: Any, y: Any, s: Any, t: Any) -> None:
    s[...] = x
    s[0:64] = nl.add(s[64:128], 0.0)


@pytest.mark.parametrize("body", [held, part_of_it, shifted, gaps, in_between, named])
def test_copies_that_stay(body: Body) -> None:
    assert copies(body) > 0


EVERY = [whole, rows, columns_behind_each_other, by_element, several_lines, sequence, held, part_of_it, shifted, gaps,
         in_between, named, swapped]  # fmt: skip


@pytest.mark.parametrize("body", EVERY)
def test_results_are_those_with_all_copies(body: Body, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEURONTOOLS_LAUNCH_CACHE", "off")
    without = results(body)
    monkeypatch.setattr(launch, "write_where_assigned", lambda trace, copies: None)
    for one, other in zip(without, results(body), strict=True):
        np.testing.assert_array_equal(one, other)


def test_an_order_that_the_kernel_asks_for_stays() -> None:
    def body(x: Any, y: Any, s: Any, t: Any) -> None:
        first = nisa.memset(t, 1.0)
        s[...] = nl.add(x, y)
        nisa.memset(t, 2.0).depends_on(first)

    (one,) = trace_kernel(around(body), (A, B), target="trn2")
    ((number, (before,)),) = one.trace.after.items()
    first, last = one.trace.ops[before], one.trace.ops[number]
    assert isinstance(first, ComputeOp) and isinstance(last, ComputeOp)
    assert first.instruction is last.instruction is isa.Memset and first.operands["dst"] == last.operands["dst"]
    assert copies(body) == 0


def test_first_generation_loads_and_assigns_parts() -> None:
    @old.jit
    def kernel(a: Any, b: Any) -> Any:
        out = old_nl.ndarray((128, 64), dtype=a.dtype, buffer=old_nl.shared_hbm)
        half, row, column = old_nl.arange(64)[:, None], old_nl.arange(128)[:, None], old_nl.arange(64)[None, :]
        packed = old_nl.ndarray((old_nl.par_dim(128), 64), dtype=a.dtype, buffer=old_nl.sbuf)
        packed[half, column] = old_nl.load(a[half, column])
        packed[64 + half, column] = old_isa.activation(op=old_nl.copy, data=packed[half, column], scale=-1.0)
        packed[row, column] += old_nl.load(b[row, column])
        old_nl.store(out[row, column], value=packed[row, column])
        return out

    (one,) = trace_kernel(kernel, (A, B), target="trn2")
    left = [op.instruction for op in one.trace.ops if isinstance(op, ComputeOp)]
    assert left == [isa.Activate, isa.TensorTensor]
    want = np.concatenate([A[:64], -A[:64]]) + B
    np.testing.assert_allclose(old.simulate_kernel(kernel, A, B), want, rtol=1e-6)


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["add", "exp", "scale", "copy", "load"]),
        st.integers(0, 2), st.integers(0, 2),  # tiles: from which, to which
        st.sampled_from([0, 16, 32]), st.sampled_from([0, 16, 32]),  # first columns
        st.sampled_from([16, 32]),
        st.booleans(),
    ),
    min_size=1, max_size=8,
)  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(steps=STEPS)
def test_random_programs(steps: list[tuple[str, int, int, int, int, int, bool]]) -> None:
    """Assignments among parts of three tiles, with values held and not: NumPy's result, and that with all copies."""

    def kernel(a: Any) -> Any:
        out = nl.ndarray((3, 128, 64), dtype=nl.float32, buffer=nl.shared_hbm)
        tiles = [nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.sbuf, name=f"t{one}") for one in range(3)]
        for number, one in enumerate(tiles):
            nisa.memset(one, number + 1)
        for kind, source, target, begin, first, count, is_held in steps:
            src, dst = tiles[source][:, begin : begin + count], tiles[target]
            if is_held:
                value = compute(kind, a, src, begin)
                dst[:, first : first + count] = value
            else:
                dst[:, first : first + count] = compute(kind, a, src, begin)
        for number, one in enumerate(tiles):
            nisa.dma_copy(dst=out[number], src=one)
        return out

    def compute(kind: str, a: Any, src: Any, begin: int) -> Any:
        if kind == "load":
            return nl.load(a[:, begin : begin + src.shape[1]])
        if kind == "copy":
            return nl.copy(src)
        return nl.add(src, src) if kind == "add" else nl.tanh(src) if kind == "exp" else nl.multiply(src, 0.5)

    found = neurontools.run(neurontools.build(kernel, A, target="trn2"), {"a": A})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(launch, "write_where_assigned", lambda trace, copies: None)
        plain = neurontools.run(neurontools.build(kernel, A, target="trn2"), {"a": A})
    (one,), (other,) = found.outputs.values(), plain.outputs.values()
    np.testing.assert_array_equal(one, other)
    assert found.time_ps <= plain.time_ps
