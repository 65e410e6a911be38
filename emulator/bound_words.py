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

# Bound words that an engine keeps, and templates: of one with more, none is found again by the next pass through them.
_KEPT = 1 << 13
_NAMED = 1 << 15  # all bytes of words that lead to one of them, which take hardly any memory


class _KeptWords:
    """Words that are bound under one set of conditions, by what they are."""

    __slots__ = ("actions", "costs", "templates", "triggers", "words")

    def __init__(self) -> None:
        self.actions: dict[bytes, Action] = {}
        # The same by all bytes of the word: of those that start a transfer, and of the others.
        self.triggers: dict[bytes, Action] = {}
        self.words: dict[bytes, Action] = {}
        self.templates: dict[bytes, Template] = {}
        self.costs: dict[bytes, Cost] = {}


class BoundWords:
    """What each word of an engine does; what earlier devices bound in the same workspace is found again."""

    __slots__ = ("_engine", "_found", "_passing", "_triggers", "_words")

    def __init__(self, engine: EngineContext) -> None:
        self._engine = engine
        self._found: _KeptWords | None = None
        self._words: dict[bytes, Action] = {}
        self._triggers: dict[bytes, Action] = {}
        self._passing: list[tuple[dict[bytes, Action], bytes]] = []  # which of them belong to this device alone

    @property
    def _kept(self) -> _KeptWords:
        """Return the words that are bound; the first one decides under which conditions."""
        kept = self._found
        if kept is None:
            kept = self._found = self._find()
            self._words, self._triggers = kept.words, kept.triggers
        return kept

    def _find(self) -> _KeptWords:
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
        return self._kept.costs

    def action_of(self, loaded: LoadedWord) -> Action:
        """Return the action of a word, which may be that of another that does the same; errors as in `make_action`."""
        raw = loaded.word.raw
        action = self._words.get(raw) if loaded.transfer is None else self._triggers.get(raw)
        if action is not None:
            return action
        kept = self._kept
        action = self._by_what_it_does(loaded, kept.actions)
        self._keep(kept.words if loaded.transfer is None else kept.triggers, raw, action, _NAMED)
        return action

    def _keep(self, among: dict[bytes, Action], key: bytes, action: Action, most: int = _KEPT) -> None:
        if len(among) >= most:
            among.clear()
            self._passing = [each for each in self._passing if each[0] is not among]
        among[key] = action
        if not action.lasting:
            self._passing.append((among, key))

    def _by_what_it_does(self, loaded: LoadedWord, actions: dict[bytes, Action]) -> Action:
        """Return the action of a word, whatever it waits for and signals."""
        word = loaded.word
        transfers = loaded.transfer is not None
        # Of those that start a transfer the engine itself reads the indices at most; the others differ in nothing here.
        key = word.without_addresses() if transfers and not type(word).DECIDES else word.body
        action = actions.get(key)
        if action is not None:
            return action
        if not transfers and is_worth_asking(type(word)):
            action = self._from_template(word)
        if action is None:
            action = make_action(self._engine, word, transfers)
        self._keep(actions, key, action)
        return action

    def _from_template(self, word: isa.Instruction) -> Action | None:
        """Return the action of a word, bound as another of its kind was; None where it has to be bound in full."""
        kind = word.without_addresses()
        templates = self._kept.templates
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
        for among, key in self._passing:
            among.pop(key, None)
        self._passing = []
        self._words, self._triggers, self._found = {}, {}, _KeptWords()
