"""Programs on several ranks: collectives of `nki.collectives` against NumPy, the same bits for every seed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import neurontools
import neurontools.nki.collectives as ncc
import neurontools.nki.isa as nisa
import neurontools.nki.language as nl
from emulator.machine.machine import Machine
from emulator.machine.ranks.machine import RankedMachine
from formats.neff import Neff

Array = np.ndarray[Any, Any]
INSTANCES = {"trn1": "trn1.32xlarge", "trn2": "trn2.48xlarge", "trn3": "trn3.gen1.3xlarge"}


def ranked(kernel: Callable[..., Any], inputs: Sequence[tuple[Array, ...]], target: str = "trn2",
           seed: int | None = None, lnc: int = 1) -> list[list[Array]]:  # fmt: skip
    """Run a kernel on as many ranks as there are inputs; return the outputs of each."""
    neff = neurontools.build(kernel, *inputs[0], target=target, lnc=lnc)
    return outputs(RankedMachine(Machine(INSTANCES[target], lnc=lnc), len(inputs), cores=lnc, seed=seed), neff, inputs)


def outputs(machine: RankedMachine, neff: Neff, inputs: Sequence[tuple[Array, ...]]) -> list[list[Array]]:
    machine.load(neff)
    names = [one.name for one in neff.inputs]
    for rank, arrays in enumerate(inputs):
        machine.set_inputs(rank, dict(zip(names, arrays, strict=True)))
    assert machine.run() == "finished", [(d.fault, d.hang) for d in machine.devices]
    return [list(machine.outputs(rank).values()) for rank in range(len(inputs))]


def groups(*rows: Sequence[int]) -> ncc.ReplicaGroup:
    return ncc.ReplicaGroup([list(row) for row in rows])


def arrays(ranks: int, *shape: int, seed: int = 1) -> list[tuple[Array, ...]]:
    rng = np.random.default_rng(seed)
    return [(rng.integers(-64, 64, shape).astype(np.float32),) for _ in range(ranks)]


def hbm(*shape: int, dtype: Any = nl.float32) -> Any:
    return nl.ndarray(shape, dtype, nl.shared_hbm)


def reduced(x: Any) -> Any:
    """Double what is given, add it up over two ranks, add one."""
    tile, mine, total = nl.ndarray(x.shape, x.dtype), hbm(*x.shape), hbm(*x.shape)
    nisa.dma_copy(tile, x)
    nisa.tensor_scalar(tile, tile, nl.multiply, 2.0)
    nisa.dma_copy(mine, tile)
    ncc.all_reduce([mine], [total], groups([0, 1]), nl.add)
    nisa.dma_copy(tile, total)
    nisa.tensor_scalar(tile, tile, nl.add, 1.0)
    out = hbm(*x.shape)
    nisa.dma_copy(out, tile)
    return out


@pytest.mark.parametrize("target", ["trn1", "trn2"])
def test_two_ranks_of_one_program_add_up(target: str) -> None:
    inputs = arrays(2, 128, 32)
    wanted = 2 * (inputs[0][0] + inputs[1][0]) + 1
    for (found,) in ranked(reduced, inputs, target):
        assert (found == wanted).all()


def test_a_program_of_several_ranks_says_so_where_it_runs_alone() -> None:
    neff = neurontools.build(reduced, *arrays(1, 128, 32)[0], target="trn2", lnc=1)
    result = neurontools.run(neff, {neff.inputs[0].name: arrays(1, 128, 32)[0][0]})
    assert result.fault is not None and result.fault.kind == "unsupported" and "--ranks N" in result.fault.message


RANKS = 8
TWO = groups([0, 2, 4, 6], [1, 3, 5, 7])
ALL = groups(range(RANKS))


def per_rank(ranks: Sequence[int], results: Callable[[list[Array]], list[Array]], given: list[Array]) -> list[Array]:
    """Apply a function of a group's arrays to every group; return what each rank of 0 to 7 should have."""
    found: list[Array] = [np.zeros(0)] * RANKS
    for group in TWO.groups if ranks else ALL.groups:
        for rank, result in zip(group, results([given[rank] for rank in group]), strict=True):
            found[rank] = result
    return found


def gathered(parts: list[Array]) -> list[Array]:
    return [np.concatenate(parts)] * len(parts)


def added(parts: list[Array]) -> list[Array]:
    return [np.sum(parts, axis=0)] * len(parts)


def scattered(parts: list[Array]) -> list[Array]:
    return list(np.split(np.max(parts, axis=0), len(parts)))


