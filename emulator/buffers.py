"""Large buffers that runs of one process hand to each other.

A first touch of fresh memory costs more than everything else that loading a program does: the host gives page by page.
A finished run gives its memories back, and the next one fills them anew.

Large ones are mappings of their own, not `numpy.empty`, which asks for pages of 2 MiB: a program touches a few bytes in
each of 128 partitions, and would be given, and wait for, all of the memory.
"""

from __future__ import annotations

import mmap
import os
import sys
import threading
from collections import deque

import numpy as np
import numpy.typing as npt

__all__ = ["blank", "drop", "filled", "give", "hand_over", "renew", "take"]

Bytes = npt.NDArray[np.uint8]

_WORTH_KEEPING = 1 << 14  # bytes; smaller ones come from memory that the process has at hand
_WORTH_MAPPING = 1 << 20  # bytes; smaller ones are no mappings of their own
_MOST_KEPT = 1 << 28  # bytes, all together
_LARGEST = 1 << 25  # bytes of an array whose pages are shared: the SBUF of every chip
_free: dict[int, list[Bytes]] = {}
_lock = threading.Lock()
_kept = 0
_full: dict[int, tuple[int, int]] = {}  # files in memory by the byte they are full of, and of how many
_returned: deque[Bytes] = deque()  # by those who had them last, at any moment: without the lock
_MOST_RETURNED = 16
_sharing: dict[int, int] = {}  # arrays that are mapped from one of them: which byte, by address


def take(nbytes: int) -> Bytes:
    """Return a flat array of bytes with any contents."""
    found = _waiting(nbytes)
    return _mapped(nbytes) if found is None else found


def blank(nbytes: int) -> Bytes:
    """Return a flat array of zeros; the host gives fresh ones page by page, when they are written."""
    found = _waiting(nbytes)
    if found is None:
        return _mapped(nbytes)
    found.fill(0)
    return found


def filled(nbytes: int, byte: int) -> Bytes:
    """Return a flat array of one byte; where the host can, arrays share the pages that nobody writes.

    A device has tens of megabytes, of which a program touches few; a machine of many ranks has many devices.
    """
    data = _waiting(nbytes)
    if data is None and _WORTH_MAPPING <= nbytes <= _LARGEST and hasattr(os, "memfd_create"):
        with _lock:
            made = np.frombuffer(mmap.mmap(_full_of(byte, nbytes), nbytes, flags=mmap.MAP_PRIVATE), np.uint8)
            _sharing[_address(made)] = byte
            return made
    data = _mapped(nbytes) if data is None else data
    data.fill(byte)
    return data


def renew(array: npt.NDArray[np.generic], byte: int) -> None:
    """Fill an array of this module's with the byte that it was made of; views of it stay.

    Linux takes the pages that were written back and gives those of the file, or zeros: that costs as much as was
    written, and a fill as much as there is.
    """
    mapping = _mapping_of(array)
    # Larger ones never share pages: what is known of their address is of an array that was there before.
    held = _sharing.get(_address(array), 0) if array.nbytes <= _LARGEST else 0
    if mapping is not None and held == byte:
        mapping.madvise(mmap.MADV_DONTNEED)
    else:
        array.view(np.uint8).fill(byte)


def _mapping_of(array: npt.NDArray[np.generic]) -> mmap.mmap | None:
    """Return the mapping that an array is the whole of, where the host forgets what was written to one."""
    if sys.platform != "linux":
        return None
    held: object = array
    while isinstance(held, np.ndarray):
        held = held.base
    found = held.obj if isinstance(held, memoryview) else held
    return found if isinstance(found, mmap.mmap) and len(found) == array.nbytes else None


def _address(array: npt.NDArray[np.generic]) -> int:
    return int(array.__array_interface__["data"][0])


def _full_of(byte: int, nbytes: int) -> int:
    """Return a file in memory with so many of one byte; mappings of it copy a page when they write to it."""
    file, length = _full.get(byte) or (os.memfd_create(f"full of {byte:#x}", os.MFD_CLOEXEC), 0)
    part = bytes([byte]) * _WORTH_MAPPING
    while length < nbytes:
        length += os.pwrite(file, part, length)
    _full[byte] = file, length
    return file


def _mapped(nbytes: int) -> Bytes:
    """Return zeros that take no memory before they are written."""
    if nbytes < _WORTH_MAPPING:
        return np.zeros(nbytes, np.uint8)
    if not hasattr(mmap, "MAP_PRIVATE"):
        return np.frombuffer(mmap.mmap(-1, nbytes), np.uint8)
    made = np.frombuffer(mmap.mmap(-1, nbytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS), np.uint8)
    with _lock:
        _sharing.pop(_address(made), None)  # of one that was here before, and that nobody gave back
    return made


def _waiting(nbytes: int) -> Bytes | None:
    global _kept
    with _lock:
        _take_back()
        waiting = _free.pop(nbytes, None)
        if waiting is None:
            return None
        _kept -= nbytes
        found = waiting.pop()
        if waiting:
            _free[nbytes] = waiting  # asked for last
        return found


def give(array: npt.NDArray[np.generic] | None) -> None:
    """Take back an array of this module's, in whatever shape and type; nobody may use it after that.

    One that shares pages may have more of its own by then than it is worth to give up.
    """
    global _kept
    if array is None or array.nbytes < _WORTH_KEEPING:
        return
    # The same object where it can be: moves that were bound to it look for it (emulator.known_way).
    is_flat = array.ndim == 1 and array.dtype == np.uint8
    flat: Bytes = array if is_flat else array.reshape(-1).view(np.uint8)  # type: ignore[assignment]
    with _lock:
        _take_back()
        _keep(flat).append(flat)
        _make_room()


def _keep(flat: Bytes) -> list[Bytes]:
    """Return where an array is to wait; its size was asked for last."""
    global _kept
    _kept += flat.size
    waiting = _free[flat.size] = _free.pop(flat.size, [])
    return waiting


def _make_room() -> None:
    global _kept
    while _kept > _MOST_KEPT:
        oldest = next(iter(_free))  # of the sizes that nobody has asked for in a long time
        _kept -= oldest
        del _free[oldest][0]
        if not _free[oldest]:
            del _free[oldest]


def _take_back() -> None:
    """Let what was returned wait, to be taken after what was given, so that a program finds its own again."""
    while _returned:
        flat = _returned.popleft()
        _keep(flat).insert(0, flat)
        _make_room()


class _Lent:
    """A buffer for somebody who knows nothing of this module."""

    __slots__ = ("__array_interface__", "_flat")

    def __init__(self, flat: Bytes) -> None:
        self._flat, self.__array_interface__ = flat, flat.__array_interface__

    def __del__(self, returned: deque[Bytes] = _returned, most: int = _MOST_RETURNED) -> None:
        if len(returned) < most:  # else nobody has asked for any in a long time
            returned.append(self._flat)


def hand_over(array: Bytes) -> Bytes:
    """Return the bytes of an array for anybody to have: they are given back when nobody has them any more.

    The array is one that `take` gave, and whoever hands it over may not use it after that.
    """
    return np.asarray(_Lent(array)) if array.nbytes >= _WORTH_KEEPING else array


def drop(array: npt.NDArray[np.generic]) -> None:
    """Forget an array of which few pages were touched: to make another costs less than to fill this one."""
    with _lock:
        _sharing.pop(_address(array), None)
