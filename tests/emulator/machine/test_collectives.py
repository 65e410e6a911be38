"""Collectives as executed: data against an independent fold, counters against the closed forms, golden vectors."""

from __future__ import annotations

import itertools
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from emulator.machine.collectives.algorithms import ALGORITHMS, SIMPLE, Algorithm, illegal
from emulator.machine.collectives.engine import Faults, Job
from emulator.machine.collectives.group import Group
from emulator.machine.collectives.plan import Operation, Request, build
from emulator.machine.collectives.reference import expected_outputs
from emulator.machine.collectives.run import Outcome, execute, make_inputs, timed
from emulator.machine.machine import Machine
from formats.errors import UnsupportedError

PAIRINGS = list(itertools.product(("mesh", "rdh", "kangaring"), ("ring", "mesh", "rdh")))
REDUCING: tuple[Operation, ...] = ("allgather", "reducescatter", "allreduce")
LABELS = (0, 1, 3, 2, 4, 5, 7, 6, 12, 13, 15, 14, 8, 9, 11, 10)


@cache
def machine(name: str = "trn2.48xlarge", nodes: int = 1, lnc: int | None = None) -> Machine:
    return Machine(name, nodes=nodes, lnc=lnc)


def nodes_of_one(n: int) -> Group:
    """Return n ranks, one on each of n nodes."""
    one = machine(nodes=64)
    return Group(one, range(0, n * one.ranks_per_node, one.ranks_per_node))


def ran(
    request: Request, dtype: Any = np.int32, *, seed: int = 0, kind: str = "random"
) -> tuple[Outcome, dict[int, Any]]:
    inputs = make_inputs([build(request)], dtype, kind, seed=5)
    outcome = execute([request], dtype, inputs, seed=seed)
    assert outcome.hangs == ()
    return outcome, inputs


def agrees(request: Request, dtype: Any = np.int32, *, seed: int = 0) -> Outcome:
    outcome, inputs = ran(request, dtype, seed=seed)
    wanted = expected_outputs(request, inputs)
    for rank in request.group.ranks:
        assert outcome.outputs[rank].tobytes() == wanted[rank].tobytes(), f"rank {rank}"
    return outcome


def counted(request: Request, item: int = 1) -> Job:
    _, (job,) = timed([request], item)
    assert job.done
    return job


def sent(job: Job) -> set[int]:
    return {job.counters.ranks[rank].sent for rank in job.plan.ranks}


# -- data -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("operation", REDUCING)
@pytest.mark.parametrize("algorithm", [name for name in ALGORITHMS if name not in ("hier", "flat-ring")])
@pytest.mark.parametrize("name", ["trn2.48xlarge", "trn1.32xlarge", "inf2.48xlarge"])
def test_sums_are_those_of_the_documented_order(operation: Operation, algorithm: Algorithm, name: str) -> None:
    group = Group(machine(name), range(machine(name).ranks))
    size = group.size * (6 if algorithm != "ring" else 1)  # one element a chunk is one channel and one slice
    if illegal(algorithm, group, operation):
        with pytest.raises(UnsupportedError, match=f"^{algorithm}: "):
            build(Request(operation, group, size, algorithm))
        return
    agrees(Request(operation, group, size, algorithm), np.float32, seed=1)


@pytest.mark.parametrize("operation", REDUCING)
@pytest.mark.parametrize(("inner", "outer"), PAIRINGS)
def test_hierarchical_by_any_pairing(operation: Operation, inner: Algorithm, outer: Algorithm) -> None:
    one = machine("trn1.32xlarge", nodes=4)
    group = Group(one, [node * one.ranks_per_node + at for node in range(4) for at in range(8)])
    agrees(Request(operation, group, group.size * 3, "hier", inner, outer), ml_dtypes.bfloat16)


