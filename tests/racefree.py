"""Every kernel that tests of the front end and of the builder run is checked for races on the way.

`NEURONTOOLS_TEST_RACES` names the folders of tests it is on for ("nki,builder,compiler" without it, "" for none,
"all").
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

__all__ = ["pytest_terminal_summary", "race_free"]

# Builds a fault on purpose: what it runs is not the builder's own order.
_EXEMPT = ("test_wrong_kernels",)
_counts = {"kernels": 0, "instructions": 0, "findings": 0}


def _wanted(path: Any) -> bool:
    folders = os.environ.get("NEURONTOOLS_TEST_RACES", "nki,builder,compiler").split(",")
    parts = path.parts[len(path.parts) - path.parts[::-1].index("tests") :]  # the tree may lie in a folder of that name
    return path.stem not in _EXEMPT and ("all" in folders or any(folder in parts for folder in folders))


@pytest.fixture(autouse=True)
def race_free(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Run racecheck along with every execution of a file in this test; fail where two accesses are unordered."""
    if not _wanted(request.node.path):
        yield
        return
    from emulator import runtime
    from emulator.checks import make_checks
    from emulator.runtime import execution

    plain, found = runtime.execute, []

    def execute(neff: Any, inputs: Any, settings: Any, **options: Any) -> Any:
        own = make_checks(("race",))
        others = tuple(options.pop("observers", ()))
        result = plain(neff, inputs, settings, observers=(*others, *own), **options)
        races = own[-1].findings
        if result.ok:
            found.extend(races)
            _counts["kernels"] += 1
            _counts["instructions"] += result.stats.instructions
        if not others:
            own[0].device.release()
        mine = {id(finding) for finding in races}
        return replace(result, findings=tuple(each for each in result.findings if id(each) not in mine))

    for module in (runtime, execution):
        monkeypatch.setattr(module, "execute", execute)
    yield
    _counts["findings"] += len(found)
    assert not found, "\n".join(finding.text() for finding in found)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Say how many kernels were checked."""
    if _counts["kernels"]:
        terminalreporter.write_line(
            f"racecheck on the way: {_counts['kernels']} kernels, {_counts['instructions']} instructions, "
            f"{_counts['findings']} findings"
        )
