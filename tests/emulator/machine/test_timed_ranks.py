"""Times of ranks that stand for each other equal those of ranks emulated one by one; where they may not, it is said."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import neurontools
import neurontools.nki.collectives as ncc
import neurontools.nki.isa as nisa
import neurontools.nki.language as nl
from emulator.dma.engines import DmaEngines
from emulator.dma.system import carried_stretch
from emulator.engines.registry import executor_of
from emulator.errors import InputError
from emulator.runtime.ranks import RankedResult, Ranks, execute_ranks
from emulator.runtime.timed_ranks import time_ranks
from emulator.settings import Settings
from emulator.timed_words import STEERING
from formats import isa
from formats.errors import UnsupportedError
from formats.neff import Neff
from tests.emulator.machine.test_ranks import groups, hbm


def whole(ranks: int) -> ncc.ReplicaGroup:
    return groups(range(ranks))


def waits(ranks: int) -> Callable[[Any], Any]:
    """Three collectives, each waited for."""

    def kernel(x: Any) -> Any:
        tile = nl.ndarray(x.shape, x.dtype)
        nisa.dma_copy(tile, x)
        for turn in range(3):
            mine, total = hbm(*x.shape), hbm(*x.shape)
            nisa.tensor_scalar(tile, tile, nl.multiply, turn + 2.0)
            nisa.dma_copy(mine, tile)
            ncc.all_reduce([mine], [total], whole(ranks), nl.add)
            nisa.dma_copy(tile, total)
        out = hbm(*x.shape)
        nisa.dma_copy(out, tile)
        return out

    return kernel


def overlaps(ranks: int) -> Callable[[Any], Any]:
    """Copies and products go on while collectives of halves and of pairs move: each rank has a history of its own."""

    def kernel(x: Any) -> Any:
        mine, parts, whole_sum, out = hbm(*x.shape), hbm(*x.shape), hbm(*x.shape), hbm(*x.shape)
        tile, more = nl.ndarray(x.shape, x.dtype), nl.ndarray(x.shape, x.dtype)
        nisa.dma_copy(tile, x)
        nisa.dma_copy(mine, tile)
        half = ranks // 2
        ncc.all_reduce([mine], [whole_sum], groups(range(half), range(half, ranks)), nl.add)
        for turn in range(6):
            nisa.dma_copy(more, x)
            nisa.tensor_tensor(tile, tile, more, nl.add if turn % 2 else nl.multiply)
            nisa.dma_copy(out, tile)
        square = nl.ndarray((x.shape[1], x.shape[1]), nl.float32, nl.psum)
        nisa.nc_matmul(square, tile, more)
        ncc.all_to_all([mine], [parts], whole(ranks), 0)
        nisa.dma_copy(tile, parts)
        nisa.dma_copy(more, whole_sum)
        nisa.tensor_tensor(tile, tile, more, nl.add)
        nisa.dma_copy(out, tile)
        return out

    return kernel


def moves(ranks: int) -> Callable[[Any], Any]:
    """Every other kind, and the number of the rank."""

    def kernel(x: Any) -> Any:
        wide, part, next_one, swapped = hbm(x.shape[0] * ranks, x.shape[1]), hbm(*x.shape), hbm(*x.shape), hbm(*x.shape)
        ncc.all_gather([x], [wide], whole(ranks), 0)
        ncc.reduce_scatter([wide], [part], whole(ranks), 0, nl.add)
        ncc.collective_permute_implicit([[part]], [[next_one]], whole(ranks))
        ncc.collective_permute([next_one], [swapped], [(0, ranks - 1), (ranks - 1, 0)])
        return wide, part, next_one

    return kernel


PROGRAMS = {"waits": waits, "overlaps": overlaps, "moves": moves}


def built(program: Callable[[int], Callable[[Any], Any]], ranks: int, rows: int = 128, lnc: int = 1) -> Neff:
    return neurontools.build(program(ranks), np.zeros((rows, 32), np.float32), target="trn2", lnc=lnc)


def both(neff: Neff, where: Ranks, settings: Settings | None = None) -> tuple[RankedResult, RankedResult]:
    rng = np.random.default_rng(7)
    inputs = [{one.name: rng.standard_normal(one.shape).astype(np.float32) for one in neff.inputs}
              for _ in range(where.ranks)]  # fmt: skip
    return time_ranks(neff, lambda: inputs, where, settings), execute_ranks(neff, inputs, where, settings)


def same_times(found: RankedResult, full: RankedResult) -> None:
    assert [one.time_ps for one in found.results] == [one.time_ps for one in full.results]
    for mine, theirs in zip(found.results, full.results, strict=True):
        assert mine.stats.words == theirs.stats.words and mine.stats.dma_bytes == theirs.stats.dma_bytes
        assert mine.ok == theirs.ok
    assert len(found.collectives) == len(full.collectives)
    for met in found.collectives:
        assert met in full.collectives


@pytest.mark.parametrize("ranks", [2, 3, 8, 16])
@pytest.mark.parametrize("program", PROGRAMS)
def test_times_are_those_of_ranks_emulated_one_by_one(program: str, ranks: int) -> None:
    if program != "waits" and ranks == 3:
        ranks = 4
    neff = built(PROGRAMS[program], ranks)
    found, full = both(neff, Ranks(ranks))
    same_times(found, full)
    assert found.apart == "" and 1 <= found.histories <= ranks
    assert all(not one.outputs for one in found.results)


@pytest.mark.parametrize("rows", [128, 2048])
def test_sharing_pays_and_cores_of_a_rank_meet_too(rows: int) -> None:
    """Also with two cores a rank, and collectives large enough that links are shared."""

    def kernel(x: Any) -> Any:
        total, out = nl.ndarray(x.shape, x.dtype, nl.private_hbm), hbm(2, *x.shape)
        for _ in range(2):
            ncc.all_reduce([x], [total], whole(8), nl.add)
        nisa.dma_copy(out[nl.program_id(0)], total)
        return out

    neff = neurontools.build(kernel, np.zeros((rows, 32), np.float32), target="trn2", lnc=2)
    found, full = both(neff, Ranks(8))
    same_times(found, full)
    assert found.histories < 8 and found.apart == ""


def test_several_nodes_and_no_timing() -> None:
    neff = built(waits, 4)
    for settings in (None, Settings(timing=False)):
        found, full = both(neff, Ranks(4, None, 2), settings)
        same_times(found, full)
        assert found.nodes == 2


def test_hangs_are_explained_as_those_of_all_ranks_are() -> None:
    def kernel(x: Any) -> Any:
        out = hbm(*x.shape)
        ncc.all_reduce([x], [out], groups([0, 1, 2], [3, 9, 10]), nl.add)
        return out

    neff = neurontools.build(kernel, np.zeros((16, 8), np.float32), target="trn2", lnc=1)
    found, full = both(neff, Ranks(4))
    same_times(found, full)
    assert found.hang is not None and full.hang is not None and found.hang.cause == "absent"
    assert found.hang.text() == full.hang.text()


def branches(x: Any) -> Any:
    """Turn round a loop as often as the data say."""
    out, count = hbm(*x.shape), nl.ndarray((1, 1), nl.int32)
    tile = nl.ndarray(x.shape, x.dtype)
    nisa.dma_copy(tile, x)
    nisa.tensor_copy(count, tile[0:1, 0:1])
    register = nisa.register_alloc()
    nisa.register_load(register, count)
    for _ in nl.dynamic_range(register):
        nisa.tensor_scalar(tile, tile, nl.add, 1.0)
    nisa.dma_copy(out, tile)
    total = hbm(*x.shape)
    ncc.all_reduce([out], [total], whole(2), nl.add)
    return total


def test_a_branch_that_data_decide_turns_it_off_and_says_so() -> None:
    neff = neurontools.build(branches, np.zeros((16, 8), np.float32), target="trn2", lnc=1)
    name = neff.inputs[0].name
    inputs = [{name: np.full((16, 8), turns, np.float32)} for turns in (1.0, 40.0)]
    found, full = time_ranks(neff, lambda: inputs, Ranks(2)), execute_ranks(neff, inputs, Ranks(2))
    assert (found.histories == 0 and "reads what decides" in found.apart) or "a register decides" in found.apart
    assert [one.time_ps for one in found.results] == [one.time_ps for one in full.results]
    assert all(not one.outputs for one in found.results)
    with pytest.raises(UnsupportedError, match=r"^the times of 129 ranks without their data: .*at most 128"):
        time_ranks(neff, lambda: inputs, Ranks(129, None, 3))


def test_sizes_that_are_data_turn_it_off() -> None:
    def kernel(x: Any, counts: Any) -> Any:
        out, mine = hbm(x.shape[0]), hbm(3, 2, dtype=nl.uint32)
        nisa.dma_copy(out, x)
        nisa.dma_copy(mine, counts)
        ncc.all_to_all_v([x], [out], whole(2), mine)
        return out

    arrays = np.zeros(24, np.float32), np.array([[3, 3], [0, 0], [0, 0]], np.uint32)
    neff = neurontools.build(kernel, *arrays, target="trn2", lnc=1)
    inputs = [dict(zip([one.name for one in neff.inputs], arrays, strict=True))] * 2
    found = time_ranks(neff, lambda: inputs, Ranks(2))
    assert found.histories == 0 and "a collective whose sizes are data" in found.apart


def test_other_programs_shapes_and_seeds_turn_it_off() -> None:
    one, two = built(waits, 2, 128), built(waits, 2, 64)
    inputs = [{each.inputs[0].name: np.zeros(each.inputs[0].shape, np.float32)} for each in (one, two)]
    found = time_ranks([one, one], lambda: [inputs[0]] * 2, Ranks(2))
    assert (found.apart, found.histories) == ("", 1)
    found = time_ranks([one, built(waits, 2, 128)], lambda: [inputs[0]] * 2, Ranks(2))
    assert (found.apart, found.histories) == ("", 1), "the same bytes are the same program"
    found = time_ranks([one, two], lambda: inputs, Ranks(2))
    assert found.apart == "rank 1 runs another program than rank 0" and found.histories == 0
    assert not found.ok  # the sizes differ
    found = time_ranks([one, None], lambda: [inputs[0], {}], Ranks(2))
    assert found.apart == "rank 1 runs no program" and found.hang is not None
    found = time_ranks(one, lambda: [inputs[0]] * 2, Ranks(2), Settings(seed=3))
    assert found.apart.startswith("a seed shakes")
    full = execute_ranks(one, [inputs[0]] * 2, Ranks(2), Settings(seed=3))
    assert [each.time_ps for each in found.results] == [each.time_ps for each in full.results]


def test_a_budget_of_this_machines_time_holds() -> None:
    with pytest.raises(InputError, match="the times of 2 ranks took longer than"):
        time_ranks(built(waits, 2), list, Ranks(2), Settings(max_seconds=1e-9))


def test_words_that_steer_are_all_named() -> None:
    """What reaches semaphores, addresses or the program counter through its port is carried out without data too."""
    for cls in isa.CLASSES:
        executor = executor_of(cls)
        if executor is None:
            continue
        text = inspect.getsource(executor)
        steers = any(f"port.{name}" in text for name in ("branch", "set_semaphore", "write_device", "registers"))
        assert not steers or cls in STEERING, cls
        assert cls in STEERING or not cls.DECIDES


@given(st.lists(st.tuples(st.integers(0, 4_000_000), st.integers(1, 1 << 18)), min_size=1, max_size=12))
def test_one_ring_on_idle_engines_is_served_in_order(given_bytes: list[tuple[int, int]]) -> None:
    """What a rank keeps for itself while it waits equals the engines' own arbitration."""
    engines, now, free = DmaEngines(0, 16), 5_000_000, 0
    for number, (later, nbytes) in enumerate(given_bytes):
        now += later
        stretch = carried_stretch(nbytes, 65536, 36.57)
        engines.give(-1 - number, 3, now, 0, (stretch,), 0, now)
        ends = max(at + step * last for _, last, _, _, (at, step) in engines.pieces(-1 - number, 16))
        free = max(free, now) + stretch.packet_ps * (stretch.packets - 1) + stretch.last_ps
        assert ends == free
