"""`neurontools memh map`: what a partition of SBUF or PSUM holds when a program ends."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from formats.errors import NotFoundError
from formats.named_tuple import NamedTuple
from neurontools.command.lazy import command_app
from neurontools.command.options import Json, ProgramFile
from neurontools.command.output import report
from neurontools.memh.watching import ended, watched
from neurontools.text.table import duration, table

if TYPE_CHECKING:
    from emulator.runtime import Result


class RangeRow(NamedTuple):
    """Neighbouring bytes that one event wrote."""

    byte: int
    bytes: int
    written_ns: float
    read_ns: Annotated[float | None, "last read; None where nothing read them"]
    writer: str


class Map(NamedTuple):
    """The result of `memh map`."""

    name: str
    space: str
    core: int
    partition: int
    capacity: int
    ranges: tuple[RangeRow, ...]


def map_of(file: Path, space: str, core: int, partition: int, aside: bool) -> tuple[Map, Result]:
    """Return what a partition holds at the end of a run, and the result of the run."""
    name, occupancy, result = watched(file, aside=aside)
    try:
        held = occupancy.held(space, core, partition)
    except KeyError:
        raise NotFoundError(f"{name} has no core {core}") from None
    rows = tuple(RangeRow(one.byte, one.end - one.byte, one.born_ps / 1000,
                          None if one.read_ps is None else one.read_ps / 1000, one.writer) for one in held)  # fmt: skip
    return Map(name, space, core, partition, occupancy.capacity[space], rows), result


def view(found: Map) -> list[str]:
    """Return the table for people."""
    rows = [[f"{row.byte:#x}", row.bytes, duration(int(row.written_ns * 1000)),
             "never" if row.read_ns is None else duration(int(row.read_ns * 1000)), row.writer[:90]]
            for row in found.ranges]  # fmt: skip
    used = sum(row.bytes for row in found.ranges)
    return [
        f"{found.name}: core {found.core}, {found.space} partition {found.partition}",
        *table(["byte", "bytes", "written", "last read", "by"], rows),
        f"{used:,} of {found.capacity:,} bytes written",
    ]


def map_(
    file: ProgramFile,
    partition: Annotated[int, typer.Option("--partition", "-p", metavar="P", min=0, max=127, help="Partition.")] = 0,
    space: Annotated[str, typer.Option("--space", metavar="NAME", help="SBUF or PSUM.")] = "SBUF",
    core: Annotated[int, typer.Option("--core", metavar="N", min=0, help="Physical core.")] = 0,
    json: Json = False,
) -> None:
    """Show what a partition of SBUF or PSUM holds when a program ends.

    Partitions are followed in quadrants of 32: a range stands for what was written to any of its quadrant.
    """
    with report("memh map", json, file=file, partition=partition, space=space, core=core) as out:
        if space.upper() not in ("SBUF", "PSUM"):
            raise typer.BadParameter(f"{space!r} is none of SBUF, PSUM", param_hint="--space")
        found, result = map_of(file, space.upper(), core, partition, json)
        out.result = found
        out.lines = lambda: view(found)
        out.status = ended(result, out)


app = command_app(map_, result=Map)