@pytest.mark.parametrize("reduce", ["min", "max"])
def test_min_max_and_sizes_that_do_not_divide(reduce: str) -> None:
    group = Group(machine("trn1.32xlarge"), range(32))
    for algorithm in SIMPLE:
        agrees(Request("allreduce", group, 171, algorithm, reduce=reduce), np.float16)
    request = Request("allreduce", group, 171, "ring", reduce=reduce)
    inputs = make_inputs([build(request)], np.int32, "random")
    fold = np.minimum if reduce == "min" else np.maximum
    assert (expected_outputs(request, inputs)[0] == fold.reduce([inputs[rank] for rank in range(32)])).all()


def test_five_seeds_give_the_same_bits() -> None:
    group = Group(machine("trn1.32xlarge"), range(16))
    for algorithm in SIMPLE:
        request = Request("allreduce", group, 16 * 5, algorithm)
        found = [ran(request, np.float32, seed=seed)[0].outputs for seed in range(5)]
        assert all(one[rank].tobytes() == found[0][rank].tobytes() for one in found for rank in group.ranks)


@pytest.mark.parametrize("starts", [{0: 50_000_000}, {31: 10_000_000, 7: 3_000_000}])
def test_late_ranks_change_the_time_and_not_the_bits(starts: dict[int, int]) -> None:
    group = Group(machine("trn1.32xlarge"), range(32))
    for algorithm in SIMPLE:
        request = Request("reducescatter", group, 32 * 4, algorithm)
        inputs = make_inputs([build(request)], np.float32, "random")
        late = execute([request], np.float32, inputs, starts=starts)
        assert late.hangs == () and late.time_ps > max(starts.values())
        wanted = expected_outputs(request, inputs)
        assert all(late.outputs[rank].tobytes() == wanted[rank].tobytes() for rank in group.ranks)


def test_other_operations_and_v_forms() -> None:
    group = Group(machine(), range(0, 64, 4))
    agrees(Request("alltoall", group, 16 * 4, "mesh"))
    counts = tuple((source * 3 + target) % 4 for source in range(16) for target in range(16))
    agrees(Request("alltoall", group, 0, "mesh", counts=counts))
    sizes = tuple(at % 3 for at in range(16))
    for algorithm in ("ring", "mesh", "rdh"):
        agrees(Request("allgather", group, sum(sizes), algorithm, counts=sizes))
        agrees(Request("reducescatter", group, sum(sizes), algorithm, counts=sizes))
    chips = (0, 4, 20, 16)
    pairs = tuple(zip(chips, (*chips[1:], chips[0]), strict=True))
    agrees(Request("permute", Group(machine(), chips), 9, "mesh", pairs=pairs))
    agrees(Request("sendrecv", Group(machine(), (3, 60)), 9, "mesh", pairs=((3, 60),)))


def test_a_transfer_that_comes_too_early_would_be_seen() -> None:
    """The oracle must be able to fail: a wait left out of the program changes the result of some seed."""
    group = Group(machine("trn1.32xlarge"), range(32))
    request = Request("allgather", group, 32 * 4, "rdh")
    plan = build(request)
    for program in plan.programs.values():
        program[0] = [move._replace(waits=()) for move in program[0]]
    inputs = make_inputs([plan], np.int32, "random")
    from emulator.machine.collectives.engine import Engine
    from emulator.machine.collectives.memory import Buffers

    engine = Engine(machine("trn1.32xlarge"))
    job = engine.add(plan, 4, buffers=Buffers(plan, inputs, np.int32))
    for rank in plan.ranks:
        engine.trigger(job, rank, 0)
    engine.run()
    assert job.buffers is not None
    assert any((job.buffers.array(r, "out") != expected_outputs(request, inputs)[r]).any() for r in plan.ranks)


# -- counters of collectives.md 5 -----------------------------------------------------------------------------------

EVERY = range(2, 65)
# Ring takes 2 N^2 transfers; all of EVERY pass, and these are what a run of the tests can spend.
RINGS = (*range(2, 33), 48, 63, 64)


