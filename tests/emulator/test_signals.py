"""The index of signals against what the words say one by one, and what it costs on a long program: nothing per word."""

from __future__ import annotations

from typing import Any

import pytest

from emulator.device import Device
from emulator.diagnosis.explain import signals_of
from emulator.diagnosis.index import index_of
from emulator.semaphores import signed
from formats import isa
from formats.isa import UpdateMode
from tests.checks.support import assembled
from tests.emulator.streams import device_with
from tests.faults.assembled import BASE

Key = tuple[int, str, int]


def said(device: Device) -> dict[Key, list[tuple[str, int, str, int | None]]]:
    """Return (engine of the stream, number, by whom, amount) for every signal, read off word by word."""
    found: dict[Key, list[tuple[str, int, str, int | None]]] = {}

    def note(key: Key, *what: Any) -> None:
        found.setdefault(key, []).append(what)

    amounts = {UpdateMode.SEM_INC: 1, UpdateMode.SEM_DEC: -1}
    for core in device.cores:
        for name, engine in core.engines.items():
            for number, loaded in enumerate(engine.words):
                word: Any = loaded.word
                for one, second in ((word.update, False), (getattr(word, "update2", None), True)):
                    if one is None or not one.mode:
                        continue
                    event = one.mode == UpdateMode.EVENT_SET
                    amount = amounts.get(one.mode)
                    if second and one.mode == UpdateMode.SEM_ADD_IMM:
                        amount = signed(one.value)
                    note((core.index, "event" if event else "semaphore", one.index), name, number, name, amount)
                if loaded.transfer is not None:
                    transfer = loaded.transfer()
                    key = (core.index, "semaphore", transfer.semaphore)
                    note(key, name, number, transfer.queue, transfer.increment)
                elif isinstance(word, isa.CoreBarrier):
                    note((1 - core.index, "semaphore", word.semaphore), name, number, name, 1)
    return found


def indexed(device: Device, key: Key) -> list[tuple[str, int, str, int | None]]:
    return [(stream.engine.name, number, source.by, source.amount) for stream in index_of(device)
            for source in stream.sources(key) for number in source.numbers]  # fmt: skip


def nop(text: str = "") -> str:
    return f"NOP {text} cycle=0"


def test_the_index_says_what_the_words_say() -> None:
    device = Device("trn2")
    device.load(assembled(BASE))
    wanted = said(device)
    assert len(wanted) >= 7
    for key, signals in wanted.items():
        assert sorted(indexed(device, key)) == sorted(signals), key
    assert indexed(device, (0, "semaphore", 99)) == [] == indexed(device, (0, "event", 5))


def test_second_slots_barriers_and_the_other_core() -> None:
    barrier = isa.CoreBarrier(semaphore=9, barrier_id=1)
    lower = isa.EventSemaphore(update_mode=UpdateMode.SEM_INC, update_index=7, update2_mode=UpdateMode.SEM_ADD_IMM,
                               update2_index=9, update2_value=0xFFFFFFFD)  # fmt: skip
    device = device_with(
        {"Pool": [lower, barrier, nop("S[9]--@complete")]},
        {"Pool": [barrier, "EVENT_SEMAPHORE setter=0 S[9]=4@complete", nop("E[9]+@complete")]},
    )
    wanted = said(device)
    assert {(0, "semaphore", 9), (1, "semaphore", 9), (0, "semaphore", 7), (1, "event", 9)} == set(wanted)
    for key, signals in wanted.items():
        assert sorted(indexed(device, key), key=repr) == sorted(signals, key=repr), key
    assert [s.amount for s in signals_of(device, (0, "semaphore", 9))] == [-3, -1, 1]


@pytest.mark.parametrize("action", [("0x2802701424", None), ("0x2802701824", 5)])
def test_writes_to_the_registers_of_a_semaphore(action: tuple[str, int | None]) -> None:
    address, amount = action
    device = device_with({"SP": [f"WRITE data=0x5 size=4 dst={address}", nop("S[10]>=9")]})
    (found,) = [signal for n in range(256) for signal in signals_of(device, (0, "semaphore", n))]
    assert (found.engine, found.pc, found.amount, found.state) == ("SP", 0, amount, "queued")


def test_states_follow_the_run() -> None:
    device = device_with({"PE": [nop("S[5]++@complete")] * 30 + [nop("S[6]>=1 S[5]++@complete")] * 20,
                          "DVE": [nop("S[5]>=50")]})  # fmt: skip
    key = (0, "semaphore", 5)
    assert {s.state for s in signals_of(device, key)} == {"queued"}
    assert device.run() == "hang"
    found = signals_of(device, key)
    assert [s.state for s in found] == ["done"] * 30 + ["blocked"] + ["queued"] * 19
    assert [s.pc for s in found] == list(range(50)) and found[31].behind == 30
    # Text is made only near where the engine stands.
    assert not found[0].text and found[29].text and found[30].text and found[31].text and not found[49].text
