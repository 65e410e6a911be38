"""What each tool says beyond the planted faults: names, transfers, barriers, left-overs, findings as values."""

from __future__ import annotations

import numpy as np
import pytest

from emulator.checks import TOOLS, Finding, make_checks, tools_of, worst
from emulator.device import Device
from emulator.errors import InputError
from emulator.runtime import run
from formats import isa
from tests.checks.support import assembled, checked, serious
from tests.emulator.dma_programs import direct, gen3, load_and_store, wait
from tests.emulator.streams import device_with
from tests.faults.assembled import BASE, planted

X = np.ones((128, 64), np.float32)
PARTITION = 0x40000


def watched(*cores: dict[str, list[isa.Instruction | str]], tools: tuple[str, ...] = ("sync",)) -> list[Finding]:
    """Run streams without a file under checks."""
    device = device_with(*cores)
    observers = make_checks(tools)
    device.observers.extend(observers)
    for observer in observers:
        observer.attach(device)
    device.run()
    for observer in observers:
        if hasattr(observer, "finish"):
            observer.finish()
    return [finding for observer in observers for finding in getattr(observer, "findings", ())]


def nop(text: str = "") -> str:
    return f"NOP {text} cycle=0"


def test_names_of_tools() -> None:
    assert tools_of(["all"]) == TOOLS[:4] == tools_of(["sync", "race", "init", "mem"])
    assert tools_of(["all", "nan"]) == TOOLS[:5] and tools_of(["all", "nan", "lint"]) == TOOLS
    assert tools_of(["races", "racecheck"]) == ("racecheck",)
    with pytest.raises(InputError, match="no check 'helgrind'; there are memcheck, initcheck, racecheck, synccheck"):
        tools_of(["helgrind"])


def test_results_carry_findings() -> None:
    neff = assembled(planted((("COPY S[6]>=1", "COPY"),)))
    result = run(neff, {"x": X}, checks=("race",))
    assert result.ok and {finding.tool for finding in result.findings} == {"racecheck"}
    assert run(neff, {"x": X}).findings == ()
    again = run(neff, {"x": X}, checks=("race",), seed=5).findings
    assert {f.others[0].pc for f in again} | {f.site.pc for f in again} >= {0, 1}
    assert worst(list(result.findings)) == "error" and worst([]) == ""


def test_a_write_raises_what_transfers_raise() -> None:
    """A wait that is met by transfers and a WRITE together is none for a part of a transfer."""
    raised = "    NOP E[3]==1- cycle=0\n"
    write = "    WRITE data=0x4 size=4 dst=0x2802701820\n"  # S[8] of core 0, its increment register
    changes = ((raised, write + raised), ("MATMUL S[8]>=16", "MATMUL S[8]>=20"),
               ("EVENT_SEMAPHORE S[8]>=16", "EVENT_SEMAPHORE S[8]>=20"))  # fmt: skip
    found, device = checked(assembled(planted(changes)), {"x": X}, ("sync",))
    assert device.outcome == "finished" and device.cores[0].semaphores[8] == 20
    assert [finding.kind for finding in found] == []
    found, _ = checked(assembled(planted(changes[1:])), {"x": X}, ("sync",))
    assert {finding.kind for finding in found} == {"count-mismatch", "never-met", "blocked"}


def test_a_transfer_outside_its_variable() -> None:
    """Both transfers are found, though the first one ends the run."""
    words = [
        direct(("table", 0, 4), ("variable", 0, 0x4000), 256, 128, 256, PARTITION),
        direct(("variable", 0, 0x4000), ("table", 1, 256), 256, 128, PARTITION, 256, semaphore=9, **wait(8)),
        direct(("variable", 0, 120 * PARTITION), ("table", 1, 0), 256, 9, PARTITION, 256, semaphore=9, **wait(8)),
    ]
    tensors = {"inputs": {"x": ("float32", (128, 64))}, "outputs": {"y": ("float32", (128, 64))}}
    found, device = checked(gen3({"SP": words}, **tensors), {"x": X}, ("mem",))
    assert device.outcome == "fault"
    assert [(f.kind, f.site.pc, f.site.operand, f.tensor) for f in found] == [
        ("oob", 2, "src", "x"),
        ("oob", 3, "dst", "y"),
        ("oob", 4, "src", ""),
    ]
    assert "variable 'x' has 32768 bytes" in found[0].message and found[0].details["status"] == "NRT_EXEC_OOB"
    assert checked(load_and_store(), {"x": X})[0] == []


