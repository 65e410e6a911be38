"""The words of one engine, bound as they come up: in full, as another of their kind, or not again."""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Any

from emulator.action import Action, make_action
from emulator.cost import Cost, CostModel
from emulator.kind import is_worth_asking
from emulator.template import Template, template_of
from formats import isa
from formats.isa import WaitMode
from formats.isa.instruction import header_sync

if TYPE_CHECKING:
    from emulator.context import EngineContext
    from emulator.loaded import LoadedWord

__all__ = ["BoundWord", "BoundWords"]

# Bound words that an engine keeps, and templates: of one with more, none is found again by the next pass through them.
_KEPT = 1 << 13
_USUAL = (0, int(WaitMode.SEM_GE), int(WaitMode.SEM_EQ), int(WaitMode.SEM_GT))  # the modes of most headers
_NAMED = 1 << 15  # all bytes of words that lead to one of them, which take hardly any memory


class BoundWord:
    """A word as its engine meets it: its action, and what stands in its header, which an engine asks for each time.

    `mode`, `index` and `need` are what it waits for, `update` and `updated` what it signals. A `usual` one waits for a
    semaphore of the header at most; others wait for more, consume what they wait for, or meet somebody.
    """

    __slots__ = ("action", "beside", "index", "mode", "need", "update", "updated", "usual")

    def __init__(self, word: isa.Instruction, action: Action) -> None:
        self.action, self.beside = action, word.BESIDE
        self.mode, self.index, self.update, self.updated, self.need = header_sync(word.raw)
        self.usual = self.mode in _USUAL and not (action.waits or action.drain or action.barrier)

    def with_action(self, action: Action) -> BoundWord:
        """Return the same word with another action of the same course."""
        other = copy(self)
        other.action = action
        return other


class _KeptWords:
    """Words that are bound under one set of conditions, by what they are."""

    __slots__ = ("actions", "costs", "templates", "triggers", "words")

    def __init__(self) -> None:
        self.actions: dict[bytes, Action] = {}
        # The same by all bytes of the word: of those that start a transfer, and of the others.
        self.triggers: dict[bytes, BoundWord] = {}
        self.words: dict[bytes, BoundWord] = {}
        self.templates: dict[bytes, Template] = {}
        self.costs: dict[bytes, Cost] = {}


class BoundWords:
    """What each word of an engine does; what earlier devices bound in the same workspace is found again.

    `words` and `triggers` are those that are known, by all of their bytes, for an engine that asks at each issue;
    `bound` gives one that is not among them.
    """

    __slots__ = ("_engine", "_found", "_passing", "triggers", "words")

    def __init__(self, engine: EngineContext) -> None:
        self._engine = engine
        self._found: _KeptWords | None = None
        self.words: dict[bytes, BoundWord] = {}
        self.triggers: dict[bytes, BoundWord] = {}  # those that start a transfer
        self._passing: list[tuple[dict[bytes, Any], bytes]] = []  # which of them belong to this device alone

    @property
    def _kept(self) -> _KeptWords:
        """Return the words that are bound; the first one decides under which conditions."""
        kept = self._found
        if kept is None:
            kept = self._found = self._find()
            self._look_in(kept)
        return kept

    def _find(self) -> _KeptWords:
        engine = self._engine
        core, device = engine.core, engine.device
        costs = device.costs
        if core.tables or type(costs) is not CostModel or costs.chip is not core.workspace.arch:
            return _KeptWords()
        kept, name = core.bound_words, engine.name
        found: _KeptWords | None = kept.get(name)
        if found is None:
            found = kept[name] = _KeptWords()
        return found

    @property
    def costs(self) -> dict[bytes, Cost]:
        """Return what is known of the costs of words."""
        return self._kept.costs

    def _look_in(self, kept: _KeptWords) -> None:
        self.words, self.triggers = kept.words, kept.triggers

    def bound(self, loaded: LoadedWord) -> BoundWord:
        """Return a word, bound; its action may be that of another that does the same. Errors as in `make_action`."""
        raw, kept = loaded.word.raw, self._kept
        known = kept.words if loaded.transfer is None else kept.triggers
        found = known.get(raw)
        if found is None:
            action = self._by_what_it_does(loaded, kept.actions)
            found = BoundWord(loaded.word, action)
            self._keep(known, raw, found, action.lasting, _NAMED)
        return found

    def _keep(self, among: dict[bytes, Any], key: bytes, found: object, lasting: bool, most: int = _KEPT) -> None:
        if len(among) >= most:
            among.clear()
            self._passing = [each for each in self._passing if each[0] is not among]
        among[key] = found
        if not lasting:
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
        self._keep(actions, key, action, action.lasting)
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
        self.words, self.triggers, self._found = {}, {}, None
        del self._engine
