"""The words that a core dump holds, decoded when somebody asks for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import overload

from emulator.loaded import LoadedWord
from formats.core import Core
from formats.core.records import Source, Stream
from formats.core.runs import location_runs
from formats.errors import FormatError
from formats.isa import Instruction, decode
from formats.neff import SourceLocation
from formats.neuron_core import WORD

__all__ = ["StoredProgram", "StoredWords", "location_of"]

_ABSENT = "(not in this dump)"


def location_of(source: Source | None) -> SourceLocation | None:
    """Return a source location as programs have it."""
    if source is None or (source.file is None and not source.name):
        return None
    return SourceLocation(source.file, source.line, source.name, source.tensor, source.kernel)


class StoredWords(Sequence[LoadedWord]):
    """The stored words of one engine; `indices` are their places among all words, `pcs` their compiler pcs."""

    def __init__(self, core: Core | None = None, stream: Stream | None = None, target: str = "") -> None:
        self.indices: list[int] = []
        self.pcs: list[int] = []
        self._slots: list[int] = []
        self._raw: list[bytes] = []
        self._made: dict[int, LoadedWord] = {}
        self._target, self.dialect = target, "extended" if stream is not None and stream.extended else "neuron"
        for first, pc, slot, size, count in () if stream is None else stream.runs:
            assert core is not None and stream is not None
            found = core.read("instructions", stream.core, slot * WORD, size * count, engine=stream.engine)
            # up to the first byte that the file does not have: a dump may have been cut off
            whole = found.present.find(0)
            for number in range(count if whole < 0 else whole // size):
                self._raw.append(found.data[number * size : (number + 1) * size])
                self.pcs.append(pc + number)
                self._slots.append(slot + number * (size // WORD))
                self.indices.append(first + number)

    def __len__(self) -> int:
        return len(self._raw)

    @overload
    def __getitem__(self, index: int) -> LoadedWord: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[LoadedWord]: ...
    def __getitem__(self, index: int | slice) -> LoadedWord | Sequence[LoadedWord]:
        if isinstance(index, slice):
            return [self[number] for number in range(*index.indices(len(self)))]
        number = range(len(self))[index]
        made = self._made.get(number)
        if made is None:
            word = decode(self._raw[number], self._target, self.dialect)
            made = self._made[number] = LoadedWord(word, self.pcs[number], self._slots[number])
        return made


class StoredProgram:
    """The words of one engine as the file has them, and where they come from, by compiler pc."""

    def __init__(self, words: StoredWords, stream: Stream, target: str) -> None:
        self.words = words
        self._target = target
        self._by_pc = {pc: number for number, pc in enumerate(words.pcs)}
        self._last = max(self._by_pc, default=-1)
        self._replaced = dict(stream.replaced)
        places = [location_of(each) for each in stream.locations]
        self._source_of = location_runs(stream)
        self._places = places

    def word(self, pc: int) -> Instruction | None:
        """Return the word at a pc, None where the dump does not hold it."""
        raw = self._replaced.get(pc)
        if raw is not None:
            try:
                return decode(bytes.fromhex(raw), self._target, self.words.dialect)
            except (ValueError, FormatError):
                return None
        number = self._by_pc.get(pc)
        return None if number is None else self.words[number].word

    def text(self, pc: int) -> str:
        """Return the text of the word at a pc, "" behind the last one that the dump holds."""
        if not 0 <= pc <= self._last:
            return ""
        word = self.word(pc)
        return _ABSENT if word is None else word.text

    def source(self, pc: int) -> SourceLocation | None:
        """Return the source line of the word at a pc, None where the dump names none."""
        number = self._source_of(pc)
        return None if number is None else self._places[number]
