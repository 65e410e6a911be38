"""Where the variables of a file lie, kept with the open file, which is placed again in the same memory in no time.

Addresses, fresh bytes and constants follow from the file and from what device memory has room for.
"""

from __future__ import annotations

from collections.abc import Mapping
from threading import Lock
from weakref import WeakKeyDictionary

from emulator.device_memory import DeviceMemory, Fresh
from emulator.memory import Bytes
from emulator.placement import DeviceTensor, Placement
from formats.named_tuple import NamedTuple
from formats.neff import Neff

__all__ = ["keep_places", "take_places"]

_MOST = 1 << 20  # bytes of constants that a file may have
_FILES_KEPT = 64


class _Places(NamedTuple):
    """Placements of a file and its shared tensors; address, size, name and fresh bytes of allocations; stored bytes.

    They are so in a memory of such `ranges`, all of it free, where room began at `begun`, and begins at `ended` then.
    Nothing here may refer to the file.
    """

    placements: list[Placement]
    shared: Mapping[str, DeviceTensor]
    ranges: tuple[tuple[int, int], ...]
    begun: tuple[int, ...]
    ended: tuple[int, ...]
    parts: list[tuple[int, int, str, Fresh]]
    stored: list[tuple[int, Bytes]]


_lock = Lock()
_FILES: WeakKeyDictionary[Neff, _Places] = WeakKeyDictionary()


def take_places(neff: Neff, hbm: DeviceMemory) -> tuple[list[Placement], dict[str, DeviceTensor]] | None:
    """Lay a memory out as another one was for the file; None where nothing is known, or the memory differs."""
    found = _FILES.get(neff)
    if found is None or hbm.allocations or hbm.ranges != found.ranges or hbm.room != found.begun:
        return None
    hbm.hold(found.parts, found.ended)
    for address, data in found.stored:
        hbm.write(address, data)
    return list(found.placements), dict(found.shared)


def keep_places(
    neff: Neff,
    hbm: DeviceMemory,
    begun: tuple[int, ...],
    placements: list[Placement],
    shared: Mapping[str, DeviceTensor],
) -> None:
    """Keep where a file lies in a memory that had room from some addresses on, and nothing else in it."""
    held = hbm.allocations.values()
    stored = [each for each in held if each.touched]
    if (
        any(not each.whole or each.pages is not None for each in stored)
        or sum([each.nbytes for each in stored]) > _MOST
        or any(subgraph.has("fresh.json") for subgraph in neff.subgraphs)  # which says what SBUF holds
    ):
        return
    parts: list[tuple[int, int, str, Fresh]] = [
        (each.address, each.nbytes, each.name, tuple(each.set_apart)) for each in held
    ]
    copies = [(each.address, each.data.copy()) for each in stored]
    places = _Places(list(placements), dict(shared), hbm.ranges, begun, hbm.room, parts, copies)
    with _lock:  # several threads load
        _FILES[neff] = places
        if len(_FILES) > _FILES_KEPT:
            del _FILES[next(iter(_FILES))]