@pytest.mark.parametrize("n", [2, 3, 5, 8, 32])
def test_ring_between_nodes(n: int) -> None:
    """The two halves alone; `test_every_size` has both together."""
    for operation in ("allgather", "reducescatter"):
        job = counted(Request(operation, nodes_of_one(n), n, "ring"))
        assert len(job.counters.steps) == job.plan.steps == n - 1 and sent(job) == {n - 1}


@pytest.mark.parametrize("n", EVERY)
def test_every_size(n: int) -> None:
    group, chunk = nodes_of_one(n), 1
    if n in RINGS:
        job = counted(Request("allreduce", group, n * chunk, "ring"))
        assert len(job.counters.steps) == job.plan.steps == 2 * (n - 1) and sent(job) == {2 * (n - 1) * chunk}
    halves_of_mesh = (("allgather", 1), ("reducescatter", 1)) if n <= 16 else ()
    for operation, steps in (*halves_of_mesh, ("allreduce", 2)):
        job = counted(Request(operation, group, n * chunk, "mesh"))  # type: ignore[arg-type]
        assert len(job.counters.steps) == steps and sent(job) == {steps * (n - 1) * chunk}
    job = counted(Request("allreduce", group, n * chunk, "single-step-mesh"))
    assert job.counters.steps == {0} and sent(job) == {(n - 1) * n * chunk}
    if n & (n - 1):
        assert illegal("rdh", group, "allreduce") == f"{n} ranks are no power of two"
        return
    axes = n.bit_length() - 1
    for operation, halves in (("allgather", 1), ("reducescatter", 1), ("allreduce", 2)):
        job = counted(Request(operation, group, n * chunk, "rdh"))  # type: ignore[arg-type]
        assert len(job.counters.steps) == halves * axes and sent(job) == {halves * (n - 1) * chunk}


def test_mesh_inside_an_instance() -> None:
    group, chunk = Group(machine(), range(64)), 4
    gather = counted(Request("allgather", group, 64 * chunk, "mesh"))
    ranks = [gather.counters.ranks[rank] for rank in range(64)]
    assert len(gather.counters.steps) == 2
    assert sum(one.between_chips for one in ranks) == 64 * 15 * chunk  # 16, 16, 16 and 12 of a chip's four ranks
    assert {one.between_chips for one in ranks} == {16 * chunk, 12 * chunk}
    assert sum(one.inside_chip for one in ranks) == 64 * 48 * chunk
    scatter = counted(Request("reducescatter", group, 64 * chunk, "mesh"))
    assert len(scatter.counters.steps) == 2
    assert {scatter.counters.ranks[rank].between_chips for rank in range(64)} == {15 * chunk}
    assert len(counted(Request("allreduce", group, 64 * chunk, "mesh")).counters.steps) == 4


def test_rdh_inside_an_instance() -> None:
    group, chunk = Group(machine(), range(64)), 4
    for operation in ("allgather", "reducescatter"):
        job = counted(Request(operation, group, 64 * chunk, "rdh"))
        assert len(job.counters.steps) == 5
        for rank in range(64):
            one = job.counters.ranks[rank]
            assert one.between_chips == 15 * chunk and one.inside_chip + one.read_inside_chip == 48 * chunk
    assert len(counted(Request("allreduce", group, 64 * chunk, "rdh")).counters.steps) == 10
    # 64 ranks, 1 MiB: 245,760 bytes between chips in each half.
    job = counted(Request("allreduce", group, 1 << 18, "rdh"), 4)
    assert {job.counters.ranks[rank].between_chips for rank in range(64)} == {2 * 245_760}


