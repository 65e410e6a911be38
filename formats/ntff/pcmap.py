"""From the words that the runtime loaded back to the compiler's. Source: formats.md 6.1, isa.md 9 (observed)."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property

from formats.named_tuple import NamedTuple
from formats.neuron_core import WORD

__all__ = ["DELETED", "INSERTED", "Edit", "PcMap"]

INSERTED, DELETED = "inserted", "deleted"


class Edit(NamedTuple):
    """One change that the runtime made to a stream, at a byte position of the loaded stream."""

    position: int
    words: int
    kind: str

    @property
    def pc(self) -> int:
        """Return the loaded pc at which the change stands."""
        return self.position // WORD


class _Step(NamedTuple):
    """What all edits up to one come to: words to add to a pc behind them, and where the last inserted word ends."""

    shift: int
    inserted_end: int


@dataclass(frozen=True)
class PcMap:
    """The changes of one engine's stream, in order of position."""

    engine: str
    edits: tuple[Edit, ...]

    @cached_property
    def _starts(self) -> list[int]:
        return [edit.pc for edit in self.edits]

    @cached_property
    def _steps(self) -> list[_Step]:
        steps, shift, end = [_Step(0, 0)], 0, 0
        for edit in self.edits:
            if edit.kind == DELETED:
                shift += edit.words
            else:
                shift -= edit.words
                # Behind a deletion the next insertion may begin before this one ends.
                end = max(end, edit.pc + edit.words)
            steps.append(_Step(shift, end))
        return steps

    def compiler_pc(self, pc: int) -> int | None:
        """Return the compiler's pc of a loaded word; None for one that the runtime inserted."""
        step = self._steps[bisect_right(self._starts, pc)]
        found = pc + step.shift
        # A damaged map can insert more words than there are before a pc.
        return None if pc < step.inserted_end or found < 0 else found

    def loaded_words(self, compiler_words: int) -> int:
        """Return how many words the loaded stream has for a compiler stream of some length."""
        return compiler_words - self._steps[-1].shift

    @property
    def inserted(self) -> int:
        """Return how many words the runtime inserted."""
        return sum(edit.words for edit in self.edits if edit.kind == INSERTED)

    @property
    def deleted(self) -> int:
        """Return how many of the compiler's words the runtime left out."""
        return sum(edit.words for edit in self.edits if edit.kind == DELETED)
