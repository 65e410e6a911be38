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
from emulator.device import Device
from emulator.events import Event, Touches
from formats.isa import DmaIndirect
from formats.named_tuple import NamedTuple
from formats.neff import Subgraph
from formats.neff.tiles import Tile
from formats.regions import Region, RegionParts

__all__ = ["Tiles"]


_CHUNK = 32  # tiles
_FEW = 64  # tiles that are looked through one by one, since to sort them takes longer
_COLUMNS = 1 << 12  # bytes of a partition that tiles are looked for in together
_SHIFT = 5  # so many bytes of a partition, as a power of two, have the tile of the last region there first


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

    def holder(self, pc: int, region: RegionParts) -> _Lived | None:
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
# From which word on each tile is in use, in order; the last such word, its partitions and bytes, the words of all.
_Homes = tuple[list[int], list[tuple[int, int, int, Mapping[str, tuple[int, int]]]]]
_Begins = dict[tuple[str, str, int, int], _Homes]  # by engine, place and first byte
# A file that is open runs more than once; that a map is broken is told by whoever reads it.
_BEGINS: WeakKeyDictionary[Subgraph, _Begins] = WeakKeyDictionary()


def _begins_of(tiles: Iterable[Tile]) -> _Begins:
    begins: _Begins = {}
    for tile in sorted(tiles, key=_earliest):
        has = tile.partitions, tile.partition_bytes, tile.pcs
        for engine, (first, last) in tile.pcs.items():
            place = engine, tile.space, tile.partition, tile.offset
            firsts, lives = begins.get(place) or begins.setdefault(place, ([], []))
            if firsts and firsts[-1] > first:
                continue  # found among all tiles
            firsts.append(first)
            lives.append((last, *has))
    return begins


class _Home(NamedTuple):
    """A tile, from which word of an engine to which it is in use, and the bytes that it has."""

    since: int
    until: int
    space: str
    first: int
    behind: int
    low: int
    high: int

    def holds(self, region: RegionParts, pc: int) -> bool:
        """Return whether it is in use at a word and a region lies in it."""
        space, _, first, partitions, low, nbytes, _ = region
        return (
            self.since <= pc <= self.until
            and self.low <= low
            and low + nbytes <= self.high
            and self.first <= first
            and first + partitions <= self.behind
            and self.space == space
        )


class Tiles:
    """Compare what words touch on chip with the tiles in use where they stand.

    `begins` are the tiles of each core by engine and where they begin.
    """

    def __init__(self, device: Device, tell: Tell, names: Names) -> None:
        self._tell, self._names = tell, names
        self.begins: dict[int, _Begins] = {}
        self._lives: dict[tuple[int, str], _Used] = {}
        for core in device.cores:
            subgraph = None if core.loaded is None else core.loaded.subgraph
            begins = None if subgraph is None else _BEGINS.get(subgraph)
            if begins is None:
                begins = _begins_of(names.tiles(core.index))
                if subgraph is not None:
                    _BEGINS[subgraph] = begins
            self.begins[core.index] = begins
        # By core, engine, memory and columns, where the last region there was at home.
        self._last: dict[tuple[int, str, str, int], _Home] = {}
        self._few: dict[tuple[int, str], list[_Home]] = {}
        self._seen: set[_Place] = set()
        # Those whose bytes lie where they should: the next run of the file touches the same.
        self._sound: set[_Place] = kept_of(device, "tiles", set)

    def __bool__(self) -> bool:
        """Return whether there is a map to go by."""
        return any(self.begins.values())

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
        begins = self.begins[core]
        for regions in (touches.read_places, touches.write_places):
            for region in regions:
                space, its_core, partition, partitions, low, nbytes, _ = region
                if space == "HBM" or its_core != core:
                    continue  # where a tile of the other core begins and ends, its own words know
                found = begins.get((owner, space, partition, low))
                if found is not None and (behind := bisect_right(found[0], pc)):
                    last, lanes, room, _ = found[1][behind - 1]
                    if last >= pc and partitions <= lanes and nbytes <= room:
                        continue  # it begins with a tile in use, as nearly all do
                lives = self._all(core, owner)
                if lives.holder(pc, region) is None and _used(lives.near(pc), pc):
                    return False
        self._sound.add(place)
        return True

    def home_of(self, region: RegionParts, owner: str, pc: int) -> tuple[int, int] | None:
        """Return the words of an engine for which a region on its core surely lies in a tile in use, `pc` among them.

        None where it lies in none of those in use there; where none is in use, that is no matter.
        """
        space, core, first, partitions, low, nbytes, _ = region
        near = core, owner, space, low >> _SHIFT
        last = self._last.get(near)
        if last is not None:  # as words that go through the columns of a tile
            since, until, _, top, bottom, begins, ends = last
            if (
                since <= pc <= until
                and begins <= low
                and low + nbytes <= ends
                and top <= first
                and first + partitions <= bottom
            ):
                return since, until
        place = core, owner
        homes = self._few.get(place)
        if homes is None and place not in self._lives:
            homes = self._homes(core, owner)
        if homes is not None:
            for home in homes:
                if home.holds(region, pc):
                    self._last[near] = home
                    return home.since, home.until
            return None if any(home.since <= pc <= home.until for home in homes) else (pc, pc)
        lives = self._lives.get(place) or self._all(core, owner)
        held = lives.holder(pc, region)
        if held is not None:
            tile = held.tile
            self._last[near] = _Home(held.first, held.last, space, tile.partition, held.behind, held.low, held.high)
            return held.first, held.last
        return None if _used(lives.near(pc), pc) else (pc, pc)

    def _homes(self, core: int, engine: str) -> list[_Home] | None:
        """Return the tiles that an engine uses where the core has few; None where they are to be sorted."""
        tiles = self._names.tiles(core)
        if len(tiles) > _FEW:
            return None
        found = self._few[core, engine] = [
            _Home(*tile.pcs[engine], tile.space, tile.partition, tile.partition + tile.partitions, tile.offset,
                  tile.offset + tile.partition_bytes)
            for tile in tiles
            if engine in tile.pcs
        ]  # fmt: skip
        return found

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
