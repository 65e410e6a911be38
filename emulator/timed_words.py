"""The words of an engine as far as time goes: what they compute is left out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from emulator.bound_words import BoundWord, BoundWords
from formats import isa

if TYPE_CHECKING:
    from emulator.action import Action
    from emulator.context import EngineContext
    from emulator.loaded import LoadedWord

__all__ = ["STEERING", "TimedWords"]

STEERING = frozenset({
    isa.Write, isa.TensorStore, isa.EventSemaphoreRangeClear, isa.Opcode95, isa.OpcodeA1, isa.Unknown,
    *(cls for cls in isa.CLASSES if cls.REGISTERS),
})  # fmt: skip
"""Words whose effects reach semaphores, registers and the program counter, or that refuse: these are carried out."""


class TimedWords(BoundWords):
    """What each word of an engine takes and whom it tells; memories stay as they are."""

    __slots__ = ("_bare",)

    def __init__(self, engine: EngineContext) -> None:
        super().__init__(engine)
        self._bare: dict[bytes, Action] = {}

    def _look_in(self, kept: object) -> None:
        """Keep apart what is known here: other devices find the words whole."""

    def bound(self, loaded: LoadedWord) -> BoundWord:
        """Return a word without its effect on data; errors as in `BoundWords`."""
        word = loaded.word
        found = super().bound(loaded)
        action = found.action
        if action.effect is not None and type(word) not in STEERING:
            bare = self._bare.get(word.body)
            if bare is None:
                bare = self._bare[word.body] = action.without_data()
            found = found.with_action(bare)
        self.words[loaded.key] = found
        return found
