"""Tiles that go through device memory: results stay the same to the bit, and the author is told."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import neurontools
import neurontools.neuronxcc.nki as first_nki
import neurontools.neuronxcc.nki.isa as first_nisa
import neurontools.neuronxcc.nki.language as first_nl
import neurontools.nki.isa as nisa
import neurontools.nki.language as nl
from formats.targets import resolve_target
from neurontools.builder import built
from neurontools.builder.chip import Chip, chip_of
from neurontools.builder.errors import AllocationError
from neurontools.builder.spilling import spilled
from neurontools.builder.tiles import lives_of
from neurontools.builder.trace import CollectiveOp, DmaOp, Trace
from neurontools.nki.launch import trace_kernel

CHIP = chip_of(resolve_target("trn2"))
X = np.random.default_rng(7).integers(-8, 8, (128, 64)).astype(np.float32)


def small(tiles: int) -> Chip:
    """Return a chip with room for so many tiles of 256 bytes, what lies in gaps apart."""
    return CHIP._replace(sbuf_end=CHIP.sbuf_first + 256 * tiles)


def traced(kernel: Any, *arrays: Any, **keywords: Any) -> Trace:
    trace = trace_kernel(kernel, arrays, keywords, target="trn2")[0].trace
    trace.spills = True
    return trace


def scrambled(x: Any, seed: int) -> Any:
    """Compute with 24 tiles in an order of chance: loads, sums of two, parts that are written alone, constants."""
    draw = random.Random(seed)
    out = nl.ndarray((24, 128, 64), dtype=nl.float32, buffer=nl.shared_hbm)
    tiles = [nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.sbuf) for _ in range(24)]
    for tile in draw.sample(tiles, 24):
        if draw.random() < 0.7:
            nisa.dma_copy(dst=tile, src=x)
        else:
            nisa.memset(dst=tile, value=float(draw.randrange(9)))
    for _ in range(60):
        to, one, other = draw.sample(tiles, 3)
        kind, low = draw.randrange(4), draw.choice([0, 32])
        if kind == 0:
            nisa.tensor_tensor(dst=to, data1=one, data2=other, op=nl.add)
        elif kind == 1:
            nisa.tensor_scalar(dst=to[:, low : low + 32], data=one[:, 0:32], op0=nl.subtract, operand0=1.0)
        elif kind == 2:
            nisa.tensor_tensor(dst=to, data1=to, data2=other, op=nl.maximum)
        else:
            nisa.dma_copy(dst=to, src=x)
    for number in draw.sample(range(24), 24):
        nisa.dma_copy(dst=out[number], src=tiles[number])
    return out


def run(trace: Trace) -> Any:
    neff = built.build([trace], "scrambled").open()
    return neff, neurontools.run(neff, {one.name: X for one in neff.inputs}, checks="all")


@pytest.mark.parametrize("seed", range(25))
def test_results_are_the_same_to_the_bit(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    _, want = run(traced(scrambled, X, seed=seed))
    for tiles in (6, 11, 20):
        with monkeypatch.context() as patch:
            patch.setattr(built, "chip_of", lambda target, tiles=tiles: small(tiles))
            made = built.build([traced(scrambled, X, seed=seed)], "scrambled")
            _, got = run(traced(scrambled, X, seed=seed))
        assert made.spilled or tiles > 6  # where there is more room, another order may be enough
        assert want.ok and got.ok and not [one for one in got.findings if one.serious]
        (one,), (other,) = want.outputs.values(), got.outputs.values()
        assert one.tobytes() == other.tobytes()


@pytest.mark.parametrize("seed", range(10))
def test_no_more_bytes_are_alive_than_there_are(seed: int) -> None:
    trace = traced(scrambled, X, seed=seed)
    for found in spilled(trace, lives_of(trace), small(8)):
        lives = [one for one in lives_of(found.trace) if one.allocation.space.name == "SBUF"]
        for number in range(len(found.trace.ops)):
            assert sum(256 for one in lives if one.first <= number <= one.last) <= 256 * 8


def loading(x: Any) -> Any:
    """Load one input into twelve tiles, and then store each."""
    out = nl.ndarray((12, 128, 64), dtype=nl.float32, buffer=nl.shared_hbm)
    tiles = [nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.sbuf) for _ in range(12)]
    for tile in tiles:
        nisa.dma_copy(dst=tile, src=x)
    for number in range(12):
        nisa.dma_copy(dst=out[number], src=tiles[number])
    return out


def test_what_was_loaded_from_an_input_is_loaded_again_and_not_stored() -> None:
    trace = traced(loading, X)
    found = next(spilled(trace, lives_of(trace), small(5)))
    assert found.stored_bytes == 0 and found.loaded_bytes == found.tiles * X.nbytes
    assert not any(isinstance(op, DmaOp) and (op.name or "").startswith("spill") for op in found.trace.ops)


def test_what_a_collective_or_another_program_may_write_is_stored() -> None:
    with_collective, of_two = traced(loading, X), traced(loading, X)
    into = next(op.src for op in with_collective.ops if isinstance(op, DmaOp))
    with_collective.ops.insert(12, CollectiveOp(0, into, into, into, 1, 1, ("kernel.py", 1)))
    of_two.num_programs = 2
    for trace in (with_collective, of_two):
        found = next(spilled(trace, lives_of(trace), small(5)))
        assert found.stored_bytes > 0


def test_an_operation_with_more_operands_than_there_is_room_for_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(built, "chip_of", lambda target: small(2))
    with pytest.raises(AllocationError, match="SBUF is full"):
        built.build([traced(scrambled, X, seed=0)], "scrambled")


def many(x: Any) -> Any:
    """Fill forty tiles of 8 KiB a partition in one loop, and read them in the next: every result needs all of them."""
    out = first_nl.ndarray((40, 128, 2048), dtype=first_nl.float32, buffer=first_nl.shared_hbm)
    tiles = first_nl.ndarray((40, first_nl.par_dim(128), 2048), dtype=first_nl.float32, buffer=first_nl.sbuf)
    total = first_nl.zeros((128, 2048), dtype=first_nl.float32, buffer=first_nl.sbuf)
    for number in first_nl.affine_range(40):
        tiles[number] = first_nisa.tensor_scalar(first_nl.load(x), np.add, float(number))
        total[...] = first_nl.add(total, tiles[number])
    for number in first_nl.affine_range(40):
        first_nl.store(out[number], first_nl.subtract(total, tiles[number]))
    return out


def test_a_kernel_of_the_first_generation_spills_and_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    x = np.random.default_rng(1).integers(0, 9, (128, 2048)).astype(np.float32)
    got = first_nki.simulate_kernel(first_nki.jit(many), x)
    total = 40 * x + sum(range(40))
    np.testing.assert_array_equal(got, np.stack([total - x - number for number in range(40)]))
    said = capsys.readouterr().err
    assert "kernel many: SBUF is full at " in said and "tiles go through device memory" in said
    assert "test_spilling.py:" in said


def test_a_kernel_of_the_present_generation_is_refused() -> None:
    """Its compiler gives tiles the places that it finds, and reports what does not fit."""

    def kernel(x: Any) -> Any:
        out = nl.ndarray((40, 128, 2048), dtype=nl.float32, buffer=nl.shared_hbm)
        tiles = [nl.ndarray((128, 2048), dtype=nl.float32, buffer=nl.sbuf) for _ in range(40)]
        total = nl.ndarray((128, 2048), dtype=nl.float32, buffer=nl.sbuf)
        nisa.memset(dst=total, value=0.0)
        for tile in tiles:
            nisa.dma_copy(dst=tile, src=x)
            nisa.tensor_tensor(dst=total, data1=total, data2=tile, op=nl.add)
        for number, tile in enumerate(tiles):
            nisa.tensor_tensor(dst=tile, data1=total, data2=tile, op=nl.subtract)
            nisa.dma_copy(dst=out[number], src=tile)
        return out

    with pytest.raises(AllocationError, match="SBUF is full"):
        neurontools.build(kernel, np.zeros((128, 2048), np.float32), target="trn2")
