"""A checked run without a device comes to what fresh checks on a fresh device come to, whatever its data."""

from __future__ import annotations

import gc
import random
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import neurontools
import neurontools.nki.isa as nisa
import neurontools.nki.language as nl
from emulator import workspace
from emulator.checks import again, kept
from emulator.device import Device
from emulator.known_way import Found
from emulator.runtime import known_runs, run
from emulator.runtime.execution import execute
from emulator.settings import USUAL
from formats.errors import NeuronError
from formats.neff import Neff
from neurontools.nki.launch import build_neff
from tests.checks.support import assembled
from tests.checks.test_again import RACE, Plan, X, random_plan, two_cores
from tests.checks.test_again import given as halves_of
from tests.checks.test_alike import fenced_columns, filled_first, read_again, refreshed
from tests.emulator.test_known_runs import arrays_of, facts, instead, readied, way_of
from tests.emulator.test_repeats import others, spoiled
from tests.faults.assembled import BASE
from tests.faults.kernels import ROWS
from tests.faults.model import Program
from tests.faults.test_faults import PLANTED
from tests.identity.table import programs

pytestmark = pytest.mark.usefixtures("fresh_workspaces")
FOUR = ("memcheck", "initcheck", "racecheck", "synccheck")
# Both cores store the same.
STORED: Plan = ((2, 0, 32, 0, 8, "own"),)
CHOICES: tuple[Any, ...] = ("all", "race", ("mem", "init"), ("init", "sync", "race"), "sync")


@pytest.fixture
def loads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list in which every device that is made is noted."""
    seen: list[str] = []
    make = Device.__init__

    def noting(device: Device, *arguments: Any, **options: Any) -> None:
        seen.append("device")
        make(device, *arguments, **options)

    monkeypatch.setattr(Device, "__init__", noting)
    return seen


@contextmanager
def nothing_known(neff: Neff) -> Iterator[None]:
    """Have nothing kept of an open file, nor of what ran before, for a while."""
    before, known = list(workspace._waiting), kept._FILES.pop(neff, None)
    workspace._waiting.clear()
    yield
    kept._FILES.pop(neff, None)
    if known is not None:
        kept._FILES[neff] = known
    workspace._waiting[:] = before


def fresh(neff: Neff, inputs: Mapping[str, Any], checks: Any = "all", **options: Any) -> tuple[Any, ...]:
    """Return what comes of a run with fresh checks on a fresh device."""
    with nothing_known(neff):
        return facts(run(neff, inputs, checks=checks, **options))


def strange(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Return data in which every bit is set: NaN, and what memory holds that nothing wrote."""
    return {
        name: np.full(np.ascontiguousarray(array).nbytes, 0xFF, np.uint8).view(array.dtype).reshape(array.shape)
        for name, array in inputs.items()
    }


def follows(neff: Neff, data: Sequence[Mapping[str, Any]], loads: list[str], **options: Any) -> int:
    """Run a file under checks with these data in turns, see what comes of it, and return how often without a device."""
    wanted = [fresh(neff, each, **options) for each in data]
    checks, rest = options.get("checks", "all"), {key: value for key, value in options.items() if key != "checks"}
    without, results = 0, []
    for turn in range(3 + 2 * len(data)):
        before = len(loads)
        results.append(run(neff, data[turn % len(data)], checks=checks, **rest))
        without += len(loads) == before
    for turn, result in enumerate(results):
        assert facts(result) == wanted[turn % len(data)], turn
    return without


def test_every_program_is_found_the_same_of_without_a_device(loads: list[str]) -> None:
    went, found = set(), set()
    every = [each for each in programs() if not each[0].startswith("insns")]
    every += [each for each in programs() if each[0].startswith("insns")][::4]
    for name, opener in every:
        neff, raw = opener()
        inputs = arrays_of(neff, raw)
        if inputs is None:
            continue
        data = [inputs, others(inputs), strange(inputs)]
        if follows(neff, data, loads, max_steps=40_000):
            went.add(name)
            found |= {each.kind for each in run(neff, inputs, checks="all", max_steps=40_000).findings}
        workspace._waiting.clear()
    assert {"examples attention", "examples softmax", "examples tiled_matmul", "examples race"} <= went
    assert {"small_tiles", "loading_matmul"} <= went
    assert not {"examples livelock", "examples deadlock", "examples out_of_bounds"} & went
    assert len(went) >= 30 and len(found) >= 3


