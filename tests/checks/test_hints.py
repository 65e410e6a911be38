"""Suggested waits are tried: one that is printed alone orders the two and changes nothing; else both directions."""

from __future__ import annotations

import re

import pytest

from emulator.runtime import Result, execute
from emulator.settings import Settings
from neurontools.check.trying import try_hints
from tests.checks.support import assembled
from tests.faults.assembled import FAULTS, INPUTS, Change, planted, pool

RACES = sorted(name for name, fault in FAULTS.items() if fault.kinds[0].startswith("racecheck"))
_WAIT = re.compile(r"let (\w+) wait for (S\[\d+\]>=\d+)(?: at or before pc (\d+))?")


def told(text: str) -> Result:
    neff = assembled(text)
    result = execute(neff, INPUTS, Settings(), checks="race")
    try_hints(neff, INPUTS, Settings(), result, result.findings)
    return result


def with_wait(text: str, engine: str, pc: int | None, condition: str) -> str:
    """Write a wait into a program as a person would: a NOP in front of a word, or at the end of the engine's stream."""
    lines = text.splitlines()
    start = lines.index(f".engine {'act' if engine == 'Activation' else engine.lower()}") + 1
    end = next((n for n in range(start, len(lines)) if lines[n].startswith(".engine")), len(lines))
    at = end if pc is None else start + pc
    return "\n".join([*lines[:at], f"    NOP {condition} cycle=0", *lines[at:]]) + "\n"


@pytest.mark.parametrize("name", RACES)
def test_a_hint_that_stands_alone_is_right(name: str) -> None:
    """Carried out by hand in the text, it takes its finding away and leaves the outputs as they were."""
    text = planted(FAULTS[name].changes)
    result = told(text)
    assert result.findings
    for finding in result.findings:
        waits = _WAIT.findall(finding.hint)
        if "for the other one" in finding.hint or not waits:
            assert "seen here" in finding.hint or "semaphore" in finding.hint
            continue
        ((engine, condition, pc),) = waits
        where = None if finding.kind == "output-not-awaited" else int(pc) if pc else finding.site.pc
        mended = told(with_wait(text, engine, where, condition))
        assert mended.ok
        assert {one.message for one in mended.findings}.isdisjoint({finding.message})
        assert all(mended.outputs[key].tobytes() == array.tobytes() for key, array in result.outputs.items())


def test_a_wait_that_would_hang_is_not_suggested() -> None:
    """Pool would have to wait for what DVE does only after Pool has raised a semaphore: the other direction is left."""
    copy = "COPY S[8]>=16 src=fp32@0x6000[1,1,1,1][64,1,1,1] dst=fp32@0x5800[1,1,1,1][64,1,1,1] channels=64"
    changes: tuple[Change, ...] = (
        pool(copy, "NOP S[100]++@complete cycle=0"), ("COPY S[5]>=1", "NOP S[100]>=1 cycle=0\n    COPY S[5]>=1"),
    )  # fmt: skip
    result = told(planted(changes))
    hints = [one.hint for one in result.findings if {one.site.engine, one.others[0].engine} == {"Pool", "DVE"}]
    assert hints == [] or all("let Pool wait for S[6]>=2" not in hint for hint in hints)


def test_events_are_not_suggested() -> None:
    """An event is gone once somebody has waited for it."""
    for name in ("the sum is not awaited", "two engines write one tile"):
        assert all("E[" not in finding.hint for finding in told(planted(FAULTS[name].changes)).findings)
