"""Who can signal which semaphore or event: an index of one engine's stream, made when somebody asks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from emulator.semaphores import signed
from formats import isa
from formats.isa import UpdateMode

if TYPE_CHECKING:
    from emulator.sequencer import Sequencer

__all__ = ["Key", "SignalIndex", "Source", "index_of"]

Key = tuple[int, str, int]      # core, "semaphore" or "event", number

_EVENT_SEMAPHORE, _EVENT_SET = isa.EventSemaphore.OPCODE, int(UpdateMode.EVENT_SET)
_HEADER = 40                    # bytes of a word that name what it waits for and signals
_AMOUNTS: dict[int, int | None] = {int(UpdateMode.SEM_INC): 1, int(UpdateMode.SEM_DEC): -1}


class Source(NamedTuple):
    """Signals of a stream that are alike: by whom (engine or queue), how much, and the numbers of their words.

    `amount` is None where they write a value, `moves` tells DMA transfers that the words start.
    """

    by: str
    amount: int | None
    moves: bool
    numbers: list[int]


class SignalIndex:
    """The signals of one engine's words, by what they signal; the stream must not change any more."""

    def __init__(self, engine: Sequencer) -> None:
        self.words = engine.words
        self._core, self._name, self._addresses = engine.core.index, engine.name, engine.core.device.addresses
        heads = b"".join([loaded.word.raw[:_HEADER] for loaded in self.words])
        self._heads = np.frombuffer(heads, np.uint8).reshape(-1, _HEADER)
        # Words that signal otherwise than through their header. Thousands are alike: only numbers are kept of each.
        self._others: dict[Key, dict[tuple[str, int | None, bool], list[int]]] = {}
        alike: dict[Any, list[list[int]]] = {}
        for number, loaded in enumerate(self.words):
            if loaded.transfer is not None:
                groups = alike.get((loaded.queue, loaded.raises))
                if groups is None:
                    groups = alike[loaded.queue, loaded.raises] = [
                        self._group((core, "semaphore", semaphore), loaded.queue, amount, True)
                        for core, semaphore, amount in loaded.raises]
                for group in groups:
                    group.append(number)
            elif loaded.word.raw[0] in _SPECIAL:
                for key, amount in self._specially(loaded.word):
                    self._group(key, self._name, amount, False).append(number)
        self._known: dict[Key, list[Source]] = {}

    def _group(self, key: Key, by: str, amount: int | None, moves: bool) -> list[int]:
        return self._others.setdefault(key, {}).setdefault((by, amount, moves), [])

    def sources(self, key: Key) -> list[Source]:
        """Return what signals a semaphore or event."""
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = list(self._find(key))
        return found

    def _find(self, key: Key) -> Iterator[Source]:
        core, kind, index = key
        for (by, amount, moves), numbers in self._others.get(key, {}).items():
            yield Source(by, amount, moves, numbers)
        heads = self._heads
        if core != self._core or not len(heads):
            return
        for mode, at in ((6, 7), (34, 35)):
            hits = (heads[:, mode] != 0) & (heads[:, at] == index)
            hits &= (heads[:, mode] == _EVENT_SET) == (kind == "event")
            if mode == 34:
                hits &= heads[:, 0] == _EVENT_SEMAPHORE
            for what in np.unique(heads[hits, mode]).tolist():
                same = np.flatnonzero(hits & (heads[:, mode] == what)).tolist()
                if what != UpdateMode.SEM_ADD_IMM or mode == 6:
                    yield Source(self._name, _AMOUNTS.get(what), False, same)
                    continue
                for number in same:
                    amount = signed(int.from_bytes(self.words[number].word.raw[40:44], "little"))
                    yield Source(self._name, amount, False, [number])

    def _specially(self, word: Any) -> Iterator[tuple[Key, int | None]]:
        """Yield what a word signals through a barrier, or a write to a register's address."""
        if isinstance(word, isa.CoreBarrier):
            yield (1 - self._core, "semaphore", word.semaphore), 1
        elif isinstance(word, isa.Write):
            for address, size, data in ((word.address0, word.size0, word.data0),
                                        (word.address1, word.size1, word.data1)):
                place = self._addresses.locate(address) if size else None
                if place is not None and place.kind in ("semaphore", "event"):
                    sign = {"increment": 1, "decrement": -1}.get(place.action)
                    amount = None if sign is None else sign * signed(data & 0xFFFFFFFF)
                    yield (place.core, place.kind, int(place.index)), amount


_SPECIAL = frozenset((isa.Write.OPCODE, isa.EXTENSION_OPCODE))
_indices: WeakKeyDictionary[Sequencer, SignalIndex] = WeakKeyDictionary()


def index_of(engine: Sequencer) -> SignalIndex:
    """Return the index of an engine's stream, made at the first call."""
    found = _indices.get(engine)
    if found is None or found.words is not engine.words:
        found = _indices[engine] = SignalIndex(engine)
    return found
