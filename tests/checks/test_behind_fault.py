"""Waits that a fault kept from being met are those that the whole wait graph has, whenever they are explained."""

from __future__ import annotations

import random
import re

import pytest

from emulator.device import Device
from emulator.diagnosis.behind_fault import waits_behind_fault
from emulator.diagnosis.causes import Cause
from emulator.diagnosis.explain import explain
from tests.checks.support import assembled
from tests.checks.test_orderly import Program

BEYOND = ("@0x37ff8", "@0x4002", "@0x2000000")
EQUAL = """
.target trn2
.name equal
.output y float32 [128, 64]
.engine dve
    NOP S[6]++@complete cycle=0
    NOP S[6]++@complete cycle=0
    MEMSET S[7]>=1 dst=fp32@0x37ff0[1,1,1,1][64,1,1,1] count=64 channels=128
    NOP S[6]++@complete cycle=0
    NOP S[9]++@complete cycle=0
.engine act
    NOP S[7]++@complete cycle=2000
    NOP S[6]==1 cycle=0
.engine pool
    NOP S[6]==3 cycle=0
.engine sp
    NOP S[9]>=1 cycle=0
"""


def faulted(text: str) -> Device:
    """Return a device behind the run of a program."""
    neff = assembled(text)
    device = Device(neff.target, len(neff.subgraphs))
    device.load(neff)
    device.set_inputs({})
    device.run()
    return device


def assert_same(device: Device, at_once: bool) -> int:
    """Explain the waits behind a fault both ways, the one when the device is gone; return how many there are."""
    expected = [wait for wait in explain(device, "fault").waits if wait.cause is Cause.FAULT]
    loaded = {core.index: core.loaded for core in device.cores if core.loaded is not None}
    found = waits_behind_fault(device, loaded, at_once)
    device.release()
    assert [wait.explained() for wait in found] == expected
    assert [(one.core, one.engine, one.pc, one.key) for one in found] == [
        (one.core, one.engine, one.pc, (one.core, one.kind, one.number)) for one in expected
    ]
    return len(expected)


def test_random_programs_with_a_word_beyond_its_memory() -> None:
    met = faults = 0
    for seed in range(150):
        draw = random.Random(seed)
        lines = Program(seed, draw.choice((0.0, 0.3))).text.splitlines()
        places = [number for number, line in enumerate(lines) if "@0x" in line and not line.startswith(".")]
        number = draw.choice(places)
        lines[number] = re.sub(r"@0x[0-9a-f]+", draw.choice(BEYOND), lines[number], count=1)
        device = faulted("\n".join(lines) + "\n")
        if device.fault is None:
            continue
        faults += 1
        met += assert_same(device, at_once=bool(seed % 2))
    assert faults > 30 and met > 20


@pytest.mark.parametrize("at_once", [False, True])
def test_a_wait_that_no_signal_would_meet_is_not_behind_the_fault(at_once: bool) -> None:
    """What went past the value that the one waits for is lost whatever the other engine does."""
    device = faulted(EQUAL)
    assert device.fault is not None and device.fault.engine == "DVE"
    assert assert_same(device, at_once) == 2
    expected = {"Pool", "SP"}
    device = faulted(EQUAL)
    loaded = {core.index: core.loaded for core in device.cores if core.loaded is not None}
    assert {one.engine for one in waits_behind_fault(device, loaded, at_once)} == expected


def test_a_run_without_a_fault_has_none() -> None:
    device = faulted(EQUAL.replace("0x37ff0", "0x4000"))
    assert device.fault is None and waits_behind_fault(device, {}, at_once=False) == []
