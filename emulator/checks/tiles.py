"""Words and transfers that leave the tiles they use on chip, where the file has a map of its tiles.

The builder notes for each tile which words of each engine use it, from the first to the last. What a word touches
lies in one of the tiles in use at its place; an index that only the device knows, or an address that was changed
behind the builder, may lead out of them.
"""

from __future__ import annotations

from typing import Protocol

from emulator.checks.place import Names
from emulator.device import Device
from emulator.events import Event
from formats.isa import DmaIndirect
from formats.neff.tiles import Tile
from formats.regions import Region

__all__ = ["Tiles"]


class Tell(Protocol):
    """Report a finding about an event."""

    def __call__(self, kind: str, event: Event, message: str, hint: str, region: Region | None = None) -> object: ...


class Tiles:
    """Compare what words touch on chip with the tiles in use where they stand."""

    def __init__(self, device: Device, tell: Tell, names: Names) -> None:
        self._tell = tell
        self._mapped: dict[tuple[int, str], list[tuple[int, int, Tile]]] = {}
        for core in device.cores:
            for tile in names.tiles(core.index):
                for engine, (first, last) in tile.pcs.items():
                    self._mapped.setdefault((core.index, engine), []).append((first, last, tile))
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
                    mapped = self._mapped.get((event.core, owner), ())
                    used = [tile for first, last, tile in mapped if first <= pc <= last]
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
