"""Ranks that wait for each other for ever: the report names ranks, lines and the cycle, and is there at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import neurontools
import neurontools.nki.collectives as ncc
import neurontools.nki.isa as nisa
import neurontools.nki.language as nl
from emulator.machine.collectives.engine import Faults
from emulator.machine.ranks.explain import CAUSES, HINTS
from emulator.runtime.ranks import RankedResult, Ranks, execute_ranks
from emulator.settings import Settings
from formats.nrt.status import NrtStatus
from tests.counting import counted

X = np.ones((4, 8), np.float32)


def program(*calls: Callable[[Any, Any], None], fault: bool = False) -> Any:
    """Build a program that makes calls of collectives, one after the other."""

    def kernel(x: Any) -> Any:
        outs = [nl.ndarray(x.shape, x.dtype, nl.shared_hbm) for _ in calls]
        if fault:
            index = nl.ndarray((1, 1), nl.int32)
            nisa.memset(index, 99)
            nisa.dma_copy(outs[0], x.ap([[8, 4], [1, 8]], scalar_offset=index, indirect_dim=0))
            x = outs[0]
        for call, out in zip(calls, outs, strict=True):
            call(x, out)
        return tuple(outs) or nl.ndarray(x.shape, x.dtype, nl.shared_hbm)

    return neurontools.build(kernel, X, target="trn2", lnc=1)


def add(*groups: Sequence[int]) -> Callable[[Any, Any], None]:
    return lambda x, out: ncc.all_reduce([x], [out], [list(one) for one in groups], nl.add)


def swap(x: Any, out: Any) -> None:
    ncc.all_to_all([x], [out], [[0, 1]], 0)


def wider(x: Any, out: Any) -> None:
    ncc.all_reduce([x], [out], [[0, 1, 2]], nl.add)


def pairs(*sent: Sequence[int]) -> Callable[[Any, Any], None]:
    return lambda x, out: ncc.collective_permute([x], [out], [list(one) for one in sent])


def ran(*programs: Any, **options: Any) -> RankedResult:
    inputs = [{neff.inputs[0].name: X} if neff.inputs else {} for neff in programs]
    return execute_ranks(programs, inputs, Ranks(len(programs)), **options)


HUNG: dict[str, tuple[Callable[[], list[Any]], str, list[str], tuple[int, ...]]] = {
    # cause: programs, what the sentence says, further words, cycle
    "mismatch": (
        lambda: [program(add([0, 1]), swap), program(swap, add([0, 1]))],
        "collective 1 of ranks 0, 1 differs: rank 0 asks for all_reduce add of 32 FLOAT32",
        ["rank 1 asks for all_to_all of 32 FLOAT32", "test_ranks_hang.py:", "cycle: rank 0 waits for rank 1 waits"],
        (0, 1),
    ),
    "cycle": (
        lambda: [program(add([0, 1]), add([0, 2])), program(add([1, 2]), add([0, 1])),
                 program(add([0, 2]), add([1, 2]))],
        "ranks wait for each other: rank 0 in all_reduce",
        ["cycle: rank 0 waits for rank 1 waits for rank 2 waits for rank 0"],
        (0, 1, 2),
    ),
    "group": (
        lambda: [program(add([0, 1])), program(add([0, 1, 2, 3])), program(add([2, 3])), program(add([2, 3]))],
        "over ranks 0, 1, 2, 3",
        ["its partner rank 0 over ranks 0, 1", "cycle: rank 1 waits for rank 0 waits for rank 1"],
        (1, 0),
    ),
    "missing": (
        lambda: [program(add([0, 1]), add([0, 1])), program(add([0, 1]))],
        "rank 0 waits in all_reduce add of 32 FLOAT32",
        ["for rank 1, which ended without calling it", "number 2 of ranks 0, 1"],
        (),
    ),
    "absent": (
        lambda: [program(add([0, 5])), program()],
        "for rank 5, which does not run: there are 2 ranks",
        ["waits for rank 5"],
        (),
    ),
    "group, called elsewhere": (  # another line of another group is an order that differs
        lambda: [program(add([0, 1]), wider), program(wider, add([0, 1])), program(wider)],
        "ranks wait for each other: rank 0 in all_reduce add of 32 FLOAT32 of ranks 0, 1",
        ["rank 1 in all_reduce add of 32 FLOAT32 of ranks 0, 1, 2"],
        (0, 1),
    ),
    "fault": (
        lambda: [program(add([0, 1])), program(add([0, 1]), fault=True)],
        "for rank 1, which stopped: ",
        ["out of bounds"],
        (),
    ),
}  # fmt: skip


@pytest.mark.parametrize("cause", HUNG)
def test_a_deadlock_over_ranks_is_explained(cause: str) -> None:
    make, sentence, more, cycle = HUNG[cause]
    result = ran(*make())
    hang = result.hang
    assert hang is not None and not result.ok
    wanted = "cycle" if cause == "group, called elsewhere" else cause
    assert hang.cause == wanted and sentence in hang.sentence, hang.text()
    text = hang.text()
    for words in more:
        assert words in text, text
    assert hang.cycle == cycle and hang.status is NrtStatus.NRT_EXEC_HW_ERR_COLLECTIVES
    for wait in hang.waits:
        assert wait.source.startswith(__file__) and wait.waits_for and wait.since_ps > 0


def test_a_lost_transfer_and_a_rank_that_waits_for_itself() -> None:
    lost = ran(program(add([0, 1])), program(add([0, 1])), faults=Faults(lost=frozenset({(0, 1, 0)})))
    assert lost.hang is not None and lost.hang.cause == "transfer"
    assert "what rank 0 sent to rank 1 never arrived" in lost.hang.sentence


def test_every_cause_is_tried() -> None:
    assert {*HUNG, "transfer", "local"} - {"group, called elsewhere"} == set(CAUSES) == set(HINTS) == set(CLEAN)


def test_sixty_four_ranks_are_explained_in_a_fifth_of_a_second() -> None:
    from emulator.machine.machine import Machine
    from emulator.machine.ranks.explain import explain
    from emulator.machine.ranks.machine import RankedMachine

    everybody = program(add(range(64)))
    machine = RankedMachine(Machine("trn2.48xlarge", lnc=2), 64)
    machine.load([everybody] * 63 + [program()])
    for device in machine.devices[:-1]:
        device.set_inputs({everybody.inputs[0].name: X})
    assert machine.run() == "hang"
    did, hang = counted(lambda: explain(machine), builtins=True)
    assert (
        did < 50_000 and hang is not None and hang.cause == "missing" and hang.ranks == (63,) and len(hang.waits) == 63
    )
    assert "and 55 more ranks wait" in hang.text()


# The same programs without the fault: what each cause has too much, too little or elsewhere is mended.
CLEAN: dict[str, Callable[[], list[Any]]] = {
    "mismatch": lambda: [program(add([0, 1]), swap)] * 2,
    "cycle": lambda: [program(add([0, 1]), add([0, 2])), program(add([0, 1]), add([1, 2])),
                      program(add([0, 2]), add([1, 2]))],
    "group": lambda: [program(add([0, 1])), program(add([0, 1])), program(add([2, 3])), program(add([2, 3]))],
    "missing": lambda: [program(add([0, 1]), add([0, 1])), program(add([0, 1]), add([0, 1]))],
    "absent": lambda: [program(add([0, 1])), program(add([0, 1]))],
    "fault": lambda: [program(add([0, 1])), program(add([0, 1]))],
    "local": lambda: [program(add([0, 1])), program(add([0, 1]))],
    "transfer": lambda: [program(add([0, 1])), program(add([0, 1]))],
}  # fmt: skip


@pytest.mark.parametrize("cause", CAUSES)
def test_clean_twins_end(cause: str) -> None:
    result = ran(*CLEAN[cause](), checks="all")
    assert result.ok and result.hang is None and not any(each.findings for each in result.results)
    assert result.collectives and all(set(one.ended_ps) == set(one.group) for one in result.collectives)


def test_a_rank_that_waits_for_something_of_its_own() -> None:
    from formats.neff import open_neff
    from neurontools.assembly.assemble_neff import to_neff
    from neurontools.assembly.assembler import parse_program

    stuck = open_neff(to_neff(parse_program(".target trn2\n.engine pool\n    NOP S[9]>=1 cycle=0\n", "stuck.s", None)))
    result = ran(program(add([0, 1])), stuck)
    assert result.hang is not None and result.hang.cause == "local"
    assert "which does not get there: nc0 Pool pc 0 (stuck.s:3)" in result.hang.sentence
    first = result.results[0].hang
    assert first is not None and first.waits[0].cause == "ranks" and not first.cycles
    assert "once the other ranks are through" in first.waits[0].verdict


def test_every_reason_is_told_and_each_once() -> None:
    """Two pairs wait for reasons of their own; what four ranks wait for together is one reason."""
    apart = ran(program(add([0, 1])), program(swap), program(add([2, 3])), program())
    hang = apart.hang
    assert hang is not None and [root.cause for root in hang.roots] == ["mismatch", "missing"]
    assert [root.ranks for root in hang.roots] == [(0, 1), (3,)] and hang.more == hang.roots[1:]
    assert "and rank 2 waits in all_reduce" in hang.text()
    everybody = add(range(4))
    together = ran(program(everybody), program(everybody), program(everybody), program())
    assert together.hang is not None and len(together.hang.roots) == 1
    assert together.hang.roots[0].seen_from == (0,) and len(together.hang.waits) == 3


def test_calls_with_one_name_are_told_apart() -> None:
    """Who sends to whom is not in the name of a permute: where that is the difference, it is said."""
    forth, back = pairs([0, 1], [1, 2], [2, 0]), pairs([1, 0], [2, 1], [0, 2])
    hang = ran(program(forth), program(forth), program(back)).hang
    assert hang is not None and hang.cause == "mismatch"
    assert "(0 to 1, 1 to 2, 2 to 0)" in hang.sentence and "rank 2 asks for" in hang.sentence
    assert "(1 to 0, 2 to 1, 0 to 2)" in hang.sentence
    assert ran(program(forth), program(forth), program(forth)).ok


def test_a_rank_that_ended_early_in_a_mismatch_is_no_reason_of_its_own() -> None:
    """Rank 0 has what rank 3 sent it and ends, before rank 2 comes for something else."""
    forth, back = [pairs(*((a, b) for a, b in each)) for each in (
        ((0, 1), (1, 2), (2, 3), (3, 0)), ((1, 0), (2, 1), (3, 2), (0, 3)))]  # fmt: skip
    result = ran(program(forth), program(forth), program(back), program(forth))
    assert result.results[0].ok and result.hang is not None
    assert [root.cause for root in result.hang.roots] == ["mismatch"]


def test_a_rank_outside_of_all_groups_faults() -> None:
    both = add([0, 1])
    result = ran(program(both), program(both), program(both))
    fault = result.results[2].fault
    assert fault is not None and fault.kind == "operand" and result.hang is None
    assert "expected rank 2, which calls it, in one of them, found [0, 1]" in fault.message
    assert result.results[0].ok and result.results[1].ok


def test_a_rank_without_a_program_is_said_to_have_none() -> None:
    result = execute_ranks([program(add([0, 1])), None], [{"x": X}, {}], Ranks(2))
    assert result.hang is not None and result.away == (1,)
    assert result.hang.sentence.endswith("for rank 1, which launched no program")


def test_a_thousand_ranks_are_explained_in_a_fifth_of_a_second() -> None:
    """However ranks wait: who lacks whom is found once for a meeting, not once for each pair."""
    from types import SimpleNamespace

    from emulator.faults import Place
    from emulator.machine.ranks.communicators import Key, Meeting, Signature
    from emulator.machine.ranks.explain import explain

    ranks = tuple(range(1024))
    one, two = (Signature("ALL_REDUCE", "FLOAT32", "add", size, size, ()) for size in (32, 64))
    device = [SimpleNamespace(rank=rank, now_ps=9, fault=None, hang=None, away=False) for rank in ranks]
    place = Place(0, "Pool", 3, "", None)

    def took(came: Sequence[int], strangers: Sequence[int]) -> tuple[int, Any]:
        meeting = Meeting(Key(ranks, 0, 0, 0, 0), one)
        meeting.begun = dict.fromkeys(came, 5)
        meeting.transfers = dict.fromkeys(came)  # type: ignore[arg-type]
        meeting.strangers = dict.fromkeys(strangers, two)
        machine: Any = SimpleNamespace(devices=device, place_of=lambda rank, caller: place,
                                       communicators=SimpleNamespace(open=[meeting]), engine=None)  # fmt: skip
        return counted(lambda: explain(machine), builtins=True)

    for came, strangers, cause in ((ranks[:-1], (), "missing"), (ranks[:512], (), "missing"),
                                   (ranks, ranks[512:], "mismatch"), (ranks, ranks[-1:], "mismatch")):  # fmt: skip
        did, found = took(came, strangers)
        assert did < 100 * len(ranks) and found.cause == cause and len(found.roots) == 1


def machine_of_two(*calls: Callable[[Any, Any], None]) -> Any:
    from emulator.machine.machine import Machine
    from emulator.machine.ranks.machine import RankedMachine

    neff = program(*calls)
    machine = RankedMachine(Machine("trn2.48xlarge", lnc=1), 2)
    machine.load(neff)
    for device in machine.devices:
        device.set_inputs({neff.inputs[0].name: X})
    return machine


def test_ranks_that_only_wait_can_be_interrupted() -> None:
    """Nothing happens on a device then for as long as the collective takes; what ended it is no reason to wait."""
    machine = machine_of_two(add([0, 1]))
    machine.engine.at(2_000_000, machine.interrupt)
    machine.run()
    assert {device.hang.reason for device in machine.devices} == {"interrupted"} and machine.hang is None
    assert machine.engine.next_ps is not None  # what was under way is not worked off
    limited = ran(program(add([0, 1])), program(add([0, 1])), settings=Settings(limit_ps=3_000_000))
    assert not limited.ok and limited.hang is None


def test_devices_are_not_asked_at_every_event_of_the_cc_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    """They were: of 300 ranks in a ring, each of a quarter of a million events asked every one of them."""
    from emulator.machine.collectives.engine import Engine
    from emulator.machine.ranks.devices import RankDevice

    counts = {"asked": 0, "events": 0}
    usual, step = RankDevice.next_ps.fget, Engine.step
    assert usual is not None

    def asked(device: RankDevice) -> int | None:
        counts["asked"] += 1
        found: int | None = usual(device)
        return found

    def stepped(engine: Engine) -> None:
        counts["events"] += 1
        step(engine)

    monkeypatch.setattr(RankDevice, "next_ps", property(asked))
    monkeypatch.setattr(Engine, "step", stepped)
    ring = program(add(range(12)))
    assert ran(*[ring] * 12).ok
    assert counts["events"] > 300 and counts["asked"] < 4 * counts["events"]


def test_an_engine_does_not_wait_for_itself_behind_a_collective() -> None:
    """Its next collective signals the same semaphore: that is no circle, the other rank is what it waits for."""
    hang = ran(program(add([0, 1]), swap), program(swap, add([0, 1]))).results[0].hang
    assert hang is not None and hang.waits[0].cause == "ranks" and not hang.cycles
