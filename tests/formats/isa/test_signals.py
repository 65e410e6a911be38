"""What words wait for and signal, against the fields they declare."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from formats import isa
from formats.isa import CLASSES, Awaited, Signal, UpdateMode, WaitMode
from formats.isa.instruction import header_sync
from formats.isa.signals import BARRIER, DMA, HEADER, SECOND_SLOT, WRITE

HALF = {"wait_mode": WaitMode.SEM_GE, "wait_index": 200, "wait_value": 0x7FFFFFFF, "update_mode": UpdateMode.SEM_DEC,
        "update_index": 255}  # fmt: skip


@pytest.mark.parametrize("cls", [cls for cls in CLASSES if not cls.OPERANDS or cls.CODE < 0], ids=lambda cls: cls.NAME)
def test_every_class_has_its_header(cls: type[isa.Instruction]) -> None:
    word = cls.from_raw(cls.defaults()).replace(**HALF)
    assert word.waits[0] == Awaited("semaphore", 200, WaitMode.SEM_GE, 0x7FFFFFFF, HEADER)
    assert word.signals[0] == Signal("semaphore", 255, UpdateMode.SEM_DEC, -1, None, HEADER)
    assert header_sync(word.raw) == (WaitMode.SEM_GE, 200, UpdateMode.SEM_DEC, 255, 0x7FFFFFFF)
    left = word.without_waits()
    assert [each.by for each in left.waits if each.by != BARRIER] == [] and left.signals == word.signals


def test_both_slots() -> None:
    word = isa.EventSemaphore(wait_mode="EVENT_SET", wait_index=3, wait2_mode="SEM_EQ", wait2_index=4,
                              wait2_value=0xFFFFFFFF, update_mode="EVENT_SET", update_index=5,
                              update2_mode="SEM_WRITE_IMM", update2_index=6, update2_value=7)  # fmt: skip
    assert word.waits == (Awaited("event", 3, WaitMode.EVENT_SET, 0, HEADER),
                          Awaited("semaphore", 4, WaitMode.SEM_EQ, -1, SECOND_SLOT))  # fmt: skip
    assert [each.text for each in word.waits] == ["E[3]==1-", "S[4]==-1"]
    assert word.signals == (Signal("event", 5, UpdateMode.EVENT_SET, None, 1, HEADER),
                            Signal("semaphore", 6, UpdateMode.SEM_WRITE_IMM, None, 7, SECOND_SLOT))  # fmt: skip
    added = word.replace(update2_mode="SEM_ADD_IMM", update2_value=0xFFFFFFFE).signals[1]
    assert (added.amount, added.written, added.value) == (-2, None, -2)


def test_a_header_has_no_value_to_add_or_write() -> None:
    for mode in (UpdateMode.SEM_ADD_IMM, UpdateMode.SEM_WRITE_IMM):
        (signal,) = isa.Nop(update_mode=mode, update_index=1).signals
        assert (signal.mode, signal.amount, signal.written) == (mode, None, None)


def test_barriers_transfers_and_writes() -> None:
    barrier = isa.CoreBarrier(semaphore=9)
    assert barrier.waits == (Awaited("semaphore", 9, WaitMode.SEM_GE, 1, BARRIER),)
    assert barrier.signals == (Signal("semaphore", 9, 0, 1, None, BARRIER, True),)
    sent = isa.SendReceive(semaphore=1, peer_semaphore=2, semaphore_increment=8).signals
    assert sent == (Signal("semaphore", 1, 0, 8, None, DMA), Signal("semaphore", 2, 0, 8, None, DMA, True))
    assert isa.DmaIndirect(semaphore=3).signals == (Signal("semaphore", 3, 0, 16, None, DMA),)
    stores = isa.Write(size0=4, address0=0x10, data0=1, address1=0x20, data1=2).signals
    assert stores == (Signal("address", 0x10, 0, None, 1, WRITE),)


def test_what_decides_the_signals_is_in_the_signal_bytes() -> None:
    """Words with the same signal bytes signal the same: the index of a program groups them by it."""
    word = isa.EventSemaphore(update2_mode="SEM_ADD_IMM", update2_index=6, update2_value=7)
    of = isa.EventSemaphore.SYNC_READER.signal_bytes
    assert of(word.raw) == of(word.replace(wait2_mode=5, wait2_value=3, setter=1).raw)
    for name in ("update_mode", "update_index", "update2_mode", "update2_index", "update2_value"):
        assert of(word.raw) != of(word.replace(**{name: UpdateMode.SEM_INC}).raw), name


def test_nobody_else_reads_waits_and_signals_off_the_bytes(root: Path) -> None:
    offsets = re.compile(r"raw\[(?:[4-7]|3[2-5])\]|raw\[(?:8:12|36:40|40:44)\]")
    for package in ("emulator", "neurontools"):
        for path in (root / package).rglob("*.py"):
            assert not offsets.search(path.read_text(encoding="utf-8")), path