def exchanged(parts: list[Array]) -> list[Array]:
    cut = [np.split(part, len(parts)) for part in parts]
    return [np.concatenate([row[to] for row in cut]) for to in range(len(parts))]


def passed_on(parts: list[Array]) -> list[Array]:
    return [parts[-1], *parts[:-1]]


def passed_back(parts: list[Array]) -> list[Array]:
    return [*parts[1:], parts[0]]


def kernel_of(call: Callable[..., None], grows: int, shrinks: int) -> Callable[[Any], Any]:
    def kernel(x: Any) -> Any:
        mine, out = hbm(*x.shape), hbm(x.shape[0] * grows // shrinks, *x.shape[1:])
        nisa.dma_copy(mine, x)
        call(mine, out)
        return out

    return kernel


MOVES: list[tuple[str, Callable[..., None], Callable[[list[Array]], list[Array]], int, int]] = [
    ("all_gather", lambda s, d, g: ncc.all_gather([s], [d], g, 0), gathered, 1, 0),
    ("all_reduce", lambda s, d, g: ncc.all_reduce([s], [d], g, nl.add), added, 0, 0),
    ("reduce_scatter", lambda s, d, g: ncc.reduce_scatter([s], [d], g, 0, nl.maximum), scattered, 0, 1),
    ("all_to_all", lambda s, d, g: ncc.all_to_all([s], [d], g, 0), exchanged, 0, 0),
    ("ring", lambda s, d, g: ncc.collective_permute_implicit([[s]], [[d]], g), passed_on, 0, 0),
]


@pytest.mark.parametrize("which", MOVES, ids=[move[0] for move in MOVES])
@pytest.mark.parametrize("apart", [0, 1])
def test_collectives_over_a_group_equal_numpy(which: Any, apart: int) -> None:
    """Also where the groups are no neighbours: each rank gets what its own group has."""
    _, call, wanted, grows, shrinks = which
    group = TWO if apart else ALL
    n = len(group.groups[0])
    inputs = arrays(RANKS, 16, 5)
    kernel = kernel_of(lambda s, d: call(s, d, group), n if grows else 1, n if shrinks else 1)
    results = per_rank([0] * apart, wanted, [one for (one,) in inputs])
    for (found,), right in zip(ranked(kernel, inputs), results, strict=True):
        assert (found == right).all()


def test_several_tensors_are_one_call() -> None:
    def kernel(x: Any) -> Any:
        outs = [hbm(4, 5), hbm(12, 5)]
        ncc.all_reduce([x[0:4], x[4:16]], outs, ALL, nl.minimum)
        return tuple(outs)

    inputs = arrays(RANKS, 16, 5)
    least = np.min([one for (one,) in inputs], axis=0)
    for first, second in ranked(kernel, inputs):
        assert (first == least[:4]).all() and (second == least[4:]).all()


@pytest.mark.parametrize("dim", [0, 1])
def test_tiles_on_chip_are_gathered_along_either_dimension(dim: int) -> None:
    def kernel(x: Any) -> Any:
        src, dst = nl.ndarray((32, 6), x.dtype), nl.ndarray((64, 6) if dim == 0 else (32, 12), x.dtype)
        nisa.dma_copy(src, x)
        ncc.all_gather([src], [dst], groups([0, 1]), dim)
        out = hbm(*dst.shape)
        nisa.dma_copy(out, dst)
        return out

    inputs = arrays(2, 32, 6)
    for (found,) in ranked(kernel, inputs):
        assert (found == np.concatenate([inputs[0][0], inputs[1][0]], axis=dim)).all()


def test_pairs_swap_and_who_gets_nothing_keeps_what_was_there() -> None:
    def kernel(x: Any) -> Any:
        mine, out = hbm(*x.shape), hbm(*x.shape)
        nisa.dma_copy(mine, x)
        nisa.dma_copy(out, x)
        ncc.collective_permute([mine], [out], [(0, 3), (3, 0), (1, 2)])
        return out

    inputs = arrays(5, 8, 4)
    for (found,), source in zip(ranked(kernel, inputs), (3, 1, 1, 0, 4), strict=True):
        assert (found == inputs[source][0]).all()


def test_channels_of_a_ring_go_both_ways_and_name_whose_data_came() -> None:
    """What a turn works on is what the ring brought: turn t has the data that came after t steps."""

    def kernel(x: Any) -> Any:
        rows, whose = [hbm(*x.shape) for _ in range(4)], hbm(4, 1, dtype=nl.int32)
        for channel in range(2):
            ids = list(range(channel + 1))
            before = x
            for turn in (1, 2):
                row = rows[2 * channel + turn - 1]
                spare = [hbm(*x.shape) for _ in ids[:-1]]
                ncc.collective_permute_implicit([*([x] for _ in spare), [before]], [*([one] for one in spare), [row]],
                                                ALL, ids)  # fmt: skip
                register = ncc.collective_permute_implicit_current_processing_rank_id(turn, ALL, channel)
                nisa.register_store(whose[2 * channel + turn - 1 : 2 * channel + turn], register)
                before = row
        me = hbm(1, 1, dtype=nl.int32)
        nisa.register_store(me, ncc.rank_id())
        return (*rows, whose, me)

    inputs = arrays(RANKS, 8, 4)
    for rank, (*rows, whose, me) in enumerate(ranked(kernel, inputs)):
        sources = [(rank + step) % RANKS for step in (-1, -2, 1, 2)]
        assert me.ravel().tolist() == [rank] and whose.ravel().tolist() == sources
        for row, source in zip(rows, sources, strict=True):
            assert (row == inputs[source][0]).all()


@pytest.mark.parametrize(("op", "fold"), [(nl.add, np.add), (nl.maximum, np.maximum)])
@pytest.mark.parametrize("on_chip", [False, True])
def test_a_ring_that_reduces_sends_what_both_sources_make(op: Any, fold: Any, on_chip: bool) -> None:
    def kernel(x: Any, y: Any) -> Any:
        out = hbm(*x.shape)
        if not on_chip:
            ncc.collective_permute_implicit_reduce([[x]], [[y]], [[out]], ALL, op)
            return out
        tiles = [nl.ndarray(x.shape, x.dtype) for _ in range(3)]
        nisa.dma_copy(tiles[0], x)
        nisa.dma_copy(tiles[1], y)
        ncc.collective_permute_implicit_reduce([[tiles[0]]], [[tiles[1]]], [[tiles[2]]], ALL, op)
        nisa.dma_copy(out, tiles[2])
        return out

    inputs = [(a, b) for (a,), (b,) in zip(arrays(RANKS, 32, 4), arrays(RANKS, 32, 4, seed=2), strict=True)]
    for rank, (found,) in enumerate(ranked(kernel, inputs)):
        assert (found == fold(*inputs[rank - 1])).all()


def table(rows: Sequence[Sequence[int]]) -> Array:
    return np.array(rows, np.uint32)


def test_variable_chunks_are_gathered_into_equal_slots() -> None:
    def kernel(x: Any, counts: Any) -> Any:
        out, mine = hbm(4 * 6), hbm(3, 4, dtype=nl.uint32)
        nisa.dma_copy(out, hbm_zeros(x))
        nisa.dma_copy(mine, counts)
        ncc.all_gather_v([x], [out], groups(range(4)), mine)
        return out, mine

    def hbm_zeros(x: Any) -> Any:
        return x[0:24]

    rng = np.random.default_rng(3)
    sent, at = (3, 0, 6, 1), (2, 0, 1, 17)
    inputs = [(rng.standard_normal(24).astype(np.float32), table([[n] * 4, [a] * 4, [99] * 4]))
              for n, a in zip(sent, at, strict=True)]  # fmt: skip
    for rank, (found, counts) in enumerate(ranked(kernel, inputs)):
        wanted = inputs[rank][0].copy()
        for source in range(4):
            wanted[6 * source : 6 * source + sent[source]] = inputs[source][0][at[source] : at[source] + sent[source]]
        assert (found == wanted).all() and tuple(counts[2]) == sent


@pytest.mark.parametrize("places", [False, True])
def test_variable_chunks_go_to_each_rank(places: bool) -> None:
    n = 3

    def kernel(x: Any, counts: Any) -> Any:
        out, mine = hbm(30), hbm(4 if places else 3, n, dtype=nl.uint32)
        nisa.dma_copy(out, x)
        nisa.dma_copy(mine, counts)
        ncc.all_to_all_v([x], [out], groups(range(n)), mine, has_rdispls=places, recv_counts_known=places)
        return out, mine

    rng = np.random.default_rng(4)
    sent = [[2, 0, 5], [10, 1, 3], [4, 4, 4]]
    at = [[0, 2, 2], [20, 11, 3], [0, 4, 8]]
    put = [[5, 10, 25], [0, 29, 3], [1, 10, 20]]
    inputs = [(rng.standard_normal(30).astype(np.float32),
               table([sent[r], at[r], [77] * n, *([put[r]] if places else [])])) for r in range(n)]  # fmt: skip
    for rank, (found, counts) in enumerate(ranked(kernel, inputs)):
        wanted = inputs[rank][0].copy()
        for source in range(n):
            size, first = sent[source][rank], at[source][rank]
            place = put[rank][source] if places else 10 * source
            wanted[place : place + size] = inputs[source][0][first : first + size]
        assert (found == wanted).all()
        assert counts[2].tolist() == ([77] * n if places else [sent[source][rank] for source in range(n)])


def test_two_cores_of_each_rank_meet_those_of_the_others() -> None:
    def kernel(x: Any) -> Any:
        out = hbm(2, *x.shape)
        me = nl.program_id(0)
        mine, total = nl.ndarray(x.shape, x.dtype, nl.private_hbm), nl.ndarray(x.shape, x.dtype, nl.private_hbm)
        tile = nl.ndarray(x.shape, x.dtype)
        nisa.dma_copy(tile, x)
        nisa.tensor_scalar(tile, tile, nl.multiply, float(me + 1))
        nisa.dma_copy(mine, tile)
        ncc.all_reduce([mine], [total], groups([0, 1]), nl.add)
        nisa.dma_copy(out[me], total)
        return out

    inputs = arrays(2, 64, 8)
    wanted = inputs[0][0] + inputs[1][0]
    for (found,) in ranked(kernel, inputs, lnc=2):
        assert (found[0] == wanted).all() and (found[1] == 2 * wanted).all()


def test_five_seeds_give_the_same_bits() -> None:
    """Sums of floats too: their order is the algorithm's, not that of arrival."""
    rng = np.random.default_rng(5)
    inputs = [(rng.standard_normal((128, 32)).astype(np.float32),) for _ in range(2)]
    found = [ranked(reduced, inputs, seed=seed) for seed in (None, 1, 2, 3, 4)]
    for other in found[1:]:
        for (one,), (two,) in zip(found[0], other, strict=True):
            assert one.tobytes() == two.tobytes()


def test_ranks_may_run_different_programs() -> None:
    def doubled(x: Any) -> Any:
        tile, mine, total = nl.ndarray(x.shape, x.dtype), hbm(*x.shape), hbm(*x.shape)
        nisa.dma_copy(tile, x)
        nisa.tensor_tensor(tile, tile, tile, nl.add)
        nisa.dma_copy(mine, tile)
        ncc.all_reduce([mine], [total], groups([0, 1]), nl.add)
        return total

    def plain(x: Any) -> Any:
        total = hbm(*x.shape)
        ncc.all_reduce([x], [total], groups([0, 1]), nl.add)
        return total

    inputs = arrays(2, 64, 8)
    machine = RankedMachine(Machine("trn2.48xlarge", lnc=1), 2)
    programs = [neurontools.build(one, *inputs[0], target="trn2", lnc=1) for one in (doubled, plain)]
    machine.load(programs)
    for rank, neff in enumerate(programs):
        machine.set_inputs(rank, {neff.inputs[0].name: inputs[rank][0]})
    assert machine.run() == "finished"
    for rank in range(2):
        (found,) = machine.outputs(rank).values()
        assert (found == 2 * inputs[0][0] + inputs[1][0]).all()


@pytest.mark.parametrize("streams", ["all", "steps"])
def test_stepping_a_rank_takes_the_others_along(streams: str) -> None:
    """One rank stepped completion by completion, as a debugger does, ends as the whole run does, at the same time."""
    inputs = arrays(2, 128, 32)
    neff = neurontools.build(reduced, *inputs[0], target="trn2", lnc=1)
    times = []
    for stepped in (False, streams == "all", True):
        machine = RankedMachine(Machine("trn2.48xlarge", lnc=1), 2)
        machine.load(neff)
        for rank in range(2):
            machine.set_inputs(rank, {neff.inputs[0].name: inputs[rank][0]})
        first = machine.devices[1]
        while stepped and first.step() is not None:
            assert abs(first.now_ps - machine.devices[0].now_ps) < 50_000_000
        assert machine.run() == "finished"
        (found,) = machine.outputs(1).values()
        assert (found == 2 * (inputs[0][0] + inputs[1][0]) + 1).all()
        times.append([device.now_ps for device in machine.devices])
    assert times[0] == times[1] == times[2]
