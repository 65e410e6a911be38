"""Checks that run along in a session: what `neurontools check` finds, at the place where it is found, in time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from emulator.errors import InputError
from emulator.runtime import run
from neurontools.assembly.assemble_neff import to_neff
from neurontools.assembly.assembler import parse_program
from neurontools.debugger import Session, UsageError

PROGRAMS = ("race.s", "deadlock.s", "out_of_bounds.s")


def example(root: Path, name: str, **options: Any) -> Session:
    """Return a session on an example in assembler text."""
    return Session(to_neff(parse_program((root / "examples" / name).read_text(), name)), **options)


def seen(session: Session) -> list[tuple[str, int]]:
    """Return what the checks say now, by id and count."""
    return [(finding.id, finding.count) for finding in session.findings()]


@pytest.mark.parametrize("name", PROGRAMS)
def test_findings_come_and_go_with_the_position(root: Path, name: str) -> None:
    session = example(root, name)
    session.enable_checks()
    places = {session.events: seen(session)}
    while session.step().completions:
        places[session.events] = seen(session)
    whole = run(session.neff, session.inputs, checks=("all",))
    assert sorted(places[session.events]) == sorted((finding.id, finding.count) for finding in whole.findings)
    assert places[session.events], "the example has something to find"
    for events in sorted(places, reverse=True):
        session.goto(f"#{events - 1}" if events else "start")
        assert seen(session) == places[events]
    session.continue_()
    assert seen(session) == places[session.events]


def test_the_device_itself_is_not_watched(root: Path) -> None:
    plain, checked = example(root, "race.s"), example(root, "race.s")
    checked.enable_checks("all")
    checked.findings()
    plain.continue_()
    checked.continue_()
    assert checked.device.state_hash() == plain.device.state_hash() and checked.time_ps == plain.time_ps


def test_checks_by_name(root: Path) -> None:
    session = example(root, "race.s")
    assert session.checks == () and session.findings() == ()
    assert session.enable_checks("race").tools == ("racecheck",)
    assert session.enable_checks("mem").tools == ("memcheck", "racecheck")
    session.goto("end")
    assert {finding.tool for finding in session.findings()} == {"racecheck"}
    assert session.disable_checks("racecheck") == (("memcheck",), 0)
    assert session.disable_checks().tools == ()
    with pytest.raises(InputError, match="no check 'taste'"):
        session.enable_checks("taste")


def test_checks_begun_late_know_what_has_happened(root: Path) -> None:
    session = example(root, "race.s", seed=4)
    session.continue_()
    assert session.enable_checks("race").findings == 1


def test_stopping_at_a_finding(root: Path) -> None:
    session = example(root, "race.s")
    with pytest.raises(UsageError, match="checks on"):
        session.catch("finding")
    session.enable_checks("race")
    with pytest.raises(UsageError, match="no check memcheck is running"):
        session.catch("finding memcheck")
    session.catch("finding race")
    stop = session.continue_()
    (finding,) = session.findings()
    assert (stop.reason, stop.breakpoints) == ("catchpoint", (1,))
    assert (stop.steps[-1].engine, stop.steps[-1].pc) == (finding.site.engine, finding.site.pc)
    session.reverse_step()
    assert session.findings() == () and session.continue_().breakpoints == (1,)


def test_registers_events_and_transfers(root: Path) -> None:
    session = example(root, "race.s")
    assert session.info_registers("dve") == () and len(session.info_registers("dve", everything=True)) == 256
    session.device.cores[0].engines["DVE"].registers[3] = 0x40490FDB
    (row,) = session.info_registers("dve")
    assert (row.engine, row.number, row.value) == ("DVE", 3, 0x40490FDB) and abs(row.as_float - 3.1415927) < 1e-6
    session.device.cores[0].events.values[7] = 1
    assert [(row.kind, row.number, row.value) for row in session.info_events()] == [("event", 7, 1)]
    assert len(session.info_events(everything=True)) == 256
    session = example(root, "race.s")
    assert session.info_dma() == ()
    while not session.info_dma():
        session.step()
    (first, *_) = session.info_dma()
    assert (first.queue, first.nbytes, first.increment) == ("qB", 32768, 16) and first.due_ps > first.triggered_ps
    assert first.state in ("queued", "moving") and first.source is not None
    ran = []
    while found := [row.due_ps for row in session.info_dma() if row.number == first.number]:
        ran += found  # another queue that gets a transfer takes turns with this one: it is due later then
        session.until(f"{found[0]}ps")
    assert ran == sorted(set(ran)) and 1 <= len(ran) <= 2
