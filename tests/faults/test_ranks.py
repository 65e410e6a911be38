"""Every kind of finding on one rank of two: found there with its words and lines, and nothing on the other."""

from __future__ import annotations

import pytest

from emulator.checks import Finding, make_checks
from emulator.machine.machine import Machine
from emulator.machine.ranks.machine import RankedMachine
from emulator.runtime.ranks import usual_instance
from tests.faults.model import Planted, Program, fits
from tests.faults.test_faults import NEVER_BUILT, PLANTED, told

FIRST = {kind: one for one in reversed(PLANTED) for kind in one.kinds}


def found_on(programs: list[Program]) -> list[list[Finding]]:
    """Run a program on a rank each under all checks; return what was found at each."""
    first = programs[0].neff
    cores = len(first.subgraphs)
    machine = RankedMachine(Machine(usual_instance(first), lnc=cores), len(programs), cores=cores)
    machine.load([program.neff for program in programs])
    checks = [make_checks(("all",)) for _ in programs]
    for device, program, mine in zip(machine.devices, programs, checks, strict=True):
        device.set_inputs(dict(program.inputs))
        if program.edit is not None:
            program.edit(device)
        device.observers.extend(mine)
        for one in mine:
            one.attach(device)
    machine.run()
    for one in (one for mine in checks for one in mine if hasattr(one, "finish")):
        one.finish()
    return [[finding for one in mine for finding in getattr(one, "findings", ())] for mine in checks]


def test_every_kind_is_tried() -> None:
    from emulator.checks import KINDS

    assert set(FIRST) == set(KINDS) - NEVER_BUILT


@pytest.mark.parametrize("one", dict.fromkeys(FIRST.values()), ids=lambda one: one.name)
def test_a_fault_is_found_on_its_rank_alone(one: Planted) -> None:
    program, wanted = one.fault()
    clean, faulty = found_on([one.twin(), program])
    assert clean == [], told(clean)
    assert any(fits(finding, wanted) for finding in faulty), f"wanted {wanted}\n{told(faulty)}"


def test_the_twins_of_all_are_silent_beside_each_other() -> None:
    one = FIRST["racecheck:write-read"]
    assert found_on([one.twin()] * 3) == [[], [], []]
