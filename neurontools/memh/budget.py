"""`neurontools memh budget`: how much of SBUF and PSUM a program needs, and what it sends through HBM and back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from formats.named_tuple import NamedTuple
from neurontools.command.lazy import command_app
from neurontools.command.options import Json, ProgramFile
from neurontools.command.output import report
from neurontools.memh.watching import ended, watched
from neurontools.text.table import duration, table

if TYPE_CHECKING:
    from emulator.runtime import Result


class MemoryRow(NamedTuple):
    """One memory of one core, in bytes of a partition."""

    space: str
    core: int
    capacity: int
    touched: Annotated[int, "bytes of a partition that were ever written"]
    live: Annotated[int, "most bytes of a partition that were live at one time"]
    time_ns: Annotated[float, "when that was"]
    writer: Annotated[str, "what completed then"]


class TripRow(NamedTuple):
    """Bytes that left for HBM and came back."""

    writer: str
    reader: str
    bytes: int
    written_ns: float
    read_ns: float


class Budget(NamedTuple):
    """The result of `memh budget`."""

    name: str
    memories: tuple[MemoryRow, ...]
    round_trips: tuple[TripRow, ...]


def budget_of(file: Path, aside: bool) -> tuple[Budget, Result]:
    """Return the budget of a program and the result of its run."""
    name, occupancy, result = watched(file, aside=aside)
    peaks = tuple(MemoryRow(p.space, p.core, p.capacity, p.touched, p.live, p.time_ps / 1000, p.writer)
                  for p in occupancy.peaks())  # fmt: skip
    trips = tuple(TripRow(t.writer, t.reader, t.bytes, t.written_ps / 1000, t.read_ps / 1000) for t in occupancy.trips)
    return Budget(name, peaks, trips), result


def view(found: Budget) -> Iterator[str]:
    """Yield the text for people."""
    yield f"{found.name}: bytes of a partition"
    rows = [[row.space, row.core, row.capacity, row.touched, row.live, f"{row.live / row.capacity:.1%}",
             duration(int(row.time_ns * 1000)), row.writer[:80]] for row in found.memories]  # fmt: skip
    yield from table(["memory", "core", "has", "written", "live at most", "of it", "at", "with"], rows)
    total = sum(trip.bytes for trip in found.round_trips)
    yield f"through HBM and back: {total:,} bytes in {len(found.round_trips)} transfers"
    for trip in found.round_trips[:10]:
        yield f"  {trip.bytes:,} bytes, written by {trip.writer[:60]}, read by {trip.reader[:60]}"


def budget(file: ProgramFile, json: Json = False) -> None:
    """Show how much of SBUF and PSUM a program needs, and what goes through HBM and back.

    The program runs with random inputs of its kind; a byte is live from the event that writes it to its last read.
    """
    with report("memh budget", json, file=file) as out:
        found, result = budget_of(file, json)
        out.result = found
        out.lines = lambda: view(found)
        out.status = ended(result, out)


app = command_app(budget, result=Budget)
