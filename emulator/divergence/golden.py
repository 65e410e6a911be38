"""An execution against arrays that somebody knows to be right: outputs, and tiles by the names of kernel variables."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from emulator.divergence.difference import Difference, difference
from emulator.divergence.operands import Divergence, before, pairs, side
from emulator.dma.transfer import Transfer
from emulator.errors import InputError
from emulator.events import Event, Region
from emulator.session.stops import region_values
from emulator.session.tiles import Tile
from formats.dtypes import Dtype
from formats.errors import NotFoundError

if TYPE_CHECKING:
    from emulator.placement import DeviceTensor
    from emulator.session import Session

__all__ = ["GoldenComparison", "GoldenRow", "compare_golden"]

Array = npt.NDArray[Any]


class GoldenRow(NamedTuple):
    """One name: `number` is the last event that wrote it (None where nothing did), `difference` None where it fits."""

    name: str
    space: str
    number: int | None
    difference: Difference | None


class GoldenComparison(NamedTuple):
    """What came of an execution against known arrays; `unknown` names are none of the program's."""

    divergence: Divergence | None
    rows: tuple[GoldenRow, ...]
    unknown: tuple[str, ...]
    outcome: str

    @property
    def same(self) -> bool:
        """Tell whether every array that the program knows is as it should be, and the execution finished."""
        return self.divergence is None and self.outcome == "finished" and not any(row.difference for row in self.rows)


class _Place:
    """One tensor or tile with a known array: its last contents, and which event wrote each byte last."""

    def __init__(self, name: str, core: int, item: Tile | DeviceTensor, wanted: Array) -> None:
        self.name, self.core, self.item, self.wanted = name, core, item, wanted
        self.rows = item.partitions if isinstance(item, Tile) else 1
        self.width = item.partition_bytes if isinstance(item, Tile) else item.nbytes
        self.writers = np.full((self.rows, self.width), -1, np.int32)
        self.last: int | None = None
        self.values: Array | None = None

    def wrote(self, region: Region, number: int) -> None:
        """Note who wrote a region, as far as it lies inside."""
        if isinstance(self.item, Tile):
            first, byte = region.first - self.item.partition, region.byte - self.item.offset
        else:
            first, byte = 0, region.byte - self.item.address
        self.last = number
        if first < 0 or byte < 0 or first + region.partitions > self.rows or byte + region.nbytes > self.width:
            low, high = max(byte, 0), max(min(byte + region.nbytes, self.width), 0)
            self.writers[max(first, 0) : first + region.partitions, low:high] = number
            return
        dims, run = ((), region.nbytes) if region.pattern is None else region.pattern
        walk = ((self.width, region.partitions), *dims, (1, run))
        view: Array = np.ndarray(
            tuple(count for _, count in walk), np.int32, self.writers, 4 * (first * self.width + byte),
            tuple(4 * step for step, _ in walk),
        )  # fmt: skip
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
                if _meets(place, region) and _alive(place.item, engine, event.pc):
                    place.wrote(region, event.number)
                    touched[id(place)] = place
        for place in touched.values():
            if isinstance(place.item, Tile):
                place.values = self.content(place)

    def content(self, place: _Place) -> Array:
        """Return a copy of what a place holds."""
        item = place.item
        kind = Dtype.from_numpy_name(item.dtype)
        if isinstance(item, Tile):
            region = Region(item.space, place.core, item.partition, item.partitions, item.offset, item.partition_bytes)
        else:
            region = Region("HBM", 0, 0, 1, item.address, item.nbytes)
        values = region_values(self.session.device, region, kind)
        if values is None or values.size * kind.size != place.rows * place.width:
            values = np.frombuffer(b"\xff" * (place.rows * place.width), "u1").view(place.wanted.dtype)
        return values.reshape(item.shape).copy()


def _meets(place: _Place, region: Region) -> bool:
    item = place.item
    if isinstance(item, Tile):
        return (
            region.first < item.partition + item.partitions
            and item.partition < region.first + region.partitions
            and region.byte < item.offset + item.partition_bytes
            and item.offset < region.byte + region.nbytes
        )
    return region.byte < item.address + item.nbytes and item.address < region.byte + region.nbytes


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
        found = Divergence(side(again, event), None, operand, place.name, gap,
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
