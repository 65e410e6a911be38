"""`neurontools cc schedule`: collectives that ranks call in their own order, and deadlocks among them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from formats.errors import FormatError, NeuronError
from formats.named_tuple import NamedTuple
from formats.nrt.environment import parse_cpus
from formats.nrt.status import NrtStatus
from neurontools.cc.asking import InstanceOption, LncOption, Nodes, byte_count, dtype_of, operation_of
from neurontools.command.exits import ExitStatus
from neurontools.command.files import read_text
from neurontools.command.lazy import command_app
from neurontools.command.options import Json
from neurontools.command.output import report
from neurontools.text.table import duration, ranges, table

if TYPE_CHECKING:
    from emulator.machine.collectives.schedule import Call

_LINE = re.compile(
    r"(?P<ranks>[\d,\- ]+):\s*(?P<op>\w+)\s+(?P<size>\w+)(?:\s+over\s+(?P<group>[\d,\-]+))?"
    r"(?:\s+stream\s+(?P<stream>\d))?(?:\s+as\s+(?P<dtype>\w+))?",
    re.ASCII,
)
_MOST = 100_000  # calls of all ranks


class CallRow(NamedTuple):
    """One collective."""

    lines: tuple[int, ...]
    operation: str
    algorithm: str
    ranks: tuple[int, ...]
    stream: int
    start_ns: float | None
    end_ns: Annotated[float | None, "None where it does not end"]


class WaitRow(NamedTuple):
    """One link of the chain."""

    rank: int
    line: int
    sentence: str


class StuckRow(NamedTuple):
    """Why it does not end."""

    cause: Annotated[str, "order or missing"]
    ranks: tuple[int, ...]
    lines: tuple[int, ...]
    sentence: str
    chain: tuple[WaitRow, ...]
    status: Annotated[int, "what the Neuron runtime returns"]


class Scheduled(NamedTuple):
    """The result of `cc schedule`."""

    file: str
    time_ns: float
    calls: tuple[CallRow, ...]
    mismatches: Annotated[tuple[str, ...], "calls that meet and are not the same; nothing runs then"]
    stuck: StuckRow | None


def numbers(text: str) -> tuple[int, ...]:
    """Return the numbers of a list such as 0-3,8; ValueError for anything else."""
    found = parse_cpus(text.replace(" ", ""))
    if found is None:
        raise ValueError(f"{text[:40]!r} is no list of numbers such as 0-3,8")
    return tuple(dict.fromkeys(found))


def parsed(path: Path, world: int) -> list[Call]:
    """Return the calls of a file; FormatError with the line that is none."""
    from emulator.machine.collectives.schedule import MAX_STREAMS, Call  # deferred: start-up

    calls: list[Call] = []
    total = 0
    for number, line in enumerate(read_text(path).splitlines(), 1):
        text = line.split("#")[0].strip()
        if not text:
            continue
        match = _LINE.fullmatch(text)
        where = f"line {number}"
        if match is None:
            raise FormatError(
                "no call", path=str(path), field=where, expected="RANKS: OP SIZE [over RANKS] [stream N] [as T]"
            )
        try:
            ranks = numbers(match["ranks"])
            group = numbers(match["group"]) if match["group"] else tuple(range(world))
            operation, size = operation_of(match["op"]), byte_count(match["size"])
            item = dtype_of(match["dtype"] or "uint8").itemsize
        except (ValueError, typer.BadParameter, NeuronError) as error:
            raise FormatError(f"no call: {error}"[:160], path=str(path), field=where) from None
        stream = int(match["stream"] or 0)
        if stream >= MAX_STREAMS:
            raise FormatError(
                "no such stream", path=str(path), field=where, expected=f"0 to {MAX_STREAMS - 1}", got=stream
            )
        total += len(ranks)
        if total > _MOST:
            raise FormatError("too many calls", path=str(path), expected=f"at most {_MOST:,}")
        calls.append(Call(number, ranks, operation, size, item, group, stream))
    if not calls:
        raise FormatError("no calls", path=str(path), expected="lines such as 0-3: allr 64kb over 0-3")
    return calls


def scheduled(path: Path, instance: str, nodes: int, lnc: int | None) -> Scheduled:
    """Return what comes of the calls of a file."""
    from emulator.machine.collectives.schedule import mismatches, run_schedule  # deferred: start-up
    from emulator.machine.machine import Machine  # deferred: start-up

    machine = Machine(instance, nodes=nodes, lnc=lnc)
    calls = parsed(path, machine.ranks)
    wrong = tuple(mismatches(calls))
    # Ranks that call different things have no common plan that could be run.
    if wrong:
        return Scheduled(str(path), 0.0, (), wrong, None)
    ended = run_schedule(machine, calls)
    rows = tuple(
        CallRow(one.lines, one.operation, one.algorithm, one.ranks, one.stream, _ns(one.start_ps), _ns(one.end_ps))
        for one in ended.met
    )
    stuck = ended.stuck
    row = None if stuck is None else StuckRow(stuck.cause, stuck.ranks, stuck.lines, stuck.sentence,
                                              tuple(WaitRow(*one) for one in stuck.chain), stuck.status)  # fmt: skip
    return Scheduled(str(path), ended.time_ps / 1000, rows, (), row)


def _ns(time_ps: int | None) -> float | None:
    return None if time_ps is None else time_ps / 1000


def view(found: Scheduled) -> Iterator[str]:
    """Yield the text for people."""
    for text in found.mismatches:
        yield f"mismatch: {text}"
    if found.mismatches:
        return
    rows = [[ranges(row.lines), row.operation, row.algorithm, ranges(row.ranks), row.stream, _time(row.start_ns),
             _time(row.end_ns)] for row in found.calls]  # fmt: skip
    yield from table(["lines", "operation", "algorithm", "ranks", "stream", "start", "end"], rows)
    yield f"{'stopped' if found.stuck else 'ended'} after {duration(int(found.time_ns * 1000))}"
    if found.stuck is not None:
        yield f"deadlock: {found.stuck.sentence}"
        yield from (f"  rank {one.rank}, line {one.line}: {one.sentence}" for one in found.stuck.chain[:12])
        yield f"  status {NrtStatus(found.stuck.status).name} ({found.stuck.status}), what the Neuron runtime returns"


def _time(value: float | None) -> str:
    return "-" if value is None else duration(int(value * 1000))


def schedule(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Calls, a line each.", show_default=False)],
    instance: InstanceOption = "trn2.48xlarge",
    nodes: Nodes = 1,
    lnc: LncOption = None,
    json: Json = False,
) -> None:
    """Run collectives that ranks call in their own order, and explain deadlocks among them.

    A line is "RANKS: OP SIZE [over RANKS] [stream N] [as TYPE]"; each rank calls in the order of the lines, and streams
    (0 to 3) go on beside each other.  Exit status 5: not all end; 1: calls that meet are not the same.
    """
    with report("cc schedule", json, file=file, instance=instance, nodes=nodes, lnc=lnc) as out:
        out.result = found = scheduled(file, instance, nodes, lnc)
        out.lines = lambda: view(found)
        if found.mismatches:
            out.status = ExitStatus.FINDING
        elif found.stuck is not None:
            out.status = ExitStatus.FAULT


app = command_app(schedule, result=Scheduled)