def test_every_planted_fault_is_found_again(loads: list[str]) -> None:
    """Of faults and of programs without them, as long as they are files and no changes to loaded ones."""
    went: list[str] = []
    for one in PLANTED:
        pairs: list[Program] = [one.fault()[0], one.twin()]
        for program in pairs:
            if program.edit is not None:
                continue
            inputs = {each.name: program.inputs[each.name] for each in program.neff.inputs}
            try:
                without = follows(program.neff, [inputs, others(inputs)], loads, max_steps=20_000)
            except NeuronError:
                continue  # a shape that cannot be turned around
            if without:
                went += [f"{each.tool}:{each.kind}" for each in run(program.neff, inputs, checks="all").findings]
                went.append(one.name)
            workspace._waiting.clear()
    assert len(went) > 60
    kinds = {"racecheck:write-read", "racecheck:read-write", "initcheck:undefined-output", "racecheck:write-write",
             "memcheck:rule", "synccheck:leftover"}  # fmt: skip
    assert kinds & set(went) >= {"racecheck:write-read", "initcheck:undefined-output"}, set(went)


@pytest.mark.parametrize("checks", CHOICES)
def test_each_choice_of_checks_is_known_by_itself(checks: Any, loads: list[str]) -> None:
    neff = assembled(RACE)
    assert follows(neff, [{}], loads, checks=checks) == 3
    wanted = [fresh(neff, {}, checks=each) for each in CHOICES]
    for each, want in zip(CHOICES, wanted, strict=True):
        assert all(facts(run(neff, {}, checks=each)) == want for _ in range(2))
    loads.clear()
    assert [facts(run(neff, {}, checks=each)) for each in CHOICES] == wanted and not loads


def test_the_third_checked_run_makes_no_device(loads: list[str]) -> None:
    neff, inputs = readied("loading_matmul")
    made = []
    for _ in range(4):
        run(neff, inputs, checks="all")
        made.append(len(loads))
    assert made == [1, 2, 2, 2]
    run(neff, inputs)
    assert len(loads) == 2, "what is known of a checked run is known of one without checks"
    workspace._waiting.clear()
    kept._FILES.pop(neff)
    loads.clear()
    for _ in range(3):
        run(neff, inputs)
    run(neff, inputs, checks="all")  # the first that is checked
    assert len(loads) == 3
    run(neff, inputs, checks="all")
    assert len(loads) == 3


@pytest.mark.parametrize(
    "options",
    [{"seed": 3}, {"timing": False}, {"max_seconds": 60.0}, {"max_steps": 9}, {"limit_ps": 1_000_000},
     {"hang_timeout_ps": 1 << 50}, {"act": "table"}, {"checks": "nancheck"}, {"checks": ("all", "lint")},
     {"checks": "mem"}, {"progress": lambda device: None}, {"observers": (object(),)}],
)  # fmt: skip
def test_other_checked_runs_have_a_device(options: dict[str, Any], loads: list[str]) -> None:
    neff, inputs = readied("small_tiles")
    given = {"checks": "all", **options}
    wanted = fresh(neff, inputs, **given)
    for _ in range(3):
        run(neff, inputs, checks="all")
    loads.clear()
    assert facts(run(neff, inputs, **given)) == wanted and len(loads) == 1


