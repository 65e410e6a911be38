"""Large arrays in unnamed files: what a device writes stays its own, what is let go comes back as it was."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from emulator import large_arrays
from emulator.device_memory import DeviceMemory
from emulator.large_arrays import Store, own_copy, pages_of, zeros
from emulator.runtime import new_device, run
from emulator.settings import USUAL
from neurontools.program.configuration import RunConfiguration
from neurontools.program.inputs import program_inputs
from tests.emulator.dma_programs import PARTITION, direct, gen3, wait

SIZE = 1 << 16


@pytest.fixture(autouse=True)
def everything_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large_arrays, "_LARGE", 1)


def stored(data: np.ndarray) -> np.ndarray:
    store = Store(data.nbytes)
    store.write(data[: data.size // 3])
    store.write(data[data.size // 3 :].tobytes())
    return store.array()


def test_an_array_is_what_was_written_and_cannot_be_changed() -> None:
    data = np.random.default_rng(1).integers(0, 256, SIZE, np.uint8)
    held = stored(data)
    assert held.tobytes() == data.tobytes() and not held.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        held[0] = 1
    store = Store(4)
    store.write(b"abc")
    with pytest.raises(ValueError, match="3 of 4"):
        store.array()
    assert not zeros(SIZE).any() and not zeros(SIZE).flags.writeable


@pytest.mark.parametrize("made", [stored, lambda data: zeros(data.size)])
def test_copies_are_independent(made: object) -> None:
    held = made(np.full(SIZE, 7, np.uint8))  # type: ignore[operator]
    before = held.tobytes()
    one, two = own_copy(held), own_copy(held)
    assert one is not None and two is not None and one.tobytes() == before
    one[10:20] = 9
    assert held.tobytes() == two.tobytes() == before and one[9:21].tolist() == [before[0], *[9] * 10, before[0]]


def test_only_whole_arrays_of_this_module_are_shared() -> None:
    held = stored(np.arange(SIZE, dtype=np.uint8))
    for other in (np.zeros(SIZE, np.uint8), held[1:], held[::-1], held.reshape(256, 256).T, held[:0]):
        assert own_copy(other) is None and pages_of(other) is None
    copy = own_copy(held.view(np.float16).reshape(128, -1))
    assert copy is not None and copy.tobytes() == held.tobytes()
    assert pages_of(held) is None and pages_of(copy) is not None


def test_pages_that_are_let_go_come_back_until_something_writes() -> None:
    memory = DeviceMemory(((1 << 40, 1 << 30),))
    address = memory.allocate(SIZE, "x")
    held = stored(np.arange(SIZE, dtype=np.uint8))
    memory.write(address, held)
    found = memory.allocations[address]
    assert memory.paged and found.pages is not None and memory.check_written(address, SIZE) == 0
    with pytest.raises(ValueError, match="read-only"):  # who forgets to ask for `writable` fails, and loses nothing
        memory.view(address, 4)[:] = 9
    early = memory.view(address, SIZE)
    found.pages.leave()
    found.pages.looked_at(1 << 20, 4096)
    assert early.tobytes() == held.tobytes()
    before = memory.snapshot()
    memory.write(address + 8, b"\xaa\xbb")
    assert found.pages is None and early[6:12].tolist() == [6, 7, 0xAA, 0xBB, 10, 11]  # no stale bytes in older views
    assert held[:12].tolist() == list(range(12))
    memory.restore(before)
    assert memory.view(address, SIZE).tobytes() == held.tobytes()
    memory.release()
    assert held[:12].tolist() == list(range(12))


def test_a_program_that_writes_its_input_leaves_the_array_alone() -> None:
    """A load of x, then a store of all rows but the first over it."""
    load = direct(("table", 0, 0), ("variable", 0, 0x4000), 256, 128, 256, PARTITION)
    store = direct(
        ("variable", 0, PARTITION + 0x4000), ("table", 0, 0), 256, 127, PARTITION, 256, semaphore=9, **wait(8)
    )
    neff = gen3({"SP": [load, store]}, inputs={"x": ("float32", (128, 64))})
    plain = np.random.default_rng(1).standard_normal((128, 64)).astype(np.float32)
    x = stored(plain.reshape(-1).view(np.uint8)).view(np.float32).reshape(128, 64)
    device = new_device(neff, USUAL)
    device.load(neff)
    device.set_inputs({"x": x})
    assert device.hbm.paged and device.run() == "finished", device.fault
    assert device.tensor("x")[:127].tobytes() == plain[1:].tobytes() and x.tobytes() == plain.tobytes()
    one, two = run(neff, {"x": x}, checks=("all",)), run(neff, {"x": plain}, checks=("all",))
    assert one.ok and two.ok and one.time_ps == two.time_ps and one.findings == two.findings


@pytest.mark.parametrize("dtype", ["float16", "float32", "bfloat16", "int8"])
def test_inputs_are_the_same_in_files_and_in_memory(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    neff = gen3({"SP": []}, inputs={"a": (dtype, (37, 11)), "b": (dtype, (5,)), "c": (dtype, (3, 0))})
    for asked in ("random:7", "zeros"):
        large = program_inputs(neff, RunConfiguration(inputs=asked))[0]
        with monkeypatch.context() as patch:
            patch.setattr(large_arrays, "_LARGE", 1 << 30)
            small = program_inputs(neff, RunConfiguration(inputs=asked))[0]
        assert {name: (array.dtype, array.shape, array.tobytes()) for name, array in large.items()} == {
            name: (array.dtype, array.shape, array.tobytes()) for name, array in small.items()
        }


def test_without_room_for_the_file_arrays_stay_in_memory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    room = SimpleNamespace(f_bavail=1, f_frsize=512)
    monkeypatch.setattr(os, "statvfs", lambda _: room)
    assert stored(np.arange(600, dtype=np.uint8)).flags.writeable
    monkeypatch.undo()
    monkeypatch.setattr(large_arrays, "_LARGE", 1)
    monkeypatch.setenv("TMPDIR", str(tmp_path / "none"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "none"))
    assert stored(np.arange(600, dtype=np.uint8)).flags.writeable


def test_more_than_any_host_has_is_a_memory_error() -> None:
    with pytest.raises(MemoryError, match="no room to map"):
        zeros(1 << 60)
