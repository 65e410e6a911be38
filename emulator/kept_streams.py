"""The streams of a file as they were loaded, kept with the open file, which is loaded again in no time.

What a device executes of a word is decided by the file, by where its variables and rings lie, and by figures of the
chip, unless the word asks the device itself for something.
"""

from __future__ import annotations

from collections.abc import Mapping
from threading import Lock
from typing import Any
from weakref import WeakKeyDictionary

from emulator.dma.transfer import Shares, Transfer
from emulator.loaded import LoadedWord
from formats.named_tuple import NamedTuple
from formats.neff import Subgraph

__all__ = ["KeptStreams", "keep_streams", "kept_streams"]

_MOST = 1 << 16  # words, of all files; a word with its transfer takes a kilobyte


class KeptStreams(NamedTuple):
    """The loaded words of a subgraph by engine, and by queue the transfers that have descriptors from load time.

    `condition` is all that they depend on besides the file. Nothing here may refer to the file or to a device.
    """

    condition: tuple[Any, ...]
    words: Mapping[str, tuple[LoadedWord, ...]]
    made: Mapping[str, tuple[tuple[Transfer, Shares], ...]]

    @property
    def size(self) -> int:
        """Return the number of words."""
        return sum(map(len, self.words.values()))


_lock = Lock()
_FILES: WeakKeyDictionary[Subgraph, KeptStreams] = WeakKeyDictionary()


def kept_streams(subgraph: Subgraph, condition: tuple[Any, ...]) -> KeptStreams | None:
    """Return what is kept of a subgraph; None where nothing is, or under another condition."""
    found = _FILES.get(subgraph)
    return found if found is not None and found.condition == condition else None


def keep_streams(subgraph: Subgraph, streams: KeptStreams) -> None:
    """Keep the streams of a subgraph, the latest that there is room for."""
    with _lock:  # several threads load
        _FILES.pop(subgraph, None)
        _FILES[subgraph] = streams
        size = 0
        for each in reversed(list(_FILES)):
            size += _FILES[each].size
            if size > _MOST:
                del _FILES[each]
