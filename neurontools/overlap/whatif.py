"""`neurontools overlap whatif`: packet sizes and streams, and what they do to compute and collectives that meet."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, NamedTuple

import typer

from neurontools.cc.asking import byte_count
from neurontools.command.exits import ExitStatus
from neurontools.command.lazy import command_app
from neurontools.command.options import Json, TargetName
from neurontools.command.output import report
from neurontools.text.table import table


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


def whatif(
    dma: Annotated[
        int | None,
        typer.Option("--dma-packet", metavar="BYTES", help="NEURON_RT_DBG_DMA_PACKETIZATION_SIZE.", show_default=False),
    ] = None,
    cc: Annotated[
        str, typer.Option("--cc-packet", metavar="LIST", help="NEURON_RT_DBG_CC_DMA_PACKET_SIZE, by stream.")
    ] = "",
    streams: Annotated[int, typer.Option("--streams", metavar="N", min=1, max=4, help="Streams of collectives.")] = 1,
    compute: Annotated[str, typer.Option("--compute", metavar="BYTES", help="What compute has to move.")] = "8MiB",
    collectives: Annotated[
        str, typer.Option("--cc", metavar="LIST", help="What the collectives of each stream have to move.")
    ] = "8MiB",
    target: TargetName = None,
    json: Json = False,
) -> None:
    """Show what packet sizes and streams do to compute and collectives that share DMA engines.

    Backlogs of both meet on the engines of one core, with the default settings and with those given.  Exit status 1:
    what is wanted to go first, of several streams the first and else compute, is through later than with the defaults.
    """
    with report(
        "overlap whatif", json, dma=dma, cc=cc, streams=streams, compute=compute, collectives=collectives
    ) as out:
        loads = _sizes(collectives)
        if len(loads) > streams:
            raise typer.BadParameter(f"{len(loads)} backlogs and {streams} streams", param_hint="--cc")
        out.result = found = compared(target or "trn2", dma, _sizes(cc), streams, byte_count(compute), loads)
        out.lines = lambda: view(found)
        if found.slower:
            out.status = ExitStatus.FINDING


app = command_app(whatif, result=Whatif)
