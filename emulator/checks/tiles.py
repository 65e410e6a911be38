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
    """From which word of an engine to which a tile is in use, and its number in the map."""

    first: int
    number: int
    last: int
    tile: Tile


_first = attrgetter("first")
_number = attrgetter("number")


class _Lives:
    """The tiles that an engine uses, by the word where each begins: those in use at a word are found among few."""

    def __init__(self, lives: list[_Lived]) -> None:
        self._lives = sorted(lives)
        self._carried: list[list[_Lived]] = []  # tiles in front of each chunk that are in use where it begins
        kept: list[_Lived] = []
        for start in range(0, len(lives), _CHUNK):
            begins = self._lives[start].first
            kept = [one for one in kept if one.last >= begins]
            self._carried.append(kept)
            kept = kept + self._lives[start : start + _CHUNK]

    def at(self, pc: int) -> list[Tile]:
        """Return the tiles in use at a word, in the order of the map."""
        behind = bisect_right(self._lives, pc, key=_first)
        if not behind:
            return []
        chunk = (behind - 1) // _CHUNK
        near = self._carried[chunk] + self._lives[chunk * _CHUNK : behind]
        return [one.tile for one in sorted((one for one in near if one.last >= pc), key=_number)]


class Tiles:
    """Compare what words touch on chip with the tiles in use where they stand."""

    def __init__(self, device: Device, tell: Tell, names: Names) -> None:
        self._tell = tell
        mapped: dict[tuple[int, str], list[_Lived]] = {}
        for core in device.cores:
            for number, tile in enumerate(names.tiles(core.index)):
                for engine, (first, last) in tile.pcs.items():
                    mapped.setdefault((core.index, engine), []).append(_Lived(first, number, last, tile))
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
        used: list[Tile] | None = None
        for regions, does in ((event.reads, "reads"), (event.writes, "writes")):
            for region in regions:
                if region.space == "HBM" or region.core != event.core:
                    continue  # where a tile of the other core begins and ends, its own words know
                if used is None:
                    lives = self._mapped.get((event.core, owner))
                    used = [] if lives is None else lives.at(pc)
                if used and not any(_holds(tile, region) for tile in used):
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


def _holds(tile: Tile, region: Region) -> bool:
    """Return whether a region lies in a tile."""
    return (
        tile.space == region.space
        and tile.partition <= region.first
        and region.behind <= tile.partition + tile.partitions
        and tile.offset <= region.byte
        and region.byte + region.nbytes <= tile.offset + tile.partition_bytes
    )
