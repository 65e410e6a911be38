"""From the words that the runtime loaded back to the compiler's. Source: formats.md 6.1, isa.md 9 (observed)."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["DELETED", "INSERTED", "Edit", "PcMap"]

INSERTED, DELETED = "inserted", "deleted"
_WORD = 64


class Edit(NamedTuple):
    """One change that the runtime made to a stream, at a byte position of the loaded stream."""

    position: int
    words: int
    kind: str

    @property
    def pc(self) -> int:
        """Return the loaded pc at which the change stands."""
        return self.position // _WORD


class PcMap(NamedTuple):
    """The changes of one engine's stream, in order of position."""

    engine: str
    edits: tuple[Edit, ...]

    def compiler_pc(self, pc: int) -> int | None:
        """Return the compiler's pc of a loaded word; None for one that the runtime inserted."""
        shift = 0
        for edit in self.edits:
            if edit.pc > pc:
                break
            if edit.kind == DELETED:
                shift += edit.words
            elif pc < edit.pc + edit.words:
                return None
            else:
                shift -= edit.words
        return pc + shift

    def loaded_words(self, compiler_words: int) -> int:
        """Return how many words the loaded stream has for a compiler stream of some length."""
        return compiler_words + sum(-edit.words if edit.kind == DELETED else edit.words for edit in self.edits)

    @property
    def inserted(self) -> int:
        """Return how many words the runtime inserted."""
        return sum(edit.words for edit in self.edits if edit.kind == INSERTED)

    @property
    def deleted(self) -> int:
        """Return how many of the compiler's words the runtime left out."""
        return sum(edit.words for edit in self.edits if edit.kind == DELETED)
