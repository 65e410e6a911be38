"""The five instruction streams: words in order, waits noted, progress counted, header bytes filled in at the end."""

from __future__ import annotations

import struct

from formats.engines import ENGINES
from formats.isa import EventSemaphore, Nop, OpcodeCC, SetOrderingMode, UpdateMode, WaitMode
from formats.neuron_core import WORD
from neurontools.builder.chip import PROGRESS, Chip, QueueFacts
from neurontools.builder.hazards import Needs
from neurontools.builder.vector_clocks import VectorClocks

__all__ = ["CONDITION", "ENGINE", "GUARDED", "Origin", "QueueUse", "Stream", "Streams"]

ENGINE: dict[str, int] = {name: index for index, name in enumerate(ENGINES)}

Origin = tuple[str, str, int]
"""Name of an operation, and the kernel file and line that it stands in."""

# Engines whose read of their own result real files order by a wait on their own semaphore; the others leave it to
# program order, since words complete in order. Source: isa.md 11 (hazards).
GUARDED = frozenset({ENGINE["DVE"]})

# a NOP carries one condition, EVENT_SEMAPHORE two (isa.md 2)
_EVENT, _NOP = EventSemaphore().raw, Nop().raw
_ORDER, _MARKER = SetOrderingMode().raw, OpcodeCC().raw  # what every engine begins with
# Places in a word of the first and the second condition (mode, index, two bytes of an update, value).
_CONDITIONS = _FIRST, _SECOND = 4, 32
CONDITION = slice(_FIRST, _FIRST + 8)
"""The bytes of a word that say what it waits for and signals."""
_ENGINES = len(ENGINES)
_GE, _INC = int(WaitMode.SEM_GE), int(UpdateMode.SEM_INC)
_ANYWHERE: Origin = ("end", "", 0)
# of a header: mode and index of its wait, and of its update none; the value waited for
_pack_condition = struct.Struct("<II").pack_into
_pack_signal = struct.Struct("<H").pack_into  # mode and index of its update
_PROGRESS_WAITS = tuple([_GE | PROGRESS[engine] << 8 for engine in ENGINES])
_PROGRESS_SIGNALS = tuple([_INC | PROGRESS[engine] << 8 for engine in ENGINES])


class Stream:
    """Words of one engine; `last` is the first byte of the last one.

    Waits name an actor's unit; numbers follow once everything is known. Words come from the operation that appended
    them but for those in `named`, by the first byte of each slot: these come from elsewhere, or have a suffix to its
    name. `longer` has the slots that a longer word has behind its first.
    """

    __slots__ = ("actor", "awaited", "conditions", "ends", "last", "longer", "named", "raw", "seen")

    def __init__(self, actor: int, prelude: bytes) -> None:
        self.actor = actor
        self.raw = bytearray(prelude)
        self.seen = len(prelude)  # bytes when an operation last appended some
        self.last = self.seen - WORD
        self.named: dict[int, Origin | str] = {}
        self.longer: list[int] = []
        self.conditions: list[int] = []  # one after the other: place in `raw`, actor, unit
        self.ends: list[int] = []  # by unit of this engine: first byte of the word that completes it
        self.awaited: set[int] = set()  # units of this engine that anybody waits for

    @property
    def count(self) -> int:
        """Return the number of words."""
        return len(self.raw) // WORD - len(self.longer)

    def append(self, raw: bytes | bytearray, origin: Origin | str | None = None) -> int:
        """Append a word that waits for nothing; return its place in `raw`."""
        words = self.raw
        place = self.last = len(words)
        words += raw
        if len(raw) > WORD:
            self.longer += range(place + WORD, len(words), WORD)
        if origin is not None:
            for slot in range(place, len(words), WORD):
                self.named[slot] = origin
        return place


