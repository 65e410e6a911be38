"""A run without a device comes to what a device comes to, whatever its data, and touches nothing else."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import neurontools
from emulator import workspace
from emulator.arch import arch_of
from emulator.device import Device
from emulator.dtypes import numpy_dtype
from emulator.faults import fault_error
from emulator.known_way import KnownWay
from emulator.runtime import Result, known_runs, run
from emulator.settings import USUAL
from emulator.workspace import give_back, take_waiting, take_workspace
from formats.dtypes import Dtype
from formats.neff import Neff, open_neff
from neurontools.assembly.assemble_neff import to_neff
from neurontools.assembly.assembler import parse_program
from tests.emulator.test_repeats import opened, others, spoiled
from tests.identity.table import programs

pytestmark = pytest.mark.usefixtures("fresh_workspaces")


@pytest.fixture
def loads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list in which every program that is loaded onto a device is noted."""
    seen: list[str] = []
    load = Device.load

    def noting(device: Device, neff: Neff) -> Any:
        seen.append(neff.name)
        return load(device, neff)

    monkeypatch.setattr(Device, "load", noting)
    return seen


def worked_out(neff: Neff, inputs: dict[str, Any], **options: Any) -> Result:
    """Return the result of a run on memories that nothing ran on before."""
    before = list(workspace._waiting)
    workspace._waiting.clear()
    found = run(neff, inputs, **options)
    workspace._waiting[:] = before
    return found


def facts(result: Result) -> tuple[Any, ...]:
    """Return all of a result but for the time that it took here."""

    def bits(arrays: dict[str, Any]) -> Any:
        return {name: (array.dtype, array.shape, array.tobytes()) for name, array in arrays.items()}

    stats = result.stats
    return (
        bits(result.outputs), [bits(each) for each in result.outputs_by_core], result.fault, result.hang,
        result.findings, result.warnings, result.time_ps, result.prints, result.unwritten,
        stats.instructions, stats.transfers, stats.dma_bytes, stats.words,
    )  # fmt: skip


def arrays_of(neff: Neff, given: dict[str, Any]) -> dict[str, Any] | None:
    """Return inputs as `run` takes them; None where some are not given."""
    if {each.name for each in neff.inputs} - set(given):
        return None
    return {
        each.name: given[each.name].view(numpy_dtype(Dtype.from_numpy_name(each.dtype))).reshape(each.shape)
        for each in neff.inputs
    }


def readied(name: str) -> tuple[Neff, dict[str, Any]]:
    """Return an open program and its inputs."""
    neff, given = opened(name)
    inputs = arrays_of(neff, given)
    assert inputs is not None
    return neff, inputs


def known(neff: Neff, inputs: dict[str, Any], loads: list[str], **options: Any) -> bool:
    """Run a program until it needs no device; return whether it comes to that.

    The second run makes its way known, and all else that comes of it.
    """
    for _ in range(3):
        before = len(loads)
        run(neff, inputs, **options)
    return len(loads) == before


def way_of(neff: Neff) -> KnownWay:
    (found,) = [each for held in workspace._waiting for each in held.ways if each.neff() is neff]
    return found


def instead(way: KnownWay, at: int, does: Callable[[], object]) -> None:
    """Have a step of a way do something else."""
    original = way._steps_on

    def steps_on(*arguments: Any) -> list[Any]:
        steps = original(*arguments).copy()
        steps[at] = does
        return steps

    way._steps_on = steps_on  # type: ignore[method-assign]


def test_every_program_comes_to_the_same_without_a_device(loads: list[str]) -> None:
    went = set()
    every = [each for each in programs() if not each[0].startswith("insns")]
    every += [each for each in programs() if each[0].startswith("insns")][::16]
    for name, opener in every:
        neff, given = opener()
        inputs = arrays_of(neff, given)
        if inputs is None:
            continue
        for options in ({"max_steps": 40_000}, {"max_steps": 40_000, "timing": False}):
            changed = {each: np.asfortranarray(array) for each, array in others(inputs).items()}
            wanted = [facts(worked_out(neff, each, **options)) for each in (inputs, changed)]
            kept = []
            for turn in range(8):
                before = len(loads)
                kept.append(run(neff, (inputs, changed)[turn % 2], **options))
                if len(loads) == before:
                    went.add(name)
                else:
                    assert turn < 2 or name not in went, name
            # Results that are still there were not touched by later runs.
            for turn, found in enumerate(kept):
                assert facts(found) == wanted[turn % 2], (name, options, turn)
            del kept
        workspace._waiting.clear()
    assert {"examples attention", "examples softmax", "examples tiled_matmul", "examples vector_add"} <= went
    assert {"small_tiles", "loading_matmul"} <= went
    assert not {"examples livelock", "examples deadlock", "examples out_of_bounds"} & went
    assert len(went) >= 15


