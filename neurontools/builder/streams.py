"""The five instruction streams: words in order, waits attached, progress counted, header bytes filled in at the end."""

from __future__ import annotations

import struct
from collections.abc import Iterable

from formats.isa import ENGINES, EventSemaphore, Nop, OpcodeCC, SetOrderingMode, UpdateMode, WaitMode
from neurontools.builder.chip import PROGRESS, Chip, QueueFacts
from neurontools.builder.hazards import Needs
from neurontools.builder.knowledge import Knowledge
from neurontools.trace import Source

__all__ = ["ENGINE", "QueueUse", "Slot", "Streams"]

ENGINE: dict[str, int] = {name: index for index, name in enumerate(ENGINES)}

# Engines whose read of their own result real files order by a wait on their own semaphore; the others leave it to
# program order, since words complete in order. Source: isa.md 11 (hazards).
_GUARDED = frozenset({ENGINE["DVE"]})

_SYNC = struct.Struct("<BBBBI")
_SECOND = struct.Struct("<BBBBI")
_GE, _INC = int(WaitMode.SEM_GE), int(UpdateMode.SEM_INC)
_NOWHERE: Source = ("", 0)


class Slot:
    """One word of a stream; waits name an actor's unit, numbers follow once everything is known."""

    __slots__ = ("name", "raw", "second", "source", "unit", "wait")

    def __init__(self, raw: bytearray, name: str, source: Source) -> None:
        self.raw, self.name, self.source = raw, name, source
        self.wait: tuple[int, int] | None = None
        self.second: tuple[int, int] | None = None
        self.unit = -1


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
        return rings * ((transfers - ring + rings - 1) // rings)

    def semaphore(self, transfer: int) -> tuple[int, int]:
        """Return the semaphore of a transfer and the value it has when the transfer is complete."""
        semaphores = self._semaphores
        rings = len(semaphores)
        return semaphores[transfer % rings], rings * (transfer // rings + 1)


class Streams:
    """Words of all engines of one core, and what orders them."""

    def __init__(self, chip: Chip) -> None:
        self.knowledge = Knowledge()
        self.slots: dict[str, list[Slot]] = {engine: [] for engine in ENGINES}
        self.queues: dict[str, QueueUse] = {}
        self.counted: dict[int, int] = {}  # actors of semaphores that rise by 16 per unit
        self._awaited: list[set[int]] = [set() for _ in ENGINES]
        self._queue_of: dict[int, QueueUse] = {}
        self.after: list[tuple[int, int]] = []  # what the next word added waits for besides its own needs
        for engine in ENGINES:
            self.plain(engine, bytearray(SetOrderingMode().raw))
            if chip.marker:
                self.plain(engine, bytearray(OpcodeCC().raw))

    def queue(self, facts: QueueFacts) -> QueueUse:
        """Return this program's use of a queue."""
        use = self.queues.get(facts.name)
        if use is None:
            use = self.queues[facts.name] = QueueUse(facts, self._new_actor())
            self._queue_of[use.actor] = use
        return use

    def counter(self, semaphore: int) -> int:
        """Return a new actor whose units each raise `semaphore` by 16."""
        actor = self._new_actor()
        self.counted[actor] = semaphore
        return actor

    def _new_actor(self) -> int:
        return len(ENGINES) + len(self._queue_of) + len(self.counted)

    def plain(self, engine: str, raw: bytearray, name: str = "", source: Source = _NOWHERE) -> Slot:
        """Append a word that waits for nothing."""
        slot = Slot(raw, name, source)
        self.slots[engine].append(slot)
        return slot

    def add(self, engine: str, raw: bytearray, name: str, source: Source, needs: Needs | None, queue: int = -1) -> Slot:
        """Append a word behind what it needs; `queue` is the actor that executes a transfer it starts."""
        if needs is None or not (needs.data or needs.order or self.after):
            return self.plain(engine, raw, name, source)
        own = ENGINE[engine]
        wanted: dict[int, int] = {}
        if self.after:
            for actor, unit in self.after:
                if actor != own or queue >= 0 or own in _GUARDED:
                    wanted[actor] = max(unit, wanted.get(actor, -1))
            self.after.clear()
        for actor, unit in needs.data.items():
            if actor != own or queue >= 0 or own in _GUARDED:
                wanted[actor] = max(unit, wanted.get(actor, -1))
        for actor, unit in needs.order.items():
            # Transfers on one queue complete in order, and so do the words of one engine.
            if actor != (queue if queue >= 0 else own) and wanted.get(actor, -1) < unit:
                wanted[actor] = unit
        missing = self.knowledge.unknown(own, wanted.items())
        if not missing:
            return self.plain(engine, raw, name, source)
        self._learn(own, missing)
        extra = missing[:-1]
        for number in range(0, len(extra), 2):
            slot = self.plain(engine, bytearray(EventSemaphore().raw), f"{name}-wait-{number // 2}", source)
            slot.wait = extra[number]
            slot.second = extra[number + 1] if number + 1 < len(extra) else None
        slot = self.plain(engine, raw, name, source)
        slot.wait = missing[-1]
        return slot

    def _learn(self, engine: int, waits: Iterable[tuple[int, int]]) -> None:
        for actor, unit in waits:
            self.knowledge.wait(engine, actor, unit)
            if actor < len(ENGINES):
                self._awaited[actor].add(unit)

    def finish(self) -> None:
        """Let the program end only after every transfer: wait on Pool for those nobody waited for."""
        self._await("Pool", [
            pair
            for pair in self._last_transfers()
            if not any(self.knowledge.knows(engine, *pair) for engine in range(len(ENGINES)))
        ], "end", _NOWHERE)

    def await_transfers(self, engine: str, name: str, source: Source) -> None:
        """Make an engine wait until every transfer so far is complete."""
        self._await(engine, self._last_transfers(), name, source)

    def _last_transfers(self) -> list[tuple[int, int]]:
        last = [(actor, self.knowledge.count(actor) - 1) for actor in (*self._queue_of, *self.counted)]
        return [pair for pair in last if pair[1] >= 0]

    def _await(self, engine: str, wanted: list[tuple[int, int]], name: str, source: Source) -> None:
        missing = self.knowledge.unknown(ENGINE[engine], wanted)
        self._learn(ENGINE[engine], missing)
        for number in range(0, len(missing), 2):
            pair = missing[number : number + 2]
            slot = self.plain(engine, bytearray((Nop() if len(pair) == 1 else EventSemaphore()).raw), name, source)
            slot.wait = pair[0]
            slot.second = pair[1] if len(pair) > 1 else None

    def counts(self) -> list[int]:
        """Return the number of units that each actor has so far, by actor."""
        return [self.knowledge.count(actor) for actor in range(self._new_actor())]

    def raised_since(self, before: list[int]) -> dict[int, tuple[int, int]]:
        """Return the semaphores that units since `before` raise, each with its value then and now.

        What an engine raises for its progress depends on who waits for it; so all engines must have met since, and
        meet before more is appended.
        """
        changed = {}
        for actor in range(self._new_actor()):
            first = before[actor] if actor < len(before) else 0
            last = self.knowledge.count(actor)
            if actor < len(ENGINES):
                awaited = self._awaited[actor]
                changed[PROGRESS[ENGINES[actor]]] = (sum(u < first for u in awaited), sum(u < last for u in awaited))
            elif actor in self.counted:
                changed[self.counted[actor]] = 16 * first, 16 * last
            else:
                use = self._queue_of[actor]
                changed.update({index: (use.value(ring, first), use.value(ring, last))
                                for ring, index in enumerate(use.facts.semaphores)})
        return {index: values for index, values in changed.items() if values[0] != values[1]}

    def seal(self) -> None:
        """Write waits and signals into the words."""
        ranks: list[dict[int, int]] = [
            {unit: rank + 1 for rank, unit in enumerate(sorted(units))} for units in self._awaited
        ]
        for engine, slots in self.slots.items():
            own = ranks[ENGINE[engine]]
            progress = PROGRESS[engine]
            for slot in slots:
                signals = slot.unit in own
                if slot.wait is not None:
                    index, value = self._number(slot.wait, ranks)
                    _SYNC.pack_into(slot.raw, 4, _GE, index, _INC if signals else 0, progress if signals else 0, value)
                    if slot.second is not None:
                        index, value = self._number(slot.second, ranks)
                        _SECOND.pack_into(slot.raw, 32, _GE, index, 0, 0, value)
                elif signals:
                    _SYNC.pack_into(slot.raw, 4, 0, 0, _INC, progress, 0)

    def _number(self, wait: tuple[int, int], ranks: list[dict[int, int]]) -> tuple[int, int]:
        actor, unit = wait
        if actor < len(ENGINES):
            return PROGRESS[ENGINES[actor]], ranks[actor][unit]
        if actor in self.counted:
            return self.counted[actor], 16 * (unit + 1)
        return self._queue_of[actor].semaphore(unit)
