"""Every planted fault is found with the right kind, word, line and other side; on its twin nothing at all is."""

from __future__ import annotations

import pytest

from emulator.checks import KINDS, TOOLS, Finding
from emulator.faults import FAULT_STATUS, OF_HARDWARE
from tests.checks.support import assembled
from tests.faults.again import PLANTED as AGAIN
from tests.faults.assembled import BASE, INPUTS
from tests.faults.assembled import PLANTED as ASSEMBLED
from tests.faults.engines import PLANTED as ENGINES
from tests.faults.kernels import PLANTED as KERNELS
from tests.faults.model import Planted, Program, fits
from tests.faults.rounds import PLANTED as ROUNDS
from tests.faults.templates import PLANTED as TEMPLATES
from tests.faults.transfers import PLANTED as TRANSFERS

PLANTED = (*ASSEMBLED, *TRANSFERS, *ENGINES, *KERNELS, *TEMPLATES, *ROUNDS, *AGAIN)
# In tests/checks: test_kernels_refused.py, test_ranks.py, test_rings.py, test_unused.py, test_nancheck.py,
# test_overflow.py, test_lint.py, test_serial.py, test_kinds_on_ranks.py.
NEVER_BUILT = {"synccheck:pipe", "synccheck:ranks", "synccheck:ring-full", "racecheck:unused-read", "nancheck:nan",
                "nancheck:inf", "nancheck:overflow", "nancheck:rounded", "lint:dead-store", "lint:reload",
                "lint:redundant-wait", "lint:serial-queue"}  # fmt: skip
IDS = [one.name for one in PLANTED]


def told(found: list[Finding]) -> str:
    return "\n".join(finding.text() for finding in found) or "nothing found"


def test_there_are_enough_and_every_kind_has_one() -> None:
    assert len(PLANTED) >= 48 and len(set(IDS)) == len(PLANTED)
    assert {kind for one in PLANTED for kind in one.kinds} == set(KINDS) - NEVER_BUILT
    assert {kind.split(":")[0] for kind in KINDS} == set(TOOLS)
    assert all(one.origin for one in PLANTED)


def test_kinds_of_memcheck_are_those_of_faults() -> None:
    """`emulator.checks.kinds` says why three are none of memcheck's; what engines hold faults nowhere."""
    kinds = {kind.split(":")[1] for kind in KINDS if kind.startswith("memcheck:")}
    assert kinds - {"rule", "table", "psum-group", "psum-unread", "tile", "tile-overlap", "constant"} == set(
        FAULT_STATUS
    ) - OF_HARDWARE - {
        "numerical",
        "timeout",
        "unsupported",
    }


def test_a_kind_that_is_not_listed_is_refused() -> None:
    finding = Program(assembled(BASE), INPUTS).findings()
    assert finding == []
    with pytest.raises(ValueError, match="racecheck has no note 'write-read'"):
        Finding("racecheck", "write-read", "note", "", None)  # type: ignore[arg-type]


@pytest.mark.parametrize("one", PLANTED, ids=IDS)
def test_fault_is_found(one: Planted) -> None:
    program, wanted = one.fault()
    found = program.findings()
    matching = [finding for finding in found if fits(finding, wanted)]
    assert matching, f"wanted {wanted}\n{told(found)}"
    finding = matching[0]
    assert finding.message and finding.severity == KINDS[f"{finding.tool}:{finding.kind}"].severity
    for site in (finding.site, *finding.others):
        assert site.text or site.pc < 0


@pytest.mark.parametrize("one", PLANTED, ids=IDS)
def test_twin_is_clean(one: Planted) -> None:
    found = one.twin().findings()
    assert found == [], told(found)


@pytest.mark.parametrize("seed", range(3))
def test_the_schedule_does_not_matter(seed: int) -> None:
    assert Program(assembled(BASE), INPUTS).findings(seed) == []
    for one in PLANTED:
        if one.name in ("the load of x is not awaited by DVE", "the sum is not awaited", "two engines write one tile"):
            program, wanted = one.fault()
            assert any(fits(finding, wanted) for finding in program.findings(seed)), one.name
