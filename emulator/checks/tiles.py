"""Words and transfers that leave the tiles they use on chip, where the file has a map of its tiles.

The builder notes for each tile which words of each engine use it, from the first to the last. What a word touches
lies in one of the tiles in use at its place; an index that only the device knows, or an address that was changed
behind the builder, may lead out of them.
"""

from __future__ import annotations

from bisect import bisect_right
from operator import attrgetter
from typing import NamedTuple, Protocol

from emulator.checks.place import Names
from emulator.device import Device
from emulator.events import Event
from formats.isa import DmaIndirect
from formats.neff.tiles import Tile
from formats.regions import Region

__all__ = ["Tiles"]


_CHUNK = 32  # tiles


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
    """The tiles that an engine uses, by the word where each begins: those in use at a word are found among few."""

    def __init__(self, lives: list[_Lived]) -> None:
        self._lives = sorted(lives)
        self._firsts = [one.first for one in self._lives]
        self._carried: list[list[_Lived]] = []  # tiles in front of each chunk that are in use where it begins
        kept: list[_Lived] = []
        for start in range(0, len(lives), _CHUNK):
            begins = self._firsts[start]
            kept = [one for one in kept if one.last >= begins]
            self._carried.append(kept)
            kept = kept + self._lives[start : start + _CHUNK]

    def near(self, pc: int) -> list[_Lived]:
        """Return some tiles, those in use at a word among them."""
        behind = bisect_right(self._firsts, pc)
        chunk = (behind - 1) // _CHUNK
        return self._carried[chunk] + self._lives[chunk * _CHUNK : behind] if behind else []


def _used(near: list[_Lived], pc: int) -> list[Tile]:
    """Return the tiles in use at a word, in the order of the map."""
    return [one.tile for one in sorted((one for one in near if one.last >= pc), key=attrgetter("number"))]


class Tiles:
    """Compare what words touch on chip with the tiles in use where they stand."""

    def __init__(self, device: Device, tell: Tell, names: Names) -> None:
        self._tell = tell
        mapped: dict[tuple[int, str], list[_Lived]] = {}
        for core in device.cores:
            for number, tile in enumerate(names.tiles(core.index)):
                for engine, (first, last) in tile.pcs.items():
                    lived = _Lived(first, number, last, tile, tile.offset, tile.offset + tile.partition_bytes,
                                   tile.partition + tile.partitions)  # fmt: skip
                    mapped.setdefault((core.index, engine), []).append(lived)
        self._mapped = {place: _Lives(lives) for place, lives in mapped.items()}
        self._seen: set[tuple[int, str, str, int]] = set()

    def __bool__(self) -> bool:
        """Return whether there is a map to go by."""
        return bool(self._mapped)

    def on_event(self, event: Event) -> None:
        """Take a word or a transfer; words whose addresses are written in them touch the same bytes each time."""
        word, pc = event.instruction, event.pc
        owner = getattr(word, "engine", event.engine)
        place = event.core, event.engine, owner, pc
        trigger = getattr(word, "instruction", None)
        if place in self._seen:
            return
        if not isinstance(trigger, DmaIndirect):
            self._seen.add(place)
        near: list[_Lived] | None = None
        for regions, does in ((event.reads, "reads"), (event.writes, "writes")):
            for region in regions:
                if region.space == "HBM" or region.core != event.core:
                    continue  # where a tile of the other core begins and ends, its own words know
                if near is None:
                    lives = self._mapped.get((event.core, owner))
                    near = [] if lives is None else lives.near(pc)
                if not _holds(near, pc, region) and (used := _used(near, pc)):
                    self._leaves(event, region, does, used)

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


def _holds(near: list[_Lived], pc: int, region: Region) -> bool:
    """Return whether a region lies in a tile in use at a word."""
    space, _, first, partitions, low, nbytes, _ = region
    behind, high = first + partitions, low + nbytes
    for one in reversed(near):
        if (
            one.low <= low
            and high <= one.high
            and one.last >= pc
            and one.tile.partition <= first
            and behind <= one.behind
            and one.tile.space == space
        ):
            return True
    return False
