"""Deadlocks: found at once, and explained."""

from __future__ import annotations

import re
from time import perf_counter, sleep

from emulator.device import Device
from emulator.diagnosis.graph import Hang, Wait
from formats import isa
from formats.nrt.status import NrtStatus
from tests.emulator.dma_programs import direct, gen3
from tests.emulator.streams import after, device_with, events_of


def nop(text: str = "") -> str:
    return f"NOP {text} cycle=0"


def hang_of(*cores: dict[str, list[isa.Instruction | str]], **options: object) -> Hang:
    device = device_with(*cores, **options)
    assert device.run() == "hang"
    assert device.hang is not None and device.hang.status is NrtStatus.NRT_TIMEOUT
    return device.hang


def test_the_report_of_a_cycle() -> None:
    hang = hang_of(
        {
            "PE": [nop("S[5]++@complete"), nop("S[6]>=1 S[5]++@complete")],
            "DVE": [nop("S[5]>=1"), nop("S[4]>=1"), nop("S[6]++@complete"), nop("S[6]++@complete")],
            "Activation": [nop("S[5]>=2 S[4]++@complete")],
            "SP": [nop()],
        },
        timing=False,
    )
    assert (
        hang.text()
        == """\
deadlock at 2 ps: nothing is in flight, 3 engines wait
  nc0 PE pc 1: NOP S[6]>=1 S[5]++@complete cycle=0
    waits for S[6]>=1 since 1 ps; S[6] is 0
    deadlock: only nc0 DVE pc 2 and nc0 DVE pc 3 would signal S[6], and waits for this engine in turn
    +1 from nc0 DVE pc 2 (queued behind pc 1): NOP S[6]++@complete cycle=0
    +1 from nc0 DVE pc 3 (queued behind pc 1): NOP S[6]++@complete cycle=0
  nc0 Activation pc 0: NOP S[5]>=2 S[4]++@complete cycle=0
    waits for S[5]>=2 since 0 ps; S[5] is 1
    deadlock: only nc0 PE pc 1 would signal S[5], and waits for this engine in turn
    +1 from nc0 PE pc 1 (blocked): NOP S[6]>=1 S[5]++@complete cycle=0
    1 signalled already
  nc0 DVE pc 1: NOP S[4]>=1 cycle=0
    waits for S[4]>=1 since 2 ps; S[4] is 0
    deadlock: only nc0 Activation pc 0 would signal S[4], and waits for this engine in turn
    +1 from nc0 Activation pc 0 (blocked): NOP S[5]>=2 S[4]++@complete cycle=0
  cycle: nc0 Activation waits for nc0 PE waits for nc0 DVE waits for nc0 Activation
  hint: break the circle: signal before waiting, on one of the engines in it"""
    )
    assert hang.brief == (
        "deadlock at 2 ps: nc0 PE pc 1 waits for S[6]>=1: only nc0 DVE pc 2 and nc0 DVE pc 3 would signal S[6], and "
        "waits for this engine in turn (and 2 more)"
    )


def test_a_wait_that_nothing_signals() -> None:
    hang = hang_of({"PE": [nop("S[9]>=1")]})
    (wait,) = hang.waits
    assert (wait.engine, wait.pc, wait.number, wait.need, wait.present, wait.could_signal) == ("PE", 0, 9, 1, 0, ())
    assert "    never-signalled: nothing in the program signals S[9]" in hang.text() and hang.cycles == ()


def test_too_few_signals() -> None:
    hang = hang_of({"PE": [nop("S[9]>=3")], "SP": [nop("S[9]++@complete")] * 2})
    assert [signal.state for signal in hang.waits[0].could_signal] == ["done", "done"]
    assert "    never-met: everything that signals S[9] has done so: after 2 signals it is 2" in hang.text()
    assert "    2 signalled already" in hang.text()


def test_overshoot_is_named() -> None:
    hang = hang_of({"PE": ["EVENT_SEMAPHORE S[9]==1 setter=0"], "SP": ["EVENT_SEMAPHORE setter=0 S[9]+=2@complete"]})
    assert hang.waits[0].overshoot
    assert "    overshoot: S[9] went past 1: it is 2, and only what lowers or writes it can help" in hang.text()
    assert not hang_of({"PE": [nop("S[9]>=3")], "SP": [nop("S[9]++@complete")]}).waits[0].overshoot


def test_a_missing_event() -> None:
    hang = hang_of({"PE": [nop("E[4]==1-"), nop("E[4]==1-")], "DVE": [nop("E[4]+@complete")]})
    (wait,) = hang.waits
    assert (wait.kind, wait.condition, wait.present) == ("event", "E[4]==1-", 0)
    assert [(signal.engine, signal.state) for signal in wait.could_signal] == [("DVE", "done")]


def test_the_second_wait_is_the_one_reported() -> None:
    hang = hang_of({"PE": ["EVENT_SEMAPHORE S[8]>=1 setter=0 S[9]>=1"], "SP": [nop("S[8]++@complete")]})
    assert hang.waits[0].condition == "S[9]>=1"


def test_an_engine_that_waits_for_itself() -> None:
    hang = hang_of({"PE": [nop("S[5]>=1"), nop("S[5]++@complete")]})
    assert hang.cycles == (((0, "PE"),),)
    assert hang.waits[0].could_signal[0].state == "queued" and hang.waits[0].could_signal[0].behind == 0


