"""A device that was released is gone as soon as nobody has it: no garbage is left for a collection to find."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from pathlib import Path

import pytest

from emulator import runtime
from emulator.device import Device
from formats.neff import open_neff
from neurontools.assembly.assemble_neff import to_neff
from neurontools.assembly.assembler import parse_program
from neurontools.debugger.opening import open_session


@pytest.fixture
def uncollected() -> Iterator[None]:
    """Let no collection start by itself."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@pytest.mark.parametrize("name", ["softmax", "vector_add"])
def test_runs_leave_no_garbage(uncollected: None, root: Path, name: str) -> None:
    """The first run, the second, which is kept, and the third, which goes its way."""
    opened = open_session(root / "examples" / f"{name}.py")
    neff, inputs = opened.neff, opened.inputs
    del opened
    gc.collect()
    for _ in range(4):
        assert runtime.run(neff, inputs).ok
        assert gc.collect() == 0


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_shaken_runs_leave_no_garbage(uncollected: None, root: Path, seed: int) -> None:
    """Two transfers that meet know each other."""
    opened = open_session(root / "examples" / "vector_add.py")
    neff, inputs = opened.neff, opened.inputs
    del opened
    gc.collect()
    assert runtime.run(neff, inputs, seed=seed).ok
    assert gc.collect() == 0


def test_a_hang_leaves_no_garbage(uncollected: None, root: Path) -> None:
    """Engines that wait for each other are looked for in the report."""
    path = root / "examples" / "deadlock.s"
    neff = open_neff(to_neff(parse_program(path.read_text(), path.name)))
    gc.collect()
    result = runtime.run(neff)
    assert result.hang is not None
    assert len(result.hang.cycles) == 1
    assert gc.collect() == 0


@pytest.mark.parametrize("name", ["softmax", "deadlock", "out_of_bounds"])
def test_a_released_device_is_gone_with_its_last_user(uncollected: None, root: Path, name: str) -> None:
    """Whatever came of the run: an end, a hang with engines that wait, a fault with transfers that are pending."""
    path = root / "examples" / f"{name}.py"
    inputs = {}
    if path.exists():
        opened = open_session(path)
        neff, inputs = opened.neff, opened.inputs
    else:
        neff = open_neff(to_neff(parse_program(path.with_suffix(".s").read_text(), path.with_suffix(".s").name)))
    device = Device(neff.target, len(neff.subgraphs))
    device.load(neff)
    device.set_inputs(inputs)
    assert device.run() == {"softmax": "finished", "deadlock": "hang", "out_of_bounds": "fault"}[name]
    seen = [weakref.ref(device), weakref.ref(device.dma), *(weakref.ref(core) for core in device.cores)]
    seen += [weakref.ref(engine) for core in device.cores for engine in core.engines.values()]
    device.release()
    device.release()  # once is all it does
    del device
    assert [each() for each in seen] == [None] * len(seen)
