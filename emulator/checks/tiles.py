"""Words and transfers that leave the tiles they use on chip, where the file has a map of its tiles.

The builder notes for each tile which words of each engine use it, from the first to the last. What a word touches
lies in one of the tiles in use at its place; an index that only the device knows, or an address that was changed
behind the builder, may lead out of them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from operator import attrgetter
from typing import Protocol
from weakref import WeakKeyDictionary

from emulator.checks.kept import kept_of
from emulator.checks.place import Names
from emulator.checks.row_sets import RowSet
from emulator.device import Device
from emulator.events import Event, Touches
from formats.isa import DmaIndirect
from formats.named_tuple import NamedTuple
from formats.neff import Subgraph
from formats.neff.tiles import Tile
from formats.regions import Region, RegionParts

__all__ = ["Tiles"]


_CHUNK = 32  # tiles
_NEAR = 4  # places where tiles begin that are looked at, the nearest in front of a region
_COLUMNS = 1 << 12  # bytes of a partition that tiles are looked for in together

# For which words of an engine a tile is in use, and for which of each.
Home = tuple[int, int, Mapping[str, tuple[int, int]]]
_NO_TILE: Mapping[str, tuple[int, int]] = {}


class Tell(Protocol):
    """Report a finding about an event."""

    def __call__(self, kind: str, event: Event, message: str, hint: str, region: Region | None = None) -> object: ...


class _Lived(NamedTuple):
    """From which word of an engine to which a tile is in use, its number in the map, and the bytes that it has."""

    first: int
    number: int
    last: int
    tile: Tile
    low: int
    high: int
    behind: int


class _Lives:
    """Tiles that an engine uses, by the word where each begins: those in use at a word are found among few."""

    __slots__ = ("_carried", "_firsts", "_lives")

    def __init__(self, lives: list[_Lived]) -> None:
        self._lives = sorted(lives)
        self._firsts: list[int] = []
        self._carried: list[list[_Lived]] = []  # tiles in front of each chunk that are in use where it begins

    def near(self, pc: int) -> list[_Lived]:
        """Return some tiles, those in use at a word among them."""
        if not self._firsts:
            self._look()
        behind = bisect_right(self._firsts, pc)
        chunk = (behind - 1) // _CHUNK
        return self._carried[chunk] + self._lives[chunk * _CHUNK : behind] if behind else []

    def _look(self) -> None:
        self._firsts = [one.first for one in self._lives]
        kept: list[_Lived] = []
        for start in range(0, len(self._lives), _CHUNK):
            begins = self._firsts[start]
            kept = [one for one in kept if one.last >= begins]
            self._carried.append(kept)
            kept = kept + self._lives[start : start + _CHUNK]


class _Used(_Lives):
    """All tiles that an engine uses, and where they are many, those of the same columns."""

    __slots__ = ("_beside", "_columns")

    def __init__(self, lives: list[_Lived]) -> None:
        super().__init__(lives)
        self._columns: dict[tuple[str, int], list[_Lived]] = {}
        self._beside: dict[tuple[str, int], _Lives] = {}

    def holder(self, pc: int, region: RegionParts | RowSet) -> _Lived | None:
        """Return a tile in use at a word in which a region lies."""
        space, _, first, partitions, low, nbytes, _ = region
        lives = self if len(self._lives) <= _CHUNK else self._of_columns(space, low // _COLUMNS)
        behind, high = first + partitions, low + nbytes
        for one in reversed(lives.near(pc)):
            _, _, last, tile, begins, ends, bottom = one
            if (
                begins <= low
                and high <= ends
                and last >= pc
                and tile.partition <= first
                and behind <= bottom
                and tile.space == space
            ):
                return one
        return None

    def _of_columns(self, space: str, place: int) -> _Lives:
        """Return the tiles that have some of the same columns."""
        found = self._beside.get((space, place))
        if found is None:
            if not self._columns:
                for one in self._lives:
                    for each in range(one.low // _COLUMNS, (one.high - 1) // _COLUMNS + 1):
                        self._columns.setdefault((one.tile.space, each), []).append(one)
            found = self._beside[space, place] = _Lives(self._columns.get((space, place), []))
        return found


def _earliest(tile: Tile) -> int:
    return min((first for first, _ in tile.pcs.values()), default=0)


def _used(near: list[_Lived], pc: int) -> list[Tile]:
    """Return the tiles in use at a word, in the order of the map."""
    return [one.tile for one in sorted((one for one in near if one.last >= pc), key=attrgetter("number"))]


_Place = tuple[int, str, str, int]  # core, engine or queue, engine whose stream has the word, pc
# From which word on each tile is in use, in order; what it is for, its first partition, and those and bytes behind it.
_Begun = tuple[list[int], list[tuple[Home, int, int, int]]]
_Begins = tuple[list[int], list[_Begun]]  # in which bytes tiles begin, in order, and those that do in one partition
_Shelves = dict[str, dict[str, _Begins]]  # by engine and memory
# A file that is open runs more than once; that a map is broken is told by whoever reads it.
_SHELVES: WeakKeyDictionary[Subgraph, _Shelves] = WeakKeyDictionary()


def _shelves_of(tiles: Iterable[Tile]) -> _Shelves:
    shelves: dict[str, dict[str, dict[tuple[int, int], _Begun]]] = {}
    for tile in sorted(tiles, key=_earliest):
        place = tile.offset, tile.partition
        behind, high = tile.partition + tile.partitions, tile.offset + tile.partition_bytes
        for engine, (first, last) in tile.pcs.items():
            firsts, lives = shelves.setdefault(engine, {}).setdefault(tile.space, {}).setdefault(place, ([], []))
            if firsts and firsts[-1] > first:
                continue  # found among all tiles
            firsts.append(first)
            lives.append(((first, last, tile.pcs), tile.partition, behind, high))
    return {
        engine: {space: ([low for low, _ in sorted(begins)], [begins[place] for place in sorted(begins)])
                 for space, begins in each.items()}
        for engine, each in shelves.items()
    }  # fmt: skip


class Tiles:
    """Compare what words touch on chip with the tiles in use where they stand."""

    def __init__(self, device: Device, tell: Tell, names: Names) -> None:
        self._tell, self._names = tell, names
        self._shelves: dict[int, _Shelves] = {}
        self._lives: dict[tuple[int, str], _Used] = {}
        for core in device.cores:
            subgraph = None if core.loaded is None else core.loaded.subgraph
            shelves = None if subgraph is None else _SHELVES.get(subgraph)
            if shelves is None:
                shelves = _shelves_of(names.tiles(core.index))
                if subgraph is not None:
                    _SHELVES[subgraph] = shelves
            self._shelves[core.index] = shelves
        self._seen: set[_Place] = set()
        # Those whose bytes lie where they should: the next run of the file touches the same.
        self._sound: set[_Place] = kept_of(device, "tiles", set)

    def __bool__(self) -> bool:
        """Return whether there is a map to go by."""
        return any(self._shelves.values())

    def on_event(self, event: Event) -> None:
        """Take a word or a transfer; words whose addresses are written in them touch the same bytes each time."""
        pc, owner, is_indirect = event.pc, event.engine, False
        if event.kind == "dma":
            owner, is_indirect = event.instruction.engine, isinstance(event.instruction.instruction, DmaIndirect)
        place = event.core, event.engine, owner, pc
        if place in self._seen or (not is_indirect and self.is_plain(*place, event.touches)):
            return
        for regions, does in ((event.reads, "reads"), (event.writes, "writes")):
            for region in regions:
                if region.space == "HBM" or region.core != event.core:
                    continue  # where a tile of the other core begins and ends, its own words know
                lives = self._all(event.core, owner)
                if lives.holder(pc, region) is None and (used := _used(lives.near(pc), pc)):
                    self._leaves(event, region, does, used)
        if not is_indirect:
            self._seen.add(place)

    def is_plain(self, core: int, name: str, owner: str, pc: int, touches: Touches) -> bool:
        """Return whether all that a word, or a transfer, touches on its core lies in tiles in use there, or none is.

        `owner` is the engine whose stream has the word, `name` that or a queue.
        """
        place = core, name, owner, pc
        if place in self._sound:
            return True
        for regions in (touches.read_places, touches.write_places):
            for region in regions:
                if region[0] == "HBM" or region[1] != core:
                    continue  # where a tile of the other core begins and ends, its own words know
                if self.home_of(region, owner, pc) is None:
                    return False
        self._sound.add(place)
        return True

    def home_of(self, region: RegionParts | RowSet, owner: str, pc: int) -> Home | None:
        """Return the words of an engine for which a region on its core surely lies in a tile in use, `pc` among them.

        None where it lies in none of those in use there; where none is in use, that is no matter.
        """
        space, core, first, partitions, low, nbytes, _ = region
        try:
            lows, lives_of = self._shelves[core][owner][space]
        except KeyError:
            number = last = 0
        else:
            behind, high = first + partitions, low + nbytes
            number = bisect_right(lows, low)
            if number:
                firsts, lives = lives_of[number - 1]
                if firsts[-1] <= pc:  # the last tile that begins there, as of most that are used from front to back
                    home, top, bottom, ends = lives[-1]
                    if home[1] >= pc and high <= ends and behind <= bottom and top <= first:
                        return home
            last = number - _NEAR if number > _NEAR else 0
        # Nearly all lie in the tile that begins with them, or nearest in front of them.
        while number > last:
            number -= 1
            firsts, lives = lives_of[number]
            if begun := bisect_right(firsts, pc):
                home, top, bottom, ends = lives[begun - 1]
                if home[1] >= pc and high <= ends and behind <= bottom and top <= first:
                    return home
        lives_here = self._all(core, owner)
        held = lives_here.holder(pc, region)
        if held is not None:
            return held.first, held.last, held.tile.pcs
        return None if _used(lives_here.near(pc), pc) else (pc, pc, _NO_TILE)

    def _all(self, core: int, engine: str) -> _Used:
        """Return all tiles that an engine uses."""
        found = self._lives.get((core, engine))
        if found is None:
            found = self._lives[core, engine] = _Used(
                [
                    _Lived(tile.pcs[engine][0], number, tile.pcs[engine][1], tile, tile.offset,
                           tile.offset + tile.partition_bytes, tile.partition + tile.partitions)
                    for number, tile in enumerate(self._names.tiles(core))
                    if engine in tile.pcs
                ]
            )  # fmt: skip
        return found

    def _leaves(self, event: Event, region: Region, does: str, used: list[Tile]) -> None:
        near = [tile for tile in used if tile.space == region.space] or used
        names = ", ".join(dict.fromkeys(tile.name for tile in near[:3])) + (", ..." if len(near) > 3 else "")
        self._tell(
            "tile",
            event,
            f"{does} {region.text}, which lies in no tile that is used here ({names})",
            "check the index, the address and the count against the tile that is meant",
            region,
        )
