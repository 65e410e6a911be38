"""What checks find in a program before anything moves, kept with its open file: its next run does not look again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar
from weakref import ReferenceType, WeakKeyDictionary, ref

from emulator.device import Device
from emulator.loaded import LoadedCore, LoadedModel
from formats.isa import Instruction
from formats.named_tuple import NamedTuple
from formats.neff import Neff

__all__ = ["classes_of", "kept_of"]

_PLACES = 4  # in which a file was loaded: chips, addresses
Found = TypeVar("Found")


class _Loaded(NamedTuple):
    """A program as it was loaded: on which chip, at which addresses, the bytes of its words; and what was found."""

    condition: tuple[Any, ...]
    words: tuple[tuple[bytes, ...], ...]
    found: dict[str, Any]


_FILES: WeakKeyDictionary[Neff, list[_Loaded]] = WeakKeyDictionary()
# By device, for the program that it has: the first core of that, which nothing here may keep alive.
_DEVICES: WeakKeyDictionary[Device, tuple[ReferenceType[LoadedCore], dict[str, Any]]] = WeakKeyDictionary()


def kept_of(device: Device, name: str, find: Callable[[], Found]) -> Found:
    """Return what `find` returns for the program of a device; it is not called where that is known of the open file.

    It must neither refer to the device nor depend on anything but file, chip and addresses.
    """
    if device.model is None:
        return find()
    program = device.model.cores[0]
    known = _DEVICES.get(device)
    if known is None or known[0]() is not program:
        known = _DEVICES[device] = ref(program), _found_of(device, device.model)
    found = known[1]
    if name not in found:
        found[name] = find()
    result: Found = found[name]
    return result


def classes_of(device: Device) -> frozenset[type[Instruction]]:
    """Return the classes of the words of a program."""
    return kept_of(
        device,
        "classes",
        lambda: frozenset(
            [type(each.word) for core in device.cores for engine in core.engines.values() for each in engine.words]
        ),
    )


def _found_of(device: Device, model: LoadedModel) -> dict[str, Any]:
    places = [(each.address, each.nbytes) for each in device.hbm.allocations.values()]
    queues = [(queue.core, queue.name, queue.engine, queue.num_queues, queue.kind) for queue in device.queues]
    condition = (device.target.name, len(device.cores), device.act, places, queues)
    # Loading puts addresses into words, and a test or a person may change them.
    words = tuple(
        [tuple([each.word.raw for each in engine.words]) for core in device.cores for engine in core.engines.values()]
    )
    known = _FILES.setdefault(model.neff, [])
    for one in known:
        if one.condition == condition and one.words == words:
            return one.found
    del known[: -_PLACES + 1]
    known.append(_Loaded(condition, words, {}))
    return known[-1].found
