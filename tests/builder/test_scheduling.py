"""Operations that go ahead of others that wait: the order stays one that every operation may be carried out in."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import neurontools
import neurontools.nki.isa as nisa
import neurontools.nki.language as nl
from formats.targets import resolve_target
from neurontools.builder.chip import chip_of
from neurontools.builder.dependencies import predecessors, stands
from neurontools.builder.scheduling import scheduled
from neurontools.nki.errors import NkiValidationError
from neurontools.nki.launch import trace_kernel
from tests.builder.test_touched import program

CHIP = chip_of(resolve_target("trn2"))
RANDOM = np.random.default_rng(5)


def built(kernel: Any, *arrays: Any, setting: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("NEURONTOOLS_SCHEDULE", setting)
    neff = neurontools.build(kernel, *arrays, target="trn2")
    names = (one.name for one in neff.inputs)
    return neurontools.run(neff, dict(zip(names, arrays, strict=True)), checks="all")


@pytest.mark.parametrize("seed", range(80))
def test_what_depends_on_each_other_keeps_its_order(seed: int) -> None:
    trace = program(seed)
    other = scheduled(trace, CHIP)
    place = {id(op): number for number, op in enumerate(other.ops)}
    assert sorted(place.values()) == list(range(len(trace.ops)))
    for number, (op, before) in enumerate(zip(trace.ops, predecessors(trace), strict=True)):
        assert all(place[id(trace.ops[one])] < place[id(op)] for one in before)
        if stands(op):
            assert place[id(op)] == number
            assert {place[id(one)] for one in trace.ops[:number]} == set(range(number))


def product(a: Any, b: Any) -> Any:
    """Return a product whose sums in PSUM are filled, and copied, by Vector: the next fill stands behind the copy."""
    out = nl.ndarray((a.shape[1], b.shape[1]), dtype=nl.float32, buffer=nl.shared_hbm)
    left, right = (
        [nl.ndarray((128, one.shape[1]), dtype=one.dtype, buffer=nl.sbuf) for _ in range(one.shape[0] // 128)]
        for one in (a, b)
    )
    for tiles, one in ((left, a), (right, b)):
        for k, tile in enumerate(tiles):
            nisa.dma_copy(dst=tile, src=one[128 * k : 128 * (k + 1)])
    for row in range(0, a.shape[1], 128):
        for column in range(0, b.shape[1], 512):
            total = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum)
            nisa.memset(total, 0.0)
            for x, y in zip(left, right, strict=True):
                nisa.nc_matmul(dst=total, stationary=x[:, row : row + 128], moving=y[:, column : column + 512])
            done = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
            nisa.tensor_copy(done, total)
            nisa.dma_copy(dst=out[row : row + 128, column : column + 512], src=done)
    return out


def test_fills_do_not_wait_for_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = (RANDOM.standard_normal((512, 1024), np.float32).astype("bfloat16") for _ in range(2))
    plain = built(product, a, b, setting="off", monkeypatch=monkeypatch)
    ahead = built(product, a, b, setting="on", monkeypatch=monkeypatch)
    for one, other in zip(plain.outputs.values(), ahead.outputs.values(), strict=True):
        np.testing.assert_array_equal(one, other)
    assert not plain.findings and not ahead.findings
    assert ahead.time_ps < 0.8 * plain.time_ps


def test_tiles_that_leave_no_room_keep_the_kernels_order() -> None:
    def kernel(a: Any) -> Any:
        out = nl.ndarray((8, 128, 512), dtype=nl.float32, buffer=nl.shared_hbm)
        sums = [nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum) for _ in range(8)]  # all of PSUM
        for number, one in enumerate(sums):
            nisa.memset(one, number)
        for number, one in enumerate(sums):
            done = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
            nisa.tensor_copy(done, one)
            nisa.dma_copy(dst=out[number], src=done)
        return out

    (one,) = trace_kernel(kernel, (np.zeros((128, 512), np.float32),), target="trn2")
    other = scheduled(one.trace, CHIP)
    assert [op.source for op in other.ops[:8]] == [op.source for op in one.trace.ops[:8]]


def test_another_setting_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(NkiValidationError, match="NEURONTOOLS_SCHEDULE is 'yes', must be on or off"):
        built(product, *[np.zeros((128, 512), np.float32)] * 2, setting="yes", monkeypatch=monkeypatch)


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["load", "store", "fill", "add", "exp", "product", "copy", "gather"]),
        st.integers(0, 5), st.integers(0, 5), st.integers(0, 2), st.sampled_from([0, 64]), st.sampled_from([64, 128]),
    ),
    min_size=4, max_size=30,
)  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(steps=STEPS)
def test_random_programs_come_to_the_same(steps: list[tuple[str, int, int, int, int, int]]) -> None:
    def kernel(a: Any) -> Any:
        out = nl.ndarray((6, 128, 128), dtype=nl.float32, buffer=nl.shared_hbm)
        scratch = nl.ndarray((128, 128), dtype=nl.float32, buffer=nl.private_hbm)
        tiles = [nl.ndarray((128, 128), dtype=nl.float32, buffer=nl.sbuf) for _ in range(6)]
        sums = [nl.ndarray((128, 128), dtype=nl.float32, buffer=nl.psum) for _ in range(3)]
        nisa.dma_copy(dst=scratch, src=a)
        for number, one in enumerate(tiles):
            nisa.memset(one, number / 8)
        for one in sums:
            nisa.memset(one, 0.0)
        for kind, x, y, z, begin, end in steps:
            part = slice(begin, max(end, begin + 64))
            src, dst = tiles[x][:, part], tiles[y][:, part]
            if kind == "load":
                nisa.dma_copy(dst=dst, src=(a, scratch)[z % 2][:, part])
            elif kind == "store":
                nisa.dma_copy(dst=scratch[:, part], src=src)
            elif kind == "fill":
                nisa.memset(dst, z)
            elif kind == "add":
                nisa.tensor_tensor(dst, src, tiles[z][:, part], op=nl.add)
            elif kind == "exp":
                nisa.activation(dst=dst, op=nl.tanh, data=src)
            elif kind == "product":
                nisa.nc_matmul(dst=sums[z], stationary=tiles[x], moving=tiles[y])
            elif kind == "copy":
                nisa.tensor_copy(dst, sums[z][:, part])
            else:
                nisa.tensor_copy(sums[z][:, part], src)
        for number, one in enumerate(tiles):
            nisa.dma_copy(dst=out[number], src=one)
        return out

    a = np.linspace(-1, 1, 128 * 128, dtype=np.float32).reshape(128, 128)
    with pytest.MonkeyPatch.context() as patch:
        plain, ahead = (built(kernel, a, setting=one, monkeypatch=patch) for one in ("off", "on"))
    for one, other in zip(plain.outputs.values(), ahead.outputs.values(), strict=True):
        np.testing.assert_array_equal(one, other)
    assert not ahead.findings
