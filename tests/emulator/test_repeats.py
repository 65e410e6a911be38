"""A run that goes the way of one before comes to what one that is worked out comes to, whatever its data."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

import neurontools
from emulator import workspace
from emulator.buffers import take
from emulator.device import Device
from emulator.device_memory import Allocation
from emulator.faults import fault_error
from emulator.known_way import KnownWay
from emulator.memory import ChipMemory
from formats.neff import Neff, open_neff
from neurontools.assembly.assemble_neff import to_neff
from neurontools.assembly.assembler import parse_program
from tests.identity.table import programs

LONG = ("examples attention", "small_tiles", "loading_matmul")


pytestmark = pytest.mark.usefixtures("fresh_workspaces")


@cache
def opened(name: str) -> tuple[Neff, dict[str, Any]]:
    return next(opener for each, opener in programs() if each == name)()


def started(neff: Neff, inputs: dict[str, Any], **options: Any) -> Device:
    device = Device(neff.target, len(neff.subgraphs), **{"unseen": True, **options})
    device.load(neff)
    device.set_inputs(inputs)
    return device


def worked_out(neff: Neff, inputs: dict[str, Any], **options: Any) -> Device:
    device = started(neff, inputs, **options)
    device.replays = False
    device.run()
    return device


def state(device: Device) -> dict[str, Any]:
    """Return all that a device has at the end; objects that are a device's own are left out."""
    dma = device.dma.snapshot()
    found = {
        "end": (
            device.outcome,
            device.now_ps,
            device.steps,
            device.warnings,
            device.checking,
            [each[0] for each in device.heap],
        ),
        "hang": device.hang and device.hang.text(),
        "hash": device.state_hash(),
        "dma": (dma.flow, dma.engines, [queue._replace(pending=(len(queue.pending),)) for queue in dma.queues]),
        "busy": [engines.busy_ps for engines in device.dma.engines],
        "outputs": {name: array.tobytes() for name, array in device.outputs().items()},
    }
    for core in device.cores:
        flows = [engine.flow()._replace(waiters=None, flights=()) for engine in core.engines.values()]
        found[f"core {core.index}"] = (
            core.semaphores.snapshot(), core.events.snapshot(), core.contention.snapshot(), core.pe.fingerprint(),
            core.generators.snapshot(), flows, core.memory.written_bytes("SBUF"), core.memory.written_bytes("PSUM"),
        )  # fmt: skip
    return found


def ways(device: Device) -> list[Any]:
    return device.cores[0].workspace.ways


def known(neff: Neff, inputs: dict[str, Any], **options: Any) -> Device:
    """Return a device at the beginning of a program whose way is known."""
    for wanted in (0, 1):
        first = started(neff, inputs, **options)
        first.run()
        assert len(ways(first)) == wanted, "it is a program that nothing steers, and runs again"
        first.release()
    device = started(neff, inputs, **options)
    assert ways(device)
    return device


def instead(way: KnownWay, at: int, first: Callable[[], object]) -> None:
    """Have a step of a way do something else before it does what it does."""
    original = way._steps_on

    def steps_on(device: Any, *lent: Any) -> list[Any]:
        steps = original(device, *lent).copy()
        step = steps[at]

        def changed() -> None:
            first()
            if step is not None:
                step()

        steps[at] = changed
        return steps

    way._steps_on = steps_on  # type: ignore[method-assign]


def spoil(memory: ChipMemory) -> bool:
    """Have something else in all bytes of a memory that are still to be filled; return whether there were any."""
    left = memory._left
    if left is None:
        return False
    planes = {space: memory.plane(space) for space in ("SBUF", "PSUM")}
    for extent in left.noted:
        extent.fill()
    for space, plane in planes.items():
        memory.laid(space)[plane] = 0x5A
        plane.fill(False)
    return bool(left.noted)