class QueueUse:
    """One queue of this program: its actor number and how often each of its semaphores was raised."""

    __slots__ = ("_semaphores", "actor", "blocks", "facts", "transfers")

    def __init__(self, facts: QueueFacts, actor: int) -> None:
        self.facts, self.actor = facts, actor
        self._semaphores = facts.semaphores
        self.transfers = 0
        self.blocks = 0

    def value(self, ring: int, transfers: int) -> int:
        """Return the value of the semaphore of a ring once so many transfers of the queue are complete."""
        rings = len(self._semaphores)
        # transfers take the semaphores of a queue in turn, and each raises its own by one per ring
        return rings * ((transfers - ring + rings - 1) // rings)

    def ring(self, transfer: int) -> int:
        """Return the semaphore of a transfer."""
        semaphores = self._semaphores
        return semaphores[transfer % len(semaphores)]

    def semaphore(self, transfer: int) -> tuple[int, int]:
        """Return the semaphore of a transfer and the value it has when the transfer is complete."""
        semaphores = self._semaphores
        rings = len(semaphores)
        return semaphores[transfer % rings], rings * (transfer // rings + 1)


class Streams:
    """Words of all engines of one core, and what orders them."""

    def __init__(self, chip: Chip) -> None:
        self.clocks = VectorClocks()
        prelude = _ORDER + _MARKER if chip.marker else _ORDER
        self.of: dict[str, Stream] = {engine: Stream(actor, prelude) for engine, actor in ENGINE.items()}
        self.queues: dict[str, QueueUse] = {}
        self.counted: dict[int, int] = {}  # actors of semaphores that rise by 16 per unit
        # Conditions, words that hold nothing else, and words in front of the program.
        self.waits = self.wait_words = 0
        self.prelude = len(prelude) // WORD * len(self.of)
        self._by_actor = list(self.of.values())
        self._queue_of: dict[int, QueueUse] = {}
        self.after: list[tuple[int, int]] = []  # what the next word added waits for besides its own needs

    def queue(self, facts: QueueFacts) -> QueueUse:
        """Return this program's use of a queue."""
        use = self.queues.get(facts.name)
        if use is None:
            use = self.queues[facts.name] = QueueUse(facts, self.clocks.actor())
            self._queue_of[use.actor] = use
        return use

    def counter(self, semaphore: int) -> int:
        """Return a new actor whose units each raise `semaphore` by 16."""
        actor = self.clocks.actor()
        self.counted[actor] = semaphore
        return actor

    def plain(self, engine: str, raw: bytes, origin: Origin) -> int:
        """Append a word that waits for nothing; return its place in the stream."""
        return self.of[engine].append(raw, origin)

    def add(
        self, stream: Stream, raw: bytes | bytearray, needs: Needs, queue: int = -1, origin: Origin | None = None
    ) -> int:
        """Append a word behind what it needs; `queue` is the actor that executes a transfer it starts.

        It comes from the operation at hand unless `origin` says from where. Return its place in the stream.
        """
        if self.after:
            needs = self._with_after(needs, stream.actor, queue)
        if not needs:
            return stream.append(raw, origin)
        own = stream.actor
        known = self.clocks.known[own]
        if len(needs) == 1:
            ((actor, unit),) = needs.items()
            if known[actor] >= unit:
                return stream.append(raw, origin)
        else:
            # The last unit of each actor that the word has to wait for and its engine does not know.
            missing = [pair for pair in needs.items() if known[pair[0]] < pair[1]]
            if not missing:
                return stream.append(raw, origin)
            if len(missing) > 1:
                missing = self.clocks.essential(missing)
                if len(missing) > 1:
                    self._wait_before(stream, missing[:-1], origin)
            actor, unit = missing[-1]
        place = stream.append(raw, origin)
        # what `_wait` does, without its call: every other operation comes by here
        self.clocks.wait(own, actor, unit)
        if actor < _ENGINES:
            self._by_actor[actor].awaited.add(unit)
        stream.conditions += (place + _FIRST, actor, unit)
        self.waits += 1
        return place

    def _with_after(self, needs: Needs, own: int, queue: int) -> Needs:
        """Return what a word needs along with what it was told to come after."""
        ignored = own if queue < 0 and own not in GUARDED else -1
        wanted = dict(needs)
        for actor, unit in self.after:
            if actor != ignored and wanted.get(actor, -1) < unit:
                wanted[actor] = unit
        self.after.clear()
        return wanted

    def _wait_before(self, stream: Stream, pairs: list[tuple[int, int]], origin: Origin | None) -> None:
        """Append words that wait for what the next one has no room for."""
        for number in range(0, len(pairs), 2):
            suffix = f"-wait-{number // 2}"
            stream.append(_EVENT, suffix if origin is None else (origin[0] + suffix, *origin[1:]))
            for condition, pair in zip(_CONDITIONS, pairs[number : number + 2], strict=False):
                self._wait(stream, condition, *pair)
            self.wait_words += 1

    def complete(self, stream: Stream) -> None:
        """Let the last word of an engine complete the next unit of it."""
        stream.ends.append(stream.last)
        self.clocks.unit(stream.actor, stream.actor)

    def _wait(self, stream: Stream, condition: int, actor: int, unit: int) -> None:
        """Let the last word of a stream wait for a unit, by the condition that stands at a place in it."""
        self.clocks.wait(stream.actor, actor, unit)
        if actor < _ENGINES:
            self._by_actor[actor].awaited.add(unit)
        stream.conditions += (stream.last + condition, actor, unit)
        self.waits += 1

    def finish(self) -> None:
        """Let the program end only after every transfer: wait on Pool for those nobody waited for."""
        before = self.of["Pool"].count
        self._await(
            "Pool",
            [pair for pair in self._last_transfers() if max([known[pair[0]] for known in self.clocks.known]) < pair[1]],
            _ANYWHERE,
        )
        self.wait_words += self.of["Pool"].count - before

    def await_transfers(self, engine: str, origin: Origin) -> None:
        """Make an engine wait until every transfer so far is complete."""
        self._await(engine, self._last_transfers(), origin)

    def _last_transfers(self) -> list[tuple[int, int]]:
        last = [(actor, self.clocks.count(actor) - 1) for actor in (*self._queue_of, *self.counted)]
        return [pair for pair in last if pair[1] >= 0]

    def _await(self, engine: str, wanted: list[tuple[int, int]], origin: Origin) -> None:
        stream = self.of[engine]
        known = self.clocks.known[stream.actor]
        missing = self.clocks.essential([(actor, unit) for actor, unit in wanted if known[actor] < unit])
        for number in range(0, len(missing), 2):
            pairs = missing[number : number + 2]
            stream.append(_NOP if len(pairs) == 1 else _EVENT, origin)
            for condition, pair in zip(_CONDITIONS, pairs, strict=False):
                self._wait(stream, condition, *pair)

    def counts(self) -> list[int]:
        """Return the number of units that each actor has so far, by actor."""
        return self.clocks.counts()

    def raised_since(self, before: list[int]) -> dict[int, tuple[int, int]]:
        """Return the semaphores that units since `before` raise, each with its value then and now.

        What an engine raises for its progress depends on who waits for it; so all engines must have met since, and
        meet before more is appended.
        """
        changed = {}
        for actor, last in enumerate(self.counts()):
            first = before[actor] if actor < len(before) else 0
            if actor < len(ENGINES):
                awaited = self._by_actor[actor].awaited
                changed[PROGRESS[ENGINES[actor]]] = sum(unit < first for unit in awaited), len(awaited)
            elif actor in self.counted:
                changed[self.counted[actor]] = 16 * first, 16 * last
            else:
                use = self._queue_of[actor]
                changed.update(
                    {
                        index: (use.value(ring, first), use.value(ring, last))
                        for ring, index in enumerate(use.facts.semaphores)
                    }
                )
        return {index: values for index, values in changed.items() if values[0] != values[1]}

    def seal(self) -> None:
        """Write waits and signals into the words."""
        # by engine: which of the units that anybody waits for each is, which is what its semaphore shows then
        ranks = [{unit: rank for rank, unit in enumerate(sorted(stream.awaited), 1)} for stream in self._by_actor]
        for stream in self._by_actor:
            if not stream.conditions and not stream.awaited:
                continue
            raw, conditions = stream.raw, iter(stream.conditions)
            for place, actor, unit in zip(conditions, conditions, conditions, strict=True):
                if actor < _ENGINES:
                    _pack_condition(raw, place, _PROGRESS_WAITS[actor], ranks[actor][unit])
                elif actor in self.counted:
                    _pack_condition(raw, place, _GE | self.counted[actor] << 8, 16 * (unit + 1))
                else:
                    index, value = self._queue_of[actor].semaphore(unit)
                    _pack_condition(raw, place, _GE | index << 8, value)
            ends, signal = stream.ends, _PROGRESS_SIGNALS[stream.actor]
            for unit in ranks[stream.actor]:
                header = ends[unit] + _FIRST
                if raw[header]:
                    _pack_signal(raw, header + 2, signal)
                else:  # a word that waits for nothing: its wait is written as none
                    _pack_condition(raw, header, signal << 16, 0)
