"""What came of each operation: words of which engines, that use which tiles; put together for whoever asks."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Collection, Iterator, Mapping, Sequence
from operator import attrgetter

from formats.engines import ENGINES
from formats.neuron_core import WORD
from neurontools.builder.streams import Origin, Stream
from neurontools.builder.trace import Trace, visit_of

__all__ = ["ROW", "Emitted"]

ROW = 2 * len(ENGINES)  # numbers in a row of `Emitted.pcs`
_NOTE = 6
_SOURCE, _NAME = attrgetter("source"), attrgetter("name")


class Emitted:
    """The words of one core by the operations that they come from, and the tiles that these touched.

    `notes` are six numbers for each operation and engine that has words of it, one after the other: of the operation,
    of the engine, the first byte of the words and the one behind them, and from where to where in `touched` its tiles
    stand. That is all that is noted as a program is emitted: hardly anybody asks for debug information.
    """

    def __init__(self, trace: Trace, tiles: int, touched: Sequence[int]) -> None:
        self.notes: list[int] = []
        self._tiles, self._touched = tiles, touched
        ops = trace.ops
        self._sources = [*map(_SOURCE, ops)]
        names = [*map(_NAME, ops)]
        named = len(names) - names.count(None)  # hardly any
        self._names = {number: name for number, name in enumerate(names) if name} if named else {}
        # by engine: bytes, slots that are no word's first, and words that come from elsewhere
        self._ends: list[int] = []
        self._longer: list[Sequence[int]] = []
        self._named: list[Mapping[int, Origin | str]] = []

    def counterpart(self, trace: Trace) -> Emitted:
        """Return the same of a program whose operations came to the same words."""
        found = Emitted(trace, self._tiles, self._touched)
        found.notes = self.notes
        found._ends, found._longer, found._named = self._ends, self._longer, self._named
        return found

    def name(self, number: int) -> str:
        """Return the name of an operation."""
        return self._names.get(number) or f"I-{number}"

    def counts(self) -> list[int]:
        """Return the number of words of each engine."""
        return [end // WORD - len(longer) for end, longer in zip(self._ends, self._longer, strict=True)]

    def close(self, streams: Collection[Stream]) -> None:
        """Take over what the streams, in the order of the engines, know of their words; nothing is appended behind."""
        self._ends = [len(stream.raw) for stream in streams]
        self._longer = [stream.longer for stream in streams]
        self._named = [stream.named for stream in streams]

    def _of(self, engine: int) -> Iterator[tuple[int, int, int]]:
        """Yield the operations of which an engine has words, with the first byte of these and the one behind them."""
        notes = self.notes
        for at in range(0, len(notes), _NOTE):
            if notes[at + 1] == engine:
                yield notes[at], notes[at + 2], notes[at + 3]

    def _pc(self, engine: int, byte: int) -> int:
        """Return how many words of an engine begin in front of a byte, where one does or the last one ends."""
        return byte // WORD - bisect_left(self._longer[engine], byte)

    def origins(self, engine: int) -> list[Origin | None]:
        """Return where each slot of an engine comes from: name of the operation, file and line."""
        found: list[Origin | None] = [None] * (self._ends[engine] // WORD)
        for number, first, end in self._of(engine):
            file, line = self._sources[number]
            found[first // WORD : end // WORD] = [(self.name(number), file, line)] * ((end - first) // WORD)
        for byte, origin in self._named[engine].items():
            if isinstance(origin, str):
                own = found[byte // WORD]
                assert own is not None  # a suffix to the name of an operation
                origin = own[0] + origin, own[1], own[2]
            found[byte // WORD] = origin
        return found

    def visits(self) -> dict[str, list[int]]:
        """Return, by engine, pairs of a word's number and the visit of the kernel from there on."""
        found = {}
        for engine, name in enumerate(ENGINES):
            pairs: list[int] = []
            last = 0
            for number, first, end in self._of(engine):
                last, visit = end, visit_of(self._sources[number])
                if not pairs or pairs[-1] != visit:
                    pairs += (self._pc(engine, first), visit)
            if pairs:
                found[name] = [*pairs, self._pc(engine, last), -1]  # what follows ends the program
        return found

    def pcs(self) -> array[int]:
        """Return a row per tile, in the order of their lives: first and last word of each engine that uses it.

        -1 stands where none does.
        """
        pcs, touched, notes = array("q", [-1]) * (ROW * self._tiles), self._touched, iter(self.notes)
        for _, engine, first, end, begin, behind in zip(*[notes] * _NOTE, strict=True):
            if begin == behind:
                continue
            low, high = self._pc(engine, first), self._pc(engine, end) - 1
            for row in touched[begin:behind]:
                at = row + 2 * engine
                if pcs[at] < 0:
                    pcs[at] = low
                pcs[at + 1] = high
        return pcs
