"""Every planted fault is found with the right kind, word, line and other side; every clean twin is clean."""

from __future__ import annotations

import numpy as np
import pytest

from emulator.checks import Finding
from tests.checks.planted import BASE, FAULTS, Fault, line_of, planted
from tests.checks.support import assembled, checked, serious

INPUTS = {"x": np.ones((128, 64), np.float32)}


def findings_of(text: str) -> list[Finding]:
    return checked(assembled(text, "planted.s"), INPUTS)[0]


def fits(finding: Finding, fault: Fault) -> bool:
    """Tell whether a finding is the one that a fault has to give."""
    if f"{finding.tool}:{finding.kind}" not in fault.kinds:
        return False
    places = [(site.owner, site.pc) for site in (finding.site, *finding.others)]
    if finding.tool == "racecheck" and fault.other is not None:
        return set(places) == {fault.place, fault.other}
    return places[0] == fault.place and (fault.other is None or fault.other in places[1:])


def test_there_are_enough() -> None:
    assert len(FAULTS) >= 40
    assert {kind.split(":")[0] for fault in FAULTS.values() for kind in fault.kinds} == {
        "memcheck",
        "initcheck",
        "racecheck",
        "synccheck",
    }


def test_the_program_is_clean() -> None:
    assert findings_of(BASE) == []


@pytest.mark.parametrize("name", FAULTS)
def test_fault_is_found(name: str) -> None:
    fault = FAULTS[name]
    text = planted(fault.changes)
    found = findings_of(text)
    matching = [finding for finding in found if fits(finding, fault)]
    assert matching, "\n".join(finding.text() for finding in found) or "nothing found"
    for site in (matching[0].site, *matching[0].others):
        if site.pc < 0:
            continue
        assert site.source is not None and site.source.file == "planted.s"
        assert site.source.line == line_of(text, site.owner, site.pc)
        assert site.text
    assert matching[0].serious and matching[0].message


@pytest.mark.parametrize("name", [name for name, fault in FAULTS.items() if fault.twin])
def test_twin_is_clean(name: str) -> None:
    assert serious(findings_of(planted(FAULTS[name].twin))) == []


@pytest.mark.parametrize("seed", range(3))
def test_the_schedule_does_not_matter(seed: int) -> None:
    neff = assembled(BASE)
    assert serious(checked(neff, INPUTS, seed=seed)[0]) == []
    for name in ("the load of x is not awaited by DVE", "the sum is not awaited", "two engines write one tile"):
        fault = FAULTS[name]
        found = checked(assembled(planted(fault.changes)), INPUTS, ("race",), seed=seed)[0]
        assert any(fits(finding, fault) for finding in found), name
