"""Run programs on several ranks of a machine, each with inputs and a result of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from types import MappingProxyType
from typing import Any

from emulator.debug_stream import DebugStream
from emulator.errors import InputError, of_rank
from emulator.faults import source_line
from emulator.machine.collectives.engine import Faults, Transfer
from emulator.machine.instances import instance_of
from emulator.machine.machine import Machine, Place
from emulator.machine.ranks.communicators import Meeting
from emulator.machine.ranks.explain import Ranked, RankHang
from emulator.machine.ranks.machine import USUAL_PACKETS, Carried, Packets, RankedMachine
from emulator.observers import is_observer
from emulator.runtime.execution import Result, check_inputs, result_of
from emulator.settings import Settings
from formats.named_tuple import NamedTuple
from formats.neff import Neff
from formats.targets import resolve_target

__all__ = ["Met", "Moved", "RankedResult", "Ranks", "away_of", "check_count", "execute_ranks", "in_order",
           "inputs_by_rank", "machine_of", "met_of", "most_ranks", "new_ranks", "usual_instance"]  # fmt: skip

_USUAL = {"trn1": "trn1.32xlarge", "inf2": "inf2.48xlarge", "trn2": "trn2.48xlarge", "trn3": "trn3-ultraserver-gen1"}


class Ranks(NamedTuple):
    """How many ranks run, and on what: an instance type, or the usual one of the program's chip, and how many."""

    ranks: int
    instance: str | None = None
    nodes: int = 1


class Met(NamedTuple):
    """A collective that was called: its group, what it did, when each rank called it and was through.

    `source` is the line of the first rank's call, "" where it is not known; `calls` says which transfer it is on each
    rank, by core, queue and number; `job` is what `Moved` calls it, -1 where nobody could begin.
    """

    name: str
    group: tuple[int, ...]
    core: int
    stream: int
    algorithm: str
    source: str
    begun_ps: Mapping[int, int]
    ended_ps: Mapping[int, int]
    calls: Mapping[int, tuple[int, str, int]] = MappingProxyType({})
    job: int = -1


class Moved(NamedTuple):
    """A transfer of a CC-core: rank that moves the bytes, stream, step of the algorithm, the ranks it writes to."""

    rank: int
    stream: int
    name: str
    phase: str
    targets: tuple[int, ...]
    begin_ps: int
    end_ps: int
    nbytes: int
    job: int = -1


@dataclass(frozen=True)
class RankedResult:
    """What came of an execution on several ranks: a result for each, in order, and why ranks wait for each other.

    Of a run for the time only, `histories` counts the devices that were emulated for all ranks; where each rank needed
    its own, it is 0 and `apart` says why.
    `trigger_ps` passes from the word that calls a collective to the start of its CC-cores. Where they were asked for,
    `moves` are their transfers and `carried` what those did on DMA engines; `carried_rate` is picoseconds of a DMA
    engine for a byte of them. `away` are the ranks that run no program.
    """

    instance: str
    nodes: int
    places: tuple[Place, ...]
    results: tuple[Result, ...]
    collectives: tuple[Met, ...]
    hang: RankHang | None
    seconds: float
    trigger_ps: int = 0
    moves: tuple[Moved, ...] = ()
    carried: tuple[Carried, ...] = ()
    carried_rate: float = 1.0
    histories: int = 0
    apart: str = ""
    away: tuple[int, ...] = ()

    @property
    def ok(self) -> bool:
        """Return whether every rank finished."""
        return all(result.ok for result in self.results)

    @property
    def time_ps(self) -> int:
        """Return the emulated time at which the last rank ended."""
        return max(result.time_ps for result in self.results)


def usual_instance(neff: Neff) -> str:
    """Return the instance type that a program's chip is usually part of."""
    return _USUAL[neff.target.name]


def machine_of(neffs: Sequence[Neff | None], where: Ranks) -> Machine:
    """Return the machine that programs run on; InputError where it is of another chip, or has fewer ranks."""
    present = [neff for neff in neffs if neff is not None]
    if not present:
        raise InputError("no rank runs a program")
    first = present[0]
    for neff in present[1:]:
        if neff.target.generation != first.target.generation or len(neff.subgraphs) != len(first.subgraphs):
            raise InputError(f"ranks run programs for {first.target.name} on {len(first.subgraphs)} cores and for "
                             f"{neff.target.name} on {len(neff.subgraphs)}")  # fmt: skip
    machine = Machine(where.instance or usual_instance(first), nodes=where.nodes, lnc=len(first.subgraphs))
    if resolve_target(machine.instance.target).generation != first.target.generation:
        raise InputError(
            f"the program is for {first.target.name}, {machine.instance.name} has {machine.instance.target}"
        )
    check_count(machine, where.ranks)
    return machine


def most_ranks(where: Ranks, target: str | None, lnc: int | None) -> Machine:
    """Return the machine with most ranks that a program can run on, before anything of it but options is known.

    `target` and `lnc` are what was asked for; errors as of `machine_of` and `Machine`.
    """
    chips = list(_USUAL) if target is None else [resolve_target(target).name]
    names = [where.instance] if where.instance is not None else [_USUAL[chip] for chip in chips]
    wanted, one = 1 if lnc is None else lnc, len(names) == 1
    machines = [Machine(name, nodes=where.nodes, lnc=wanted) for name in names
                if one or ((where.nodes == 1 or instance_of(name).efa is not None)
                           and wanted <= instance_of(name).chip.lnc.whole)]  # fmt: skip
    machine = max(machines, key=lambda each: each.ranks)
    check_count(machine, where.ranks)
    return machine


def check_count(machine: Machine, ranks: int) -> None:
    """Raise InputError where a machine has fewer ranks."""
    if not 1 <= ranks <= machine.ranks:
        raise InputError(f"{ranks} ranks; {machine.instance.name} has 1 to {machine.ranks}")


