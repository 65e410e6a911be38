"""memcheck: operands and transfers that leave what they may touch, of every word, executed or not; faults."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Any

from emulator.access import plan_of
from emulator.checks.engine_state import Groups, Tables
from emulator.checks.finding import Finding, Site, Words, finding_later
from emulator.checks.kept import kept_of, traits_of, words_of
from emulator.checks.kinds import KINDS
from emulator.checks.place import Names, site_later, site_of
from emulator.checks.tiles import Tiles
from emulator.core import Core
from emulator.device import Device
from emulator.dma.binding import bind
from emulator.events import Event, SemaphoreChange
from emulator.faults import Fault, FaultError
from emulator.loaded import LoadedWord, TransferFactory
from emulator.notes import ENDED, EXECUTED, MOVED, Notes
from formats import isa
from formats.errors import FormatError, NeuronError, UnsupportedError
from formats.named_tuple import NamedTuple
from formats.regions import Region

__all__ = ["Memcheck"]

_LIMIT = 200
_HINTS = {
    "oob": "check offset, step and count against the size of what it lies in",
    "partitions": "a core has partitions 0 to 127; check the start and the number",
    "bank": "split the access at the bank, or start it on one",
    "alignment": "start at a multiple of the element size",
    "access": "move the data to a memory that the engine reaches",
    "operand": "check the fields of the word, and the values that it reads, against what it takes",
    "semaphore": "reset the semaphore between rounds, or count in smaller steps",
    "branch": "a distance counts bytes from the branch on and has to meet the first byte of a word",
    "rule": "see neuron-isa(7) for the rules of the word",
}


class _Followed(NamedTuple):
    """What engines hold and touch: `tiles` is None where the file has no map of them, `constants` are addresses."""

    tables: Tables
    groups: Groups
    tiles: Tiles | None
    constants: frozenset[int]


class Memcheck:
    """Check every word of a program against the memory it names, and report the fault that ends a run."""

    name = "memcheck"

    def __init__(self) -> None:
        self.findings: list[Finding] = []
        self._places: set[tuple[int, str, int]] = set()
        self._told: set[tuple[str, int, str, int]] = set()
        # Words of a program with branches that have run already, each with its engine: they were in their place.
        self.ran: Collection[tuple[Any, Any]] = ()
        self._followed: _Followed | None = None  # made when the first word is told of

    def attach(self, device: Device) -> None:
        """Check the program as loaded: operands, the rules of each word, both sides of every transfer."""
        self.device = device
        self._names = Names(device)
        for fault, index, name, pc, word in kept_of(device, "faults", self._as_loaded):
            self._add(fault, index, name, pc, word)
        for core in device.cores:
            self._shared_bytes(core)

    def _begin(self) -> _Followed:
        """Make what follows engines through a run."""
        device = self.device
        cores = () if device.model is None else device.model.cores
        placed = [one for core in cores for one in core.placement.by_name.values()]
        self._followed = followed = _Followed(
            Tables(device, self._tell),
            Groups(device, self._tell, self._names),
            Tiles(device, self._tell, self._names) or None,
            frozenset([one.address for one in placed if one.kind == "file"]),
        )
        return followed

    def _as_loaded(self) -> list[tuple[Fault, int, str, int, isa.Instruction]]:
        """Return what is wrong with words and transfers of the program: fault, core, engine, pc and word."""
        found = []
        # What ran was resolved, bound and found to be in its place: of a program without branches its first words.
        has_run, generation = _have_all_run(self.device), self.device.target.generation
        is_straight, ran = not traits_of(self.device).branches, self.ran
        problems = isa.problems_of(words_of(self.device), generation)
        if has_run and not problems:
            return []
        for core in self.device.cores:
            for name, engine in core.engines.items():
                words = engine.words
                over = engine.completed if is_straight else 0
                if over and not problems:
                    words, over = words[over:], 0
                known: dict[bytes, tuple[Fault, ...]] = {}
                for place, loaded in enumerate(words):
                    has_run = place < over or (bool(ran) and (engine, loaded) in ran)
                    word = loaded.word
                    if has_run and (type(word), word.raw) not in problems:
                        continue
                    key = word.body
                    faults = known.get(key)
                    if faults is None:
                        faults = known[key] = self._word(core, name, loaded, has_run, problems)
                    # Where an indirect transfer goes is known when it starts; out of bounds is a fault then.
                    if (
                        not has_run
                        and loaded.transfer is not None
                        and not faults
                        and not isinstance(word, isa.DmaIndirect | isa.Collective)
                    ):
                        faults = self._transfer(loaded.transfer)
                    found += [(fault, core.index, name, loaded.pc, word) for fault in faults]
        return found

    def _shared_bytes(self, core: Core) -> None:
        """Report reads through a tile of bytes that another tile at its address has overwritten."""
        for tile in self._names.tiles(core.index):
            for engine, pc, other in tile.lost:
                words = core.engines[engine].words if engine in core.engines else ()
                loaded = next((one for one in words if one.pc == pc), None)
                site = site_of(
                    self.device, core.index, engine, pc, loaded and loaded.word, access="reads", operand="src"
                )
                region = Region(
                    tile.space, core.index, tile.partition, tile.partitions, tile.offset, tile.partition_bytes
                )
                self.findings.append(
                    Finding(
                        "memcheck",
                        "tile-overlap",
                        KINDS["memcheck:tile-overlap"].severity,
                        f"{engine} pc {pc} reads bytes of {tile.name} that were overwritten through {other}, which has "
                        "the same address",
                        site,
                        (),
                        region,
                        tile.name,
                        f"give {other} another address, or let it begin when {tile.name} is no longer read",
                    )
                )

    def _word(
        self, core: Core, engine: str, loaded: LoadedWord, has_run: bool, problems: Mapping[Any, list[isa.Problem]]
    ) -> tuple[Fault, ...]:
        """Return what is wrong with the operands of a word; of one that has run, which rules it breaks.

        `problems` are those of rules, by class and bytes of the words that break any.
        """
        word, found = loaded.word, []
        cls = type(word)
        if cls is isa.Unknown or engine not in cls.ENGINES:
            return ()
        if loaded.transfer is None and not has_run:
            for plan in plan_of(cls):
                try:
                    core.resolver.resolve(word, plan, engine)
                except FaultError as error:
                    found.append(error.fault)
                except (FormatError, UnsupportedError):
                    continue  # the run says so, if it gets there
        broken = problems.get((cls, word.raw))
        if broken:
            named = {fault.operand for fault in found}
            for problem in broken:
                # Scales of MX tiles are packed four partitions apart by design (NKI documentation on MX layouts).
                packed = problem.field.endswith("scale") and "partitions start" in problem.message
                if problem.field not in named and not packed:
                    found.append(Fault("rule", str(problem), operand=problem.field, expected=problem.cite))
        return tuple(found)

    def _transfer(self, make: TransferFactory) -> tuple[Fault, ...]:
        """Return what is wrong with the sides of a transfer."""
        try:
            bind(self.device, make())
        except FaultError as error:
            return (error.fault,)
        except NeuronError:
            pass  # not modelled: the run says so, if it gets there
        return ()

    def follow(self, notes: Notes) -> None:
        """Take all that happened in a run; an event is made of what may be worth one."""
        tables, groups, tiles, constants = self._followed or self._begin()
        for number, note in enumerate(notes):
            what = note[0]
            if what == EXECUTED:
                _, engine, loaded, bound, issued, now, changes = note
                if changes is None:
                    continue
                action = bound.action
                core, name, word, pc = engine.core.index, engine.name, loaded.word, loaded.pc
                if (
                    (tiles is None or tiles.is_plain(core, name, name, pc, action))
                    and groups.is_plain(core, word, action)
                    and (name != "Activation" or tables.is_known(core, word))
                    and not (changes and _falls_below(changes))
                ):
                    continue
                kind = "barrier" if action.barrier else "instruction"
                self.on_event(Event(number, now, issued, core, name, pc, word, kind, changes, action))
            elif what == MOVED:
                _, transfer, now, changes, touches = note
                core, name, pc = transfer.core, transfer.queue, transfer.pc
                if changes is None or (
                    not constants
                    and (tiles is None or tiles.is_plain(core, name, transfer.engine, pc, touches))
                    and not (changes and _falls_below(changes))
                ):
                    continue
                self.on_event(
                    Event(number, now, transfer.triggered_ps, core, name, pc, transfer, "dma", changes, touches)
                )
            elif what == ENDED:
                self.on_event(note[1])

    def on_event(self, event: Event) -> None:
        """Follow what engines hold; take the fault that ends a run, unless the program as loaded showed it already."""
        tables, groups, tiles, constants = self._followed or self._begin()
        if event.kind == "instruction":
            if event.engine == "Activation":
                tables.on_event(event)
            groups.on_event(event)
            if tiles is not None:
                tiles.on_event(event)
        elif event.kind == "dma":
            if constants:
                self._stored(event, constants)
            if tiles is not None:
                tiles.on_event(event)
        elif event.kind == "fault":
            fault = event.instruction
            if fault.kind != "unsupported" and (fault.core, fault.engine, fault.pc) not in self._places:
                self._add(fault, fault.core, fault.engine, fault.pc, None)
        for change in event.semaphores:
            if change.new < 0 and change.new < change.old and change.kind == "semaphore":
                self._tell(
                    "semaphore",
                    event,
                    f"S[{change.number}] of nc{change.core} goes from {change.old} to {change.new}, below zero: "
                    "waits count from zero up",
                    "raise it before it is lowered, or lower it by less",
                )

    def _stored(self, event: Event, constants: frozenset[int]) -> None:
        """Report a transfer into a constant: the runtime fills it when it loads the file, and never again."""
        for side in event.instruction.writes:
            found = self.device.hbm.find(side.span[0]) if side.space == "HBM" else None
            if found is not None and found.address in constants:
                low, high = side.span
                self._tell("constant", event,
                           f"a transfer stores into the constant {found.name}: the next execution begins with that",
                           "store into a variable of its own, or make the constant an input",
                           Region("HBM", event.core, 0, 1, low, high - low))  # fmt: skip

    def release(self) -> None:
        """Leave no cycles behind; nothing may be told after that."""
        self._followed = None

    def finish(self) -> None:
        """Report what is left open in PSUM when a program has come to its end."""
        if self.device.outcome == "finished" and self._followed is not None:
            self._followed.groups.finish()

    def _tell(
        self, kind: str, event: Event, message: str, hint: str, region: Region | None = None, other: Event | None = None
    ) -> None:
        """Add a finding of an event, once for each word."""
        owner = getattr(event.instruction, "engine", event.engine)
        place = kind, event.core, owner, event.pc
        if place in self._told or len(self.findings) >= _LIMIT:
            return
        self._told.add(place)
        site = self._site(event)
        others = () if other is None or other.pc == event.pc else (self._site(other),)
        tensor = "" if region is None else self._names.name(region, owner, event.pc)
        message = f"{site.engine} pc {site.pc}: {message}"
        severity = KINDS[f"memcheck:{kind}"].severity
        self.findings.append(Finding("memcheck", kind, severity, message, site, others, region, tensor, hint))

    def _site(self, event: Event) -> Site:
        word = event.instruction
        owner = getattr(word, "engine", event.engine)
        return site_of(
            self.device, event.core, event.engine, event.pc, word, owner=owner, operand="dst", time_ps=event.time_ps
        )

    def _add(self, fault: Fault, core: int, engine: str, pc: int, word: Any) -> None:
        self._places.add((core, engine, pc))
        if len(self.findings) >= _LIMIT:
            return
        site = site_later(
            self.device, max(core, 0), engine, pc, word, operand=fault.operand or "", time_ps=fault.time_ps
        )
        region = _region(fault, core)
        tensor = fault.tensor or ("" if region is None else self._names.name(region, engine, pc))
        details = {"expected": fault.expected, "got": fault.got, "status": fault.status.name}
        words = partial(_words, fault, site, None if word is not None else fault.instruction_text, tensor)
        self.findings.append(finding_later("memcheck", fault.kind, words, region, details))


def _words(fault: Fault, site: Callable[[], Site], text: str | None, tensor: str) -> Words:
    """Say what is wrong with a word: its site has its text, or this one."""
    message = fault.message
    if fault.kind != "rule":
        message += f"; found {fault.got}" if fault.got else ""
        message += f"; allowed: {fault.expected}" if fault.expected else ""
    here = site() if text is None else site()._replace(text=text)
    return Words(message, here, (), tensor, _HINTS.get(fault.kind, ""))


def _falls_below(changes: tuple[SemaphoreChange, ...]) -> bool:
    """Return whether a change leaves a semaphore below zero."""
    return any(new < 0 for _, _, new, _, _ in changes)


def _have_all_run(device: Device) -> bool:
    """Return whether a program has come to its end, each of its words behind the one before it."""
    return device.outcome == "finished" and not traits_of(device).branches


def _region(fault: Fault, core: int) -> Region | None:
    """Return the range of a fault; on chip it is one of engine addresses, given as a range of its first partition."""
    if fault.address is None or fault.space is None:
        return None
    low, high = fault.address
    if fault.space == "HBM":
        return Region("HBM", core, 0, 1, low, high - low)
    base, stride = (
        (isa.PSUM_BASE, isa.PSUM_PARTITION_STRIDE) if fault.space == "PSUM" else (0, isa.SBUF_PARTITION_STRIDE)
    )
    first, byte = divmod(low - base, stride)
    return Region(fault.space, core, first, 1, byte, high - low)
