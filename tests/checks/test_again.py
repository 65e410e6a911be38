"""Programs that are checked again: later runs find what the first one found, whatever they do not look at any more."""

from __future__ import annotations

import gc
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from weakref import ref

import numpy as np
import pytest

import neurontools.nki.isa as nisa
import neurontools.nki.language as nl
from emulator.checks import Finding, again, kept
from emulator.device import Device
from emulator.runtime import run
from formats.neff import Neff, open_neff
from neurontools.nki.launch import build_neff
from tests.checks.support import assembled, checked, drop_wait, waits_of, worked_out
from tests.checks.test_alike import read_again
from tests.faults.assembled import BASE
from tests.faults.kernels import ROWS

RACE = (Path(__file__).resolve().parents[2] / "examples" / "race.s").read_text()
X = np.linspace(0.0, 1.0, 128 * 64, dtype=np.float32).reshape(128, 64)


def halves(x: Any) -> Any:
    """Each core doubles half of the rows."""
    out = nl.ndarray((128, 16), dtype=nl.float32, buffer=nl.shared_hbm)
    part = nl.ndarray((64, 16), dtype=nl.float32, buffer=nl.sbuf)
    first = 64 * nl.program_id(0)
    nisa.dma_copy(dst=part, src=x[first : first + 64])
    nisa.tensor_scalar(dst=part, data=part, op0=nl.multiply, operand0=2.0)
    nisa.dma_copy(dst=out[first : first + 64], src=part)
    return out


