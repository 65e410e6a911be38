"""The words of one engine, bound as they come up: in full, as another of their kind, or not again."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from itertools import repeat
from operator import attrgetter
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
    from emulator.cost import Claim
    from emulator.loaded import LoadedWord

__all__ = ["ASKS", "PASSES", "UNBOUND", "WAITS", "BoundWord", "BoundWords"]

# Bound words that an engine keeps, and templates: of one with more, none is found again by the next pass through them.
_KEPT = 1 << 13
_USUAL = (0, int(WaitMode.SEM_GE), int(WaitMode.SEM_EQ), int(WaitMode.SEM_GT))  # the modes of most headers
_NAMED = 1 << 15  # all bytes of words that lead to one of them, which take hardly any memory
_GE = int(WaitMode.SEM_GE)
_key_of = attrgetter("key")

# What the innermost function of a run asks of a word at once: what to do about its waits, of a semaphore its number and
# value, its action, interval, latency and claim, how far behind the word before it ends, and whether it is `BESIDE`.
Course = tuple[int, int, int, Action, int, int, "Claim | None", int, bool]
PASSES, WAITS, ASKS = 0, 1, -1  # for nothing, for a semaphore to be as large; for what `Sequencer` asks one by one


class BoundWord:
    """A word as its engine meets it: its action, and what stands in its header, which an engine asks for each time.

    `mode`, `index` and `need` are what it waits for, `update` and `updated` what it signals. A `usual` one waits for a
    semaphore of the header at most; others wait for more, consume what they wait for, or meet somebody.
    """

    __slots__ = ("action", "beside", "course", "index", "mode", "need", "update", "updated", "usual")

    def __init__(self, word: isa.Instruction, action: Action) -> None:
        self.action, self.beside = action, word.BESIDE
        self.mode, self.index, self.update, self.updated, self.need = header_sync(word.raw)
        self.usual = self.mode in _USUAL and not (action.waits or action.drain or action.barrier)
        self.course = self._course()

    def _course(self) -> Course:
        action, asks = self.action, ASKS
        if self.usual and self.mode in (0, _GE):
            asks = WAITS if self.mode else PASSES
        return (asks, self.index, self.need, action, action.interval, action.latency, action.claim, action.apart,
                self.beside)  # fmt: skip

    def with_action(self, action: Action) -> BoundWord:
        """Return the same word with another action of the same course."""
        other = copy(self)
        other.action = action
        other.course = other._course()
        return other


class _Unbound:
    """Stands for a word that is not bound yet."""

    course = ASKS, 0, 0, Action(None, 0, 0), 0, 0, None, 0, False


UNBOUND: Any = _Unbound()


class _KeptWords:
    """Words that are bound under one set of conditions, by what they are."""

    __slots__ = ("actions", "costs", "templates", "words")

    def __init__(self) -> None:
        self.actions: dict[bytes, Action] = {}
        self.words: dict[bytes, BoundWord] = {}  # the same by what engines know them by
        self.templates: dict[bytes, Template] = {}
        self.costs: dict[bytes, Cost] = {}


class BoundWords:
    """What each word of an engine does; what earlier devices bound in the same workspace is found again.

    `words` are those that are known, by what engines know them by; `bound` gives one that is not among them.
    """

    __slots__ = ("_engine", "_found", "_passing", "words")

    def __init__(self, engine: EngineContext) -> None:
        self._engine = engine
        self._found: _KeptWords | None = None
        self.words: dict[bytes, BoundWord] = {}
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
        self.words = kept.words

    def bound(self, loaded: LoadedWord) -> BoundWord:
        """Return a word, bound; its action may be that of another that does the same. Errors as in `make_action`."""
        key, kept = loaded.key, self._kept
        found = kept.words.get(key)
        if found is None:
            action = self._by_what_it_does(loaded, kept.actions)
            found = BoundWord(loaded.word, action)
            self._keep(kept.words, key, found, action.lasting, _NAMED)
        return found

    def known(self, stream: Sequence[LoadedWord]) -> list[BoundWord]:
        """Return the words of a stream, `UNBOUND` for those that are not known."""
        return list(map(self.words.get, map(_key_of, stream), repeat(UNBOUND)))

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
        self.words, self._found = {}, None
        del self._engine