def test_a_barrier_that_one_core_skips() -> None:
    barrier = isa.CoreBarrier(semaphore=9, barrier_id=1)
    assert watched({"Pool": [barrier]}, {"Pool": [nop(), barrier]}) == []
    (finding,) = watched({"Pool": [barrier]}, {"Pool": [nop()]})
    assert (finding.kind, finding.site.core, finding.site.engine) == ("barrier", 0, "Pool")
    (first, *_) = watched({"Pool": [barrier]}, {"Pool": [nop("S[4]>=1"), barrier]})
    assert first.kind == "barrier" and first.others[0].core == 1


def test_barriers_order_cores() -> None:
    """Signals that cross a barrier are known on the other side."""
    barrier = isa.CoreBarrier(semaphore=9, barrier_id=1)
    device = device_with({"Pool": [barrier, nop()]}, {"Pool": [nop(), nop(), barrier]})
    (clocks, *_) = make_checks(("sync",))
    units = []
    clocks.listeners.append(type("Listener", (), {"on_unit": lambda self, unit, event: units.append(unit)})())
    device.observers.append(clocks)
    clocks.attach(device)
    device.run()
    last = next(unit for unit in units if unit.actor == clocks.index[0, "Pool"] and unit.number == 2)
    peer = clocks.index[1, "Pool"]
    assert last.knows(peer, 2) and not last.knows(peer, 4)


def test_left_over_signals_are_a_note() -> None:
    found = watched({"PE": [nop("S[5]++@complete")] * 3, "DVE": [nop("S[5]>=2")]})
    assert [(f.kind, f.severity) for f in found] == [("leftover", "note")] and serious(found) == []
    assert watched({"PE": [nop("S[5]++@complete")] * 3, "DVE": [nop("S[5]>=3")]}) == []


def test_events_order_and_are_consumed() -> None:
    tile = "src=fp32@0x4000[1,1,1,1][8,1,1,1] dst=fp32@{}[1,1,1,1][8,1,1,1] channels=128"
    writer = f"COPY E[3]+@complete {tile.format('0x5000')}"
    reader = "COPY {}src=fp32@0x5000[1,1,1,1][8,1,1,1] dst=fp32@0x6000[1,1,1,1][8,1,1,1] channels=128"
    assert watched({"DVE": [writer], "Activation": [reader.format("E[3]==1- ")]}, tools=("race", "sync")) == []
    found = watched({"DVE": [writer], "Activation": [reader.format("")], "SP": [nop("E[3]==1-")]}, tools=("race",))
    assert [finding.hint for finding in found] in (
        ["let Activation wait for E[3]==1- at or before pc 0"],
        ["nothing that nc0 Activation does from there on signals; raise a semaphore there and wait for it"],
    )


def test_the_same_pair_is_one_finding() -> None:
    many = planted((("EVENT_SEMAPHORE S[8]>=16 setter=0 S[40]>=16", "EVENT_SEMAPHORE S[40]>=16 setter=0"),))
    found, _ = checked(assembled(many), {"x": X}, ("race",))
    assert len({finding.id for finding in found}) == len(found)
    text = found[0].text()
    assert "other" in text and "hint" in text and "clock" in text


def test_checks_cost_nothing_when_absent() -> None:
    device = Device("trn2")
    device.load(assembled(BASE))
    device.set_inputs({"x": X})
    device.run()
    assert not device.watched and not device.hooks.issue and not device.hooks.effect
