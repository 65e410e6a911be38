"""`neurontools cc bench-parse`: real output of nccom-test beside the model."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from formats.named_tuple import NamedTuple
from neurontools.cc.asking import InstanceOption, LncOption, Nodes, Ranks, ask, operation_of
from neurontools.cc.busbw import bandwidths
from neurontools.cc.parsing import Sample, read_output
from neurontools.cc.published import Validation, page, validated
from neurontools.command.exits import ExitStatus
from neurontools.command.lazy import command_app
from neurontools.command.options import Json
from neurontools.command.output import report, write_whole
from neurontools.text.table import table


class ParsedRow(NamedTuple):
    """One measured row and the model's time."""

    size: int
    dtype: str
    measured_us: float
    modelled_us: Annotated[float, "of the step lists alone, without the start of the run"]
    ratio: Annotated[float, "measured to modelled"]
    algorithm: Annotated[str | None, "as measured; None where the output does not say"]
    modelled_algorithm: str
    unit: Annotated[str | None, "gb or gib, by the printed bandwidth; None where it fits neither"]
    busbw_right: Annotated[bool | None, "whether busbw is algbw times the factor; None below 0.1 GB/s"]


class Parsed(NamedTuple):
    """One table of the output."""

    operation: str
    ranks: int
    nodes: int
    rows: tuple[ParsedRow, ...]


class Tables(NamedTuple):
    """The result of `cc bench-parse FILE`."""

    file: str
    tables: tuple[Parsed, ...]


def parsed(path: Path, operation: str | None, ranks: int | None, nodes: int, instance: str, lnc: int | None) -> Tables:
    """Return the tables of a file with the model's times."""
    return Tables(str(path), tuple(_table(one, operation, ranks, nodes, instance, lnc) for one in read_output(path)))


def _table(
    sample: Sample, operation: str | None, ranks: int | None, nodes: int, instance: str, lnc: int | None
) -> Parsed:
    name, count = operation or sample.operation, ranks or sample.ranks
    if name is None or count is None:
        raise typer.BadParameter("the output does not say operation and ranks: give --op and --ranks")
    many = nodes if nodes > 1 else sample.nodes or 1
    rows = []
    for row in sample.rows:
        from emulator.machine.collectives.run import timed  # deferred: start-up

        asked = ask(name, row.size, instance=instance, nodes=many, lnc=lnc, ranks=count, dtype=row.dtype)
        time_ps, _ = timed(asked.requests, asked.dtype.itemsize)
        model, one = time_ps / 1e6, asked.requests[0]
        unit = next((unit for unit in ("gb", "gib") if row.algbw >= 0.1 and
                     abs(bandwidths(one.operation, count, row.size, row.time_us, unit)[0] - row.algbw)
                     <= 0.006 + 0.004 * row.algbw), None)  # fmt: skip
        factor = bandwidths(one.operation, count, row.size, row.time_us, "gb")
        right = None
        if row.algbw >= 0.1 and factor[0]:
            right = abs(row.algbw * factor[1] / factor[0] - row.busbw) <= 0.02 * row.busbw + 0.01
        algorithm = one.algorithm if one.algorithm != "hier" else f"{one.inner}+{one.outer}"
        rows.append(ParsedRow(row.size, row.dtype, row.time_us, model, row.time_us / model if model else 0.0,
                              row.algorithm, algorithm, unit, right))  # fmt: skip
    return Parsed(operation_of(name), count, many, tuple(rows))


def view(found: Tables) -> Iterator[str]:
    """Yield the text for people."""
    for one in found.tables:
        yield f"{one.operation}, {one.ranks} ranks" + (f" on {one.nodes} nodes" if one.nodes > 1 else "")
        rows = [[row.size, row.dtype, f"{row.measured_us:,.2f}", f"{row.modelled_us:,.2f}", f"{row.ratio:.2f}",
                 row.algorithm, row.modelled_algorithm, row.unit,
                 None if row.busbw_right is None else "right" if row.busbw_right else "WRONG"]
                for row in one.rows]  # fmt: skip
        yield from table(
            ["size(B)", "type", "measured us", "model us", "ratio", "algorithm", "model's", "unit", "busbw"], rows
        )
    yield "model: step lists alone, without what starts a run  [machine.md 3, collectives.md 11]"


def validation_view(found: Validation) -> Iterator[str]:
    """Yield the summary of the published rows."""
    rows = [[one.name, one.operation, one.instance, one.nodes, one.ranks, f"{one.start_us:,.1f}", f"{one.slower:.2f}",
             f"{one.median_error:.1%}"] for one in found.series]  # fmt: skip
    yield from table(["series", "operation", "instance", "nodes", "ranks", "start us", "slower", "median error"], rows)
    yield f"{found.held_out} rows held out, median error {found.median_error:.1%}  [collectives.md 11]"


def bench_parse(
    file: Annotated[
        Path | None, typer.Argument(metavar="FILE", help="Output of nccom-test, text or JSON.", show_default=False)
    ] = None,
    operation: Annotated[
        str | None, typer.Option("--op", metavar="OP", help="Operation, where the output has no command line.")
    ] = None,
    ranks: Ranks = None,
    nodes: Nodes = 1,
    instance: InstanceOption = "trn2.48xlarge",
    lnc: LncOption = None,
    published: Annotated[
        bool, typer.Option("--published", help="Compare the rows of the documentation instead of a file.")
    ] = False,
    write: Annotated[
        Path | None, typer.Option("--write", metavar="FILE", help="Write that comparison as a page.")
    ] = None,
    json: Json = False,
) -> None:
    """Compare real output of nccom-test with the model, row by row.

    Says which unit the bandwidths have (10^9 or 2^30 bytes) and whether bus bandwidths are right.  Exit status 1: a bus
    bandwidth is not what the operation and the ranks give.
    """
    with report("cc bench-parse", json, file=file, operation=operation, ranks=ranks, nodes=nodes) as out:
        if write is not None and not published:
            raise typer.BadParameter("goes with --published", param_hint="'--write'")
        if published and file is not None:
            raise typer.BadParameter("a FILE, or --published")
        if published:
            out.result = every = validated()
            out.lines = lambda: validation_view(every)
            if write is not None:
                with write_whole(write) as beside:
                    beside.write_text("\n".join(page(every)) + "\n", encoding="utf-8")
            return
        if file is None:
            raise typer.BadParameter("a FILE, or --published")
        out.result = found = parsed(file, operation, ranks, nodes, instance, lnc)
        out.lines = lambda: view(found)
        if any(row.busbw_right is False for one in found.tables for row in one.rows):
            out.status = ExitStatus.FINDING


app = command_app(bench_parse, result=Tables | Validation)
