"""`neurontools cc plan`: the algorithm of a collective, its steps and traffic, and the time it takes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Annotated

import typer

from formats.named_tuple import NamedTuple
from neurontools.cc.asking import (
    Algo,
    Asked,
    DataType,
    GroupsFile,
    InstanceOption,
    LncOption,
    Nodes,
    OperationName,
    Pairs,
    Ranks,
    Reduce,
    Size,
    ThresholdsFile,
    ask,
)  # fmt: skip
from neurontools.cc.variable_sizes import MetadataFile
from neurontools.command.lazy import command_app
from neurontools.command.options import Json
from neurontools.command.output import report
from neurontools.text.table import bytes_text, count, table


class RejectedRow(NamedTuple):
    """An algorithm that was not taken."""

    algorithm: str
    reason: str
    legal: bool


class StepRow(NamedTuple):
    """One step of the algorithm, over all ranks."""

    step: int
    phase: str
    moves: int
    peers: Annotated[int, "largest number of other ranks that one rank writes to in it"]
    bytes_per_rank: Annotated[int, "largest number of bytes that one rank writes to others in it"]
    folds: Annotated[int, "largest number of pieces that one transfer reads"]


class TrafficRow(NamedTuple):
    """Bytes of the rank that moves most, and of all together."""

    kind: str
    per_rank: int
    total: int


class LinkRow(NamedTuple):
    """One of the busiest stretches."""

    name: str
    bytes: int


class Planned(NamedTuple):
    """The result of `cc plan`."""

    operation: str
    ranks: int
    groups: int
    bytes: int
    algorithm: str
    inner: Annotated[str | None, "of a hierarchical algorithm: inside nodes"]
    outer: Annotated[str | None, "of a hierarchical algorithm: between nodes"]
    rule: str
    rejected: tuple[RejectedRow, ...]
    steps: int
    step_rows: tuple[StepRow, ...]
    traffic: tuple[TrafficRow, ...]
    links: tuple[LinkRow, ...]
    hbm_touches: Annotated[int, "reads and writes of HBM of all ranks, in bytes"]
    time_ns: float
    latency_ns: Annotated[float, "time of the same steps with next to no bytes"]
    transfer_ns: float


def planned(asked: Asked) -> Planned:
    """Return what a collective does and takes; it is executed for its time, without data."""
    from dataclasses import replace  # deferred: start-up

    from emulator.machine.collectives.run import timed  # deferred: start-up

    requests, item = asked.requests, asked.dtype.itemsize
    time_ps, jobs = timed(requests, item)
    tiny = [replace(one, elements=one.group.size, counts=None) for one in requests]
    latency_ps, _ = timed(tiny, 1)
    first = requests[0]
    carried: Counter[str] = Counter()
    for job in jobs:  # groups run beside each other and share stretches
        carried.update(job.counters.links)
    rows = [job.counters.ranks[rank] for job in jobs for rank in job.plan.ranks]
    traffic = [
        TrafficRow(kind, max(getattr(row, field) for row in rows), sum(getattr(row, field) for row in rows))
        for kind, field in (("between nodes", "between_nodes"), ("between chips", "between_chips"),
                            ("inside a chip, written", "inside_chip"), ("inside a chip, read", "read_inside_chip"))
    ]  # fmt: skip
    hier = first.algorithm == "hier"
    links = sorted(carried.items(), key=lambda pair: (-pair[1], pair[0]))[:4]
    return Planned(
        first.operation, first.group.size, len(requests), first.elements * item, first.algorithm,
        first.inner if hier else None, first.outer if hier else None, asked.choice.rule,
        tuple(RejectedRow(*one) for one in asked.choice.rejected), jobs[0].plan.steps, _steps(jobs[0].plan, item),
        tuple(row for row in traffic if row.total), tuple(LinkRow(*pair) for pair in links),
        sum(row.hbm_reads + row.hbm_writes for row in rows), time_ps / 1000, min(latency_ps, time_ps) / 1000,
        max(0, time_ps - latency_ps) / 1000,
    )  # fmt: skip


def _steps(plan: object, item: int) -> tuple[StepRow, ...]:
    phases: dict[int, str] = {}
    moves: dict[int, int] = {}
    folds: dict[int, int] = {}
    peers: dict[int, dict[int, set[int]]] = {}
    size: dict[int, dict[int, int]] = {}
    for rank, program in plan.programs.items():  # type: ignore[attr-defined]
        for move in (move for channel in program.values() for move in channel if move.step >= 0):
            step = move.step
            phases.setdefault(step, move.phase)
            moves[step] = moves.get(step, 0) + 1
            folds[step] = max(folds.get(step, 1), len(move.reads))
            for piece in move.writes:
                if piece.rank != rank:
                    peers.setdefault(step, {}).setdefault(rank, set()).add(piece.rank)
                    mine = size.setdefault(step, {})
                    mine[rank] = mine.get(rank, 0) + move.size * item
    return tuple(
        StepRow(step, phases[step], moves[step], max(map(len, peers.get(step, {}).values()), default=0),
                max(size.get(step, {}).values(), default=0), folds[step])
        for step in sorted(phases)
    )  # fmt: skip


def view(found: Planned, every: bool) -> Iterator[str]:
    """Yield the text for people."""
    where = f" in each of {found.groups} groups" if found.groups > 1 else ""
    yield f"{found.operation} of {bytes_text(found.bytes)} over {count(found.ranks, 'rank')}{where}"
    name = found.algorithm if found.inner is None else f"{found.algorithm}: {found.inner} inside, {found.outer} between"
    yield f"algorithm  {name}"
    yield f"rule       {found.rule}  [collectives.md 6]"
    for row in found.rejected:
        yield f"  not {row.algorithm}: {row.reason}"
    yield f"steps      {found.steps}"
    shown = found.step_rows if every or len(found.step_rows) <= 12 else found.step_rows[:6]
    yield from table(["step", "phase", "transfers", "peers", "bytes a rank", "folds"], [list(row) for row in shown])
    if len(shown) < len(found.step_rows):
        yield f"... and {len(found.step_rows) - len(shown)} more; --steps shows them"
    yield ""
    yield from table(["traffic", "most of a rank", "all ranks"], [list(row) for row in found.traffic])
    yield f"HBM read and written: {found.hbm_touches:,} bytes"
    if found.links:
        yield "busiest: " + ", ".join(f"{link.name} {link.bytes:,} bytes" for link in found.links)
    yield (f"time       {found.time_ns / 1000:,.2f} us: {found.latency_ns / 1000:,.2f} us latency, "
           f"{found.transfer_ns / 1000:,.2f} us transfer  [machine.md 3]")  # fmt: skip


def plan(
    operation: OperationName,
    ranks: Ranks = None,
    size: Size = 1 << 20,
    instance: InstanceOption = "trn2.48xlarge",
    nodes: Nodes = 1,
    lnc: LncOption = None,
    algo: Algo = "auto",
    dtype: DataType = "uint8",
    reduce: Reduce = "add",
    groups: GroupsFile = None,
    pairs: Pairs = None,
    metadata: MetadataFile = None,
    thresholds: ThresholdsFile = None,
    every: Annotated[bool, typer.Option("--steps", help="Show every step.")] = False,
    json: Json = False,
) -> None:
    """Show which algorithm a collective takes, its steps and traffic, and its time.

    Every other algorithm has the reason why it was not taken.  The size is the larger of input and output, as
    nccom-test counts.  The step lists are executed for their time, without data.
    """
    with report("cc plan", json, operation=operation, ranks=ranks, size=size, instance=instance, nodes=nodes,
                algo=algo) as out:  # fmt: skip
        asked = ask(operation, size, instance=instance, nodes=nodes, lnc=lnc, ranks=ranks, algo=algo, dtype=dtype,
                    reduce=reduce, groups=groups, pairs=pairs, thresholds=thresholds, metadata=metadata)  # fmt: skip
        out.result = found = planned(asked)
        out.lines = lambda: view(found, every)


app = command_app(plan, result=Planned)