def between_primaries(job: Job) -> dict[int, int]:
    """Return the bytes each rank wrote to ranks outside its pair, by rank."""
    found = dict.fromkeys(job.plan.ranks, 0)
    for rank, program in job.plan.programs.items():
        for moves in program.values():
            for move in moves:
                found[rank] += sum(move.size for piece in move.writes if piece.rank // 2 != rank // 2)
    return found


@pytest.mark.parametrize("n", range(4, 65, 4))
def test_kangaring(n: int) -> None:
    """Only groups of whole chips: four ranks each."""
    group = Group(machine(), range(n))
    assert illegal("kangaring", group, "allgather") == ""
    assert illegal("kangaring", Group(machine(), range(n - 1)), "allgather") != ""
    for operation, hops in (("allgather", n // 2 - 1), ("reducescatter", n // 2 - 1), ("allreduce", n - 2)):
        job = counted(Request(operation, group, n, "kangaring"))  # type: ignore[arg-type]
        assert len(job.counters.steps) == job.plan.steps == hops
        found = between_primaries(job)
        halves = 2 if operation == "allreduce" else 1
        assert sorted(set(found.values())) == [0, halves * (n - 2)]  # secondaries write nothing onward
        assert sum(map(bool, found.values())) == n // 2


def test_roles_alternate_between_cycles() -> None:
    group = Group(machine(), range(64))
    found = between_primaries(counted(Request("allgather", group, 64 * 8, "kangaring")))
    assert set(found.values()) == {62 * 4}  # each rank is a primary in half of the four channels


def touches(algorithm: Algorithm, operation: Operation) -> float:
    """Return HBM accesses of one chunk for every two ranks it passes, of the steps after the first."""
    plan = build(Request(operation, Group(machine(), range(64)), 64 * 64, algorithm))
    count = steps = 0
    for program in plan.programs.values():
        for moves in program.values():
            for move in moves:
                if 1 <= move.step < plan.steps - 1:
                    count += len(move.reads) + len(move.writes)
                    steps += 1
    return count / steps * (2 if algorithm == "ring" else 1)


def test_kangaring_saves_a_quarter_and_a_third_of_the_touches() -> None:
    assert (touches("ring", "allgather"), touches("kangaring", "allgather")) == (4, 3)
    assert (touches("ring", "reducescatter"), touches("kangaring", "reducescatter")) == (6, 4)


@pytest.mark.parametrize(("x", "y"), [(2, 16), (4, 4), (3, 8), (16, 4)])
def test_hierarchical(x: int, y: int) -> None:
    one, chunk = machine(nodes=16), 2
    group = Group(one, [node * 64 + at for node in range(x) for at in range(y)])
    n = x * y
    for operation in ("allgather", "reducescatter"):
        job = counted(Request(operation, group, n * chunk, "hier", "ring", "ring"))
        assert len(job.counters.steps) == (x - 1) + (y - 1)
        for rank in group.ranks:
            mine = job.counters.ranks[rank]
            assert mine.between_nodes == (x - 1) * chunk
            assert mine.between_chips + mine.inside_chip == (y - 1) * x * chunk and mine.sent == (n - 1) * chunk
    job, size = counted(Request("allreduce", group, n * chunk, "hier", "ring", "ring")), n * chunk
    for rank in group.ranks:
        mine = job.counters.ranks[rank]
        assert mine.between_nodes == 2 * (x - 1) * size // (x * y)
        assert mine.sent - mine.between_nodes == 2 * (y - 1) * size // y


@pytest.mark.parametrize(("x", "y"), [(2, 4), (3, 5)])
def test_flat_ring(x: int, y: int) -> None:
    group = Group(machine(nodes=4), [node * 64 + at for node in range(x) for at in range(y)])
    for operation, halves in (("allgather", 1), ("reducescatter", 1), ("allreduce", 2)):
        job = counted(Request(operation, group, x * y * 4, "flat-ring"))  # type: ignore[arg-type]
        assert len(job.counters.steps) == halves * (x * y - 1) and sent(job) == {halves * (x * y - 1) * 4}


def test_no_link_is_used_twice_in_a_step_of_ring() -> None:
    """Four cycles over sixteen chips: each direction of each link carries one chunk's quarter a step."""
    group = Group(machine(), range(0, 64, 4))
    job = counted(Request("allgather", group, 16 * 4, "ring"))
    links = {name: size for name, size in job.counters.links.items() if name.startswith("neuronlink")}
    assert len(links) == 64 and set(links.values()) == {15}


def test_the_golden_vector_of_recursive_doubling() -> None:
    """The documented exchange of chip 0, rank 0 of four; chunks are named by 4 * label + number (collectives.md 3)."""
    group = Group(machine(), range(64))
    name_of = {rank: 4 * LABELS[rank // 4] + rank % 4 for rank in range(64)}
    outcome = execute([Request("allgather", group, 64, "rdh")], np.int32, record=True)
    got: dict[int, list[int]] = {}
    gave: dict[int, list[int]] = {}
    for one in outcome.transfers:
        chunks = sorted(name_of[at] for a, z in one.move.writes[0].spans for at in range(a, z))
        if one.move.step in range(4):
            if one.move.writes[0].rank == 0:
                got[one.move.step] = chunks
            if one.rank == 0:
                gave[one.move.step] = chunks
                assert LABELS[one.move.writes[0].rank // 4] == 8 >> one.move.step
    assert gave == {0: [0], 1: [0, 32], 2: [0, 16, 32, 48], 3: list(range(0, 64, 8))}
    assert got == {0: [32], 1: [16, 48], 2: [8, 24, 40, 56], 3: [4, 12, 20, 28, 36, 44, 52, 60]}


# -- faults ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", ["ring", "mesh", "rdh", "kangaring"])
def test_a_rank_that_stops_is_named(algorithm: Algorithm) -> None:
    group = Group(machine(), range(64))
    size = 64 * (4 if algorithm == "kangaring" else 1)  # four channels, so that every rank is a primary in some
    request = Request("allreduce", group, size, algorithm)
    assert execute([request], np.int32).hangs == ()
    for rank in (5, 62):
        (hang,) = execute([request], np.int32, faults=Faults(stopped={rank: 1})).hangs
        assert hang.cause == "stopped" and hang.ranks == (rank,) and hang.status == 1200 and hang.chain
        (hang,) = execute([request], np.int32, absent=frozenset((rank,))).hangs
        assert hang.cause == "trigger" and hang.ranks == (rank,) and hang.waiting >= 1


@pytest.mark.parametrize("algorithm", ["ring", "mesh", "rdh"])
def test_a_lost_transfer_is_named(algorithm: Algorithm) -> None:
    request = Request("allgather", nodes_of_one(8), 8, algorithm)
    lost = frozenset({(group_rank(2), group_rank(3), 0)})
    (hang,) = execute([request], np.int32, faults=Faults(lost=lost)).hangs
    assert hang.cause == "lost" and hang.ranks == (group_rank(2), group_rank(3)) and hang.status == 1200


def group_rank(at: int) -> int:
    return at * machine(nodes=64).ranks_per_node


def test_a_dead_proxy_is_a_failure_of_its_own() -> None:
    request = Request("allgather", nodes_of_one(4), 8, "ring")
    (hang,) = execute([request], np.int32, faults=Faults(dead_proxies=frozenset({group_rank(1)}))).hangs
    assert hang.cause == "proxy" and hang.status == 1206 and hang.ranks == (group_rank(1),)


def test_a_slow_link_costs_time() -> None:
    group = Group(machine(), range(0, 64, 4))
    request = Request("allgather", group, 1 << 26, "ring")
    clean = execute([request], np.uint8).time_ps
    slow = execute([request], np.uint8, faults=Faults(slow={"neuronlink n0 c0>c1": 10.0})).time_ps
    assert slow > 3 * clean


def test_the_handshake_of_proxies() -> None:
    group = nodes_of_one(4)
    (job,) = execute([Request("allreduce", group, 16, "ring")], np.int32).jobs
    for proxy in job.proxies.values():
        assert proxy.handshake == 1 and proxy.send_complete == proxy.posted == proxy.recv_complete == proxy.index
    inside = execute([Request("allreduce", Group(machine(), range(8)), 16, "ring")], np.int32)
    assert inside.jobs[0].proxies == {}
