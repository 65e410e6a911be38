"""The words of an engine as far as time goes: what they compute is left out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from emulator.bound_words import BoundWords
from formats import isa

if TYPE_CHECKING:
    from emulator.action import Action
    from emulator.loaded import LoadedWord

__all__ = ["STEERING", "TimedWords"]

STEERING = frozenset({
    isa.Write, isa.TensorStore, isa.TensorLoad, isa.RegisterLoad, isa.CompareBranch, isa.EventSemaphoreRangeClear,
    isa.Opcode95, isa.OpcodeA1, isa.Unknown,
})  # fmt: skip
"""Words whose effects reach semaphores, registers and the program counter, or that refuse: these are carried out."""


class TimedWords(BoundWords):
    """What each word of an engine takes and whom it tells; memories stay as they are."""

    __slots__ = ()

    def action_of(self, loaded: LoadedWord) -> Action:
        """Return the action of a word without its effect on data; errors as in `BoundWords`."""
        action = super().action_of(loaded)
        if action.effect is not None and type(loaded.word) not in STEERING:
            action.effect = None
            action.reads = action.writes = ()
        return action
