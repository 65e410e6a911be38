"""The words of one engine, bound as they come up: in full, as another of their kind, or not again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from emulator.action import Action, make_action
from emulator.kind import is_worth_asking
from emulator.template import Template, template_of
from formats import isa

if TYPE_CHECKING:
    from emulator.context import EngineContext
    from emulator.loaded import LoadedWord

__all__ = ["BoundWords"]

_KEPT = 2048  # bound words that an engine keeps, and templates; loops and repeated operands find theirs again


class BoundWords:
    """What each word of an engine does."""

    __slots__ = ("_actions", "_engine", "_templates")

    def __init__(self, engine: EngineContext) -> None:
        self._engine = engine
        self._actions: dict[bytes, Action] = {}
        self._templates: dict[bytes, Template] = {}

    def action_of(self, loaded: LoadedWord) -> Action:
        """Return the action of a word, which may be that of another that does the same; errors as in `make_action`."""
        word = loaded.word
        key = word.body
        actions = self._actions
        action = actions.get(key)
        if action is not None:
            return action
        transfers = loaded.transfer is not None
        if transfers:
            # The engine itself reads the indices at most; the others differ in nothing here.
            if not type(word).DECIDES:
                key = word.without_addresses()
                action = actions.get(key)
                if action is not None:
                    return action
        elif is_worth_asking(type(word)):
            action = self._from_template(word)
        if action is None:
            action = make_action(self._engine, word, transfers)
        if len(actions) >= _KEPT:
            actions.clear()
        actions[key] = action
        return action

    def _from_template(self, word: isa.Instruction) -> Action | None:
        """Return the action of a word, bound as another of its kind was; None where it has to be bound in full."""
        kind = word.without_addresses()
        template = self._templates.get(kind)
        if template is None:
            template = template_of(self._engine, word, kind)
            if template is None:
                return None
            if len(self._templates) >= _KEPT:
                self._templates.clear()
            self._templates[kind] = template
        return template.bind(word)

    def clear(self) -> None:
        """Forget all words."""
        self._actions.clear()
        self._templates.clear()
