"""synccheck: waits that are never met, or met by luck; counts that do not fit; events set twice; what is left over."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from emulator.checks.clocks import Clocks, Key, Raise
from emulator.checks.finding import Finding, Site, Words, finding_later
from emulator.checks.history import Unit
from emulator.checks.kept import kept_of, traits_of
from emulator.checks.loops import Loops
from emulator.checks.place import condition, site_in, site_later, site_of, unit_site
from emulator.device import Device
from emulator.diagnosis.behind_fault import waits_behind_fault
from emulator.diagnosis.causes import Cause, Reason
from emulator.diagnosis.graph import Wait
from emulator.diagnosis.index import index_of
from emulator.dma import rings
from emulator.dma.queues import DmaQueue, descriptors_in_ring
from emulator.dma.transfer import Transfer
from emulator.events import Event
from emulator.faults import source_line
from emulator.notes import COMPARED, Notes
from formats.isa import Collective, CompareBranch, DmaIndirect, Instruction, PseudoDmaTrigger, WaitMode
from formats.isa.instruction import header_sync
from formats.isa.signals import BARRIER, HEADER
from formats.named_tuple import NamedTuple
from formats.neff import DmaBlock, Subgraph
from formats.neff.debuginfo import SourceLocation
from formats.numerals import parse_decimal

__all__ = ["Synccheck", "leftovers", "needs_of", "overfull", "untriggered"]

_LIMIT = 200
_SHOWN = 4  # signals named as other sides of one wait
_COUNTED = (int(WaitMode.SEM_EQ), int(WaitMode.SEM_GT), int(WaitMode.SEM_GE))
_GT = int(WaitMode.SEM_GT)


class _Part(NamedTuple):
    """A word of an engine that waits for `need`, where each transfer raises the semaphore by `step`."""

    key: Key
    engine: str
    pc: int
    word: Instruction
    need: int
    step: int


def _awaited(device: Device) -> tuple[dict[Key, int], bool]:
    """Return the largest value that each semaphore is awaited with; whether some may ask for a part of a transfer."""
    needs: dict[Key, int] = {}
    asked: dict[Key, set[int]] = {}
    steps: dict[Key, set[int]] = {}
    for core in device.cores:
        for engine in core.engines.values():
            for loaded in engine.words:
                word = loaded.word
                for owner, semaphore, amount in loaded.raises:
                    steps.setdefault((owner, "semaphore", semaphore), set()).add(amount)
                mode, number, _, _, value = header_sync(word.raw)
                if word.SYNC is Instruction.SYNC:
                    if mode not in _COUNTED:
                        continue
                    waits: Iterable[tuple[Any, ...]] = (("semaphore", number, mode, value, HEADER),)
                else:
                    waits = word.waits
                for kind, number, mode, value, by in waits:
                    if by != BARRIER and mode in _COUNTED:
                        key = (core.index, kind, number)
                        needs[key] = max(needs.get(key, 0), value)
                        if mode != _GT:
                            asked.setdefault(key, set()).add(value)
    is_suspect = any(
        value % step for key, found in steps.items() for step in found if step > 1 for value in asked.get(key, ())
    )
    return needs, is_suspect


def needs_of(device: Device) -> tuple[dict[Key, int], tuple[_Part, ...]]:
    """Return the largest value that each semaphore is awaited with, and waits that ask for a part of a transfer."""
    return kept_of(device, "needs", lambda: _needs(device))


def _needs(device: Device) -> tuple[dict[Key, int], tuple[_Part, ...]]:
    needs, is_suspect = _awaited(device)
    if not is_suspect:
        return needs, ()
    parts = []
    index = index_of(device)
    for stream in index:
        for key, consumers in stream.consumers.items():
            counted = [each for each in consumers if each.awaited.by != BARRIER and each.awaited.mode in _COUNTED]
            if not counted:
                continue
            sources = [source for each in index for source in each.sources(key)]
            amounts = {source.amount for source in sources if source.moves}
            # Where anything else raises it too, or writes it, any value can come about.
            step = amounts.pop() if len(amounts) == 1 and all(source.moves for source in sources) else None
            if step is None or step <= 1:
                continue
            for number, awaited in counted:
                if awaited.value % step and awaited.mode != _GT:
                    loaded = stream.words[number]
                    parts.append(_Part(key, stream.engine.name, loaded.pc, loaded.word, awaited.value, step))
    return needs, tuple(parts)


class Synccheck:
    """Judge the waits and signals of one run. Needs `Clocks` to run before it."""

    name = "synccheck"

    def __init__(self, clocks: Clocks) -> None:
        self.clocks = clocks
        self.findings: list[Finding] = []
        self._setters: dict[Key, Unit] = {}
        self._consumers: dict[Key, Unit] = {}
        self._seen: dict[tuple[Any, ...], Finding] = {}
        self._needs: dict[Key, int] = {}
        self._credits: set[Key] = set()  # semaphores that something counts down: what they end at is what they lend
        clocks.crowded.append(self.planned)
        clocks.odd.append(self._raised)
        clocks.unordered.append(self._unordered)
        clocks.mixed.append(self._mixed)
        clocks.lowered.append(self._lowered)
        clocks.disordered.append(self._disordered)

    def attach(self, device: Device) -> None:
        """Compare what is awaited with what can be signalled, before anything moves."""
        self.device = device
        self._loops = Loops(device)
        self._filled()
        self._needs, parts = needs_of(device)
        for part in parts:
            self._part(part)

    def _filled(self) -> None:
        """Report the block whose descriptors no longer fit into rings that are filled when the program is loaded."""
        for queue, transfer, held in overfull(self.device):
            site = site_of(self.device, queue.core, queue.name, transfer.pc, transfer, owner=transfer.engine,
                           access="triggers")  # fmt: skip
            self._add(
                "ring-full",
                "warning",
                f"{queue.name} is filled when the program is loaded, up to here with {held} descriptors in a ring; "
                f"a ring holds {rings.LARGEST_RING} at most",
                site,
                hint="move larger pieces, which take fewer descriptors, or share the blocks among queues",
                key=(queue.core, queue.name, transfer.pc),
            )

    def _part(self, part: _Part) -> None:
        """Note a wait for a part of what a transfer raises."""
        key, name, pc, word, need, step = part
        site = site_of(self.device, key[0], name, pc, word, access="waits")
        near = (need // step + 1) * step
        self._add(
            "count-mismatch",
            "error",
            f"{name} waits for {condition(key, need)}, and each transfer "
            f"raises it by {step}: on a device that holds when part of a transfer has arrived",
            site,
            hint=f"wait for {near - step} or {near}" if near > step else f"wait for {near}",
        )

    def on_event(self, event: Event) -> None:
        """Follow what branches compare; of all else the clocks tell what matters."""
        if type(event.instruction) is CompareBranch and event.kind == "instruction":
            self._loops.take(event.core, event.engine, event.pc, event.instruction)

    def follow(self, notes: Notes) -> None:
        """Take what branches compared in a run that is over or stands."""
        for note in notes:
            if note[0] == COMPARED:
                _, engine, loaded, values = note
                if type(loaded.word) is CompareBranch:
                    self._loops.take(engine.core.index, engine.name, loaded.pc, loaded.word, *values)

    def on_plan(self, transfer: Transfer, memory: object) -> None:
        """Note a transfer that finds the rings of its queue full: it waits, and what its engine does next with it."""
        queue = self.device.dma.queue(transfer.core, transfer.queue)
        self.planned(transfer, queue.held, len(queue.pending))

    def planned(self, transfer: Transfer, held: int, pending: int) -> None:
        """Note a transfer where it makes so many descriptors in a ring, and transfers on its queue, too many."""
        if held <= rings.RING_SIZE or transfer.prebuilt or pending == 1:
            return
        site = site_of(
            self.device, transfer.core, transfer.queue, transfer.pc, transfer, owner=transfer.engine, access="triggers"
        )
        self._add(
            "ring-full",
            "warning",
            f"{transfer.queue} has {pending} transfers under way, {held} descriptors in a ring that holds "
            f"{rings.RING_SIZE}: the next one waits until there is room",
            site,
            hint="wait for earlier transfers before more are triggered, or make fewer and larger ones",
            key=(transfer.core, transfer.queue, transfer.pc),
        )

    def _add(
        self, kind: str, severity: str, message: str, site: Site, *others: Site, hint: str = "", key: Key | None = None
    ) -> None:
        def make() -> Finding:
            return Finding("synccheck", kind, severity, message, site, others, hint=hint, details=_details(key))

        self._add_once((kind, site.core, site.owner, site.pc, others[0][:4] if others else None, key), make)

    def _add_once(self, place: tuple[Any, ...], make: Callable[[], Finding]) -> None:
        """Add the finding of a place, or count it."""
        known = self._seen.get(place)
        if known is not None:
            known.count += 1
        elif len(self._seen) < _LIMIT:
            finding = self._seen[place] = make()
            self.findings.append(finding)

    def _site(self, unit: Unit, access: str) -> Site:
        return unit_site(self.device, self.clocks.names, unit, access=access)

    def _raised(self, change: Raise) -> None:
        if change.key[1] != "event":
            if change.new < change.old and not self.clocks.writes(change.unit, change.key):
                self._credits.add(change.key)
            return
        if not change.new:
            self._consumers[change.key] = change.unit
            return
        before, consumer = self._setters.get(change.key), self._consumers.get(change.key)
        if change.old and before is not None:
            site = self._site(change.unit, "sets")
            self._add(
                "double-set",
                "error",
                f"{site.engine} sets E[{change.key[2]}], which is set already: one of the two is lost",
                site,
                self._site(before, "set"),
                key=change.key,
                hint="let the setter wait until the first one is consumed, or count with a semaphore",
            )
        elif consumer is not None and not change.unit.knows(consumer.actor, consumer.number):
            site, other = self._site(change.unit, "sets"), self._site(consumer, "consumes")
            self._add(
                "double-set",
                "error",
                f"{site.engine} sets E[{change.key[2]}] again, and nothing makes it wait until {other.engine} pc "
                f"{other.pc} has consumed it: where it comes first, one of the two is lost",
                site,
                other,
                key=change.key,
                hint="let the setter wait until the first one is consumed, or count with a semaphore",
            )
        self._setters[change.key] = change.unit

    def _unordered(self, wait: Unit, key: Key, need: int, exact: bool, change: Raise) -> None:
        site, other = self._site(wait, "waits"), self._site(change.unit, "raises")
        if exact:
            self._add(
                "overshoot",
                "error",
                f"{site.engine} waits for S[{key[2]}]=={need}, and nothing keeps "
                f"{other.engine} pc {other.pc} from raising it to {change.new} before",
                site,
                other,
                key=key,
                hint=f"wait for S[{key[2]}]>={need}, or let {other.owner} wait until the first wait is over",
            )
        else:
            self._add(
                "ambiguous",
                "error",
                f"{site.engine} waits for {condition(key, need)}, which {other.engine} pc "
                f"{other.pc} can bring about instead of the raises that came first here",
                site,
                other,
                key=key,
                hint="give each producer its own semaphore, or wait for all they raise together",
            )

    def _mixed(self, writing: Unit, other: Unit, key: Key) -> None:
        site, raises = self._site(writing, "sets"), self._site(other, "changes")
        self._add(
            "unordered-set",
            "error",
            f"{site.engine} pc {site.pc} sets S[{key[2]}] to a number, and nothing orders that and what "
            f"{raises.engine} pc {raises.pc} adds to it: either may come first",
            site,
            raises,
            key=key,
            hint=f"let {site.owner} wait until that is over, or {raises.owner} until the semaphore is set",
        )

    def _lowered(self, wait: Unit, need: int, change: Raise) -> None:
        site, waits = self._site(change.unit, "lowers"), self._site(wait, "waits")
        key = change.key
        self._add(
            "lost-signal",
            "error",
            f"{site.engine} pc {site.pc} lowers S[{key[2]}] to {change.new}, and nothing keeps that behind the wait "
            f"of {waits.engine} pc {waits.pc} for {condition(key, need)}: where it comes first, that misses its signal",
            site,
            waits,
            key=key,
            hint=f"let {waits.owner} say on a semaphore of its own that it has gone on, and {site.owner} wait for that",
        )

    def _disordered(self, first: Unit, second: Unit, change: Raise) -> None:
        """Report transfers that two engines trigger on one queue, where a wait is meant for the first of them."""
        key, old, step = change.key, change.old, change.new - change.old
        needs = [
            each.awaited.value + (each.awaited.mode == _GT)
            for stream in index_of(self.device)
            for each in stream.consumers.get(key, ())
            if each.awaited.by != BARRIER and each.awaited.mode in _COUNTED
        ]
        meant = next((need for need in needs if old - step < need <= old), None)
        if meant is None:
            return
        site, other = self._site(second, "triggers"), self._site(first, "triggers")
        queue = self.clocks.names[change.unit.actor][1]
        self._add(
            "ambiguous",
            "error",
            f"{site.engine} pc {site.pc} and {other.engine} pc {other.pc} trigger transfers of {queue} in no given "
            f"order: which of them a wait for {condition(key, meant)} is met by is open",
            site,
            other,
            key=key,
            hint=f"give each engine a queue of its own, or let {site.owner} wait until {other.owner} has triggered",
        )

    # --- the end -----------------------------------------------------------------------------------------------------

    def finish(self) -> None:
        """Explain a hang, or who waits for what a fault kept from coming; without them, say what is left over."""
        device = self.device
        if device.hang is not None:
            if device.hang.reason in (Reason.DEADLOCK, Reason.LIVELOCK):
                endless = device.hang.reason == Reason.LIVELOCK  # an engine that loops may be all that is waited for
                self._stuck(wait for wait in device.hang.waits if wait.cause.root or not endless)
            self._endless()
        elif device.fault is not None:
            self._lost()
        elif device.outcome == "finished":
            self._left()
        self._untriggered()

    def _stuck(self, waits: Iterable[Wait]) -> None:
        for wait in waits:
            kind, key = wait.cause.value, (wait.core, wait.kind, wait.number)
            subgraphs = {core.index: core.loaded.subgraph for core in self.device.cores if core.loaded is not None}
            peer = self._peer(1 - wait.core, wait.engine) if wait.cause is Cause.BARRIER else None
            signals = (wait.pending or wait.could_signal)[:1] if peer is None else (peer,)
            first = tuple(signals[0][:4]) if signals else ()
            make = partial(finding_later, self.name, kind, partial(_stuck, wait, subgraphs, peer), None, _details(key))
            self._add_once((kind, wait.core, wait.engine, wait.pc, first, key), make)

    def _lost(self) -> None:
        """Report waits for what a fault kept from coming."""
        loaded = {core.index: core.loaded for core in self.device.cores if core.loaded is not None}
        subgraphs = {index: one.subgraph for index, one in loaded.items()}
        at_once = not traits_of(self.device).classes.isdisjoint((DmaIndirect, Collective))
        for wait in waits_behind_fault(self.device, loaded, at_once):
            words = partial(_behind_fault, wait.explained, subgraphs)
            make = partial(finding_later, self.name, Cause.FAULT.value, words, None, _details(wait.key))
            self._add_once((Cause.FAULT.value, wait.core, wait.engine, wait.pc, wait.key), make)

    def _endless(self) -> None:
        """Report loops that would have gone on; engines that loop together, for one line, once."""
        told = set()
        for loop in self._loops.endless():
            sites = [
                site_later(self.device, loop.core, loop.engine, one.pc, one.word, access=access)
                for one, access in ((loop.exit, "decides"), (loop.first, "begins"))
            ]
            line = (
                loop.core,
                source_line(self.device.cores[loop.core].source_of(loop.engine, loop.exit.pc)) or loop.engine,
            )
            if line in told:
                continue
            told.add(line)
            first = loop.core, loop.engine, loop.engine, loop.first.pc
            make = partial(
                finding_later,
                self.name,
                "livelock",
                partial(_endless, loop.engine, loop.first.pc, loop.exit.pc, loop.why, *sites),
            )
            self._add_once(("livelock", loop.core, loop.engine, loop.exit.pc, first, None), make)

    def _peer(self, core: int, name: str) -> Site:
        """Return where an engine stands that does not come to a barrier: at what it waits for, or behind its end."""
        engine = self.device.cores[core].engines[name]
        loaded = engine.next_loaded or (engine.words[-1] if engine.words else None)
        if loaded is None:
            return Site(core, name, name, -1, "", access="has no words")
        return site_of(self.device, core, name, loaded.pc, loaded.word, access="ended" if engine.done else "stands")

    def _untriggered(self) -> None:
        """Report DMA blocks that no word of their core triggers."""
        for core, queue, number, block in untriggered(self.device):
            first = block.descriptors[0] if block.descriptors else None
            what = "" if first is None else f"{first.op} {first.source} -> {first.target}"
            site = Site(core, queue, block.engine, -1, what, _declared(block.comment), "is not triggered")
            self._add(
                "never-triggered",
                "warning",
                f"block {number} of {queue} is declared, and nothing triggers it",
                site,
                hint=f"put PSEUDO_DMA_TRIGGER {queue} block_id={number} into the stream of {block.engine}, or take "
                "the block out",
                key=(core, queue, number),
            )

    def _left(self) -> None:
        for core in self.device.cores:
            for number, value in enumerate(core.events.values) if any(core.events.values) else ():
                setter = self._setters.get((core.index, "event", number))
                if value and setter is not None:
                    self._add(
                        "event-left",
                        "warning",
                        f"E[{number}] of nc{core.index} is still set at the end: nothing consumed it",
                        self._site(setter, "set"),
                        key=(core.index, "event", number),
                        hint="wait for it, or do not set it: the next execution starts with it set",
                    )
        for actor, key, value in leftovers(self.device, self.clocks.last_signals, self._needs):
            if key in self._credits:
                continue
            where, engine = self.clocks.names[actor]
            self._add(
                "leftover",
                "note",
                f"S[{key[2]}] of nc{key[0]} ends at {value}; no wait asks for more than {self._needs[key]}",
                Site(where, engine, engine, -1, ""),
                key=key,
                hint="the last signals have nobody who waits for them",
            )


def _details(key: Key | None) -> dict[str, Any]:
    return {} if key is None else {"core": key[0], key[1]: key[2]}


def _stuck(wait: Wait, subgraphs: Mapping[int, Subgraph], peer: Site | None = None) -> Words:
    """Say why an engine waits for ever; `peer` is where that of the other core stands, which does not come."""
    message = f"nc{wait.core} {wait.engine} waits for {wait.condition} for ever: {wait.verdict}"
    here = site_in(
        subgraphs.get(wait.core), wait.core, wait.engine, wait.pc, wait, access="waits", time_ps=wait.since_ps
    )
    others = (peer,) if peer is not None else tuple([
        site_in(subgraphs.get(one.core), one.core, one.engine, one.pc, one, owner=one.owner, access=one.state)
        for one in (wait.pending or wait.could_signal)[:_SHOWN]
    ])  # fmt: skip
    return Words(message, here, others, hint=wait.hint)


def _behind_fault(explained: Callable[[], Wait], subgraphs: Mapping[int, Subgraph]) -> Words:
    """Say what an engine waits for that a fault kept from coming."""
    return _stuck(explained(), subgraphs)


def _endless(
    engine: str, first: int, last: int, why: str, decides: Callable[[], Site], begins: Callable[[], Site]
) -> Words:
    """Say why an engine goes round a loop for ever, which the word at pc `last` would leave."""
    return Words(
        f"{engine} goes round the loop from pc {first} for ever: {why}",
        decides(),
        (begins(),),
        hint="let something end the loop: a register that changes in it towards what pc "
        f"{last} compares it with, memory that another engine writes",
    )


def overfull(device: Device) -> Iterator[tuple[DmaQueue, Transfer, int]]:
    """Yield each queue that is filled beyond its rings when the program is loaded, and with which transfer."""
    for queue in device.queues:
        held = 0
        for transfer, shares in queue.made:
            held += descriptors_in_ring(shares)
            if held > rings.LARGEST_RING:
                yield queue, transfer, held
                break


def leftovers(
    device: Device, last_signals: Sequence[Mapping[Key, int]], needs: Mapping[Key, int]
) -> Iterator[tuple[int, Key, int]]:
    """Yield the semaphores that end above what any wait asks for: who raised each last, and what it ends at."""
    for actor, last in enumerate(last_signals):
        if last:
            for key, value in last.items():
                need = needs.get(key)
                if need is None or value <= need or key[1] != "semaphore":
                    continue
                if value == device.cores[key[0]].semaphores[key[2]]:
                    yield actor, key, value


def untriggered(device: Device) -> list[tuple[int, str, int, DmaBlock]]:
    """Return the DMA blocks that no word of their core triggers, by core, queue and number."""
    return kept_of(device, "untriggered", lambda: _untriggered(device))


def _untriggered(device: Device) -> list[tuple[int, str, int, DmaBlock]]:
    found = []
    for core in device.cores:
        if core.loaded is None or not core.loaded.subgraph.dma_blocks:
            continue
        queues, blocks = core.loaded.queues, core.loaded.subgraph.dma_blocks
        # The loader makes the descriptors of each block that a word triggers.
        made = [(name, transfer.request.instruction) for name, queue in queues.items() for transfer, _ in queue.made]
        triggered = {(name, word.block_id) for name, word in made if isinstance(word, PseudoDmaTrigger)}
        found += [(core.index, *place, block) for place, block in blocks.items() if place not in triggered]
    return found


def _declared(comment: str | None) -> SourceLocation | None:
    """Return the line that declares a DMA block, where its comment says it: FILE:LINE."""
    file, _, line = (comment or "").rpartition(":")
    number = parse_decimal(line)
    return SourceLocation(file, number, "") if file and number is not None else None
