"""Every component owns its state: nothing of it is forgotten, all of it comes back, the journal follows all of it."""

from __future__ import annotations

import ast
from collections import deque
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from emulator.device import Device
from emulator.dma.transfer import Transfer
from emulator.events import Event
from emulator.generators import Generators
from emulator.journal import Journal
from formats.neff import Neff, open_neff
from neurontools.assembly.assemble_neff import to_neff
from neurontools.assembly.assembler import parse_program
from neurontools.debugger.opening import open_session

DRAWING = """
.target trn2
.dialect extended
.output y int32 [4]
.queue qOut sp 24
.engine dve
    SET_RNG_SEED src=int32@0x5000[1,1,1,1,1][1,1,1,1,1] channels=1
    RNG dst=uint32@0x5000[1,1,1,1,1][4,1,1,1,1] channels=128
    RNG dst=uint32@0x5000[1,1,1,1,1][4,1,1,1,1] channels=128
.engine pool
    NOP S[3]>=1 cycle=0
.engine act
    NOP S[3]>=1 cycle=0
.engine sp
    NOP cycle=1000
    NOP S[3]++@complete cycle=0
"""
PROGRAMS = ("attention", "softmax", "drawing")
UNUSED = (Generators(1).snapshot(), Generators(4).snapshot())
Program = tuple[Neff, dict[str, Any]]


@pytest.fixture(scope="module")
def programs(root: Path) -> dict[str, Program]:
    """Return files and inputs by name."""
    found: dict[str, Program] = {"drawing": (open_neff(to_neff(parse_program(DRAWING, "drawing.s"))), {})}
    for name in PROGRAMS[:2]:
        opened = open_session(root / "examples" / f"{name}.py")
        found[name] = opened.neff, opened.inputs
    return found


def loaded(program: Program, **options: Any) -> Device:
    """Return a device at the beginning of a program."""
    neff, inputs = program
    device = Device(neff.target, len(neff.subgraphs), **options)
    device.load(neff)
    device.set_inputs(inputs)
    return device


def attributes(component: object) -> set[str]:
    """Return the names of an object's attributes."""
    slots = {name for cls in type(component).__mro__ for name in getattr(cls, "__slots__", ())}
    return (slots | set(getattr(component, "__dict__", ()))) - {"__weakref__", "__dict__"}


def fields(component: object, snapshot: Any) -> set[str]:
    """Return the names of a snapshot's fields; parts that are no attributes count by their own."""
    names: set[str] = set()
    own = {name.lstrip("_") for name in attributes(component)}
    for name, value in snapshot._asdict().items():
        names |= {name} if name in own or not hasattr(value, "_asdict") else fields(component, value)
    return names


def components(component: Any, name: str) -> Iterator[tuple[str, Any]]:
    """Yield a component and those that it holds as state."""
    yield name, component
    for attribute in sorted(attributes(component) - set(component.NOT_STATE)):
        value = getattr(component, attribute)
        held = list(value.values()) if isinstance(value, Mapping) else value
        for each in flat(held):
            if hasattr(each, "snapshot"):
                yield from components(each, f"{name}.{attribute}")


def flat(value: Any) -> Iterator[Any]:
    """Yield what a value holds, or the value."""
    if isinstance(value, list | tuple | deque):
        for each in value:
            yield from flat(each)
    else:
        yield value


