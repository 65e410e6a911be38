"""No device outlives its run: whatever the end, once nobody holds it, its memories and tables are gone."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from pathlib import Path

import pytest

from emulator.device import Device
from emulator.dump import write_core
from emulator.dump.reading import DumpedMachine
from emulator.errors import EmulatorError
from emulator.journal import Journal
from formats.core import open_core
from formats.neff import Neff, open_neff
from neurontools.assembly.assemble_neff import to_neff
from neurontools.assembly.assembler import parse_program
from neurontools.debugger import Session, open_core_session

RUNS = 50
ENDINGS = {"nan": "finished", "hang": "hang", "oob": "fault"}


@pytest.fixture(scope="module")
def programs(root: Path) -> dict[str, Neff]:
    """Return a program for every ending."""
    found = {}
    for name in ENDINGS:
        text = (root / "fixtures" / "core" / f"{name}.s").read_text()
        found[name] = open_neff(to_neff(parse_program(text, f"{name}.s")))
    return found


def device_of(neff: Neff) -> Device:
    """Return a device at the beginning of a program."""
    device = Device(neff.target)
    device.load(neff)
    return device


def alive_after(make: Callable[[], object], runs: int = RUNS) -> int:
    """Return how many of what `make` returned in so many runs are still alive."""
    found = [weakref.ref(make()) for _ in range(runs)]
    gc.collect()
    return sum(each() is not None for each in found)


@pytest.mark.parametrize(("name", "outcome"), ENDINGS.items())
def test_no_device_outlives_its_run(programs: dict[str, Neff], name: str, outcome: str) -> None:
    def run() -> Device:
        device = device_of(programs[name])
        assert device.run() == outcome
        return device

    assert alive_after(run) == 0


@pytest.mark.parametrize("limit", ["max_steps", "limit_ps", "hang_timeout_ps", "max_seconds"])
def test_no_device_outlives_a_limit(programs: dict[str, Neff], limit: str) -> None:
    def run() -> Device:
        device = Device(programs["nan"].target, **{limit: 1e-9 if limit == "max_seconds" else 1})  # type: ignore[arg-type]
        device.load(programs["nan"])
        assert device.run() == "hang"
        return device

    assert alive_after(run) == 0


@pytest.mark.parametrize("name", ENDINGS)
def test_a_journal_lets_go(programs: dict[str, Neff], name: str) -> None:
    def run() -> Device:
        device = device_of(programs[name])
        journal = Journal(device)
        device.observers.append(journal)
        device.run()
        journal.back_to(2)
        return device

    assert alive_after(run, 10) == 0


@pytest.mark.parametrize("name", ENDINGS)
def test_a_dump_lets_go(programs: dict[str, Neff], name: str, tmp_path: Path) -> None:
    def write() -> Device:
        device = device_of(programs[name])
        device.run()
        write_core(device, tmp_path / "x.core", level="full")
        return device

    assert alive_after(write, 10) == 0
    assert alive_after(lambda: DumpedMachine(open_core(tmp_path / "x.core")), 10) == 0


@pytest.mark.parametrize("name", ENDINGS)
def test_a_session_lets_go(programs: dict[str, Neff], name: str, tmp_path: Path) -> None:
    def look() -> object:
        session = Session(programs[name])
        session.continue_()
        session.why("DVE")
        session.reverse_step()
        session.save_core(tmp_path / "x.core")
        return session.device

    assert alive_after(look, 10) == 0

    def look_at_dump() -> object:
        session = open_core_session(tmp_path / "x.core")
        session.info_tensors()
        session.why("DVE")
        return session.device

    assert alive_after(look_at_dump, 10) == 0


def test_a_program_that_cannot_be_loaded_leaves_no_device(programs: dict[str, Neff]) -> None:
    found: list[weakref.ref[Device]] = []

    def refuse() -> None:
        device = Device("trn1")
        found.append(weakref.ref(device))
        with pytest.raises(EmulatorError):
            device.load(programs["nan"])

    for _ in range(10):
        refuse()
    gc.collect()
    assert not [each for each in found if each() is not None]
