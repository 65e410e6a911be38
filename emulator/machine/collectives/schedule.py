"""Run the collectives that ranks call one after the other, and say who waits for whom when they do not meet.

Every rank calls in its own order, one stream after another apart: the next collective of a stream starts when the one
before is through on that rank.  Calls of different ranks belong together when they are over the same group and each
rank's n-th over it.  Ranks that call in another order, not at all, or over another group wait for ever: the chain of
waits is followed rank by rank to the one that never comes, or around a cycle.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from emulator.machine.collectives.choose import choose
from emulator.machine.collectives.engine import Engine, Job
from emulator.machine.collectives.explain import explain
from emulator.machine.collectives.group import Group
from emulator.machine.collectives.plan import Operation, Plan, Request, build
from emulator.machine.machine import Machine
from formats.errors import FormatError
from formats.named_tuple import NamedTuple
from formats.nrt.status import NrtStatus

__all__ = ["MAX_STREAMS", "Call", "Ended", "Met", "Stuck", "Waiting", "mismatches", "run_schedule"]

Stream = tuple[int, int]  # rank, stream
MAX_STREAMS = 4  # collectives.md 2: four CC-cores a logical core


class Call(NamedTuple):
    """One line of a program: ranks that call a collective over a group on a stream."""

    line: int
    ranks: tuple[int, ...]
    operation: Operation
    size: int
    item: int
    group: tuple[int, ...]
    stream: int

    @property
    def text(self) -> str:
        """Return the call in words."""
        return f"{self.operation} of {self.size:,} bytes over ranks {_list(self.group)} (line {self.line})"


class Met(NamedTuple):
    """One collective that took place, or did not end."""

    lines: tuple[int, ...]
    operation: str
    algorithm: str
    ranks: tuple[int, ...]
    stream: int
    start_ps: int | None
    end_ps: int | None


class Waiting(NamedTuple):
    """A rank that stands in a call."""

    rank: int
    line: int
    sentence: str


class Stuck(NamedTuple):
    """Why ranks wait for ever: "order" for a cycle, "missing" for a rank that never calls."""

    cause: str
    ranks: tuple[int, ...]
    lines: tuple[int, ...]
    sentence: str
    chain: tuple[Waiting, ...]
    status: NrtStatus = NrtStatus.NRT_EXEC_HW_ERR_COLLECTIVES


class Ended(NamedTuple):
    """What came of a schedule."""

    time_ps: int
    met: tuple[Met, ...]
    stuck: Stuck | None


def _list(ranks: Sequence[int]) -> str:
    if len(ranks) > 2 and list(ranks) == list(range(ranks[0], ranks[-1] + 1)):
        return f"{ranks[0]}-{ranks[-1]}"
    return ",".join(map(str, ranks[:8])) + (",..." if len(ranks) > 8 else "")


def _instances(calls: Sequence[Call]) -> dict[tuple[tuple[int, ...], int], dict[int, Call]]:
    """Return the calls that belong together: by group and number, the call of each rank."""
    found: dict[tuple[tuple[int, ...], int], dict[int, Call]] = defaultdict(dict)
    counts: dict[tuple[int, tuple[int, ...]], int] = defaultdict(int)
    for call in calls:
        for rank in call.ranks:
            if rank not in call.group:
                raise FormatError(
                    "a call", field=f"line {call.line}", expected="ranks of its group", got=f"rank {rank}"
                )
            nth = counts[rank, call.group]
            counts[rank, call.group] += 1
            found[call.group, nth][rank] = call
    return found


def mismatches(calls: Sequence[Call]) -> list[str]:
    """Return calls that meet and are not the same operation on as many bytes."""
    wrong = []
    for (_, nth), by_rank in _instances(calls).items():
        kinds: dict[tuple[str, int, int], int] = {}
        for rank, call in sorted(by_rank.items()):
            kinds.setdefault((call.operation, call.size, call.item), rank)
        if len(kinds) > 1:
            (one, other) = list(kinds.values())[:2]
            wrong.append(f"rank {one} calls {by_rank[one].text} where rank {other} calls {by_rank[other].text}: "
                         f"number {nth + 1} of each over that group")  # fmt: skip
    return wrong


def run_schedule(machine: Machine, calls: Sequence[Call], *, seed: int = 0) -> Ended:
    """Run all calls for their time, and say why when not all end; `mismatches` are to be refused before."""
    engine = Engine(machine, seed=seed)
    queues: dict[Stream, list[tuple[Job, Call]]] = defaultdict(list)
    instances = list(_instances(calls).values())
    jobs: list[Job] = []
    of_call: dict[tuple[int, int], Job] = {}
    for by_rank in instances:
        first = next(iter(by_rank.values()))
        job = engine.add(_plan(machine, first), first.item, stream=first.stream, name=first.operation)
        jobs.append(job)
        of_call |= {(rank, id(call)): job for rank, call in by_rank.items()}
    for call in calls:
        for rank in call.ranks:
            queues[rank, call.stream].append((of_call[rank, id(call)], call))
    at = dict.fromkeys(queues, 0)
    streams = {(job.number, key[0]): key for key, queue in queues.items() for job, _ in queue}

    def onward(stream: Stream, time_ps: int) -> None:
        """Start the call that a stream of a rank has come to."""
        if at[stream] < len(queues[stream]):
            engine.trigger(queues[stream][at[stream]][0], stream[0], time_ps)

    for job in jobs:

        def ended(rank: int, time_ps: int, number: int = job.number) -> None:
            at[streams[number, rank]] += 1
            onward(streams[number, rank], time_ps)

        job.on_finish = ended
    for stream in queues:
        onward(stream, 0)
    engine.run()
    met = tuple(_met(job, by_rank) for job, by_rank in zip(jobs, instances, strict=True))
    stand = {stream: queue[at[stream]] for stream, queue in queues.items() if at[stream] < len(queue)}
    return Ended(engine.now, met, _stuck(engine, stand, queues, at) if stand else None)


def _met(job: Job, by_rank: dict[int, Call]) -> Met:
    request = job.plan.request
    name = request.algorithm if request.algorithm != "hier" else f"{request.inner}+{request.outer}"
    start, end = min(job.started.values(), default=None), max(job.finished.values()) if job.done else None
    lines = tuple(sorted({call.line for call in by_rank.values()}))
    return Met(lines, request.operation, name, job.plan.ranks, job.stream, start, end)


def _plan(machine: Machine, call: Call) -> Plan:
    group = Group(machine, call.group)
    elements = max(1, -(-call.size // call.item))
    if call.operation == "alltoall":
        elements = -(-elements // group.size) * group.size
    choice = choose(call.operation, group, elements * call.item)
    pairs: tuple[tuple[int, int], ...] = ()
    if call.operation in ("permute", "sendrecv"):
        around = call.group if call.operation == "permute" else call.group[:2]
        pairs = tuple(zip(around, (*around[1:], around[0]), strict=True))[: None if call.operation == "permute" else 1]
    return build(Request(call.operation, group, elements, choice.algorithm, choice.inner, choice.outer, pairs=pairs))


def _stuck(
    engine: Engine, stand: dict[Stream, tuple[Job, Call]], queues: dict[Stream, list[tuple[Job, Call]]],
    at: dict[Stream, int],
) -> Stuck:  # fmt: skip
    """Return the cause: follow the first rank that stands in a call to the rank it misses, and so on."""
    here = min(stand)
    chain: list[Waiting] = []
    seen: list[Stream] = []
    while here not in seen:  # a stream is entered once: the chain ends at a rank that never calls, or closes
        job, call = stand[here]
        seen.append(here)
        absent = sorted(set(job.plan.ranks) - set(job.started))
        if not absent:
            hang = explain(engine, job)
            sentence = hang.sentence if hang is not None else f"{call.text} does not end"
            return Stuck("missing", (here[0],), (call.line,), sentence, tuple(chain))
        missed = absent[0]
        later = [key for key in stand if key[0] == missed and any(one is job for one, _ in queues[key][at[key] :])]
        if not later:
            chain.append(Waiting(here[0], call.line, f"waits in {call.text} for rank {missed}, which never calls it"))
            text = f"rank {missed} never calls {call.text}{_instead(missed, call, queues)}"
            return Stuck("missing", (missed,), tuple(one.line for one in chain), text, tuple(chain))
        stands = stand[later[0]][1].line
        text = f"waits in {call.text} for rank {missed}, which stands in line {stands}"
        chain.append(Waiting(here[0], call.line, text))
        here = later[0]
    around = chain[seen.index(here) :]
    ranks, lines = tuple(one.rank for one in around), tuple(one.line for one in around)
    text = f"ranks {', '.join(map(str, ranks))} call in different orders: each waits for the next in lines "
    return Stuck("order", ranks, lines, text + ", ".join(map(str, lines)), tuple(around))


def _instead(rank: int, call: Call, queues: dict[Stream, list[tuple[Job, Call]]]) -> str:
    """Return what a rank calls over another group with some of the same ranks, "" where it calls nothing such."""
    for (who, _), queue in queues.items():
        for _, other in queue if who == rank else ():
            if other.group != call.group and set(other.group) & set(call.group):
                return f"; it calls {other.text}"
    return ""
