"""What checks find in a program before anything moves, kept with its open file: its next run does not look again."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from operator import attrgetter
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from emulator.device import Device
from emulator.loaded import LoadedModel
from formats.isa import Instruction, MatMul
from formats.isa.behaviour import EngineState
from formats.named_tuple import NamedTuple
from formats.neff import Neff

__all__ = ["ACCUMULATING", "Traits", "kept_of", "traits_of", "words_of"]

ACCUMULATING = (EngineState.OPTIONAL, EngineState.ACCUMULATORS)  # of the words that have to do with accumulators
_KINDS_OF_PROGRAMS = 1 << 8  # whose traits are kept, by the classes of their words
_PLACES = 4  # in which a file was loaded: chips, addresses
_RAW, _WORD = attrgetter("word.raw"), attrgetter("word")
Found = TypeVar("Found")


class _Loaded(NamedTuple):
    """A program as it was loaded: on which chip, at which addresses, the bytes of its words; and what was found."""

    condition: tuple[Any, ...]
    words: list[list[bytes]]
    found: dict[str, Any]


_FILES: WeakKeyDictionary[Neff, list[_Loaded]] = WeakKeyDictionary()


def kept_of(device: Device, name: str, find: Callable[[], Found]) -> Found:
    """Return what `find` returns for the program of a device; it is not called where that is known of the open file.

    It must neither refer to the device nor depend on anything but file, chip and addresses.
    """
    if device.model is None:
        return find()
    room = device.model.cores[0].found
    if not room:
        room.append(_found_of(device, device.model))
    found = room[0]
    if name in found:
        result: Found = found[name]
    else:
        result = found[name] = find()
    return result


def words_of(device: Device) -> list[Instruction]:
    """Return the words of a program."""
    found: list[Instruction] = []
    for core in device.cores:
        for engine in core.engines.values():
            found += map(_WORD, engine.words)
    return found


class Traits(NamedTuple):
    """What the words of a program may do at all.

    `branches`: go elsewhere; `by_data`: go by data in any way; `meets`: wait for the other core; `multiplies`: add to
    groups in PSUM; `loads`: have to do with registers or accumulators, so many classes.
    """

    classes: frozenset[type[Instruction]]
    branches: bool
    by_data: bool
    meets: bool
    multiplies: bool
    loads: frozenset[type[Instruction]]


def traits_of(device: Device) -> Traits:
    """Return what the words of a program may do."""
    return kept_of(device, "traits", lambda: _traits(frozenset(map(type, words_of(device)))))


@lru_cache(_KINDS_OF_PROGRAMS)
def _traits(classes: frozenset[type[Instruction]]) -> Traits:
    branches = by_data = meets = multiplies = False
    loads = []
    for cls in classes:
        if cls.BRANCHES:
            branches = True
        if cls.MEETS:
            meets = True
        if cls.REGISTERS or cls.STATE in ACCUMULATING:
            loads.append(cls)
        if cls.DECIDES or cls.REGISTERS:
            by_data = True
        if issubclass(cls, MatMul):
            multiplies = True
    return Traits(classes, branches, branches or by_data, meets, multiplies, frozenset(loads))


def _found_of(device: Device, model: LoadedModel) -> dict[str, Any]:
    places = [(each.address, each.nbytes) for each in device.hbm.allocations.values()]
    queues = [(queue.core, queue.name, queue.engine, queue.num_queues, queue.kind) for queue in device.queues]
    condition = (device.target.name, len(device.cores), device.act, places, queues)
    # Loading puts addresses into words, and a test or a person may change them.
    words = [list(map(_RAW, engine.words)) for core in device.cores for engine in core.engines.values()]
    known = _FILES.setdefault(model.neff, [])
    for one in known:
        if one.condition == condition and one.words == words:
            return one.found
    del known[: -_PLACES + 1]
    known.append(_Loaded(condition, words, {}))
    return known[-1].found
