"""The words of one engine, bound as they come up: in full, as another of their kind, or not again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from emulator.action import Action, make_action
from emulator.cost import Cost, CostModel
from emulator.kind import is_worth_asking
from emulator.template import Template, template_of
from formats import isa

if TYPE_CHECKING:
    from emulator.context import EngineContext
    from emulator.loaded import LoadedWord

__all__ = ["BoundWords"]

_KEPT = 2048  # bound words that an engine keeps, and templates; loops and repeated operands find theirs again


class _KeptWords:
    """Words that are bound under one set of conditions, by what they are."""

    __slots__ = ("actions", "costs", "templates")

    def __init__(self) -> None:
        self.actions: dict[bytes, Action] = {}
        self.templates: dict[bytes, Template] = {}
        self.costs: dict[bytes, Cost] = {}


class BoundWords:
    """What each word of an engine does; what earlier devices bound in the same workspace is found again."""

    __slots__ = ("_actions", "_engine", "_kept", "_passing")

    def __init__(self, engine: EngineContext) -> None:
        self._engine = engine
        self._actions: dict[bytes, Action] = {}
        self._kept: _KeptWords | None = None
        self._passing: list[bytes] = []  # which of the actions belong to this device alone

    @property
    def kept(self) -> _KeptWords:
        """Return the words that are bound; the first one decides under which conditions."""
        kept = self._kept
        if kept is None:
            kept = self._kept = self._found()
            self._actions = kept.actions
        return kept

    def _found(self) -> _KeptWords:
        engine = self._engine
        core, device = engine.core, engine.device
        costs = device.costs
        if core.tables or type(costs) is not CostModel or costs.chip is not core.workspace.arch:
            return _KeptWords()
        condition: Any = (
            device.timing,
            costs.without,
            core.extended,
            len(device.cores),
            tuple(core.activation.items()),
        )
        return core.workspace.words_of(engine.name, condition, _KeptWords)

    @property
    def costs(self) -> dict[bytes, Cost]:
        """Return what is known of the costs of words."""
        return self.kept.costs

    def action_of(self, loaded: LoadedWord) -> Action:
        """Return the action of a word, which may be that of another that does the same; errors as in `make_action`."""
        word = loaded.word
        key = word.body
        action = self._actions.get(key)
        if action is not None:
            return action
        actions = self.kept.actions
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
        if not action.lasting:
            self._passing.append(key)
        return action

    def _from_template(self, word: isa.Instruction) -> Action | None:
        """Return the action of a word, bound as another of its kind was; None where it has to be bound in full."""
        kind = word.without_addresses()
        templates = self.kept.templates
        template = templates.get(kind)
        if template is None:
            template = template_of(self._engine, word, kind)
            if template is None:
                return None
            if len(templates) >= _KEPT:
                templates.clear()
            templates[kind] = template
        return template.bind(self._engine, word)

    def release(self) -> None:
        """Leave to the workspace what does for other devices; no word can be asked for after that."""
        for key in self._passing:
            self._actions.pop(key, None)
        self._passing = []
        self._actions, self._kept = {}, _KeptWords()
