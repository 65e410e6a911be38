"""`neurontools arch path`: the way of bytes between two chips, or two ranks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from formats.errors import NotFoundError
from formats.named_tuple import NamedTuple
from neurontools.arch.rows import InstanceName
from neurontools.command.lazy import command_app
from neurontools.command.options import Json
from neurontools.command.output import report
from neurontools.text.table import table

if TYPE_CHECKING:
    from emulator.machine.machine import Machine


class HopRow(NamedTuple):
    """One stretch of the way."""

    name: Annotated[str, "the same for all traffic that shares it in this direction"]
    kind: str
    gigabytes_per_s: float
    latency_ns: float


class Way(NamedTuple):
    """The result of `arch path`."""

    source: Annotated[str, "node, chip and core"]
    target: str
    chips: Annotated[tuple[int, ...], "chips passed, both ends included; empty between nodes"]
    hops: tuple[HopRow, ...]
    latency_ns: float
    gigabytes_per_s: Annotated[float | None, "of the slowest stretch; None for a rank to itself"]


def way_of(name: str, source: str, target: str, nodes: int, lnc: int | None) -> Way:
    """Return the way between two places, each "nd3" or "rank 12"; NotFoundError for one that is not there."""
    from emulator.machine.machine import Machine  # deferred: start-up

    machine = Machine(name, nodes=nodes, lnc=lnc)
    a, b = _rank(machine, source), _rank(machine, target)
    hops = tuple(HopRow(hop.name, hop.kind, hop.rate / 1e9, hop.latency_ns) for hop in machine.way(a, b))
    first, last = machine.place(a), machine.place(b)
    chips = () if first.node != last.node else machine.topology.route(first.chip, last.chip)
    return Way(
        _text(first), _text(last), chips, hops, sum(hop.latency_ns for hop in hops),
        min((hop.gigabytes_per_s for hop in hops), default=None),
    )  # fmt: skip


def _rank(machine: Machine, text: str) -> int:
    found = re.fullmatch(r"(nd|rank|r)?\s*(\d{1,9})", text.strip(), re.ASCII)
    if found is None:
        raise typer.BadParameter(f"{text!r} is no chip such as nd3 and no rank such as r12")
    number = int(found[2])
    if found[1] != "nd":
        return number
    chips = machine.ranks // machine.ranks_per_chip
    if number >= chips:
        raise NotFoundError(f"no chip nd{number}: {machine.nodes} x {machine.instance.name} have nd0 to nd{chips - 1}")
    return number * machine.ranks_per_chip


def _text(place: tuple[int, int, int]) -> str:
    return f"node {place[0]}, nd{place[1]}, core {place[2]}"


def view(found: Way) -> Iterator[str]:
    """Yield the text for people."""
    yield f"{found.source} -> {found.target}"
    if len(found.chips) > 1:
        yield "  " + " -> ".join(f"nd{chip}" for chip in found.chips)
    if not found.hops:
        yield "  the same place: nothing to pass"
        return
    yield from table(
        ["stretch", "kind", "GB/s", "latency"],
        [[hop.name, hop.kind, f"{hop.gigabytes_per_s:.2f}", f"{hop.latency_ns:,.0f} ns"] for hop in found.hops],
    )
    total = f"{found.latency_ns:,.0f} ns, {found.gigabytes_per_s:.2f} GB/s"
    yield f"{len(found.hops)} stretches, {total}  [machine.md 3, 4]"


def path(
    instance: InstanceName,
    source: Annotated[str, typer.Option("--from", metavar="PLACE", help="A chip (nd0) or a rank (r0).")],
    target: Annotated[str, typer.Option("--to", metavar="PLACE", help="A chip (nd10) or a rank (r40).")],
    nodes: Annotated[int, typer.Option("--nodes", metavar="N", min=1, help="Instances joined by EFA.")] = 1,
    lnc: Annotated[
        int | None, typer.Option("--lnc", metavar="N", min=1, max=2, help="Physical cores a logical core has.")
    ] = None,
    json: Json = False,
) -> None:
    """Show the way of bytes between two chips or ranks.

    A shortest way over the links, along rows first.  A chip stands for its first rank.
    """
    with report("arch path", json, instance=instance, source=source, target=target, nodes=nodes, lnc=lnc) as out:
        out.result = found = way_of(instance, source, target, nodes, lnc)
        out.lines = lambda: view(found)


app = command_app(path, result=Way)