def test_a_barrier_that_one_core_never_reaches() -> None:
    barrier = isa.CoreBarrier(semaphore=9, barrier_id=1)
    hang = hang_of({"PE": [barrier]}, {"PE": [nop("S[4]>=1"), barrier]})
    first, second = hang.waits
    assert (first.core, first.condition, second.core) == (0, "S[9]>=1", 1)
    assert [(s.core, s.engine, s.state) for s in first.could_signal] == [(1, "PE", "queued")]


def test_a_dma_transfer_behind_a_blocked_trigger() -> None:
    load = direct(("table", 0, 0), ("variable", 0, 0x4000), 256, 128, 256, 0x40000, **after(50, 1))
    neff = gen3({"SP": [load], "Pool": [isa.Nop(**after(8, 16))]}, inputs={"x": ("float32", (128, 64))})
    device = Device(neff.target)
    device.load(neff)
    assert device.run() == "hang" and device.hang is not None
    pool = next(wait for wait in device.hang.waits if wait.engine == "Pool")
    (signal,) = pool.could_signal
    assert (signal.engine, signal.owner, signal.pc) == ("qSPDynamicHW", "SP", 2)
    assert (signal.state, signal.amount) == ("blocked", 16)


def test_limits_end_a_run_that_does_not_end() -> None:
    counting = {"SP": [nop("S[5]++@complete"), isa.CompareBranch(compare=isa.BranchCompare.ALWAYS, target=-64)]}
    device = device_with(counting, max_steps=101)
    assert device.run() == "hang" and device.hang is not None
    assert device.hang.reason == "instruction limit" and device.steps == 101
    assert device.hang.running[0].startswith("nc0 SP pc 1: COMPARE_BRANCH")
    device = device_with(counting, limit_ps=1_000_000)
    assert device.run() == "hang" and device.hang is not None
    assert device.hang.reason == "time limit" and device.now_ps <= 1_000_000
    device = device_with(counting, max_seconds=0.05)
    started = perf_counter()
    assert device.run() == "hang" and device.hang is not None
    assert device.hang.reason == "host time limit" and 0.05 <= perf_counter() - started < 5


def test_standing_still_takes_nothing_of_the_time_of_this_machine() -> None:
    device = device_with({"SP": [nop() for _ in range(2000)]}, max_seconds=0.3)
    device.step()
    sleep(0.5)
    assert device.run() == "finished"


def test_an_interrupt_ends_a_run_behind_a_completion_and_is_where_a_limit_ends_it() -> None:
    counting = {"SP": [nop("S[5]++@complete"), isa.CompareBranch(compare=isa.BranchCompare.ALWAYS, target=-64)]}
    device = device_with(counting)
    for _ in range(9):
        device.step()
    device.interrupt()
    assert device.run() == "hang" and device.hang is not None and device.hang.reason == "interrupted"
    again = device_with(counting, max_steps=device.steps)
    assert again.run() == "hang"
    assert (again.now_ps, again.state_hash()) == (device.now_ps, device.state_hash())


def test_a_hang_is_the_last_event() -> None:
    device = device_with({"PE": [nop(), nop("S[9]>=1")]})
    events = events_of(device)
    assert [event.kind for event in events] == ["instruction", "hang"]
    assert events[-1].instruction is device.hang and device.step() is None


def test_the_graph_of_a_cycle() -> None:
    hang = hang_of(
        {
            "PE": [nop("S[6]>=1 S[5]++@complete")],
            "DVE": [nop("S[5]>=1 S[6]++@complete"), nop("S[6]++@complete")],
            "SP": [nop("S[9]>=1")],
        },
        timing=False,
    )
    graph = hang.graph()
    assert [node["cause"] for node in graph["nodes"]] == ["deadlock", "deadlock", "never-signalled"]
    assert [(node["id"], node["condition"], node["present"]) for node in graph["nodes"]] == [
        ("nc0 PE", "S[6]>=1", 0),
        ("nc0 DVE", "S[5]>=1", 0),
        ("nc0 SP", "S[9]>=1", 0),
    ]
    assert [(e["from"], e["to"], e["state"], e["signals"], e["cycle"]) for e in graph["edges"]] == [
        ("nc0 PE", "nc0 DVE", "blocked", 2, True),
        ("nc0 DVE", "nc0 PE", "blocked", 1, True),
    ]
    assert graph["cycles"] == [["nc0 DVE", "nc0 PE"]]
    dot = hang.dot()
    assert dot.startswith("digraph hang {") and dot.count("->") == 2 and dot.endswith("}")
    assert '"nc0 SP" [label="nc0 SP pc 0\\nS[9]>=1, is 0", shape=box];' in dot


def test_what_a_dump_says_is_quoted_for_graphviz() -> None:
    hang = Hang('a "reason" \\', 0, (Wait(0, 'P"E', 1, "", None, "semaphore", 3, 'S["', 1, 0, 0, (), False),), ())
    strings = re.findall(r'"(?:[^"\\]|\\.)*"', hang.dot())
    assert strings[0] == r'"a \"reason\" \\ at 0 ps"'
    assert strings[1:] == [r'"nc0 P\"E"', r'"nc0 P\"E pc 1\nS[\", is 0"']
    assert hang.dot().count('"') == sum(text.count('"') for text in strings)
