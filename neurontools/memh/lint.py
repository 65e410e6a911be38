"""`neurontools memh lint`: accesses that break the rules of a memory, and those that use it badly."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from formats.named_tuple import NamedTuple
from neurontools.command.exits import ExitStatus
from neurontools.command.lazy import command_app
from neurontools.command.options import Json, ProgramFile
from neurontools.command.output import report
from neurontools.memh.watching import ended, watched

if TYPE_CHECKING:
    from emulator.runtime import Result

SMALL = 512  # bytes of a partition below which a transfer has not half of its rate (machine.md 7)


class LintRow(NamedTuple):
    """One finding."""

    rule: Annotated[str, "of memcheck (oob, partitions, bank, ...), small-transfer or round-trip"]
    where: str
    message: str
    error: Annotated[bool, "whether it breaks a rule of the hardware; else it is slow"]


class Linted(NamedTuple):
    """The result of `memh lint`."""

    name: str
    findings: tuple[LintRow, ...]


def linted(file: Path, least: int, aside: bool) -> tuple[Linted, Result]:
    """Return what a program does wrong, or badly, with its memories, and the result of its run."""
    from emulator.checks.registry import make_checks  # deferred: start-up

    (memcheck,) = make_checks(["memcheck"])
    name, occupancy, result = watched(file, (memcheck,), aside=aside)
    rows = [LintRow(one.kind, _place(one), one.message, True) for one in memcheck.findings]
    for text, (shortest, size) in occupancy.small.items():
        if shortest < least:
            message = f"pieces of {shortest} bytes in a partition, {size:,} bytes in all; {least} reach half the rate"
            rows.append(LintRow("small-transfer", text, message, False))
    for trip in occupancy.trips:
        message = f"{trip.bytes:,} bytes were written to HBM by {trip.writer[:60]} and are read again"
        rows.append(LintRow("round-trip", trip.reader, message, False))
    return Linted(name, tuple(rows)), result


def _place(finding: object) -> str:
    site = getattr(finding, "site", None)
    return str(getattr(site, "where", site or ""))


def view(found: Linted) -> Iterator[str]:
    """Yield the text for people."""
    for row in found.findings:
        yield f"{'error' if row.error else 'slow'}: {row.rule}: {row.message}"
        if row.where:
            yield f"  at {row.where[:110]}"
    errors = sum(row.error for row in found.findings)
    yield f"{found.name}: {errors} broken rules, {len(found.findings) - errors} slow accesses  [machine.md 7]"


def lint(
    file: ProgramFile,
    least: Annotated[
        int, typer.Option("--small", metavar="BYTES", min=0, help="Pieces of a partition that are too short; 0: none.")
    ] = SMALL,
    strict: Annotated[bool, typer.Option("--strict", help="Slow accesses are findings too.")] = False,
    json: Json = False,
) -> None:
    """Find accesses that break the rules of a memory, and slow ones.

    Rules are those of memcheck: bounds, start partitions, banks, alignment, who reaches what.  Slow are short pieces of
    transfers and bytes that go through HBM and back.  Exit status 1: a rule is broken, with --strict also what is slow;
    5: the program faults or hangs.
    """
    with report("memh lint", json, file=file, small=least) as out:
        found, result = linted(file, least, json)
        out.result = found
        out.lines = lambda: view(found)
        out.status = ended(result, out)  # a run that faulted or hung is not clean, whatever was seen until then
        if any(row.error or strict for row in found.findings):
            out.status = ExitStatus.FINDING


app = command_app(lint, result=Linted)