def spoiled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Have runs find something else in all bytes that are not filled; return which memories of known ways it was."""
    seen: list[str] = []
    take_memories, taken = KnownWay._take_memories, Allocation.take_unfilled

    def memories(way: KnownWay, device: Any) -> list[Allocation]:
        found = take_memories(way, device)
        spoilt = [spoil(core.memory) for core in device.cores]
        if any(spoilt):
            seen.append("chip")
        return found

    def tensor(allocation: Allocation) -> None:
        taken(allocation)
        allocation.laid.fill(0x5A)
        seen.append(allocation.name)

    def bytes_of_any(nbytes: int) -> np.ndarray[Any, Any]:
        found = take(nbytes)
        found.fill(0x5A)
        return found

    monkeypatch.setattr(KnownWay, "_take_memories", memories)
    monkeypatch.setattr(Allocation, "take_unfilled", tensor)
    monkeypatch.setattr("emulator.device_memory.take", bytes_of_any)
    return seen


def others(inputs: dict[str, Any]) -> dict[str, Any]:
    """Return other data of the same form."""
    return {name: np.ascontiguousarray(array[::-1]) for name, array in inputs.items()}


def test_every_program_comes_to_the_same_again_and_with_other_data(monkeypatch: pytest.MonkeyPatch) -> None:
    followed = set()
    every = [each for each in programs() if not each[0].startswith("insns")]
    every += [each for each in programs() if each[0].startswith("insns")][::16]
    for name, opener in every:
        neff, inputs = opener()
        for options in ({}, {"timing": False}) if not name.startswith("insns") else ({},):
            runs = [inputs, inputs, others(inputs), inputs]  # the second makes its way known
            wanted = []
            for given in runs[1:3]:
                device = worked_out(neff, given, max_steps=40_000, **options)
                wanted.append(state(device))
                device.release()
            for number, given in enumerate(runs):
                device = started(neff, given, max_steps=40_000, **options)
                is_known = bool(ways(device))
                with monkeypatch.context() as patched:
                    if is_known:  # nothing is worked out then
                        patched.setattr("emulator.sequencer.Sequencer.issue", None)
                        followed.add(name)
                    device.run()
                assert state(device) == wanted[given is runs[2]], (name, options, number)
                device.release()
            workspace._waiting.clear()
    assert {*LONG, "examples softmax", "examples tiled_matmul", "examples vector_add"} <= followed
    assert not {"examples livelock", "examples deadlock", "examples out_of_bounds"} & followed
    assert len(followed) >= 15


def test_what_other_programs_left_is_overwritten_or_filled(monkeypatch: pytest.MonkeyPatch) -> None:
    """No way takes what it finds in memories that it is given unfilled, nor leaves any of it."""
    overwriting = set()
    seen = spoiled(monkeypatch)
    every = [each for each in programs() if not each[0].startswith("insns")]
    every += [each for each in programs() if each[0].startswith("insns")][::6]
    for name, opener in every:
        neff, inputs = opener()
        for _ in range(2):
            device = started(neff, inputs, max_steps=40_000)
            device.run()
            device.release()
        device = started(neff, inputs, max_steps=40_000)
        (is_known, *_) = [*ways(device), None]
        if is_known is not None:
            seen.clear()
            device.run()
            if seen:
                overwriting.add(name)
            assert is_known._overwrites == bool(seen) or not any(end.written for end in is_known._cores), name
            other = worked_out(neff, inputs, max_steps=40_000)
            assert state(device) == state(other), name
            other.release()
        device.release()
        workspace._waiting.clear()
    assert {*LONG, "examples softmax", "examples tiled_matmul", "examples vector_add"} <= overwriting
    assert len(overwriting) > 20


def test_a_word_that_keeps_parts_of_what_it_writes_finds_them_fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = " ".join(map(str, range(64)))
    mask = ",".join(["255", *map(str, range(31))])
    tile = "[1,1,1,1,1][1,1,1,1,1]"
    text = f"""
.target trn2
.dialect extended
.constant a float32 [64, 1] {numbers}
.queue qIn sp 8
.dma qIn 0 8 a+0[1,4][4,64] -> SB+0x1000[1,262144][4,64]

.engine sp
    PSEUDO_DMA_TRIGGER qIn block_id=0

.engine dve
    STREAM_SHUFFLE S[8]>=16 mask={mask} src=fp32@0x1000{tile} dst=fp32@0x2000{tile} channels=64 dst_channels=64
