"""`neurontools overlap report`: what of each collective of a program is hidden behind compute, and what is exposed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from formats.named_tuple import NamedTuple
from neurontools.cc.asking import byte_count
from neurontools.command.exits import ExitStatus
from neurontools.command.files import need_place
from neurontools.command.lazy import command_app
from neurontools.command.options import (
    Inputs,
    InstanceType,
    Json,
    Lnc,
    NodeCount,
    ProgramFile,
    ScriptArguments,
    Seed,
    TargetName,
    given,
)
from neurontools.command.output import report as reporting
from neurontools.program.configuration import RunConfiguration
from neurontools.text.table import duration, table

if TYPE_CHECKING:
    from emulator.machine.ranks.overlap import Activity
    from emulator.runtime.ranks import RankedResult


_SHOWN = 16  # ranks whose shares are in the text


class RankOverlapRow(NamedTuple):
    """One collective at one rank."""

    rank: int
    called_ps: int
    time_ps: Annotated[int, "from the call to the end"]
    trigger_ps: Annotated[int, "from the word to the start of its CC-cores"]
    hidden_ps: Annotated[int, "covered by compute of the rank"]
    exposed_ps: int
    matmul_pc: Annotated[int | None, "the first word of the Tensor engine behind it"]
    matmul_idle_ps: Annotated[int, "time that the Tensor engine stood idle before that word while it was under way"]


class CollectiveOverlapRow(NamedTuple):
    """One collective at all of its ranks; `latest` is the rank that called it last."""

    name: str
    group: tuple[int, ...]
    stream: int
    source: Annotated[str, "file:line of the call of the first rank, empty where it is not known"]
    latest: int
    wait_ps: Annotated[int, "time from the first call to the last"]
    hidden: Annotated[float, "part of its time that compute covers, over all ranks"]
    ranks: tuple[RankOverlapRow, ...]


class EngineShareRow(NamedTuple):
    """How compute and collectives shared one DMA engine while both had work."""

    core: int
    engine: int
    both_ps: int
    carried_ps: Annotated[int, "of that time, what went to collectives"]
    compute: Annotated[float, "share of compute in the bytes moved"]


class ShareRow(NamedTuple):
    """How compute and collectives shared the DMA engines of a rank while both had work; times are means of engines."""

    rank: int
    both_ps: int
    carried_ps: Annotated[int, "of that time, what went to collectives"]
    compute: Annotated[float, "share of compute in the bytes moved"]
    engines: tuple[EngineShareRow, ...]


class Report(NamedTuple):
    """The result of `overlap report`, one launch."""

    instance: str
    time_ps: int
    compute_packet: int
    collective_packets: tuple[int, ...]
    hidden: Annotated[float, "part of the time of collectives that compute covers, over all of them"]
    exposed_ps: Annotated[int, "of all collectives, at the rank with most"]
    collectives: tuple[CollectiveOverlapRow, ...]
    shares: tuple[ShareRow, ...]


class Reports(NamedTuple):
    """The result of `overlap report`: every launch of a script, or the one run of a file."""

    launches: tuple[Report, ...]


def reported(found: RankedResult, watched: list[Activity], packets: tuple[int, tuple[int, ...]]) -> Report:
    """Return what compute hides of the collectives of a run."""
    from emulator.machine.ranks.overlap import overlap_of, share_of, shares_of, union  # deferred: start-up

    busy = [union(one.compute) for one in watched]
    rows = []
    total = hidden = 0
    exposed = [0] * len(watched)
    for met in found.collectives:
        ranks = []
        for rank in sorted(met.ended_ps):
            one = overlap_of(rank, watched[rank], met.begun_ps[rank], met.ended_ps[rank], found.trigger_ps, busy[rank])
            delay = one.delay
            ranks.append(RankOverlapRow(
                rank, one.called_ps, one.time_ps, one.trigger_ps, one.hidden_ps, one.exposed_ps,
                None if delay is None else delay.pc, 0 if delay is None else delay.idle_ps,
            ))  # fmt: skip
            exposed[rank] += one.exposed_ps
        time, covered = sum(row.time_ps for row in ranks), sum(row.hidden_ps for row in ranks)
        total, hidden = total + time, hidden + covered
        latest = max(met.begun_ps, key=lambda rank: (met.begun_ps[rank], -rank))
        first = min(met.begun_ps.values())
        rows.append(CollectiveOverlapRow(
            met.name, met.group, met.stream, met.source, latest, met.begun_ps[latest] - first,
            covered / time if time else 0.0, tuple(ranks),
        ))  # fmt: skip
    shares = []
    for rank, activity in enumerate(watched):
        carried = [one for one in found.carried if one.rank == rank]
        given = activity.moves, carried, found.carried_rate
        share = share_of(*given)
        engines = tuple(EngineShareRow(*one[:4], one.compute) for one in shares_of(*given))
        shares.append(ShareRow(rank, share.both_ps, share.carried_ps, share.compute, engines))
    return Report(found.instance, found.time_ps, packets[0], packets[1], hidden / total if total else 0.0,
                  max(exposed, default=0), tuple(rows), tuple(shares))  # fmt: skip


def view(found: Reports, by_engine: bool = False) -> Iterator[str]:
    """Yield the text for people."""
    for number, one in enumerate(found.launches, 1):
        if len(found.launches) > 1:
            yield f"launch {number}"
        yield (f"{one.instance}: {duration(one.time_ps)}; {one.hidden:.1%} of the time of collectives is hidden behind "
               f"compute, at most {duration(one.exposed_ps)} of a rank are not")  # fmt: skip
        packets = ", ".join(map(str, dict.fromkeys(one.collective_packets)))
        yield f"packets: compute {one.compute_packet} bytes, collectives {packets}  [collectives.md 9]"
        heads = ["collective", "ranks", "stream", "called at", "last to call", "after", "worst rank", "time", "trigger",
                 "hidden", "exposed", "next matmul idle"]  # fmt: skip
        rows: list[list[object]] = []
        for row in one.collectives:
            worst = max(row.ranks, key=lambda each: each.exposed_ps, default=None)
            if worst is None:
                rows.append([row.name, len(row.group), row.stream, row.source or None, row.latest, *[None] * 7])
                continue
            rows.append([row.name, len(row.group), row.stream, row.source or None, row.latest, duration(row.wait_ps),
                         worst.rank, duration(worst.time_ps), duration(worst.trigger_ps), f"{row.hidden:.1%}",
                         duration(worst.exposed_ps),
                         None if worst.matmul_pc is None else duration(worst.matmul_idle_ps)])  # fmt: skip
        yield from table(heads, rows)
        shared = [row for row in one.shares if row.both_ps]
        if shared:
            yield ""
            yield "while a DMA engine had work of both (times: mean of the engines):"
            yield from table(["rank", "for", "share of compute", "of collectives"],
                             [[row.rank, duration(row.both_ps), f"{row.compute:.1%}", f"{1 - row.compute:.1%}"]
                              for row in shared[:_SHOWN]])  # fmt: skip
            if by_engine:
                yield ""
                engines = [(row.rank, each) for row in shared for each in row.engines if each.both_ps]
                yield from table(["rank", "core", "engine", "for", "share of compute", "of collectives"],
                                 [[rank, each.core, each.engine, duration(each.both_ps), f"{each.compute:.1%}",
                                   f"{1 - each.compute:.1%}"] for rank, each in engines])  # fmt: skip


def report(
    context: typer.Context,
    file: ProgramFile,
    ranks: Annotated[int, typer.Option("--ranks", metavar="N", min=1, help="Ranks that run the program.")],
    arguments: ScriptArguments = None,
    instance: InstanceType = None,
    nodes: NodeCount = 1,
    target: TargetName = None,
    lnc: Lnc = None,
    inputs: Inputs = None,
    seed: Seed = None,
    dma: Annotated[
        int | None,
        typer.Option("--dma-packet", metavar="BYTES", help="NEURON_RT_DBG_DMA_PACKETIZATION_SIZE.", show_default=False),
    ] = None,
    cc: Annotated[
        str, typer.Option("--cc-packet", metavar="LIST", help="NEURON_RT_DBG_CC_DMA_PACKET_SIZE, by stream.")
    ] = "",
    trace: Annotated[
        Path | None,
        typer.Option(
            "--trace",
            metavar="FILE",
            help="Write a trace for Perfetto: engines, queues, streams and links of every rank.",
            show_default=False,
        ),
    ] = None,
    by_engine: Annotated[bool, typer.Option("--by-engine", help="Show the shares of each DMA engine, too.")] = False,
    json: Json = False,
) -> None:
    """Show of each collective what compute hides and what is exposed, and what the next matmul waits for.

    The program runs on N ranks; times are those of the emulated machine.  Compute and collectives share the DMA engines
    of each rank, packet by packet: the packet sizes are the runtime's settings.
    """
    with reporting("overlap report", json, file=file, ranks=ranks, instance=instance, dma=dma, cc=cc) as out:
        from neurontools.command.uninterrupted import import_numpy  # deferred: start-up

        import_numpy()
        from emulator.machine.arbitration import MAX_STREAMS, packet_sizes  # deferred: start-up
        from emulator.machine.ranks.machine import Packets  # deferred: start-up
        from emulator.machine.ranks.overlap import Activity  # deferred: start-up
        from emulator.runtime.ranks import Ranks  # deferred: start-up
        from neurontools.overlap.trace import write_trace  # deferred: start-up
        from neurontools.running.ranked import Watching, execute_file  # deferred: start-up

        if trace is not None:
            need_place(trace)
        sizes = tuple(byte_count(part) for part in cc.split(",")) if cc else ()
        packets = packet_sizes(dma, sizes, MAX_STREAMS)
        configuration = RunConfiguration(tuple(arguments or ()), target=target, lnc=lnc, inputs=inputs, seed=seed,
                                         given=given(context))  # fmt: skip
        watched: list[list[Activity]] = []

        def watch(rank: int) -> list[Activity]:
            if rank == 0:
                watched.append([])
            watched[-1].append(Activity())
            return watched[-1][-1:]

        watching = Watching(watch, Packets(dma, sizes), record=True)
        launches = execute_file(file, configuration, Ranks(ranks, instance, nodes), out, watching)
        rows = tuple(reported(found, mine, packets) for (found, _), mine in zip(launches, watched, strict=True))
        out.result = result = Reports(rows)
        out.lines = lambda: view(result, by_engine)
        for found, _ in launches:
            if found.hang is not None:
                out.warn(*found.hang.text().splitlines())
            if not found.ok:
                out.status = ExitStatus.FAULT
        if trace is not None and launches:
            write_trace(trace, launches[-1][0], watched[-1])


app = command_app(report, result=Reports)
