"""Which bytes an event is about to change: its operands, device addresses that words name, held-back products."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from emulator.events import Event
from formats import isa
from formats.isa import Fp32Pass
from formats.regions import Region

if TYPE_CHECKING:
    from emulator.core import Core
    from emulator.device import Device
    from emulator.engines.pe_state import Pending

__all__ = ["holds_back", "regions_of_event", "written_by"]

_REGISTER_BYTES = 4


def regions_of_event(device: Device, event: Event) -> tuple[Region, ...]:
    """Return the regions that an event writes; call it before the effect."""
    regions = event.writes
    word = event.instruction
    if isinstance(word, isa.Write | isa.TensorStore):
        regions += tuple(_addressed(device, word))
    elif event.engine == "PE" and (core := device.cores[event.core]).pe.pending:
        regions += tuple(each for each in _held_back(core) if not any(other.covers(each) for other in regions))
    return regions + tuple(_settled(device, event, regions))


def written_by(device: Device, event: Event, regions: tuple[Region, ...]) -> tuple[Region, ...]:
    """Return which of the regions of `regions_of_event` an event has written; call it behind the effect.

    A LOW product that is added waits for its HIGH one, and what is held back may go on waiting.
    """
    if event.engine != "PE" or event.kind != "instruction":
        return regions
    pe, own = device.cores[event.core].pe, event.writes
    waiting = tuple(_held_back(device.cores[event.core])) if pe.pending else ()
    held = holds_back(device, event)
    return tuple(each for each in regions if (not held if each in own else each not in waiting))


def holds_back(device: Device, event: Event) -> bool:
    """Return whether a word is a LOW product that is added to what stands there: its HIGH one changes PSUM."""
    word = event.instruction
    return (
        isinstance(word, isa.MatMul)
        and not word.transpose_mode
        and word.adds
        and device.cores[event.core].pe.current.fp32_pass == Fp32Pass.LOW
    )


def _addressed(device: Device, word: isa.Write | isa.TensorStore) -> Iterator[Region]:
    if isinstance(word, isa.Write):
        places = [(word.address0, word.size0), (word.address1, word.size1)]
    else:
        step = _REGISTER_BYTES * word.step0
        places = [(word.address + step * number, _REGISTER_BYTES) for number in range(word.count0)]
    for address, size in places:
        location = device.addresses.locate(address) if size else None
        if location is None:
            continue
        # Semaphores and events are followed by `Control`; what lies outside of a memory faults, and changes nothing.
        if location.kind == "hbm":
            yield Region("HBM", location.core, 0, 1, address, size)
        elif location.kind in ("sbuf", "psum") and location.core < len(device.cores):
            space, partition = location.kind.upper(), int(location.index)
            rows, width = device.cores[location.core].memory.array(space).shape
            if partition < rows and location.offset + size <= width:
                yield Region(space, location.core, partition, 1, location.offset, size)


def _held_back(core: Core) -> Iterator[Region]:
    """Yield the places in PSUM that products of the LOW pass may reach with the next word."""
    for entry in core.pe.pending.values():
        yield _box(core, entry)


def _settled(device: Device, event: Event, regions: tuple[Region, ...]) -> Iterator[Region]:
    """Yield the places in PSUM that held-back products reach since another engine or a transfer looks."""
    if event.engine == "PE" and event.kind != "dma":
        return  # its own words meet what is held back in their order: `_held_back`
    for core in device.cores:
        if core.pe.pending:
            mine = [[each for each in places if each.core == core.index] for places in (event.reads, regions)]
            for key in core.pe.met(*mine):
                yield _box(core, core.pe.pending[key])


def _box(core: Core, entry: Pending) -> Region:
    """Return the byte range of a held-back product in each partition."""
    place = entry.place
    return Region("PSUM", core.index, place.first, place.partitions, place.byte, place.nbytes)