"""
    neff = open_neff(to_neff(parse_program(text, "keeps.s")))
    seen = spoiled(monkeypatch)
    device = known(neff, {})
    assert not ways(device)[0]._notices
    device.run()
    assert not seen and state(device) == state(worked_out(neff, {}))


@pytest.mark.parametrize("name", ["examples softmax", "loading_matmul"])
@pytest.mark.parametrize("share", [0, 0.3, 0.9])
def test_a_run_that_is_interrupted_ends_where_it_is(name: str, share: float, monkeypatch: pytest.MonkeyPatch) -> None:
    neff, inputs = opened(name)
    seen = spoiled(monkeypatch)
    device = known(neff, inputs)
    (way,) = ways(device)
    at = int(len(way.steps) * share)
    instead(way, at, device.interrupt)
    assert device.run() == "hang" and device.hang is not None and "interrupt" in device.hang.text()
    assert seen == ["out", "chip"]
    # A run ends behind the completion that comes next, wherever it is told to.
    limited = worked_out(neff, inputs, max_steps=at + 2)
    found, wanted = state(device), state(limited)
    assert limited.steps == at + 2 and limited.outcome == "hang"
    for each in (found, wanted):
        del each["hang"]
    assert found == wanted


def test_a_device_that_is_interrupted_beforehand_goes_no_way() -> None:
    device, other = known(*opened("examples softmax")), started(*opened("examples softmax"))
    other.replays = False
    for each in (device, other):
        each.interrupt()
        assert each.run() == "hang" and each.steps == 1


@pytest.mark.parametrize("share", [0, 0.5, 0.9])
def test_what_fails_on_the_way_is_worked_out_from_there(share: float) -> None:
    neff, inputs = opened("loading_matmul")
    device = known(neff, inputs)
    (way,) = ways(device)
    steps = way.steps
    at = next(at for at in range(int(len(steps) * share), len(steps)) if at not in way._carried)

    def fails() -> None:
        raise fault_error("operand", "not this time")

    instead(way, at, fails)
    assert device.run() == "finished"
    assert state(device) == state(worked_out(neff, inputs))


def test_what_is_no_error_of_the_program_is_raised_and_leaves_a_device_that_can_be_looked_at() -> None:
    neff, inputs = opened("examples softmax")
    device = known(neff, inputs)
    (way,) = ways(device)

    def stops() -> None:
        raise KeyboardInterrupt

    instead(way, 9, stops)
    with pytest.raises(KeyboardInterrupt):
        device.run()
    assert device.steps == 9 and not device.finished and device.cores[0].memory.unaccounted
    assert device.run() == "finished"
    assert device.state_hash() == worked_out(neff, inputs).state_hash()


def limited(device: Device) -> None:
    device.max_steps = 10


def late(device: Device) -> None:
    device.limit_ps = 1_000_000


def watched(device: Device) -> None:
    class Watcher:
        def on_event(self, event: Any) -> None:
            pass

    device.observers.append(Watcher())


def repriced(device: Device) -> None:
    device.reprice = lambda engine, loaded, interval, latency: (interval * 2, latency * 2)


def raised(device: Device) -> None:
    device.cores[0].semaphores.set(250, 1, 0)


def moved(device: Device) -> None:
    device.hbm.allocate(4096, "another")


def packed(device: Device) -> None:
    device.dma.packet_bytes = 1 << 16


def slower(device: Device) -> None:
    device.costs.dma = device.dma.costs = device.costs.dma._replace(signal_ps=device.costs.dma.signal_ps * 2)


def changed(device: Device) -> None:
    engine = device.cores[0].engines["Activation"]
    words = list(engine.words)
    words.append(words[-1])
    engine.words, engine.count = words, len(words)


@pytest.mark.parametrize("change", [limited, late, watched, repriced, raised, moved, packed, slower, changed])
def test_what_is_not_the_same_is_worked_out(change: Callable[[Device], None]) -> None:
    neff, inputs = opened("examples softmax")
    device, other = known(neff, inputs), started(neff, inputs)
    other.replays = False
    for each in (device, other):
        change(each)
        each.run()
    assert state(device) == state(other)


@pytest.mark.parametrize("options", [{"seed": 3}, {"without": ("ports",)}, {"timing": False}, {"max_seconds": 60.0}])
def test_another_device_works_its_run_out(options: dict[str, Any]) -> None:
    neff, inputs = opened("small_tiles")
    known(neff, inputs).release()
    found = started(neff, inputs, **options)
    found.run()
    assert state(found) == state(worked_out(neff, inputs, **options))


def test_transfers_of_what_nothing_wrote_warn_again() -> None:
    neff, inputs = opened("examples vector_add")
    known(neff, inputs).release()
    device, other = started(neff, {}), worked_out(neff, {})
    assert ways(device)
    device.run()
    assert device.warnings and device.warnings == other.warnings


def test_words_that_read_what_nothing_wrote_warn_again() -> None:
    def kernel(x: Any) -> Any:
        out = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.shared_hbm)
        tile = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.sbuf)
        result = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile[0:64, :], src=x[0:64, :])
        nisa.activation(dst=result, op=nl.exp, data=tile)
        nisa.dma_copy(dst=out, src=result)
        return out

    import nki.isa as nisa
    import nki.language as nl

    x = np.ones((128, 64), np.float32)
    neff = neurontools.build(kernel, x, target="trn2")
    inputs = {neff.inputs[0].name: x}
    device, other = known(neff, inputs), worked_out(neff, inputs)
    assert other.warnings and not any(each.engine == "SP" for each in other.warnings)
    device.run()
    assert state(device) == state(other)


@pytest.mark.parametrize("share", [0.0, 0.3, 0.6])
def test_an_interrupted_run_has_the_warnings_of_its_steps(share: float) -> None:
    neff, _ = opened("examples vector_add")
    device = known(neff, {})
    (way,) = ways(device)
    at = int(len(way.steps) * share)
    instead(way, at, device.interrupt)
    device.run()
    other = worked_out(neff, {}, max_steps=at + 2)
    assert device.warnings == other.warnings and len(device.warnings) < len(worked_out(neff, {}).warnings)
    assert state(device)["hash"] == state(other)["hash"]


def test_moves_are_bound_once_for_tensors_that_lie_where_they_did() -> None:
    neff, inputs = opened("loading_matmul")
    other, others_inputs = opened("examples vector_add")
    device = known(neff, inputs)
    device.run()
    (way,) = ways(device)
    bound = way._bound
    assert bound and len(way._tensors) == 3
    for _ in range(3):
        assert device.outputs()
        device.release()
        between = started(other, others_inputs)
        between.run()
        between.release()
        device = started(neff, inputs)
        device.run()
        assert way._bound is bound
    # Elsewhere they are bound again.
    device.release()
    elsewhere = started(neff, inputs)
    for each in elsewhere.hbm.allocations.values():
        if each.whole:
            each._data = each.data.copy()
    elsewhere.run()
    assert way._bound is not bound and state(elsewhere) == state(worked_out(neff, inputs))


def test_results_stay_as_they_are_when_the_program_runs_again() -> None:
    neff, inputs = opened("loading_matmul")
    given = [inputs, others(inputs), {name: array + 1 for name, array in inputs.items()}]
    wanted = [worked_out(neff, each).outputs() for each in given]
    kept: list[tuple[int, dict[str, Any]]] = []
    for turn in range(12):
        made = neurontools.run(neff, given[turn % 3])
        assert made.unwritten == {}
        kept.append((turn % 3, made.outputs))
        if turn % 4 == 3:
            del kept[:2]
    for which, outputs in kept:
        for name, array in outputs.items():
            assert array.tobytes() == wanted[which][name].tobytes()
            array += 1  # whoever has it may do with it what they like
    last = neurontools.run(neff, inputs).outputs
    assert all(array.tobytes() == wanted[0][name].tobytes() for name, array in last.items())


def test_neither_devices_nor_files_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    text = next(opener for name, opener in programs() if name == "insns memset_integer_int8")
    neff, _ = text()
    held = weakref.ref(neff)
    device = known(neff, {})
    device.run()
    kept, alive = device.cores[0].workspace, weakref.ref(device)
    assert kept.ways
    device.release()
    del device, neff
    gc.collect()
    assert held() is None and alive() is None
    monkeypatch.setattr("emulator.repeats._MOST", 40)
    files = [text()[0] for _ in range(9)]
    for neff in files:
        for _ in range(2):
            device = started(neff, {})
            device.run()
            device.release()
    # The latest are kept, as far as there is room.
    steps = len(kept.ways[-1].steps)
    assert [each.neff() for each in kept.ways] == files[-(40 // steps) :] and 40 // steps < 9


def test_products_that_wait_where_a_run_ends_have_their_zeros() -> None:
    """Zeros of a first product that waits for its HIGH are left out on a known way, until somebody can look."""
    neff, inputs = opened("loading_matmul")
    waited = False
    for count in range(8, 80):
        limited = worked_out(neff, inputs, max_steps=count)
        waits = any(product.first for product in limited.cores[0].pe.pending.values())
        if waited and waits:
            break
        waited = waits
        limited.release()
    device = known(neff, inputs)
    (way,) = ways(device)
    deferring: list[bool] = []
    instead(way, count - 3, lambda: deferring.append(device.cores[0].pe.deferring))
    instead(way, count - 2, device.interrupt)
    device.run()
    assert deferring == [True] and not device.cores[0].pe.deferring
    assert device.steps == limited.steps and device.cores[0].pe.pending.keys() == limited.cores[0].pe.pending.keys()
    assert device.state_hash() == limited.state_hash()