def test_no_attribute_of_a_component_is_forgotten(programs: dict[str, Program]) -> None:
    """A new attribute belongs into its component's snapshot, or into NOT_STATE with the reason."""
    device = loaded(programs["attention"])
    while not (device.dma.triggered > 2 and any(queue.pending for queue in device.queues)):
        assert device.step() is not None
    device.cores[0].generators.of("DVE")
    kinds: set[str] = set()
    for name, component in components(device, "device"):
        kinds.add(type(component).__name__)
        own, apart = attributes(component), component.NOT_STATE
        assert set(apart) <= own, f"{name}: NOT_STATE names what there is not"
        assert all(apart.values()), f"{name}: NOT_STATE without a reason"
        known = fields(component, component.snapshot())
        forgotten = {each for each in own if each.lstrip("_") not in known and each not in apart}
        assert not forgotten, f"{name} ({type(component).__name__}) forgets {sorted(forgotten)}"
        assert not {each for each in apart if each.lstrip("_") in known}, f"{name}: state that is said to be none"
    assert kinds == {
        "Device", "DeviceMemory", "Allocation", "Cold", "DmaSystem", "DmaEngines", "Plan", "DmaQueue", "Transfer",
        "Core", "ChipMemory", "Semaphores", "Events", "PeState", "Latch", "Contention", "GeneratorBank", "Generators",
        "Sequencer", "TensorArray",
    }  # fmt: skip


def test_a_forgotten_attribute_is_found() -> None:
    device = Device("trn2")
    device.dma.more = 1  # type: ignore[attr-defined]
    assert "more" in attributes(device.dma) - fields(device.dma, device.dma.snapshot()) - set(device.dma.NOT_STATE)


def same(one: Any, other: Any) -> bool:
    """Return whether two snapshots are equal."""
    if isinstance(one, np.ndarray):
        return isinstance(other, np.ndarray) and np.array_equal(one.view(np.uint8), other.view(np.uint8))
    if isinstance(one, tuple):
        return type(one) is type(other) and len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


@pytest.mark.parametrize("seed", [None, 5])
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_restored_device_goes_on_as_it_did(programs: dict[str, Program], name: str, seed: int | None) -> None:
    straight = loaded(programs[name], seed=seed)
    total = 0
    while straight.step() is not None:
        total += 1
    device = loaded(programs[name], seed=seed)
    for _ in range(total // 2):
        device.step()
    held, state = device.snapshot(), device.state_hash()
    for _ in range(2):
        device.run()
        assert (device.now_ps, device.state_hash()) == (straight.now_ps, straight.state_hash())
        device.restore(held)
        assert device.state_hash() == state
        assert same(device.snapshot(), held)


class _Follower:
    """An observer behind a journal: what the journal took for the state must be the state."""

    def __init__(self, journal: Journal) -> None:
        self.control, self.events = journal._control, 0

    def on_event(self, event: Event) -> None:
        self.events += 1
        control = self.control
        for part, held in zip(control._parts, control._values, strict=True):
            state = part.snapshot()
            # Generators come into being when a word that is about to use them is bound.
            assert state == held or (held is None and state in UNUSED), (event, part.snapshot)
        assert control._counters == control._tables


@pytest.mark.parametrize("seed", [None, 5])
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_journal_follows_every_component(programs: dict[str, Program], name: str, seed: int | None) -> None:
    device = loaded(programs[name], seed=seed)
    journal = Journal(device)
    follower = _Follower(journal)
    device.observers += [journal, follower]
    device.run()
    assert follower.events > 5
    journal.back_to(3)
    device.run()
    assert device.finished


@pytest.mark.parametrize("folder", ["journal", "dump"])
def test_nothing_reaches_into_a_component(root: Path, folder: str) -> None:
    """Private attributes are an object's own: what keeps or writes states asks for snapshots."""
    found = [
        f"{path.name}:{node.lineno} {node.attr}"
        for path in sorted((root / "emulator" / folder).glob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and node.attr.startswith("_") and not node.attr.startswith("__")
        and node.attr not in ("_replace", "_asdict", "_fields", "_make")
        and not (isinstance(node.value, ast.Name) and node.value.id in ("self", "cls"))
    ]  # fmt: skip
    assert found == []


def test_a_pending_transfer_is_restored_as_planned(programs: dict[str, Program]) -> None:
    device = loaded(programs["attention"])
    while not (pending := [each for queue in device.queues for each in queue.pending]):
        device.step()
    first: Transfer = pending[0]
    held, plan = device.snapshot(), first.snapshot()
    while first.state != "done":
        device.step()
    device.restore(held)
    assert first.state == "queued" and first.completed_ps == -1 and first.snapshot() == plan
