"""The view of a machine: a live device and a core dump both answer all of it, and a dump nothing else that moves."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

import pytest

from emulator import machine_view
from emulator.device import Device
from emulator.dump import write_core
from emulator.dump.reading import DumpedMachine
from formats.core import open_core
from formats.neff import open_neff
from neurontools.assembly.assemble_neff import to_neff
from neurontools.assembly.assembler import parse_program

VIEWS = {name: getattr(machine_view, name) for name in machine_view.__all__}
MOVES = ("step", "run", "ahead", "load", "set_inputs", "schedule", "restore", "snapshot", "heap", "observers", "emit")


@pytest.fixture(scope="module")
def device(root: Path) -> Device:
    """Return a device in the middle of a program, with words in flight, waits and a pending transfer."""
    source = root / "fixtures" / "core" / "nan.s"
    found = Device("trn2")
    found.load(open_neff(to_neff(parse_program(source.read_text(), "nan.s"))))
    while not any(queue.pending for queue in found.queues):
        assert found.step() is not None
    return found


@pytest.fixture(scope="module")
def dumped(device: Device, tmp_path_factory: pytest.TempPathFactory) -> DumpedMachine:
    """Return the same as a dump has it."""
    path = tmp_path_factory.mktemp("core") / "x.core"
    write_core(device, path, level="full")
    return DumpedMachine(open_core(path))


def members(view: type) -> list[str]:
    """Return what a protocol demands."""
    return sorted(name for name in vars(view) if not name.startswith("_") or name in ("__getitem__", "__len__"))


def parts(machine: Any) -> Iterator[tuple[str, Any]]:
    """Yield a machine and its parts, with the names of their views."""
    yield "MachineView", machine
    yield "DeviceMemoryView", machine.hbm
    for allocation in machine.hbm.allocations.values():
        yield "AllocationView", allocation
    for queue in machine.queues:
        yield "QueueView", queue
        for transfer in queue.pending:
            yield "TransferView", transfer
    for core in machine.cores:
        yield "CoreView", core
        yield "CountersView", core.semaphores
        yield "CountersView", core.events
        yield "ChipMemoryView", core.memory
        for engine in core.engines.values():
            yield "EngineView", engine
            for flight in engine.in_flight:
                yield "FlightView", flight
            if engine.waiting_on is not None:
                yield "WaitingView", engine.waiting_on


@pytest.mark.parametrize("which", ["device", "dumped"])
def test_all_of_the_view_is_answered(which: str, request: pytest.FixtureRequest) -> None:
    seen = set()
    for name, part in parts(request.getfixturevalue(which)):
        seen.add(name)
        for member in members(VIEWS[name]):
            assert hasattr(part, member), f"{type(part).__name__} lacks {member} of {name}"
    assert seen == set(VIEWS) - {"FlightView", "WaitingView"} | (seen & {"FlightView", "WaitingView"})


def test_both_tell_the_same(device: Device, dumped: DumpedMachine) -> None:
    assert (dumped.now_ps, dumped.steps, dumped.outcome) == (device.now_ps, device.steps, device.outcome)
    assert dict(dumped.tensors) == dict(device.tensors) and dumped.program_name == device.program_name
    for one, other in zip(device.cores, dumped.cores, strict=True):
        assert list(one.semaphores.values) == list(other.semaphores.values)
        assert list(one.events.values) == list(other.events.values)
        for space in ("SBUF", "PSUM"):
            assert one.memory.written_bytes(space) == other.memory.written_bytes(space)
        for name, engine in one.engines.items():
            mine = other.engines[name]
            for member in ("pc", "position", "count", "stream_length", "completed", "state", "busy_ps", "done"):
                assert getattr(mine, member) == getattr(engine, member), member
            assert mine.waiting_on == engine.waiting_on and len(mine.in_flight) == len(engine.in_flight)
            for word in engine.words:
                assert other.text_of(name, word.pc) == one.text_of(name, word.pc)
    for queue, mine_too in zip(device.queues, dumped.queues, strict=True):
        assert (mine_too.outstanding, mine_too.ring, mine_too.nbytes) == (queue.outstanding, queue.ring, queue.nbytes)
    for address, allocation in device.hbm.allocations.items():
        assert dumped.hbm.allocations[address].written_bytes == allocation.written_bytes


def test_a_dump_is_no_device_and_does_not_move(dumped: DumpedMachine) -> None:
    assert not isinstance(dumped, Device)
    assert not [name for name in MOVES if hasattr(dumped, name)]


def test_every_view_is_a_protocol() -> None:
    assert all(Protocol in view.__mro__ or getattr(view, "_is_protocol", False) for view in VIEWS.values())
