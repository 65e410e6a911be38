"""Runs of programs whose way is known, without a device: memories, inputs, steps, outputs.

All else that comes of such a run, times, counts and warnings, is what came of the one before (`emulator.known_way`),
so nothing has to be loaded, and no engine, queue or counter to be there.  Inputs that the program only reads are read
where the caller has them, for as long as the run takes.  What checks find is what they found before, where data decide
none of it but whether stores of two cores change anything, which is asked again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from emulator.arch import Arch
from emulator.cost import CostModel
from emulator.device_memory import DeviceMemory
from emulator.dma.transfer import Side
from emulator.dma.views import device_bytes
from emulator.known_way import KnownWay, Step
from emulator.memory import Bytes
from emulator.pace import at_pace
from emulator.settings import Settings
from emulator.tensors import read_tensor
from emulator.workspace import Workspace, give_back, take_waiting
from formats.errors import NeuronError
from formats.named_tuple import NamedTuple

if TYPE_CHECKING:
    from emulator.device import Device
    from emulator.loaded import LoadedModel
    from formats.neff import Neff

__all__ = ["KnownRun", "keep_run", "run_known"]

Array = npt.NDArray[Any]
Kept = TypeVar("Kept")
_CONSTANTS = 1 << 22  # bytes of constants that a run may keep
# An input is read where it lies if there are so many bytes of it for each transfer that touches it: to bind a transfer
# anew costs more than to copy less than that.
_LENT = 1 << 15
# Copies of an input of so many bytes at most have a place of their own, to which transfers stay bound.
_SMALL = 1 << 16


class _Memories(NamedTuple):
    """What the steps of a program work on."""

    arch: Arch
    hbm: DeviceMemory
    cores: Sequence[Workspace]


class _Question(NamedTuple):
    """Whether a store changes anything in one of its sides, and what the answer was."""

    side: Side
    changed: bool


class _Answers:
    """Asks for what stores of a run change; `around` are who carries out these steps, `differ` tells of other answers.

    What is stored to is made before the run, so that it is fresh: a step may find it as the program does.
    """

    def __init__(self, hbm: DeviceMemory, asked: Mapping[int, list[_Question]]) -> None:
        self._hbm, self.differ = hbm, False
        self.around = {at: partial(self._ask, questions) for at, questions in asked.items()}
        for each in (question for questions in asked.values() for question in questions):
            device_bytes(hbm, each.side)

    def _ask(self, questions: list[_Question], step: Step) -> None:
        before = [device_bytes(self._hbm, each.side).copy() for each in questions]
        step()
        for each, was in zip(questions, before, strict=True):
            if bool((device_bytes(self._hbm, each.side) != was).any()) is not each.changed:
                self.differ = True


class KnownRun(Generic[Kept]):
    """What all runs of a program under the same settings have in common; `kept` is for the caller to make results of.

    Nothing here refers to a device, nor to the file.
    """

    def __init__(
        self,
        device: Device,
        model: LoadedModel,
        way: KnownWay,
        settings: Settings,
        kept: Kept,
    ) -> None:
        self.settings, self.kept = settings, kept
        self.costs = _costs_of(device.arch, settings)
        self._arch = device.arch
        self._tensors = {info.name: model.tensors[info.name] for info in (*model.inputs, *model.outputs)}
        self._outputs = [info.name for info in model.outputs]
        inputs = {self._tensors[info.name].address for info in model.inputs}
        results = {self._tensors[name].address for name in self._outputs}
        needed = inputs | results | way.touched.keys()
        self._held = [each.anew() for address, each in device.hbm.allocations.items() if address in needed]
        self.constants: dict[int, Bytes] = {
            address: each.data
            for address, each in device.hbm.allocations.items()
            if each.whole and address in needed - inputs
        }
        self._inputs: dict[int, Bytes] = {}  # where copies of small ones go, always the same
        self._asked: dict[tuple[str, ...], dict[int, list[_Question]]] = {}  # by checks and step
        self._elsewhere: set[tuple[str, ...]] = set()  # checks that data gave other answers than the kept ones
        self._lent = {
            address
            for address in inputs - way.written - results  # what comes out is not the caller's own array
            if device.hbm.allocations[address].nbytes >= _LENT * len(way.touched.get(address, ()))
        }

    @property
    def size(self) -> int:
        """Return the bytes that it keeps."""
        return sum([each.nbytes for each in self.constants.values()])

    def finds(self, way: KnownWay, tools: tuple[str, ...]) -> bool:
        """Return whether what these checks find can be told of a run without a device."""
        return not tools or (tools in way.findings and tools not in self._elsewhere)

    def _asked_by(self, way: KnownWay, tools: tuple[str, ...]) -> dict[int, list[_Question]]:
        """Return what some checks ask of the bytes that are stored to device memory, by the steps that do it."""
        found = self._asked.get(tools)
        if found is None:
            found = self._asked[tools] = {}
            stores = way.stores if tools and way.findings[tools].answers else ()
            for number, place, changed in way.findings[tools].answers if stores else ():
                at, sides = stores[number]
                found.setdefault(at, []).append(_Question(sides[place], changed))
        return found

    def run(
        self, way: KnownWay, workspaces: list[Workspace], arrays: Mapping[str, Array], tools: tuple[str, ...] = ()
    ) -> dict[str, Array] | None:
        """Run on workspaces that were taken and return the outputs; NeuronError where it comes to another end.

        None where what some checks find is something else with these data.
        """
        hbm = DeviceMemory.holding_these([each.anew() for each in self._held])
        lent = set()
        for address, constant in self.constants.items():
            hbm.allocations[address].lend(constant)
        for name, array in arrays.items():
            address, data = self._tensors[name].address, np.ascontiguousarray(array).reshape(-1).view(np.uint8)
            held = hbm.allocations[address]
            if address in self._lent:
                data = data[:]
                data.flags.writeable = False
                held.lend(data)
                lent.add(address)
                continue
            if data.size > _SMALL:
                held.take_unfilled()
                held.whole = True
            else:
                held.lend(self._inputs.setdefault(address, np.empty_like(data)))
            np.copyto(held.data, data)
        answers = _Answers(hbm, self._asked_by(way, tools))
        with at_pace():
            way.carry_out(_Memories(self._arch, hbm, workspaces), frozenset(lent), answers.around)
        if answers.differ:
            self._elsewhere.add(tools)
            hbm.release()
            return None
        outputs = {name: read_tensor(self._tensors, hbm, name, last=True) for name in self._outputs}
        hbm.release()
        return outputs


def _costs_of(arch: Arch, settings: Settings) -> tuple[Any, ...]:
    costs = CostModel(arch, settings.timing)
    return costs.propagation_ps, costs.dispatch_ps, costs.dma


def keep_run(device: Device, settings: Settings, kept: Any) -> None:
    """Keep what came of the run of a device that has gone a known way, for `run_known`; the device is released next."""
    way, model = device.way, device.model
    if way is None or model is None or way.run is not None or any(core.memory.set_apart for core in device.cores):
        return
    run = KnownRun(device, model, way, settings, kept)
    if any(address in way.written for address in run.constants) or run.size > _CONSTANTS:
        return
    for address in run.constants:
        device.hbm.allocations[address].lent = True  # from here on the run has their bytes
    way.run = run


def run_known(
    neff: Neff, settings: Settings, arrays: Mapping[str, Array], tools: tuple[str, ...] = ()
) -> tuple[dict[str, Array], Any, Sequence[Any]] | None:
    """Run an open file whose way is known, and return its outputs, what is kept of its run and what some checks find.

    None where its way is not known, nor what these checks find on it with such data.
    """

    def belongs(workspaces: list[Workspace]) -> KnownWay | None:
        for way in workspaces[0].ways:
            run = way.run
            if run is not None and way.neff() is neff and run.settings == settings and way.goes_on(workspaces):
                return way if run.finds(way, tools) and run.costs == _costs_of(workspaces[0].arch, settings) else None
        return None

    taken = take_waiting(belongs, len(neff.subgraphs))
    if taken is None:
        return None
    workspaces, way = taken
    try:
        outputs = way.run.run(way, workspaces, arrays, tools)
    except NeuronError:
        outputs = None  # what it comes to with these data a device says
    for each in workspaces:
        give_back(each)
    if outputs is None:
        return None
    return outputs, way.run.kept, way.findings[tools].findings if tools else ()