def new_ranks(neffs: Sequence[Neff | None], where: Ranks, settings: Settings, **options: Any) -> RankedMachine:
    """Return a machine with a device for every rank; InputError for programs of different chips or core numbers."""
    machine = machine_of(neffs, where)
    return RankedMachine(
        machine, where.ranks, cores=machine.lnc, seed=settings.seed, timing=settings.timing, act=settings.act,
        max_steps=settings.max_steps, limit_ps=settings.limit_ps, hang_timeout_ps=settings.hang_timeout_ps,
        max_seconds=settings.max_seconds, **options,
    )  # fmt: skip


def execute_ranks(
    neffs: Neff | Sequence[Neff | None], inputs: Sequence[Mapping[str, Any]], where: Ranks,
    settings: Settings | None = None, *, checks: str | Sequence[str] = (), faults: Faults | None = None,
    guard: Callable[[RankedMachine], AbstractContextManager[object]] = nullcontext,
    watch: Callable[[int], Sequence[Any]] = lambda rank: (), packets: Packets = USUAL_PACKETS, record: bool = False,
) -> RankedResult:  # fmt: skip
    """Run one program on all ranks, or one on each, with the inputs of each rank; return what came out.

    A rank whose program is None does not run: its result is empty.
    `watch(rank)` gives observers of a rank; `checks` are as in `emulator.runtime.execute`, each rank has its own.
    Faults and hangs are values of the results; errors as there.
    """
    settings = settings or Settings()
    each = [neffs] * where.ranks if isinstance(neffs, Neff) else list(neffs)
    if len(each) != where.ranks or len(inputs) != where.ranks:
        raise InputError(f"{len(each)} programs and {len(inputs)} sets of inputs for {where.ranks} ranks")
    arrays = inputs_by_rank(each, inputs)
    machine = new_ranks(each, where, settings, faults=faults, packets=packets, record=record)
    watching: list[list[Any]] = []
    for device in machine.devices:
        mine = list(watch(device.rank))
        if checks:
            from emulator.checks.registry import make_checks  # deferred: start-up

            mine = [*make_checks(checks), *mine]
        device.observers.extend(one for one in mine if is_observer(one))
        watching.append(mine)
    machine.load(each)
    streams: list[DebugStream | None] = []
    for device, given, mine in zip(machine.devices, arrays, watching, strict=True):
        if device.model is None:
            streams.append(None)
            continue
        device.set_inputs(given)
        for one in mine:
            if hasattr(one, "attach"):
                one.attach(device)
        stream = DebugStream.of(device)
        if stream is not None:
            device.observers.append(stream)
        streams.append(stream)
    started = perf_counter()
    with guard(machine):
        machine.run()
    seconds = perf_counter() - started
    # Before devices are released, which know their sources.
    met = in_order(met_of(machine, one) for one in machine.communicators.meetings.values())
    results = []
    for device, mine, stream in zip(machine.devices, watching, streams, strict=True):
        if device.model is None:
            results.append(Result({}, ()))
            continue
        for one in mine:
            if hasattr(one, "finish"):
                one.finish()
        findings = tuple(finding for one in mine for finding in getattr(one, "findings", ()))
        results.append(result_of(device, seconds, findings, () if stream is None else stream.records()))
        if not mine:
            device.release()
    places = tuple(machine.machine.place(rank) for rank in range(where.ranks))
    name = machine.machine.instance.name
    moves = tuple(map(partial(_moved, machine), machine.engine.transfers))
    return RankedResult(
        name, where.nodes, places, tuple(results), met, machine.hang, seconds, machine.trigger_ps, moves,
        tuple(machine.carried), machine.ps_per_byte, away=away_of(each),
    )  # fmt: skip


def inputs_by_rank(neffs: Sequence[Neff | None], inputs: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the inputs of every rank as its program takes them; InputError names the rank whose do not fit."""
    found: list[dict[str, Any]] = []
    for rank, (neff, given) in enumerate(zip(neffs, inputs, strict=True)):
        with of_rank(rank):
            found.append({} if neff is None else check_inputs(neff, given))
    return found


def away_of(neffs: Sequence[Neff | None]) -> tuple[int, ...]:
    """Return the ranks that run no program."""
    return tuple(rank for rank, neff in enumerate(neffs) if neff is None)


def _moved(machine: RankedMachine, one: Transfer) -> Moved:
    job = machine.engine.jobs[one.job]
    targets = tuple(piece.rank for piece in one.move.writes)
    copies = max(len(one.move.reads), len(one.move.writes))
    return Moved(one.rank, job.stream, job.name, one.move.phase, targets, one.begin_ps, one.end_ps,
                 one.move.size * job.item * copies, one.job)  # fmt: skip


def in_order(met: Iterable[Met]) -> tuple[Met, ...]:
    """Return collectives in the order in which they were first called."""
    return tuple(sorted(met, key=lambda one: (min(one.begun_ps.values()), one.group, one.core, one.stream)))


def met_of(machine: Ranked, meeting: Meeting) -> Met:
    """Return a collective that was called."""
    algorithm = "" if meeting.job is None else meeting.job.plan.request.algorithm
    key = meeting.key
    first = min(meeting.begun, key=lambda rank: (meeting.begun[rank], rank))
    source = source_line(machine.place_of(first, meeting.transfers[first]).source)
    calls = {rank: (each.core, each.queue, each.number) for rank, each in meeting.transfers.items()}
    return Met(meeting.signature.text, key.ranks, key.core, key.stream, algorithm, source, dict(meeting.begun),
               dict(meeting.ended), calls, -1 if meeting.job is None else meeting.job.number)  # fmt: skip
