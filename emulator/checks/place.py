"""Where findings lie: sites of words and transfers, names of the bytes they touch."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from emulator.access import plan_of
from emulator.checks.finding import Site
from emulator.checks.history import Unit
from emulator.device import Device
from emulator.dma.transfer import Transfer
from emulator.events import Event
from emulator.loaded import source_at
from emulator.placement import DeviceTensor
from formats.errors import FormatError, NeuronError
from formats.neff import Subgraph
from formats.neff.tiles import Tile
from formats.regions import Region

__all__ = [
    "Names",
    "Once",
    "condition",
    "operands_at",
    "regions_touched",
    "site_in",
    "site_later",
    "site_of",
    "site_of_event",
    "unit_site",
    "unit_site_later",
]


class Once:
    """A site, or what makes it: asked when somebody has to know it, and once."""

    __slots__ = ("_made",)

    def __init__(self, made: Callable[[], Site] | Site) -> None:
        self._made = made

    def __call__(self) -> Site:
        """Return the site."""
        made = self._made
        if type(made) is not Site:
            made = self._made = made()  # type: ignore[operator]
        return made


def site_later(device: Device, core: int, engine: str, pc: int, word: Any, **given: Any) -> Callable[[], Site]:
    """Return what makes the site of a word, or of a transfer that a word triggered: the same whenever it is called.

    It refers to the file, and to no device; `given` is as of `site_in`.
    """
    loaded = device.cores[core].loaded
    spoken = word.request if isinstance(word, Transfer) else word
    return partial(site_in, None if loaded is None else loaded.subgraph, core, engine, pc, spoken, **given)


def site_in(
    subgraph: Subgraph | None,
    core: int,
    engine: str,
    pc: int,
    word: Any,
    *,
    owner: str = "",
    access: str = "",
    operand: str = "",
    time_ps: int = -1,
    clock: int = -1,
    seen: int = -1,
) -> Site:
    """Return the site of a word of a program, or of what the word asks of a queue."""
    owner = owner or engine
    text = str(getattr(word, "text", ""))
    trigger = getattr(word, "instruction", None)
    if trigger is not None:
        text = f"{trigger.text} ({text})"
    source = None if subgraph is None else source_at(subgraph, owner, pc)
    return Site(core, engine, owner, pc, text, source, access, operand, time_ps, clock, seen)


def site_of(device: Device, core: int, engine: str, pc: int, word: Any, **given: Any) -> Site:
    """Return the site of a word, or of a transfer that a word triggered; `given` is as of `site_in`."""
    return site_later(device, core, engine, pc, word, **given)()


def unit_site_later(
    device: Device, names: list[tuple[int, str]], unit: Unit, *, access: str = "", operand: str = "", seen: int = -1
) -> Callable[[], Site]:
    """Return what makes the site of a unit as it is now; `names` are those of the clocks."""
    core, engine = names[unit.actor]
    word = unit.word
    pc = word.pc if isinstance(word, Transfer) else unit.loaded.pc if unit.loaded is not None else -1
    return site_later(
        device,
        core,
        engine,
        pc,
        word,
        owner=getattr(word, "engine", engine),
        access=access,
        operand=operand,
        time_ps=unit.time_ps,
        clock=unit.number,
        seen=seen,
    )


def unit_site(device: Device, names: list[tuple[int, str]], unit: Unit, **given: Any) -> Site:
    """Return the site of a unit, as `unit_site_later` makes it."""
    return unit_site_later(device, names, unit, **given)()


def condition(key: tuple[int, str, int], value: int) -> str:
    """Return a wait as the profiler writes it."""
    return f"E[{key[2]}]==1-" if key[1] == "event" else f"S[{key[2]}]>={value}"


def operands_at(device: Device, core: int, engine: str, word: Any, region: Region, write: bool) -> str:
    """Return the name of the operand of a word that gives a region, "" where that is not clear."""
    if isinstance(word, Transfer):
        return "dst" if write else "src"
    resolver = device.cores[core].resolver
    for plan in plan_of(type(word)):
        if plan.writes if write else plan.reads or word.adds:
            found = resolver.resolve(word, plan, engine)
            if found is not None and region in found.regions:
                return plan.name
    return ""


def site_of_event(device: Device, event: Event, access: str, operand: str = "") -> Site:
    """Return the place of a word that ran, or of a transfer."""
    word = event.instruction
    return site_of(
        device,
        event.core,
        event.engine,
        event.pc,
        word,
        owner=getattr(word, "engine", event.engine),
        access=access,
        operand=operand,
        time_ps=event.time_ps,
    )


def regions_touched(device: Device, core: int, engine: str, word: Any) -> tuple[list[Region], list[Region]]:
    """Return what a word reads and writes, without running it; nothing where its operands are out of bounds."""
    reads: list[Region] = []
    writes: list[Region] = []
    try:
        for plan in plan_of(type(word)):
            operand = device.cores[core].resolver.resolve(word, plan, engine)
            if operand is not None:
                reads += operand.regions if plan.reads else ()
                writes += operand.regions if plan.writes else ()
    except NeuronError:
        return [], []
    return reads, writes


class Names:
    """Names of bytes: variables of HBM, and tiles on chip where the file has a map of them."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._tiles: dict[int, tuple[Tile, ...]] = {}
        self._scratch: dict[int, list[DeviceTensor]] | None = None  # variables by the address of a scratchpad
        self._known: dict[tuple[Region, str, int], str] = {}  # of tiles
        # The tiles of a memory, each behind its first and last column and partition.
        self._boxes: dict[tuple[int, str], list[tuple[int, int, int, int, Tile]]] = {}

    def name(self, region: Region, engine: str = "", pc: int = -1) -> str:
        """Return what a region belongs to, for a word of an engine; "" where nothing names it."""
        if region.space == "HBM":
            found = self._device.hbm.find(region.byte)
            return "" if found is None else self._inside(found.address, region) or found.name
        known = self._known.get((region, engine, pc))
        if known is None:
            known = self._known[region, engine, pc] = self._named(region, engine, pc)
        return known

    def _named(self, region: Region, engine: str, pc: int) -> str:
        space, core, first, partitions, low, nbytes, _ = region
        if not self.tiles(core):
            return ""
        behind, high = first + partitions, low + nbytes
        boxes = self._boxes.get((core, space))
        if boxes is None:
            boxes = self._boxes[core, space] = [
                (one.offset, one.offset + one.partition_bytes, one.partition, one.partition + one.partitions, one)
                for one in self.tiles(core)
                if one.space == space
            ]
        fits = [
            tile
            for begins, ends, top, bottom, tile in boxes
            if begins < high and low < ends and top < behind and first < bottom
        ]
        alive = [tile for tile in fits if engine in tile.pcs and tile.pcs[engine][0] <= pc <= tile.pcs[engine][1]]
        chosen = alive or fits
        return ", ".join(dict.fromkeys(tile.name for tile in chosen[:2]))

    def _inside(self, address: int, region: Region) -> str:
        """Return the variables that a region of a core's scratchpad belongs to; "" in any other allocation."""
        if self._scratch is None:
            self._scratch = {}
            for core in self._device.cores:
                if core.loaded is not None and core.loaded.placement.scratchpad:
                    placement = core.loaded.placement
                    own = [one for one in placement.by_name.values() if one.kind == "virtual" and one.nbytes]
                    self._scratch[placement.scratchpad] = own
        low, high, own = region.byte, region.byte + region.nbytes, self._scratch.get(address, [])
        inside = [one.name for one in own if one.address < high and low < one.address + one.nbytes]
        return ", ".join(dict.fromkeys(inside[:2]))

    def tiles(self, core: int) -> tuple[Tile, ...]:
        """Return the tiles of a core, none where the file has no map of them."""
        found = self._tiles.get(core)
        if found is None:
            from formats.neff.tiles import read_tiles  # deferred: start-up

            loaded = self._device.cores[core].loaded
            try:
                found = () if loaded is None else read_tiles(loaded.subgraph)
            except FormatError:
                found = ()  # names are a comfort: a broken map costs them, nothing else
            self._tiles[core] = found
        return found