def test_who_guards_a_run_is_given_what_is_known(loads: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    neff = assembled(RACE)
    wanted = fresh(neff, {})
    for _ in range(3):
        run(neff, {}, checks="all")

    @contextmanager
    def guard(device: Device) -> Iterator[None]:
        yield

    loads.clear()
    monkeypatch.setattr(again.Again, "_tell", lambda *notes: pytest.fail("they are known"))
    assert facts(execute(neff, {}, USUAL, checks="all", guard=guard)) == wanted and len(loads) == 1


def test_an_interrupted_run_is_looked_at_as_far_as_it_came() -> None:
    neff, inputs = readied("examples softmax")

    @contextmanager
    def guard(device: Device) -> Iterator[None]:
        device.interrupt()
        yield

    with nothing_known(neff):
        wanted = facts(execute(neff, inputs, USUAL, checks="all", guard=guard))
    for _ in range(3):
        run(neff, inputs, checks="all")
    found = execute(neff, inputs, USUAL, checks="all", guard=guard)
    assert found.hang is not None and facts(found)[2:] == wanted[2:]


def test_what_a_run_gives_is_nobody_elses(loads: list[str]) -> None:
    neff = assembled(RACE)
    wanted = fresh(neff, {})
    for _ in range(5):
        found = run(neff, {}, checks="all")
        assert facts(found) == wanted
        for each in found.findings:
            each.details["seen"] = each.reproduce = "changed"
    assert len(loads) == 3


@pytest.mark.parametrize("kernel", [filled_first, read_again, fenced_columns, refreshed])
@pytest.mark.parametrize("wrong", [False, True])
def test_the_same_is_found_of_two_cores(kernel: Any, wrong: bool, loads: list[str]) -> None:
    x = np.random.default_rng(0).random((128, 16)).astype(np.float32)
    neff = build_neff(kernel, (x, wrong), {}, target="trn2", lnc=2)
    inputs = {neff.inputs[0].name: x}
    follows(neff, [inputs, others(inputs), strange(inputs), {neff.inputs[0].name: np.zeros_like(x)}], loads)


def test_two_cores_that_store_the_same_are_asked_for_that_alone(loads: list[str]) -> None:
    neff = two_cores(STORED)
    wanted = {alike: fresh(neff, halves_of(neff, alike)) for alike in (True, False)}
    devices = []
    for alike in (True, True, True, True, False, True, False):
        loads.clear()
        assert facts(run(neff, halves_of(neff, alike), checks="all")) == wanted[alike]
        devices.append(len(loads))
    assert devices == [1, 1, 0, 0, 1, 1, 1], "data that give other answers are asked on a device from there on"


def test_what_a_store_changes_is_told_by_fresh_memory(loads: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A first store of bytes that fresh memory holds changes nothing, whatever other runs have left there."""
    spoiled(monkeypatch)
    neff = two_cores(STORED)
    plain = halves_of(neff, alike=True)
    for first, then in ((plain, strange(plain)), (strange(plain), plain)):
        wanted = [fresh(neff, each) for each in (first, then)]
        with nothing_known(neff):
            devices = []
            for each, want in ((first, wanted[0]), (first, wanted[0]), (first, wanted[0]), (then, wanted[1])):
                loads.clear()
                assert facts(run(neff, each, checks="all")) == want
                devices.append(len(loads))
        assert devices == [1, 1, 0, 1]


@pytest.mark.parametrize("seed", range(16))
def test_random_stores_of_two_cores_find_the_same(seed: int, loads: list[str]) -> None:
    draw = random.Random(seed)
    neff = two_cores(random_plan(draw))
    data = [halves_of(neff, True), halves_of(neff, False), strange(halves_of(neff, True))]
    data += [{name: np.zeros_like(array) for name, array in data[0].items()}]
    for _ in range(3):
        order = draw.choices(data, k=3)
        with nothing_known(neff):
            follows(neff, order, loads)


@pytest.mark.parametrize("name", [name for name, row in ROWS.items() if row.indices is not None])
def test_scatters_go_by_their_indices(name: str, loads: list[str]) -> None:
    row = ROWS[name]
    assert row.indices is not None
    arrays = [np.random.default_rng(0).random(shape, np.float32) for shape in row.inputs]
    neff = build_neff(row.kernel, (*arrays, row.indices[0], False), {}, target="trn2", lnc=row.lnc)
    data = [dict(zip((one.name for one in neff.inputs), (*arrays, each), strict=True)) for each in row.indices]
    without = follows(neff, [data[0], data[0], data[1]], loads)
    # What is gathered on chip steers nothing as long as it lies in its tile; else a device says so.
    assert without == (4 if "gather on chip" in name else 0)


def chosen(x: Any, decide: Any) -> Any:
    """Leave a part of a tile unwritten, and let data decide whether it comes to the output."""
    out = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.sbuf)
    other = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.sbuf)
    which = nl.ndarray((128, 64), dtype=nl.uint8, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile[0:64, :], src=x[0:64, :])
    nisa.dma_copy(dst=other, src=x)
    nisa.dma_copy(dst=which, src=decide)
    nisa.tensor_copy_predicated(dst=other, src=tile, predicate=which)
    nisa.dma_copy(dst=out, src=other)
    return out


def test_undefined_bytes_that_data_choose_are_looked_for_in_every_run(loads: list[str]) -> None:
    x, none = np.ones((128, 64), np.float32), np.zeros((128, 64), np.uint8)
    neff = neurontools.build(chosen, x, none, target="trn2")
    names = [each.name for each in neff.inputs]
    data = [dict(zip(names, (x, each), strict=True)) for each in (none, none + np.uint8(1))]
    kinds = [{each.kind for each in run(neff, each, checks="all").findings} for each in data]
    assert kinds[0] != kinds[1], "otherwise data decide nothing"
    workspace._waiting.clear()
    assert follows(neff, data, loads) == 0
    loads.clear()
    run(neff, data[0])
    run(neff, data[0], checks=("mem", "race", "sync"))
    run(neff, data[0], checks=("mem", "race", "sync"))
    assert len(loads) == 1, "without initcheck nothing looks at data"


def half(x: Any) -> Any:
    """Copy a tile of which half is written."""
    out = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile[0:64, :], src=x[0:64, :])
    nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=2.0)
    nisa.dma_copy(dst=out, src=tile)
    return out


def test_undefined_bytes_that_reach_an_output_whatever_the_data_are_known(loads: list[str]) -> None:
    x = np.ones((128, 64), np.float32)
    neff = neurontools.build(half, x, target="trn2")
    inputs = {neff.inputs[0].name: x}
    assert follows(neff, [inputs, others(inputs), strange(inputs)], loads) == 7
    assert [each.kind for each in run(neff, inputs, checks="all").findings] == ["undefined-output"]


def test_what_fails_without_a_device_is_told_by_one(loads: list[str]) -> None:
    neff, inputs = readied("loading_matmul")
    wanted = fresh(neff, inputs)
    for _ in range(3):
        run(neff, inputs, checks="all")

    def fails() -> None:
        raise NeuronError("not this time")

    way = way_of(neff)
    instead(way, len(way.steps) // 2, fails)
    loads.clear()
    assert facts(run(neff, inputs, checks="all")) == wanted and len(loads) == 1
    del way._steps_on  # type: ignore[method-assign]
    assert facts(run(neff, inputs, checks="all")) == wanted and len(loads) == 1


def test_no_more_is_kept_than_there_is_room_for(loads: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(again, "_MOST_FINDINGS", 0)
    neff, clean = assembled(RACE), assembled(BASE)
    assert follows(neff, [{}], loads) == 0
    assert follows(clean, [{"x": X}], loads) == 3


def test_words_that_somebody_changed_are_another_way(loads: list[str]) -> None:
    """What is kept belongs to the words that ran: those of a device that was changed are not the file's."""
    neff = assembled(BASE)
    for _ in range(3):
        run(neff, {"x": X}, checks="all")
    (way,) = [each for each in workspace._waiting[-1].ways if each.neff() is neff]
    assert way.findings == {FOUR: Found([], [])}
    device = Device(neff.target, 1)
    device.load(neff)
    device.set_inputs({"x": X})
    engine = next(each for each in device.cores[0].engines.values() if len(each.words) > 1)
    words = list(engine.words)
    words[0] = words[0].with_word(words[-1].word)
    engine.words = words
    checks = again.Again("all")
    checks.attach(device)
    device.run()
    assert device.way is not way
    checks.finish()
    device.release()
    assert way.findings == {FOUR: Found([], [])}


def test_neither_devices_nor_files_are_kept(loads: list[str]) -> None:
    neff = assembled(RACE)
    for _ in range(4):
        run(neff, {}, checks="all")
    assert len(loads) == 2 and workspace._waiting[-1].ways
    held = weakref.ref(neff)
    del neff
    gc.collect()
    assert held() is None
    assert not [each for each in gc.get_objects() if type(each) is Device]


def test_a_checked_run_is_refused_as_ever() -> None:
    neff = assembled(BASE)
    for _ in range(3):
        run(neff, {"x": X}, checks="all")
    with pytest.raises(NeuronError, match="no check 'none'"):
        run(neff, {"x": X}, checks="none")
    with pytest.raises(NeuronError, match="not given"):
        run(neff, {}, checks="all")
    assert known_runs.run_known(neff, USUAL, {"x": X}, ("lint",)) is None
