"""Checks that are told of a run afterwards find what checks find that watch it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from emulator.checks import again
from emulator.device import Device
from formats.neff import Neff
from neurontools.nki.launch import build_neff
from tests.checks.support import assembled, checked, drop_wait, waits_of
from tests.checks.test_alike import fenced_columns, filled_first, read_again, refreshed
from tests.checks.test_loops import counts
from tests.faults.assembled import BASE

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = sorted((ROOT / "tests" / "golden" / "insns").glob("*.s")) + sorted((ROOT / "examples").glob("*.s"))
X = np.linspace(0.0, 1.0, 128 * 64, dtype=np.float32).reshape(128, 64)


def afterwards(neff: Neff, inputs: dict[str, Any], edit: Any = None) -> tuple[list[str], str]:
    """Return the findings of checks that may look afterwards, and when: before, within, pursued or behind."""
    device = Device(neff.target, len(neff.subgraphs))
    device.load(neff)
    device.set_inputs(inputs)
    if edit is not None:
        edit(device)
    found = again.Again("all")
    found.attach(device)
    watched = bool(device.observers)
    device.run()
    when = "before" if watched else "within" if device.observers else "behind"
    if found._pursuit is not None:
        when = "pursued"
    found.finish()
    return [repr(one) for one in found.findings], when


def test_the_same_is_found_in_every_program() -> None:
    times: dict[str, int] = {}
    kinds = set()
    for path in PROGRAMS:
        neff = assembled(path.read_text(), path.name)
        findings, when = afterwards(neff, {})
        watching, _ = checked(neff)
        assert findings == [repr(one) for one in watching], path.name
        times[when] = times.get(when, 0) + 1
        kinds |= {one.kind for one in watching}
    assert times["behind"] > 100 and times["pursued"] and times["before"]  # each way is taken
    assert len(kinds) > 5


@pytest.mark.parametrize("kernel", [filled_first, read_again, fenced_columns, refreshed])
@pytest.mark.parametrize("wrong", [False, True])
def test_the_same_is_found_of_two_cores_and_their_memory_is_put_back(kernel: Any, wrong: bool) -> None:
    x = np.random.default_rng(0).random((128, 16)).astype(np.float32)
    neff = build_neff(kernel, (x, wrong), {}, target="trn2", lnc=2)
    inputs = {neff.inputs[0].name: x}
    findings, when = afterwards(neff, inputs)
    watching, device = checked(neff, inputs)
    assert when == "behind"
    assert findings and findings == [repr(one) for one in watching]
    looked = Device(neff.target, len(neff.subgraphs))
    looked.load(neff)
    looked.set_inputs(inputs)
    found = again.Again("all")
    found.attach(looked)
    looked.run()
    found.finish()
    assert looked.state_hash() == device.state_hash()


@pytest.mark.parametrize(("turns", "step"), [(3, -1), (3, 0)])
def test_the_same_is_found_of_a_loop(turns: int, step: int) -> None:
    given = np.array([[turns]], np.int32)
    neff = build_neff(counts, (X[:, :16], given, step), {}, target="trn2")
    inputs = dict(zip((one.name for one in neff.inputs), (X[:, :16], given), strict=True))

    def edit(device: Device) -> None:
        device.max_steps = 12000

    findings, when = afterwards(neff, inputs, edit)
    watching, _ = checked(neff, inputs, edit=edit)
    assert when == "behind"
    assert findings == [repr(one) for one in watching]
    assert bool(findings) == (step == 0)


def test_a_run_of_many_words_is_watched_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(again, "_MOST_NOTES", 8)
    x = np.random.default_rng(0).random((128, 16)).astype(np.float32)
    neff = build_neff(filled_first, (x, True), {}, target="trn2", lnc=2)
    inputs = {neff.inputs[0].name: x}
    findings, when = afterwards(neff, inputs)
    watching, _ = checked(neff, inputs)
    assert when == "within"
    assert findings and findings == [repr(one) for one in watching]


def test_the_same_is_found_where_a_wait_is_missing() -> None:
    neff = assembled(BASE)
    device = Device(neff.target, 1)
    device.load(neff)
    places = list(waits_of(device))
    found = 0
    for place in places:
        findings, when = afterwards(neff, {"x": X}, drop_wait(place))
        watching, _ = checked(neff, {"x": X}, edit=drop_wait(place))
        assert findings == [repr(one) for one in watching]
        assert when != "before"
        found += bool(findings)
    assert found > 2