def findings(neff: Neff, inputs: dict[str, Any], **options: Any) -> list[Finding]:
    return list(run(neff, inputs, checks="all", **options).findings)


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return what grows with each run that is looked at."""
    looked: list[str] = []
    look = again.order_of
    monkeypatch.setattr(again, "order_of", lambda *run: looked.append("checks") or look(*run))
    return looked


@pytest.fixture
def devices() -> Iterator[None]:
    """Have each run work everything out, on a device: without one, it is not compared with anything."""
    with worked_out():
        yield


@pytest.mark.usefixtures("devices")
@pytest.mark.parametrize(("text", "inputs"), [(BASE, {"x": X}), (RACE, {})], ids=["clean", "race"])
def test_a_third_run_is_compared_with_the_second(text: str, inputs: dict[str, Any], begun: list[str]) -> None:
    neff = assembled(text)
    first, second = findings(neff, inputs), findings(neff, inputs)
    assert len(begun) == 2
    outputs = run(neff, inputs).outputs["y"]
    third = run(neff, inputs, checks="all")
    assert len(begun) == 2  # and none for the third
    assert first == second == list(third.findings)
    np.testing.assert_array_equal(third.outputs["y"], outputs)
    assert bool(first) is (text is RACE)


def test_what_a_run_gives_is_nobody_elses() -> None:
    neff = assembled(RACE)
    for _ in range(2):
        findings(neff, {})
    given = findings(neff, {})
    given[0].details["seen"] = given[0].reproduce = "changed"
    assert findings(neff, {}) != given
    assert findings(neff, {}) == findings(assembled(RACE), {})


def test_nothing_keeps_a_file_that_is_closed() -> None:
    neff = assembled(BASE)
    for _ in range(4):
        findings(neff, {"x": X})
    held = ref(neff)
    del neff
    gc.collect()
    assert held() is None


@pytest.mark.usefixtures("devices")
def test_other_options_are_another_way(begun: list[str]) -> None:
    neff = assembled(RACE)
    for _ in range(3):
        findings(neff, {})
    begun.clear()
    for options in ({"timing": False}, {"seed": 3}, {"max_steps": 4}, {"limit_ps": 100_000}):
        assert findings(neff, {}, **options) == findings(assembled(RACE), {}, **options)
        assert len(begun) == 2
        begun.clear()
    (one,) = [each for each in findings(neff, {}) if each.tool == "racecheck"]
    assert list(run(neff, {}, checks="race").findings) == [one]


@pytest.mark.usefixtures("devices")
@pytest.mark.parametrize("text", [BASE, RACE], ids=["clean", "race"])
def test_a_run_that_leaves_the_way_anywhere_finds_the_same(text: str, begun: list[str]) -> None:
    inputs = {"x": X} if text is BASE else {}
    neff = assembled(text)
    first = findings(neff, inputs)
    findings(neff, inputs)
    (known,) = kept._FILES[neff]
    (key, way), *_ = known.found["runs"].ways.items()
    steps = way.steps
    assert len(steps) > 20
    for step in range(len(steps) + 1):
        known.found["runs"].ways[key] = way._replace(steps=[*steps[:step], None, *steps[step + 1 :]])
        begun.clear()
        assert findings(neff, inputs) == first
        assert begun == ["checks"]


def test_what_is_known_of_a_program_is_not_taken_for_another_ones() -> None:
    one, other = assembled(BASE), assembled(RACE)
    for neff, word in ((one, "one"), (other, "other"), (one, "again"), (other, "again")):
        device = Device(neff.target, 1)
        device.load(neff)
        found = kept.kept_of(device, "word", lambda word=word: word)
        assert found == kept.kept_of(device, "word", lambda: "asked twice") == ("one" if neff is one else "other")
    # Somebody changed a word behind the loader: it is another program from there on.
    device = Device(one.target, 1)
    device.load(one)
    engine = next(engine for engine in device.cores[0].engines.values() if engine.words)
    engine.words = (engine.words[0].with_word(engine.words[-1].word), *engine.words[1:])
    assert kept.kept_of(device, "word", lambda: "changed") == "changed"


@pytest.mark.usefixtures("devices")
def test_two_cores_that_leave_the_way_run_once_more(begun: list[str]) -> None:
    x = np.ones((128, 16), np.float32)
    neff = build_neff(halves, (x,), {}, target="trn2", lnc=2)
    inputs = {neff.inputs[0].name: x}
    want = findings(neff, inputs)
    findings(neff, inputs)
    begun.clear()
    assert findings(neff, inputs) == want == [] == begun
    for seed in (1, 2):
        assert findings(neff, inputs, seed=seed) == []
        assert begun == ["checks"]
        begun.clear()
        findings(neff, inputs)
        begun.clear()


@pytest.mark.usefixtures("devices")
def test_two_cores_that_store_the_same_are_asked_for_that_alone(begun: list[str]) -> None:
    x = np.ones((128, 16), np.float32)
    neff = build_neff(read_again, (x, False), {}, target="trn2", lnc=2)
    inputs = {neff.inputs[0].name: x}
    want = findings(neff, inputs)
    assert {one.kind for one in want} == {"same-bytes"}
    for _ in range(3):
        assert findings(neff, inputs) == want
    assert begun == ["checks"] * 2


# A step: whose it is (0, 1, or 2 for both), rows, columns, from which half of x ("own": that of the core).
Plan = tuple[tuple[int, int, int, int, int, int | str], ...]
SIZE = 32, 16


def random_plan(draw: random.Random) -> Plan:
    """Return up to four steps that may meet in the same bytes."""
    steps = []
    for _ in range(draw.randint(1, 4)):
        first, low = draw.choice((0, 8, 16)), draw.choice((0, 4, 8))
        steps.append((draw.choice((0, 1, 2, 2)), first, first + draw.choice((8, 16)), low, low + draw.choice((4, 8)),
                      draw.choice((0, 1, "own", "own"))))  # fmt: skip
    return tuple(steps)


def stores(x: Any, plan: Plan) -> Any:
    """Each core loads parts of a half of x, and stores them where the other one may."""
    rows = SIZE[0]
    out = nl.ndarray(SIZE, dtype=nl.float32, buffer=nl.shared_hbm)
    core = nl.program_id(0)
    nisa.dma_copy(dst=out[16 * core : 16 * core + 16], src=x[16 * core : 16 * core + 16])
    nisa.core_barrier(out, (0, 1))
    for who, first, behind, low, high, half in plan:
        if who in (core, 2):
            part = nl.ndarray((behind - first, high - low), dtype=nl.float32, buffer=nl.sbuf)
            begin = rows * (core if half == "own" else int(half))
            nisa.dma_copy(dst=part, src=x[begin + first : begin + behind, low:high])
            nisa.dma_copy(dst=out[first:behind, low:high], src=part)
    return out


def given(neff: Neff, alike: bool) -> dict[str, Any]:
    x = np.arange(2 * SIZE[0] * SIZE[1], dtype=np.float32).reshape(2 * SIZE[0], SIZE[1])
    if alike:
        x[SIZE[0] :] = x[: SIZE[0]]
    return {neff.inputs[0].name: x}


def two_cores(plan: Plan) -> Neff:
    built = build_neff(stores, (np.zeros((2 * SIZE[0], SIZE[1]), np.float32), plan), {}, target="trn2", lnc=2)
    return open_neff(built.to_bytes())  # a kernel that is built again may be the same open file


@pytest.mark.usefixtures("devices")
def test_bytes_that_come_out_different_are_a_race_whatever_was_known(begun: list[str]) -> None:
    plan: Plan = ((2, 0, 32, 0, 16, "own"),)
    neff = two_cores(plan)
    kinds = []
    for alike in (True, True, True, False, True, False, False):
        begun.clear()
        found = findings(neff, given(neff, alike))
        fresh = two_cores(plan)
        kinds.append(({one.kind for one in found}, len(begun)))
        assert found == findings(fresh, given(fresh, alike))
    same, differ = {"same-bytes"}, {"write-write"}
    assert kinds == [(same, 1), (same, 1), (same, 0), (differ, 1), (same, 0), (differ, 1), (differ, 1)]


@pytest.mark.usefixtures("devices")
@pytest.mark.parametrize("seed", range(12))
def test_random_stores_of_two_cores_find_the_same_again_as_the_first_time(seed: int) -> None:
    draw = random.Random(seed)
    plan = random_plan(draw)
    neff = two_cores(plan)
    for alike in [draw.random() < 0.6 for _ in range(6)]:
        fresh = two_cores(plan)
        assert findings(neff, given(neff, alike)) == findings(fresh, given(fresh, alike))


def test_words_that_were_changed_are_looked_at_again() -> None:
    neff = assembled(BASE)
    clean, device = checked(neff, {"x": X})
    assert not [each for each in clean if each.serious]
    place = next(each for each in waits_of(device) if each.engine == "DVE")
    fresh, _ = checked(assembled(BASE), {"x": X}, edit=drop_wait(place))
    found, _ = checked(neff, {"x": X}, edit=drop_wait(place))
    assert found == fresh != clean
    assert checked(neff, {"x": X})[0] == clean


@pytest.mark.parametrize("name", [name for name, row in ROWS.items() if row.indices is not None])
def test_data_that_make_a_fault_are_found_behind_data_that_make_none(name: str) -> None:
    row = ROWS[name]
    assert row.indices is not None
    arrays = [np.random.default_rng(0).random(shape, np.float32) for shape in row.inputs]
    good, bad = row.indices
    neff = build_neff(row.kernel, (*arrays, good, False), {}, target="trn2", lnc=row.lnc)

    def given(indices: Any) -> dict[str, Any]:
        return dict(zip((one.name for one in neff.inputs), (*arrays, indices), strict=True))

    for _ in range(3):
        assert not [one for one in findings(neff, given(good)) if one.serious]
    found = findings(neff, given(bad))
    assert found == checked(neff, given(bad))[0]
    assert {f"{one.tool}:{one.kind}" for one in found}.intersection(row.kinds)
    assert not [one for one in findings(neff, given(good)) if one.serious]
