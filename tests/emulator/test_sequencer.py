"""Order of issue and completion, waits, updates, branches and registers."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from emulator.addresses import address_map
from emulator.device import Device
from formats import isa
from tests.emulator.streams import add, after, device_with, events_of, fill, order_of, row, signal, tile

MAP = address_map("gen3")


def nop(text: str = "") -> str:
    return f"NOP {text} cycle=0"


def run(**streams: list[isa.Instruction | str]) -> Device:
    device = device_with(streams)
    assert device.run() == "finished", device.fault or (device.hang and device.hang.text())
    return device


def test_an_engine_issues_and_completes_in_order() -> None:
    words = [fill(0, 512), nop(), add(0, 0, 4096, 512), nop()]
    events = events_of(device_with({"DVE": words}))
    assert [event.pc for event in events] == [0, 1, 2, 3]
    assert [event.number for event in events] == [0, 1, 2, 3]
    times, issues = [e.time_ps for e in events], [e.issued_ps for e in events]
    assert times == sorted(times) and issues == sorted(issues)
    assert issues[1] < times[0], "the next word issues while the first is in flight"


@pytest.mark.parametrize("engine", ["DVE", "Activation"])
def test_a_word_without_data_begins_while_the_one_before_it_works(engine: str) -> None:
    """Captures: 7 to 14 ns behind a COPY of 586 ns; data that follow wait for the data path all the same."""
    semaphore = "EVENT_SEMAPHORE setter=0 S[9]++@complete"

    def issues(*words: isa.Instruction | str) -> list[int]:
        return [event.issued_ps for event in events_of(device_with({engine: words}))]

    copies = [isa.Copy(src=row(0, 512), dst=row(to, 512), src_dtype=10, dst_dtype=10) for to in (4096, 8192)]
    alone = issues(*copies)
    first, between, second = issues(copies[0], semaphore, copies[1])
    assert between - first == 8_000 and second == alone[1]
    # A long chain of them is what the next data wait for.
    chain = issues(copies[0], *[semaphore] * 20, copies[1])
    steps = {later - before for before, later in pairwise(chain[1:])}
    assert len(steps) == 1 and chain[-1] > alone[1]
    # Others wait: no capture shows them beside data.
    assert issues(copies[0], nop())[1] == alone[1]


def test_gpsimd_begins_nothing_beside_its_work() -> None:
    data = add(0, 0, 4096, 512)
    first, between = (event.issued_ps for event in events_of(device_with(
        {"Pool": [data, "EVENT_SEMAPHORE setter=0 S[9]++@complete"]}
    )))  # fmt: skip
    assert between - first > 300_000


def test_engines_run_beside_each_other() -> None:
    events = events_of(device_with({name: [nop(), nop()] for name in isa.ENGINES}))
    assert len({event.time_ps for event in events}) == 2


def test_a_wait_holds_an_engine_until_the_completion_it_waits_for() -> None:
    device = device_with({"DVE": [fill(0, 512, **signal(6))], "Activation": [nop("S[6]>=1")]})
    first, second = events_of(device)
    assert (first.engine, second.engine) == ("DVE", "Activation")
    assert second.issued_ps == first.time_ps + device.propagation_ps
    assert first.semaphores[0][:3] == (6, 0, 1)


def test_a_signal_just_before_the_wait_still_takes_its_time_to_arrive() -> None:
    device = device_with({"DVE": [nop(), nop("S[6]++@complete")], "SP": [nop(), nop("S[6]>=1")]})
    events = {(event.engine, event.pc): event for event in events_of(device)}
    assert events["SP", 1].issued_ps == events["DVE", 1].time_ps + device.propagation_ps


@pytest.mark.parametrize(
    ("wait", "rises", "finishes"),
    [
        ("S[9]>=2", 1, False),
        ("S[9]>=2", 2, True),
        ("S[9]>=2", 3, True),
        ("S[9]==2", 1, False),
        ("S[9]==2", 2, True),
        ("S[9]>2", 2, False),
        ("S[9]>2", 3, True),
    ],
)
def test_wait_modes(wait: str, rises: int, finishes: bool) -> None:
    device = device_with({"SP": [nop("S[9]++@complete")] * rises, "PE": [nop(wait)]})
    assert device.run() == ("finished" if finishes else "hang")
    assert device.cores[0].semaphores[9] == rises


@pytest.mark.parametrize(
    ("update", "value"),
    [
        ("S[9]++@complete", 6),
        ("S[9]--@complete", 4),
        ("S[9]+=7@complete", 12),
        ("S[9]=3@complete", 3),
    ],
)
def test_update_modes_of_the_second_slot(update: str, value: int) -> None:
    device = run(SP=["EVENT_SEMAPHORE setter=0 S[9]=5@complete", f"EVENT_SEMAPHORE setter=0 {update}"])
    assert device.cores[0].semaphores[9] == value


def test_header_updates() -> None:
    device = run(SP=[nop("S[9]++@complete"), nop("S[9]++@complete"), nop("S[9]--@complete"), nop("E[3]+@complete")])
    assert (device.cores[0].semaphores[9], device.cores[0].events[3]) == (1, 1)


def test_negative_numbers_are_signed_32_bit() -> None:
    below = "EVENT_SEMAPHORE setter=0 S[9]+=4294967295@complete"
    device = run(SP=[below, below], PE=["EVENT_SEMAPHORE S[9]==4294967294 setter=0"])
    assert device.cores[0].semaphores[9] == -2


def test_a_semaphore_that_leaves_32_bits_is_a_fault() -> None:
    top = "EVENT_SEMAPHORE setter=0 S[9]=2147483647@complete"
    device = device_with({"SP": [top, nop("S[9]++@complete")]})
    assert device.run() == "fault" and device.fault is not None
    assert (device.fault.kind, device.fault.pc, device.fault.got) == ("semaphore", 1, "2147483648")


def test_a_waiting_word_consumes_its_event() -> None:
    device = device_with(
        {"PE": [nop("E[4]==1-"), nop("E[4]==1-")], "SP": [nop("E[4]+@complete"), nop(), nop("E[5]+@complete")]}
    )
    assert device.run() == "hang"
    assert device.cores[0].engines["PE"].pc == 1
    assert device.cores[0].events[4] == 0 and device.cores[0].events[5] == 1


def test_the_consumption_of_an_event_belongs_to_the_word_that_waited() -> None:
    events = events_of(device_with({"PE": [nop("E[4]==1-")], "SP": [nop("E[4]+@complete")]}))
    changes = {event.engine: event.semaphores for event in events}
    assert changes["SP"][0][1:] == (0, 1, 0, "event")
    assert changes["PE"][0][1:] == (1, 0, 0, "event")


def test_setting_an_event_twice_is_worth_a_warning() -> None:
    device = run(SP=[nop("E[4]+@complete"), nop("E[4]+@complete")])
    (warning,) = device.warnings
    assert (warning.kind, warning.pc, warning.message) == ("double set", 1, "E[4] was set already")


def test_both_waits_of_an_event_semaphore_have_to_hold() -> None:
    both = "EVENT_SEMAPHORE S[8]>=1 setter=0 S[9]>=1"
    for semaphore in ("S[8]", "S[9]"):
        assert device_with({"PE": [both], "SP": [nop(f"{semaphore}++@complete")]}).run() == "hang"
    given = {"SP": [nop("S[9]++@complete")], "DVE": [fill(0, 512, **signal(8))]}
    assert device_with({"PE": [both], **given}).run() == "finished"


def test_an_event_semaphore_updates_twice() -> None:
    device = run(SP=["EVENT_SEMAPHORE S[8]++@complete setter=0 S[9]+=3@complete"])
    assert (device.cores[0].semaphores[8], device.cores[0].semaphores[9]) == (1, 3)


def test_a_second_event_is_consumed_only_when_the_first_wait_holds_too() -> None:
    device = device_with({"PE": ["EVENT_SEMAPHORE S[8]>=1 setter=0 E[4]==1-"], "SP": [nop("E[4]+@complete")]})
    assert device.run() == "hang" and device.cores[0].events[4] == 1


@pytest.mark.parametrize(
    "word",
    [
        isa.Nop(wait_mode=2, wait_index=9, wait_value=1),
        isa.Nop(wait_mode=6),
        isa.EventSemaphore(wait2_mode=3),
    ],
)
def test_unknown_wait_modes_are_faults(word: isa.Instruction) -> None:
    device = device_with({"SP": [word]})
    assert device.run() == "fault" and device.fault is not None
    mode = word.raw[4] or word.raw[32]
    assert device.fault.message == f"unsupported wait mode {mode}" and device.fault.pc == 0


def test_updates_without_a_known_meaning_are_faults() -> None:
    device = device_with({"SP": [isa.Nop(update_mode=0x15, update_index=9)]})
    assert device.run() == "fault" and device.fault is not None
    assert device.fault.message == "unsupported update mode 0x15 in a header, which has no value for it"
    device = device_with({"SP": [isa.Nop(update_mode=0x12)]})
    assert device.run() == "fault" and device.fault is not None
    assert device.fault.message == "unsupported update mode 0x12"


def test_a_drain_issues_only_when_nothing_is_in_flight() -> None:
    events = events_of(device_with({"DVE": [fill(0, 512), "DRAIN", nop()]}))
    assert events[1].issued_ps == events[0].time_ps


def test_a_range_clear_clears_its_range() -> None:
    words = [f"EVENT_SEMAPHORE setter=0 S[{i}]=7@complete" for i in (8, 9, 10, 11)]
    device = run(SP=[*words, isa.EventSemaphoreRangeClear(first=9, last=10)])
    assert device.cores[0].semaphores.values[8:12] == [7, 0, 0, 7]


def test_writes_to_semaphore_registers_act_on_semaphores() -> None:
    writes = [
        isa.Write(address0=MAP.semaphore(0, 9, action), data0=data, update_mode=0x13, update_index=8)
        for action, data in (("set", 10), ("increment", 5), ("decrement", 2))
    ]
    device = run(SP=[*writes, isa.Write(address0=MAP.event(0, 7), data0=1)], PE=[nop("S[9]>=13")])
    assert (device.cores[0].semaphores[9], device.cores[0].events[7], device.cores[0].semaphores[8]) == (13, 1, 3)


def test_a_loop_counts_down_a_register_in_memory() -> None:
    counter = MAP.sbuf(0, 3, 0x100)
    load = isa.TensorLoad(address=counter, count0=1, registers=(5, *(0,) * 31))
    back = isa.CompareBranch(compare=isa.BranchCompare.NE, register=5, constant=7, target=-2 * 64)
    count = isa.Write(address0=MAP.semaphore(0, 20), data0=1)
    device = device_with(
        {"SP": [count, load, back, nop()], "DVE": [nop("S[20]>=4"), isa.Write(address0=counter, data0=7)]}
    )
    device.cores[0].sbuf[3, 0x100:0x104] = 0
    assert device.run() == "finished"
    assert device.cores[0].engines["SP"].registers[5] == 7
    assert device.cores[0].semaphores[20] >= 4
    assert device.cores[0].engines["SP"].completed == 3 * device.cores[0].semaphores[20] + 1


@pytest.mark.parametrize(("target", "passed"), [(128, [0, 2, 3]), (192, [0, 3]), (256, [0])])
def test_branches_skip_words(target: int, passed: list[int]) -> None:
    jump = isa.CompareBranch(compare=isa.BranchCompare.ALWAYS, target=target)
    assert [pc for _, pc in order_of(device_with({"SP": [jump, nop(), nop(), nop()]}))] == passed


@pytest.mark.parametrize("target", [-64, 320, 100])
def test_a_branch_out_of_the_stream_is_a_fault(target: int) -> None:
    jump = isa.CompareBranch(compare=isa.BranchCompare.ALWAYS, target=target)
    device = device_with({"SP": [jump, nop(), nop(), nop()]})
    assert device.run() == "fault" and device.fault is not None and device.fault.kind == "branch"


def test_a_branch_into_an_extension_word_is_a_fault() -> None:
    wide = isa.AccessPattern(0, (1,) * 5, (4, 1, 1, 1, 1))
    copy = isa.VectorTranspose(src=wide, dst=wide, src_dtype=10, dst_dtype=10, channels=4, columns=4)
    jump = isa.CompareBranch(compare=isa.BranchCompare.ALWAYS, target=128)
    device = device_with({"DVE": [jump, copy, nop()]})
    assert device.run() == "fault" and device.fault is not None and device.fault.kind == "branch"
    assert order_of(device_with({"DVE": [jump.replace(target=192), copy, nop()]})) == [("DVE", 0), ("DVE", 2)]


def test_values_flow_between_engines() -> None:
    one, two = fill(0x4000, 16, 1.5, **signal(6)), add(0x4000, 0x4000, 0x5000, 16, **signal(6), **after(6, 1))
    scale = isa.TensorScalar(
        src=tile(0x5000, 16),
        dst=tile(0x6000, 16),
        src_dtype=10,
        dst_dtype=10,
        op0="MULTIPLY",
        immediate0=2.0,
        **after(6, 2),
    )
    device = run(DVE=[one, two], Activation=[scale])
    assert (device.cores[0].sbuf[:, 0x6000:0x6040].view(np.float32) == 6.0).all()
    assert device.cores[0].sbuf_written.sum() == 3 * 128 * 64


def test_engine_attributes_follow_the_stream() -> None:
    device = device_with({"PE": [nop("S[9]>=1"), nop()], "SP": [nop(), nop("S[9]++@complete")]})
    engine = device.cores[0].engines["PE"]
    device.step()
    assert (engine.state, engine.pc, engine.completed) == ("waiting", 0, 0)
    assert engine.waiting_on is not None and engine.waiting_on.text == "S[9]>=1"
    assert engine.current is not None and engine.current.text == "NOP S[9]>=1 cycle=0"
    device.run()
    assert (engine.state, engine.pc, engine.completed, engine.current) == ("done", 2, 2, None)
    assert device.cores[0].engines["DVE"].state == "done"
