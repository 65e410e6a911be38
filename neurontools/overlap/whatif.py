"""`neurontools overlap whatif`: packet sizes and streams, and what they do to compute and collectives that meet."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from formats.errors import NotFoundError, UnsupportedError
from formats.named_tuple import NamedTuple
from neurontools.cc.asking import byte_count
from neurontools.command.exits import ExitStatus
from neurontools.command.files import open_neff_file
from neurontools.command.lazy import command_app
from neurontools.command.options import (
    Inputs,
    InstanceType,
    Json,
    Lnc,
    NodeCount,
    ScriptArguments,
    Seed,
    TargetName,
    given,
)
from neurontools.command.output import Report as Output
from neurontools.command.output import report
from neurontools.overlap.changing import ProgramWhatif
from neurontools.program.configuration import RunConfiguration
from neurontools.text.table import table

if TYPE_CHECKING:
    from emulator.runtime.ranks import Ranks
    from formats.neff import Neff
    from neurontools.overlap.changing import Settings


class RingRow(NamedTuple):
    """One ring of an engine, before and after."""

    name: Annotated[str, "compute, or the stream of a collective"]
    bytes: Annotated[int, "that all engines of the core move together"]
    packet_before: int
    packet_after: int
    share_before: Annotated[float, "of the engine, while every ring has work"]
    share_after: float
    done_before_us: float
    done_after_us: float


class Whatif(NamedTuple):
    """The result of `overlap whatif`."""

    target: str
    engines: Annotated[int, "DMA engines of a core"]
    priorities: Annotated[bool, "whether priorities count: Trn3"]
    rings: tuple[RingRow, ...]
    first: Annotated[str, "ring that is wanted to go first: of several streams the first, else compute"]
    slower: Annotated[bool, "whether that ring is through later than before"]


def compared(target: str, dma: int | None, cc: tuple[int, ...], streams: int, compute: int,
             collectives: tuple[int, ...]) -> Whatif:  # fmt: skip
    """Return what settings do to a backlog of compute and of collectives on the engines of a core."""
    from emulator.arch import arch_of  # deferred: start-up
    from emulator.machine.arbitration import Ring, packet_sizes, serve  # deferred: start-up
    from neurontools.profile.peaks import dma_peak  # deferred: start-up

    arch = arch_of(target)
    engines = arch.dma_engines.whole
    rate = dma_peak(arch.target, 1) / engines
    strict = arch.generation == "gen4"
    sizes = [compute, *collectives, *(0,) * (streams - len(collectives))][: streams + 1]
    names = ["compute", *(f"stream {at}" for at in range(streams))]
    sides = []
    for mine, others in (packet_sizes(None, (), streams), packet_sizes(dma, cc, streams)):
        packets = (mine, *others)
        # Wanted order: collectives of stream 0 (tensor parallel), compute, the others (collectives.md 9).
        rings = [Ring(name, packet, -(-size // engines), 1 if at == 0 else 0 if at == 1 else 2)
                 for at, (name, packet, size) in enumerate(zip(names, packets, sizes, strict=True))]  # fmt: skip
        sides.append(serve(rings, rate, strict=strict))
    rows = tuple(
        RingRow(name, size, old.ring.packet, new.ring.packet, old.share, new.share, old.done_ns / 1000,
                new.done_ns / 1000)
        for name, size, old, new in zip(names, sizes, *sides, strict=True)
    )  # fmt: skip
    first = rows[1] if streams > 1 and rows[1].bytes else rows[0]
    slower = first.done_after_us > first.done_before_us + 1e-9
    return Whatif(arch.target, engines, strict, rows, first.name, slower)


def view(found: Whatif) -> Iterator[str]:
    """Yield the text for people."""
    how = "strict priorities" if found.priorities else "rings in turn, packet by packet"
    yield f"{found.target}: {found.engines} DMA engines of a core, {how}  [collectives.md 9]"
    rows = [
        [row.name, row.bytes, row.packet_before, row.packet_after, f"{row.share_before:.1%}", f"{row.share_after:.1%}",
         f"{row.done_before_us:,.2f} us", f"{row.done_after_us:,.2f} us"]
        for row in found.rings
    ]  # fmt: skip
    yield from table(["ring", "bytes", "packet", "then", "share", "then", "through after", "then"], rows)
    yield f"{found.first} is {'slower' if found.slower else 'not slower'}"


def _sizes(text: str) -> tuple[int, ...]:
    return tuple(byte_count(part) for part in text.split(",")) if text else ()


def _programs(
    file: Path, where: Ranks, configuration: RunConfiguration, sides: tuple[Settings, Settings], out: Output
) -> ProgramWhatif:
    """Run a program as it is and with settings; a run that has no good end is told of, and makes the status."""
    from emulator.machine.arbitration import MAX_STREAMS, packet_sizes  # deferred: start-up
    from emulator.machine.ranks.machine import Packets  # deferred: start-up
    from emulator.machine.ranks.overlap import Activity  # deferred: start-up
    from neurontools.compiler.again import compile_again  # deferred: start-up
    from neurontools.overlap.changing import compared as changed  # deferred: start-up
    from neurontools.overlap.report import reported  # deferred: start-up
    from neurontools.program.kinds import Kind  # deferred: start-up
    from neurontools.running.ranked import Watching, execute_file, files_of, kind_of  # deferred: start-up

    packets = [packet_sizes(one.dma_packet, one.cc_packet, one.streams or MAX_STREAMS) for one in sides]
    script = kind_of(file, configuration, where) is Kind.SCRIPT
    if script and any(one.options() for one in sides):
        raise UnsupportedError(f"{file} is a script: its collectives stand where its kernels call them, on the streams "
                               "that they name; what is compiled from a graph can be shifted")  # fmt: skip
    # Both programs before the first run: what cannot be compiled is told at once.
    made = {
        (chosen, str(path)): compile_again(open_neff_file(path), str(path), chosen.options())
        for chosen in sides if chosen.options() for path in files_of(file, where)
    }  # fmt: skip
    runs, reports = [], []
    for when, chosen, sizes in zip(("before", "after"), sides, packets, strict=True):
        watched: list[list[Activity]] = []

        def watch(rank: int, watched: list[list[Activity]] = watched) -> list[Activity]:
            if rank == 0:
                watched.append([])
            watched[-1].append(Activity())
            return watched[-1][-1:]

        def change(neff: Neff, chosen: Settings = chosen) -> Neff:
            return made.get((chosen, str(neff.path)), neff)

        watching = Watching(watch, Packets(chosen.dma_packet, chosen.cc_packet), record=True, change=change)
        launches = [found for found, _ in execute_file(file, configuration, where, out, watching)]
        for found in launches:
            if found.hang is not None:
                out.warn(*found.hang.text().splitlines())
            if not found.ok:
                # Half a run is shorter than a whole one: it must not look like a gain.
                out.warn(f"the run {when} the change did not finish: its times and outputs end there",
                         *(f"rank {rank}: {' '.join(str(one.fault).split())}" for rank, one in enumerate(found.results)
                           if one.fault is not None))  # fmt: skip
                out.status = ExitStatus.FAULT
        runs.append(launches)
        reports.append([reported(found, mine, sizes) for found, mine in zip(launches, watched, strict=True)])
    if not all(runs):
        raise NotFoundError(f"{file} launches nothing")
    return changed(runs, reports, sides)


def whatif(
    context: typer.Context,
    file: Annotated[
        Path | None,
        typer.Argument(metavar="[FILE]", help="A Python script or a NEFF that ranks run.", show_default=False),
    ] = None,
    arguments: ScriptArguments = None,
    ranks: Annotated[
        int | None,
        typer.Option("--ranks", metavar="N", min=1, help="Of FILE: ranks that run the program.", show_default=False),
    ] = None,
    instance: InstanceType = None,
    nodes: NodeCount = 1,
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
    streams: Annotated[
        int | None,
        typer.Option(
            "--streams",
            metavar="N",
            min=1,
            max=4,
            help="Streams of collectives; of FILE, gathers of weights and scatters of gradients have those behind the "
            "first in turn.",
            show_default="1; of FILE its own",
        ),
    ] = None,
    shift_ag: Annotated[
        int | None,
        typer.Option(
            "--shift-ag",
            metavar="N",
            min=0,
            help="Of FILE: call gathers of weights N layers before their use (NEURON_FSDP_NUM_LAYER_EARLY_AG_SHIFT).",
            show_default=False,
        ),
    ] = None,
    shift_rs: Annotated[
        int | None,
        typer.Option(
            "--shift-rs",
            metavar="N",
            min=0,
            help="Of FILE: call scatters of gradients N layers behind their sum (NEURON_FSDP_NUM_LAYER_LATE_RS_SHIFT).",
            show_default=False,
        ),
    ] = None,
    before: Annotated[
        list[str] | None,
        typer.Option(
            "--before",
            metavar="KEY=VALUE",
            help="Of FILE: what the run before is made with: dma-packet, cc-packet, streams, shift-ag or shift-rs.",
            show_default=False,
        ),
    ] = None,
    compute: Annotated[str, typer.Option("--compute", metavar="BYTES", help="What compute has to move.")] = "8MiB",
    collectives: Annotated[
        str, typer.Option("--cc", metavar="LIST", help="What the collectives of each stream have to move.")
    ] = "8MiB",
    target: TargetName = None,
    json: Json = False,
) -> None:
    """Show what packet sizes, streams and earlier collectives do to compute and collectives that share DMA engines.

    A program runs on N ranks as it is, and with the settings; without one, backlogs of both meet on the engines of one
    core.  Exit status 1: the program is slower with the settings; of backlogs, what is wanted to go first, of several
    streams the first and else compute, is through later than with the defaults.
    """
    with report(
        "overlap whatif", json, file=file, ranks=ranks, dma=dma, cc=cc, streams=streams, shift_ag=shift_ag,
        shift_rs=shift_rs, before=before or None, compute=compute, collectives=collectives,
    ) as out:  # fmt: skip
        spelled = given(context)
        if file is not None:
            for name in ("compute", "collectives"):
                if name in spelled:
                    raise typer.BadParameter("a backlog goes without FILE", param_hint=spelled[name])
            if ranks is None:
                raise typer.BadParameter("FILE needs --ranks N", param_hint="--ranks")
            from neurontools.command.uninterrupted import import_numpy  # deferred: start-up

            import_numpy()
            from emulator.runtime.ranks import Ranks  # deferred: start-up
            from neurontools.overlap.changing import Settings, settings_of  # deferred: start-up
            from neurontools.overlap.changing import view as changes  # deferred: start-up

            configuration = RunConfiguration(tuple(arguments or ()), target=target, lnc=lnc, inputs=inputs, seed=seed,
                                             given=spelled)  # fmt: skip
            sides = settings_of(before or ()), Settings(dma, _sizes(cc), streams, shift_ag, shift_rs)
            program = _programs(file, Ranks(ranks, instance, nodes), configuration, sides, out)
            out.result = program
            out.lines = lambda: changes(program)
            if program.slower and out.status is ExitStatus.OK:
                out.status = ExitStatus.FINDING
            return
        for name in ("ranks", "instance", "nodes", "lnc", "inputs", "seed", "shift_ag", "shift_rs", "before"):
            if name in spelled:
                raise typer.BadParameter("goes with FILE", param_hint=spelled[name])
        loads = _sizes(collectives)
        if len(loads) > (streams or 1):
            raise typer.BadParameter(f"{len(loads)} backlogs and {streams or 1} streams", param_hint="--cc")
        out.result = found = compared(target or "trn2", dma, _sizes(cc), streams or 1, byte_count(compute), loads)
        out.lines = lambda: view(found)
        if found.slower:
            out.status = ExitStatus.FINDING


app = command_app(whatif, result=Whatif | ProgramWhatif)
