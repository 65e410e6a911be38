"""An execution against arrays that somebody knows to be right: outputs, and tiles by the names of kernel variables."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from emulator.dma.transfer import Transfer
from emulator.dtypes import numpy_dtype
from emulator.errors import InputError
from emulator.events import Event
from emulator.memory import FRESH
from formats.dtypes import Dtype
from formats.errors import NotFoundError
from formats.named_tuple import NamedTuple
from formats.neff.tiles import Tile
from formats.regions import Region
from neurontools.debugger.stops import region_values
from neurontools.divergence.array_difference import difference
from neurontools.divergence.operands import before, completion, pairs
from neurontools.divergence.results import Divergence, GoldenRow

if TYPE_CHECKING:
    from emulator.placement import DeviceTensor
    from neurontools.debugger import Session

__all__ = ["GoldenComparison", "compare_golden"]

Array = npt.NDArray[Any]


class GoldenComparison(NamedTuple):
    """What came of an execution against known arrays; `unknown` names are none of the program's."""

    divergence: Divergence | None
    rows: tuple[GoldenRow, ...]
    unknown: tuple[str, ...]
    outcome: str

    @property
    def same(self) -> bool:
        """Return whether every array that the program knows is as it should be, and the execution finished."""
        return self.divergence is None and self.outcome == "finished" and not any(row.difference for row in self.rows)


class _Place:
    """One tensor or tile with a known array: its last contents, and which event wrote each byte last."""

    def __init__(self, name: str, core: int, item: Tile | DeviceTensor, wanted: Array) -> None:
        self.name, self.core, self.item, self.wanted = name, core, item, wanted
        if isinstance(item, Tile):
            self.region = Region(item.space, core, item.partition, item.partitions, item.offset, item.partition_bytes)
        else:
            self.region = Region("HBM", 0, 0, 1, item.address, item.nbytes)
        self.rows, self.width = self.region.partitions, self.region.nbytes
        self.writers = np.full((self.rows, self.width), -1, np.int32)
        self.last: int | None = None
        self.values: Array | None = None

    def wrote(self, region: Region, number: int) -> None:
        """Note who wrote a region, as far as it lies inside."""
        self.last = number
        part = region if self.region.covers(region) else self.region.common(region)._replace(pattern=None)
        inside = part._replace(first=part.first - self.region.first, byte=part.byte - self.region.byte)
        offset, shape, strides = inside.walk(self.width)
        view: Array = np.ndarray(shape, np.int32, self.writers, 4 * offset, tuple(4 * step for step in strides))
        view[...] = number

    def culprit(self, rtol: float, atol: float) -> int | None:
        """Return the first event that left a wrong element behind, None where none did."""
        assert self.values is not None
        size = self.values.dtype.itemsize
        by_element = self.writers.reshape(-1, size).max(axis=1)
        numbers = np.unique(by_element)
        have, want = self.values.reshape(-1), self.wanted.reshape(-1)
        for number in numbers[numbers >= 0]:
            chosen = by_element == number
            if difference(have[chosen], want[chosen], rtol, atol) is not None:
                return int(number)
        return None


class _Recorder:
    """An observer that follows the places with known arrays through a run."""

    def __init__(self, session: Session, places: list[_Place]) -> None:
        self.session = session
        self.by_memory: dict[tuple[str, int], list[_Place]] = defaultdict(list)
        for place in places:
            space = place.item.space if isinstance(place.item, Tile) else "HBM"
            self.by_memory[space, place.core if space != "HBM" else 0].append(place)

    def on_event(self, event: Event) -> None:
        """Note what was written into places, and keep what tiles hold: others take their bytes later."""
        word = event.instruction
        engine = word.engine if isinstance(word, Transfer) else event.engine
        touched: dict[int, _Place] = {}
        for region in event.writes:
            key = (region.space, region.core) if region.space != "HBM" else ("HBM", 0)
            for place in self.by_memory.get(key, ()):
                if place.region.overlaps(region) and _alive(place.item, engine, event.pc):
                    place.wrote(region, event.number)
                    touched[id(place)] = place
        for place in touched.values():
            if isinstance(place.item, Tile):  # a tensor keeps its bytes to the end
                place.values = self.content(place)

    def content(self, place: _Place) -> Array:
        """Return a copy of what a place holds."""
        item = place.item
        kind = Dtype.from_numpy_name(item.dtype)
        values = region_values(self.session.device, place.region, kind)
        if values is None or values.size * kind.size != place.rows * place.width:
            # Nothing wrote it: what fresh memory holds, as elements of the place, whatever type the known array has.
            values = np.full(place.rows * place.width, FRESH, np.uint8).view(numpy_dtype(kind))
        return values.reshape(item.shape).copy()


def _alive(item: Tile | DeviceTensor, engine: str, pc: int) -> bool:
    if not isinstance(item, Tile):
        return True
    span = item.pcs.get(engine)
    return span is not None and span[0] <= pc <= span[1]


def compare_golden(open_session: Callable[[], Session], golden: Mapping[str, Array], rtol: float = 0.0,
                   atol: float = 0.0) -> GoldenComparison:  # fmt: skip
    """Run a program and compare what it leaves in outputs, variables and tiles with arrays by name.

    A tile is compared as its last write left it. The divergence is the first completion whose bytes are still there in
    the end and wrong. Raises InputError for an array of another size than what it names, NotFoundError where no name
    fits.
    """
    session = open_session()
    places, unknown = _places(session, golden)
    if not places:
        names = ", ".join(session.tensors.names(0)[:12]) or "nothing"
        asked = ", ".join(golden) or "no names"
        raise NotFoundError(f"none of {asked} is a tensor or tile of the program, which has {names}")
    recorder = _Recorder(session, places)
    session.device.observers.append(recorder)
    session.device.run()
    rows, first = [], None
    for place in places:
        if place.values is None or not isinstance(place.item, Tile):
            place.values = recorder.content(place)
        wanted = place.wanted.reshape(place.values.shape)
        gap = difference(place.values, wanted, rtol, atol)
        space = place.item.space if isinstance(place.item, Tile) else "HBM"
        rows.append(GoldenRow(place.name, space, place.last, gap))
        number = None if gap is None else place.culprit(rtol, atol)
        if gap is not None and number is not None and (first is None or number < first[0]):
            first = number, place, gap
    found = None
    if first is not None:
        number, place, gap = first
        again = open_session()
        event, inputs, outputs = before(again, number)
        made = pairs(again, outputs, None, rtol, atol)
        operand = made[0].name if made else ""
        found = Divergence(completion(again, event), None, operand, place.name, gap,
                           pairs(again, inputs, None, rtol, atol), made)  # fmt: skip
    return GoldenComparison(found, tuple(rows), tuple(unknown), session.device.outcome)


def _places(session: Session, golden: Mapping[str, Array]) -> tuple[list[_Place], list[str]]:
    places, unknown = [], []
    for name, array in golden.items():
        owner = next((core for core in range(len(session.device.cores)) if name in session.tensors.names(core)), None)
        if owner is None:
            unknown.append(name)
            continue
        item = session.tensors.find(name, owner)
        if not item.dtype:
            raise InputError(f"{name}: the file gives no element type and shape for it")
        if int(np.prod(item.shape, dtype=np.int64)) != array.size:
            raise InputError(f"array {name!r} has shape {list(array.shape)}, the program's {list(item.shape)}")
        places.append(_Place(name, owner, item, array))
    return places, unknown
