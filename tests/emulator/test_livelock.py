"""Loops that nothing ends: found as soon as a state comes again, and never where something could still end them."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from emulator.device import Device
from formats import isa
from formats.neff import open_neff
from neurontools.assembly.assemble_neff import to_neff
from neurontools.assembly.assembler import parse_program
from tests.emulator.streams import device_with, events_of

S5 = "addr=uint32@0x2802701014[1,1][1,1] data=$R[2]"  # S[5] of core 0, as golden/insns/compare_branch_loop.s


def program(*engines: str, head: str = "", **options: Any) -> Device:
    """Return a device with a program of engines, each its name and lines; %here is the line behind `here:`."""
    text = f".target trn2\n.dialect extended\n{head}\n" + "\n".join(f".engine {one}" for one in engines)
    neff = open_neff(to_neff(parse_program(text, "loop.s")))
    device = Device(neff.target, **options)
    device.load(neff)
    device.set_inputs({})
    return device


def back(condition: str = "ALWAYS") -> str:
    return f"COMPARE_BRANCH cmp_op={condition} label_id=%here"


# Name -> program that livelocks, engines that loop, and a program that differs a little and ends.
PAIRS: dict[str, tuple[tuple[str, ...], list[str], tuple[str, ...]]] = {
    "a branch to itself": (
        (f"sp\nhere:\n{back()}",),
        ["SP"],
        (f"sp\nNOP cycle=0\nhere:\n{back('NE dtype=int32 cmp0=$R[2] cmp1=0')}",),
    ),
    "a register that never changes": (
        (f"act\nhere:\nNOP cycle=0\nTENSOR_LOAD {S5}\n{back('LT dtype=int32 cmp0=$R[2] cmp1=3')}",),
        ["Activation"],
        (f"act\nhere:\nNOP S[5]++@complete cycle=0\nTENSOR_LOAD {S5}\n{back('LT dtype=int32 cmp0=$R[2] cmp1=3')}",),
    ),
    "another engine waits for ever": (
        (f"sp\nhere:\nNOP cycle=0\n{back()}", "dve\nNOP S[9]>=1 cycle=0"),
        ["SP"],
        ("sp\nhere:\nNOP S[9]++@complete cycle=0", "dve\nNOP S[9]>=1 cycle=0"),
    ),
    "two engines that poll at their own pace": (
        (
            f"sp\nhere:\nNOP cycle=7\n{back()}",
            f"act\nthere:\nNOP cycle=11\nTENSOR_LOAD {S5}\n"
            "COMPARE_BRANCH cmp_op=LT dtype=int32 cmp0=$R[2] cmp1=1 label_id=%there",
        ),
        ["Activation", "SP"],
        (
            "sp\nNOP cycle=200\nNOP S[5]++@complete cycle=0",
            f"act\nthere:\nNOP cycle=11\nTENSOR_LOAD {S5}\n"
            "COMPARE_BRANCH cmp_op=LT dtype=int32 cmp0=$R[2] cmp1=1 label_id=%there",
        ),
    ),
    "an event there and back": (
        (
            f"sp\nhere:\nNOP E[3]+@complete cycle=0\nNOP E[4]==1- cycle=0\n{back()}",
            "dve\nthere:\nNOP E[3]==1- cycle=0\nNOP E[4]+@complete cycle=0\n"
            "COMPARE_BRANCH cmp_op=ALWAYS label_id=%there",
        ),
        ["DVE", "SP"],
        (
            "sp\nNOP E[3]+@complete cycle=0\nNOP E[4]==1- cycle=0",
            "dve\nNOP E[3]==1- cycle=0\nNOP E[4]+@complete cycle=0",
        ),
    ),
}


@pytest.mark.parametrize("name", PAIRS)
def test_a_loop_that_nothing_ends(name: str) -> None:
    endless, engines, _ = PAIRS[name]
    device = program(*endless)
    assert device.run() == "hang" and device.hang is not None
    assert device.hang.reason == "livelock" and device.steps < 200
    assert sorted({word.engine for word in device.hang.loops}) == sorted(engines)
    assert not any(running.split()[1] in engines for running in device.hang.running)
    text = device.hang.text()
    assert "loops for ever through" in text and "(loop.s:" in text and "COMPARE_BRANCH" in text
    steps = [device.steps, len(events_of(program(*endless))) - 1]
    assert steps[0] == steps[1], "stepped and run at once they end alike"


@pytest.mark.parametrize("name", PAIRS)
def test_its_twin_ends(name: str) -> None:
    device = program(*PAIRS[name][2])
    assert device.run() == "finished", device.hang


def test_the_words_of_the_loop_and_the_wait_beside_it() -> None:
    device = program(*PAIRS["another engine waits for ever"][0])
    device.run()
    assert device.hang is not None
    assert [(word.engine, word.pc) for word in device.hang.loops] == [("SP", 0), ("SP", 1)]
    assert [(wait.engine, wait.cause) for wait in device.hang.waits] == [("DVE", "never-signalled")]
    assert ": nc0 SP loops for ever (loop.s:" in device.hang.brief and "(and 1 more)" in device.hang.brief


def test_a_loop_that_waits_for_a_transfer_goes_on() -> None:
    head = ".constant n int32 [1, 2] 3 -2\n.queue qIn sp 8\n.dma qIn 0 8 n+0[1,8][8,1] -> SB+0x1000[1,262144][8,1]"
    poll = "pool\nhere:\nREGISTER_LOAD register=7 src=int32@0x1000[1,1,1,1,1][1,1,1,1,1] channels=1\n" + back(
        "NE dtype=int32 cmp0=$R[7] cmp1=3"
    )
    device = program("sp\nNOP cycle=1000\nPSEUDO_DMA_TRIGGER qIn block_id=0", poll, head=head)
    assert device.run() == "finished", device.hang
    device = program("sp\nNOP cycle=1000", poll, head=head)
    assert device.run() == "hang" and device.hang is not None and device.hang.reason == "livelock"


def test_loops_that_leave_other_states_end_by_their_budget() -> None:
    counting = f"sp\nhere:\nNOP S[5]++@complete cycle=0\n{back()}"
    head = ".constant n int32 [1, 2] 3 -2\n.queue qIn sp 8\n.dma qIn 0 8 n+0[1,8][8,1] -> SB+0x1000[1,262144][8,1]"
    triggering = f"sp\nhere:\nPSEUDO_DMA_TRIGGER qIn block_id=0\n{back()}"
    writing = (
        "pool\nhere:\nCOPY src=fp32@0x4000[1,1,1,1][8,1,1,1] dst=fp32@0x5000[1,1,1,1][8,1,1,1] channels=1\n" + back()
    )
    for engine, lines in ((counting, ""), (triggering, head), (writing, "")):
        device = program(engine, head=lines)
        device.max_steps = 1000
        assert device.run() == "hang" and device.hang is not None
        assert device.hang.reason == "instruction limit" and device.hang.loops == ()


def test_in_a_shaken_schedule_only_loops_that_read_are_sure() -> None:
    for name, reason in (
        ("two engines that poll at their own pace", "livelock"),
        ("an event there and back", "instruction limit"),
    ):
        device = program(*PAIRS[name][0], seed=3, max_steps=1000)
        assert device.run() == "hang" and device.hang is not None and device.hang.reason == reason


def test_going_back_and_on_ends_at_the_same_place() -> None:
    for name in PAIRS:
        device = program(*PAIRS[name][0])
        for _ in range(5):
            device.step()
        state = device.snapshot()
        assert device.run() == "hang"
        end = device.steps, device.now_ps, device.hang
        device.restore(state)
        assert device.run() == "hang"
        assert (device.steps, device.now_ps, device.hang) == end


def _random_streams(chance: random.Random) -> dict[str, list[isa.Instruction | str]]:
    """Return small programs of words that signal, wait and branch back; many of them never end."""
    streams: dict[str, list[isa.Instruction | str]] = {}
    for engine in chance.sample(["PE", "DVE", "Activation", "Pool", "SP"], chance.randint(1, 3)):
        words: list[isa.Instruction | str] = []
        for place in range(chance.randint(1, 5)):
            kind = chance.randrange(7)
            if kind < 3:
                words.append(f"NOP cycle={chance.choice((0, 3, 9))}")
            elif kind < 5:
                sync = chance.choice(
                    [
                        "E[1]+@complete",
                        "E[2]+@complete",
                        "E[1]==1-",
                        "E[2]==1-",
                        "S[5]++@complete",
                        "S[5]--@complete",
                        "S[5]>=1",
                        "S[6]++@complete",
                        "S[6]>=2",
                    ]
                )
                words.append(f"NOP {sync} cycle=0")
            elif kind == 5:
                words.append(f"TENSOR_LOAD {S5}")
            else:
                compare = chance.choice([isa.BranchCompare.ALWAYS, isa.BranchCompare.LT, isa.BranchCompare.NE])
                words.append(
                    isa.CompareBranch(
                        compare=compare,
                        dtype=isa.CompareBranch().dtype,
                        register=2,
                        constant=chance.randint(0, 4),
                        target=-64 * chance.randint(0, place),
                    )
                )
        streams[engine] = words
    return streams


def test_what_is_called_endless_does_not_end() -> None:
    """Take the verdict away and go on for long: nothing ends."""
    chance, found = random.Random(7), 0
    for _ in range(150):
        streams = _random_streams(chance)
        device = device_with(streams, max_steps=200)
        device.run()
        if device.hang is None or device.hang.reason != "livelock":
            continue
        found += 1
        seen = device.steps
        longer = device_with(streams, max_steps=seen + 1000)
        longer.livelocked = lambda loops: None  # type: ignore[method-assign]
        assert longer.run() == "hang" and longer.hang is not None
        assert longer.hang.reason == "instruction limit", streams
    assert found > 15


def test_a_program_that_computes_is_not_looked_at() -> None:
    """The memory that a loop writes may end it, however long it takes."""
    text = """.target trn2
.dialect extended
.constant n int32 [1, 1] 3000
.queue qIn sp 8
.dma qIn 0 8 n+0[1,4][4,1] -> SB+0x1000[1,262144][4,1]
.engine sp
    PSEUDO_DMA_TRIGGER qIn block_id=0
.engine pool
    NOP S[8]>=16 cycle=0
loop:
    TENSOR_SCALAR ops=ADD,BYPASS imm=i-1,0.0 imm_src=INSTRUCTION,INSTRUCTION src=int32@0x1000[1,1,1][1,1,1] dst=int32@0x1000[1,1,1][1,1,1] channels=1
    REGISTER_LOAD register=7 src=int32@0x1000[1,1,1,1,1][1,1,1,1,1] channels=1
    COMPARE_BRANCH cmp_op=NE dtype=int32 cmp0=$R[7] cmp1=0 label_id=%loop
"""  # noqa: E501
    neff = open_neff(to_neff(parse_program(text, "loop.s")))
    device = Device(neff.target)
    device.load(neff)
    device.set_inputs({})
    assert device.run() == "finished" and device.joint is None
    assert int(device.cores[0].sbuf[0, 0x1000:0x1004].view(np.int32)[0]) == 0