def test_what_other_programs_left_is_overwritten_or_filled(loads: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    seen, went = spoiled(monkeypatch), set()
    every = [each for each in programs() if not each[0].startswith("insns")]
    every += [each for each in programs() if each[0].startswith("insns")][::16]
    for name, opener in every:
        neff, given = opener()
        inputs = arrays_of(neff, given)
        if inputs is not None and known(neff, inputs, loads, max_steps=40_000):
            went.add(name)
            wanted = facts(worked_out(neff, inputs, max_steps=40_000))
            assert facts(run(neff, inputs, max_steps=40_000)) == wanted, name
        workspace._waiting.clear()
    assert seen and len(went) >= 15


def assert_as_new() -> None:
    """See to it that the next program finds memories as they are in a new workspace."""
    (held,) = workspace._waiting
    taken = take_workspace(held.arch, 0)
    assert taken is held
    taken.memory.freshen()
    new = workspace.Workspace(held.arch, 0)
    for space in ("SBUF", "PSUM"):
        assert np.array_equal(taken.memory.bound(space), new.memory.bound(space))
        assert not taken.memory.plane(space).any()
    assert taken.pe.fingerprint() == new.pe.fingerprint() and not taken.pe.deferring


def test_memories_are_as_a_device_leaves_them(loads: list[str]) -> None:
    """Another program finds them fresh, whatever ran there without a device."""
    for name in ("examples softmax", "loading_matmul", "examples attention"):
        neff, inputs = readied(name)
        assert known(neff, inputs, loads)
        assert_as_new()
        workspace._waiting.clear()


@pytest.mark.parametrize("name", ["examples softmax", "loading_matmul", "small_tiles"])
def test_inputs_are_only_read_and_nothing_of_them_is_kept(name: str, loads: list[str]) -> None:
    neff, inputs = readied(name)
    wanted = facts(worked_out(neff, inputs))
    assert known(neff, inputs, loads)
    (kept,) = [way_of(neff).run]
    assert kept._lent, "inputs of tiles are read where they are"
    before = {each: array.copy() for each, array in inputs.items()}
    loads.clear()
    # Bytes of somebody else who may want them back, at no multiple of the element size.
    held = {each: bytearray(array.nbytes + 1) for each, array in inputs.items()}
    given = {}
    for each, array in inputs.items():
        given[each] = np.frombuffer(held[each], np.uint8, offset=1).view(array.dtype).reshape(array.shape)
        given[each][...] = array
    assert facts(run(neff, given)) == wanted
    del given
    for each in held.values():
        each.extend(b"x")  # BufferError where anybody still has a view
    mine = {each: array.copy() for each, array in inputs.items()}
    for array in mine.values():
        array.flags.writeable = False
    alive = [weakref.ref(array) for array in mine.values()]
    assert facts(run(neff, mine)) == wanted
    del mine, array
    assert not any(each() is not None for each in alive)
    assert facts(run(neff, inputs)) == wanted and not loads
    assert all(np.array_equal(before[each], array, equal_nan=True) for each, array in inputs.items())


def test_results_belong_to_who_has_them(loads: list[str]) -> None:
    neff, inputs = readied("loading_matmul")
    wanted = facts(worked_out(neff, inputs))
    assert known(neff, inputs, loads)
    for _ in range(3):
        found = run(neff, inputs)
        assert facts(found) == wanted
        for array in found.outputs.values():
            array.fill(7)
        found.outputs.clear()
        found.stats.words.clear()  # type: ignore[attr-defined]
        found.unwritten["out"] = 3  # type: ignore[index]


def test_memories_are_filled_behind_a_failure(loads: list[str]) -> None:
    neff, inputs = readied("loading_matmul")
    assert known(neff, inputs, loads)
    way = way_of(neff)

    def fails() -> None:
        raise fault_error("operand", "not this time")

    instead(way, len(way.steps) - 9, fails)
    assert known_runs.run_known(neff, USUAL, inputs) is None
    assert_as_new()


def test_integers_that_are_to_be_fresh_are(loads: list[str]) -> None:
    import nki.isa as nisa
    import nki.language as nl

    def kernel(x: Any) -> Any:
        out = nl.ndarray((128, 64), dtype=nl.int32, buffer=nl.shared_hbm)
        tile = nl.ndarray((128, 64), dtype=nl.int32, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile[0:64, :], src=x[0:64, :])
        nisa.dma_copy(dst=out, src=tile)
        return out

    x = np.ones((128, 64), np.int32)
    neff = neurontools.build(kernel, x, target="trn2")
    inputs = {neff.inputs[0].name: x}
    wanted = worked_out(neff, inputs)
    assert [set(part.ravel().tolist()) for part in np.split(wanted.outputs["out"], 2)] == [{1}, {4}]
    known(neff, inputs, loads)
    assert all(facts(run(neff, inputs)) == facts(wanted) for _ in range(3))


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_what_fails_without_a_device_is_told_by_one(share: float, loads: list[str]) -> None:
    neff, inputs = readied("loading_matmul")
    wanted = facts(worked_out(neff, inputs))
    assert known(neff, inputs, loads)
    way = way_of(neff)

    def fails() -> None:
        raise fault_error("operand", "not this time")

    instead(way, int(len(way.steps) * share), fails)
    loads.clear()
    assert facts(run(neff, inputs)) == wanted and len(loads) == 1
    del way._steps_on  # type: ignore[method-assign]
    assert facts(run(neff, others(inputs))) == facts(worked_out(neff, others(inputs)))


def test_what_is_no_error_of_the_program_is_raised(loads: list[str]) -> None:
    neff, inputs = readied("examples softmax")
    assert known(neff, inputs, loads)

    def stops() -> None:
        raise KeyboardInterrupt

    instead(way_of(neff), 9, stops)
    with pytest.raises(KeyboardInterrupt):
        run(neff, inputs)
    assert not workspace._waiting, "whose bytes nobody knows"
    assert facts(run(neff, inputs)) == facts(worked_out(neff, inputs))


@pytest.mark.parametrize(
    "options",
    [{"seed": 3}, {"timing": False}, {"max_seconds": 60.0}, {"max_steps": 9}, {"limit_ps": 1_000_000},
     {"hang_timeout_ps": 1 << 50}, {"act": "table"}, {"checks": "race"}, {"progress": lambda device: None},
     {"observers": (object(),)}],
)  # fmt: skip
def test_other_runs_have_a_device(options: dict[str, Any], loads: list[str]) -> None:
    neff, inputs = readied("small_tiles")
    wanted = facts(worked_out(neff, inputs, **options))
    assert known(neff, inputs, loads)
    loads.clear()
    assert facts(run(neff, inputs, **options)) == wanted and len(loads) == 1


def test_other_figures_are_another_run(loads: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    neff, inputs = readied("examples softmax")
    assert known(neff, inputs, loads)
    true = known_runs.CostModel

    def slower(*arguments: Any, **options: Any) -> Any:
        made = true(*arguments, **options)
        made.dma = made.dma._replace(signal_ps=made.dma.signal_ps * 2)
        return made

    loads.clear()
    monkeypatch.setattr("emulator.device.CostModel", slower)
    monkeypatch.setattr(known_runs, "CostModel", slower)
    assert facts(run(neff, inputs)) == facts(worked_out(neff, inputs)) and len(loads) == 2


@pytest.mark.parametrize("writes", [False, True])
def test_constants_are_kept_that_the_program_only_reads(writes: bool, loads: list[str]) -> None:
    numbers = " ".join(map(str, range(64)))
    where = "a+128[1,4][4,32]" if writes else "y+128[1,4][4,32]"
    text = f"""
.target trn2
.constant a float32 [64, 1] {numbers}
.output y float32 [64, 1]
.queue qIn sp 8
.queue qOut sp 24
.dma qIn 0 8 a+0[1,4][4,64] -> SB+0x1000[1,262144][4,64]
.dma qOut 0 24 SB+0x1000[1,262144][4,64] -> y+0[1,4][4,64]
.dma qOut 1 25 SB+0x1000[1,262144][4,32] -> {where}

.engine sp
    PSEUDO_DMA_TRIGGER qIn block_id=0
    PSEUDO_DMA_TRIGGER S[8]>=16 qOut block_id=0
    PSEUDO_DMA_TRIGGER S[24]>=16 qOut block_id=1
    NOP S[25]>=16 cycle=0
"""
    neff = open_neff(to_neff(parse_program(text, "constants.s")))
    wanted = worked_out(neff, {})
    assert wanted.ok and wanted.outputs["y"].ravel()[63] == (63 if writes else 31)
    assert known(neff, {}, loads) != writes
    way = way_of(neff)
    assert (way.run is None) == writes and len(way.written) == 1 + writes
    for _ in range(3):
        taken = np.full(1 << 20, 0x5A, np.uint8)  # where bytes that were given back might lie
        assert facts(run(neff, {})) == facts(wanted)
        del taken


def test_inputs_that_the_program_writes_are_copied(loads: list[str]) -> None:
    text = """
.target trn2
.input x float32 [128, 512]
.output y float32 [128, 512]
.queue qIn sp 8
.queue qOut sp 24
.dma qIn 0 8 x+0[1,2048][2048,128] -> SB+0x1000[1,262144][2048,128]
.dma qOut 0 24 SB+0x1000[1,262144][2048,127] -> x+2048[1,2048][2048,127]
.dma qOut 1 25 x+0[1,2048][2048,128] -> y+0[1,2048][2048,128]

.engine sp
    PSEUDO_DMA_TRIGGER qIn block_id=0
    PSEUDO_DMA_TRIGGER S[8]>=16 qOut block_id=0
    PSEUDO_DMA_TRIGGER S[24]>=16 qOut block_id=1
    NOP S[25]>=16 cycle=0
"""
    neff = open_neff(to_neff(parse_program(text, "writes.s")))
    x = np.arange(128 * 512, dtype=np.float32).reshape(128, 512)
    x.flags.writeable = False
    wanted = worked_out(neff, {"x": x})
    assert np.array_equal(wanted.outputs["y"], np.vstack((x[:1], x[:-1])))
    assert known(neff, {"x": x}, loads)
    way = way_of(neff)
    assert not way.run._lent and len(way.written) == 2
    for _ in range(3):
        assert facts(run(neff, {"x": x})) == facts(wanted)
    assert np.array_equal(x, np.arange(128 * 512, dtype=np.float32).reshape(128, 512))


@pytest.mark.parametrize("lent", [0, 1 << 40])
@pytest.mark.parametrize("small", [0, 1 << 40])
def test_inputs_are_the_same_wherever_they_are_read(
    lent: int, small: int, loads: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(known_runs, "_LENT", lent)
    monkeypatch.setattr(known_runs, "_SMALL", small)
    for name in ("examples vector_add", "examples softmax", "loading_matmul", "small_tiles"):
        neff, inputs = readied(name)
        given = [inputs, others(inputs), {each: np.ascontiguousarray(array) * 2 for each, array in inputs.items()}]
        wanted = [facts(worked_out(neff, each)) for each in given]
        assert known(neff, inputs, loads)
        assert bool(way_of(neff).run._lent) == (not lent)
        loads.clear()
        kept = [run(neff, given[turn % 3]) for turn in range(7)]
        assert [facts(each) for each in kept] == [wanted[turn % 3] for turn in range(7)] and not loads
        workspace._waiting.clear()


def test_threads_run_one_program_at_a_time_each() -> None:
    neff, inputs = readied("loading_matmul")
    given = [inputs, others(inputs), {name: array + 1 for name, array in inputs.items()}]
    wanted = [facts(worked_out(neff, each)) for each in given]
    with ThreadPoolExecutor(3) as pool:
        found = list(pool.map(lambda turn: facts(run(neff, given[turn % 3])) == wanted[turn % 3], range(60)))
    assert all(found)


def test_neither_devices_nor_files_are_kept(loads: list[str]) -> None:
    text = next(opener for name, opener in programs() if name == "insns memset_integer_int8")
    neff, inputs = text()
    assert known(neff, inputs, loads) and way_of(neff).run is not None
    held, (memories,) = weakref.ref(neff), workspace._waiting
    del neff
    gc.collect()
    assert held() is None and memories.ways
    assert not [each for each in gc.get_objects() if type(each) is Device]


def test_workspaces_are_taken_for_all_cores_or_none() -> None:
    arch = arch_of("trn2")
    first = workspace.Workspace(arch, 0)
    give_back(first)
    for cores in (0, 2):
        assert take_waiting(lambda found: found, cores) is None
    assert take_waiting(lambda found: None, 1) is None and workspace._waiting == [first]
    second = workspace.Workspace(arch, 1)
    give_back(second)
    assert take_waiting(lambda found: found[1].index, 2) == ([first, second], 1) and not workspace._waiting
