"""Memories that are filled late and inputs that lie where the caller has them are as those of a run that fills all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emulator import workspace
from emulator.device import Device
from emulator.device_memory import Allocation, DeviceMemory
from emulator.events import WARNINGS
from emulator.memory import FRESH
from emulator.runtime import run
from formats import isa
from formats.neff import Neff
from tests.emulator.dma_programs import PARTITION, POOL_SEMAPHORES, SP_SEMAPHORES, direct, gen3, wait
from tests.emulator.streams import add
from tests.emulator.test_repeats import spoil, spoiled, state
from tests.identity.table import programs

pytestmark = pytest.mark.usefixtures("fresh_workspaces")

ROWS, COLUMNS = 4, 16  # of the tensors of random programs: bytes of a row
TENSORS = {"x": 0, "z": 1, "y": 2}  # entries of the table; x and z are inputs, y is the output


def filled(neff: Neff, inputs: dict[str, Any], **options: Any) -> Device:
    """Return a device behind a run on new memories, all of which is fresh beforehand, with inputs of its own."""
    before = list(workspace._waiting)
    workspace._waiting.clear()
    device = Device(neff.target, len(neff.subgraphs), **options)
    workspace._waiting[:] = before
    device.replays = False
    device.load(neff)
    for allocation in device.hbm.allocations.values():
        assert not allocation.touched or allocation.whole
        allocation.fills = True
    device.set_inputs(inputs)
    device.run()
    return device


def unfilled(neff: Neff, inputs: dict[str, Any], width: int = 1 << 20, **options: Any) -> Device:
    """Return a device behind a run where bytes of other programs lie in all memories, with inputs of the caller.

    `width` are the bytes of each partition that hold some.
    """
    workspace._waiting.clear()
    other = Device(neff.target, len(neff.subgraphs))
    for core in other.cores:
        for space in ("SBUF", "PSUM"):
            core.memory.mark_written(space, 0, core.memory.partitions, 0, min(width, core.memory.laid(space).shape[1]))
    other.release()
    device = Device(neff.target, len(neff.subgraphs), unseen=True, **options)
    device.replays = False
    for core in device.cores:
        assert spoil(core.memory)
    device.load(neff)
    device.set_inputs(inputs, borrowed=True)
    device.run()
    return device


def test_every_program_finds_what_it_finds_in_new_memories(monkeypatch: pytest.MonkeyPatch) -> None:
    spoiled(monkeypatch)
    late = 0
    every = [each for each in programs() if not each[0].startswith("insns")]
    every += [each for each in programs() if each[0].startswith("insns")][::9]
    for name, opener in every:
        neff, inputs = opener()
        given = {each: array.copy() for each, array in inputs.items()}
        # Halves of products that nobody has looked at yet are among what stands where a run ends early.
        for most in (9, 33, 50, 70) if "matmul" in name or "attention" in name else ():
            device, other = unfilled(neff, given, 4096, max_steps=most), filled(neff, inputs, max_steps=most)
            assert state(device) == state(other), (name, most)
            device.release()
            other.release()
        device = unfilled(neff, given, max_steps=40_000)
        late += device.cores[0].memory._left is not None
        other = filled(neff, inputs, max_steps=40_000)
        assert state(device) == state(other), name
        for each, array in given.items():
            assert array.flags.writeable and array.tobytes() == inputs[each].tobytes()
        device.release()
        other.release()
    assert late > 20, "most programs read nothing that they have not written"


# --- random programs -------------------------------------------------------------------------------------------------

places = st.one_of(
    st.tuples(st.sampled_from(sorted(TENSORS)), st.integers(0, ROWS - 1)),
    st.tuples(st.just("SB"), st.integers(0, 3)),
)
copies = st.tuples(places, places, st.booleans(), st.booleans(), st.integers(1, ROWS))


def copy_of(number: int, copy: tuple[tuple[str, int], tuple[str, int], bool, bool, int]) -> tuple[str, Any]:
    """Return the engine and the word of a copy of some rows; `waits` is for the one before on its engine."""
    source, target, on_pool, _, rows = copy
    sides, steps = [], []
    for where, at in (source, target):
        rows = min(rows, ROWS - at)
        if where == "SB":
            sides.append(("variable", 0, at * COLUMNS))
            steps.append(PARTITION)
        else:
            sides.append(("table", TENSORS[where], at * COLUMNS))
            steps.append(COLUMNS)
    semaphores = POOL_SEMAPHORES if on_pool else SP_SEMAPHORES
    word = direct(sides[0], sides[1], COLUMNS, rows, *steps, semaphore=semaphores[number % len(semaphores)])
    return ("Pool" if on_pool else "SP"), word


def program(plan: Sequence[Any]) -> Neff:
    """Return a program of copies, some of which wait for the one before them."""
    streams: dict[str, list[isa.Instruction]] = {"SP": [], "Pool": []}
    raised: dict[int, int] = {}
    last: dict[str, int] = {}
    for number, copy in enumerate(plan):
        engine, word = copy_of(number, copy)
        if copy[3] and engine in last:
            word = word.replace(**wait(last[engine], raised[last[engine]]))
        streams[engine].append(word)
        last[engine] = word.semaphore
        raised[word.semaphore] = raised.get(word.semaphore, 0) + 16
    form = ("float32", (ROWS, COLUMNS // 4))
    return gen3(streams, inputs={"x": form, "z": form}, outputs={"y": form})


def seen(device: Device) -> list[Any]:
    """Return what copies can change."""
    tensors = [device.tensor(name).tobytes() for name in TENSORS]
    sbuf, written = device.cores[0].sbuf[:16, :4096].tobytes(), device.cores[0].sbuf_written[:16, :4096].tobytes()
    return [*tensors, sbuf, written, device.warnings, device.now_ps, device.outcome]


@settings(max_examples=100)
@given(st.lists(copies, min_size=1, max_size=16))
def test_inputs_that_are_stored_to_are_copied_then(plan: Sequence[Any]) -> None:
    """Copies between inputs, output and SBUF, in any order, at once and one after the other."""
    neff = program(plan)
    inputs = {name: np.arange(ROWS * COLUMNS // 4, dtype=np.float32).reshape(ROWS, -1) + at * 100
              for name, at in (("x", 1), ("z", 2))}  # fmt: skip
    given = {name: array.copy() for name, array in inputs.items()}
    for array in given.values():
        array.flags.writeable = False  # who writes there fails
    device, other = unfilled(neff, given, 4096), filled(neff, inputs)
    assert seen(device) == seen(other)
    stored = {target for _, (target, _), *_ in plan}
    held = {name: device.hbm.allocations[device.tensors[name].address] for name in given}
    assert {name for name, each in held.items() if not each.is_borrowed} == stored & {*given}
    device.release()
    other.release()
    outputs = run(neff, given).outputs
    assert outputs["y"].tobytes() == run(neff, inputs, observers=[object()]).outputs["y"].tobytes()


def test_who_waits_to_read_an_input_finds_what_is_stored_there_before() -> None:
    """A copy behind long ones in its queue has its views when another is told to store where it reads."""
    form, row = ("float32", (128, 2048)), 2048 * 4
    load = direct(("table", 1, 0), ("variable", 0, 0), row, 128, row, PARTITION, semaphore=24)
    words: list[isa.Instruction] = [load] * 3
    words.append(direct(("table", 0, 0), ("table", 2, 0), row, 128, row, row, semaphore=25))
    words.append(isa.Nop(update_mode=isa.UpdateMode.SEM_INC, update_index=100))
    store = direct(("table", 1, 0), ("table", 0, 0), row, 4, row, row, **wait(100, 1))
    neff = gen3({"Pool": words, "SP": [store]}, inputs={"x": form, "z": form}, outputs={"y": form})
    inputs = {name: np.full(form[1], value, np.float32) for name, value in (("x", 1), ("z", 2))}
    device, other = unfilled(neff, inputs, 4096), filled(neff, inputs)
    assert seen(device) == seen(other) and device.tensor("y")[3:5, 0].tolist() == [2, 1] and (inputs["x"] == 1).all()


@pytest.mark.parametrize("tensors", [0, WARNINGS])
def test_behind_the_last_warning_memories_are_fresh(tensors: int) -> None:
    """What is read then is not looked at any more: neither what others left in SBUF, nor a tensor."""
    words: list[isa.Instruction] = [add(0x100 * at, 0x100 * at + 64, 0x10_000 + 64 * at) for at in range(WARNINGS)]
    copies = [direct(("table", 1, 0), ("variable", 0, 0x5000), 16, 4, 16, PARTITION) for _ in range(max(tensors, 1))]
    if tensors:
        words = [add(0x9000, 0x9100, 0x12_000).replace(**wait(8, 16 * tensors))]
    else:
        words[-1] = words[-1].replace(update_mode=isa.UpdateMode.SEM_INC, update_index=100)
        copies[0] = copies[0].replace(**wait(100, 1))
    form = ("float32", (4, 4))
    streams = {"DVE": words, "SP": copies}
    neff = gen3(streams, inputs={"x": form}, outputs={"y": form}, features=["neurontools_extended"])
    inputs = {"x": np.ones((4, 4), np.float32)}
    device, other = unfilled(neff, inputs), filled(neff, inputs)
    assert len(device.warnings) == WARNINGS and not device.checking
    assert state(device) == state(other)


# --- one by one ------------------------------------------------------------------------------------------------------


def test_a_tensor_is_fresh_for_who_looks_and_not_before() -> None:
    memory = DeviceMemory(((0, 1 << 30),))
    address = memory.allocate(1 << 15, "t")
    held = memory.allocations[address]
    held.set_apart.append((8, 8, b"\4\0\0\0"))
    wanted = held.fresh()
    view = held.laid
    view.fill(0x5A)
    held.extent(100, (), 50).mark()
    assert held.touched and held.written_bytes == 50 and (view == 0x5A).all()
    wanted[100:150] = 0x5A
    assert held.data is view and np.array_equal(view, wanted)
    view.fill(1)
    held.freshen()
    assert (held.data == 1).all(), "it is filled once"


@pytest.mark.parametrize("whole", [False, True])
def test_what_is_missing_is_fresh_for_who_asks(whole: bool) -> None:
    held = Allocation(0, 1 << 15, "t")
    held.laid.fill(0x5A)
    if whole:
        held.extent(0, (), 1 << 15).mark()
    assert held.extent(0, (), 64).missing() == (0 if whole else 64)
    assert (held.laid == (0x5A if whole else FRESH)).all()


def test_what_is_borrowed_is_copied_for_who_writes() -> None:
    memory = DeviceMemory(((0, 1 << 30),))
    told: list[bool] = []
    memory.moved = lambda: told.append(True)
    address = memory.allocate(64, "t")
    mine = np.arange(64, dtype=np.uint8)
    memory.borrow(address, mine)
    held = memory.allocations[address]
    assert held.is_borrowed and held.whole and np.shares_memory(held.data, mine) and not held.data.flags.writeable
    memory.write(address + 3, b"\xff")
    assert told and not held.is_borrowed and held.data[3] == 0xFF and mine[3] == 3
    part = memory.allocate(64, "part")
    memory.borrow(part, mine[:32])
    assert not memory.allocations[part].is_borrowed and memory.allocations[part].written_bytes == 32
