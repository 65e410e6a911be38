"""`neurontools cc bench`: nccom-test's options, columns and JSON, on emulated ranks."""

from __future__ import annotations

import json as encoder
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from formats.errors import UnsupportedError
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
    ask,
    byte_count,
    operation_of,
    type_name,
)
from neurontools.cc.busbw import UNITS, Unit, bandwidths
from neurontools.cc.variable_sizes import VARIABLE, MetadataFile
from neurontools.command.exits import ExitStatus
from neurontools.command.lazy import command_app
from neurontools.command.options import Json, Seed
from neurontools.command.output import report, write_whole
from neurontools.text.progress import counting

if TYPE_CHECKING:
    from collections.abc import Sequence

_MOST_SIZES = 1000


class SizeRow(NamedTuple):
    """One size; the columns of nccom-test."""

    size: Annotated[int, "size(B)"]
    elements: Annotated[int, "count(elems)"]
    input_bytes: Annotated[int, "total_input_size(B)"]
    output_bytes: Annotated[int, "total_output_size(B)"]
    type: str
    times: Annotated[dict[str, float], "us, by statistic: avg, p50, ..."]
    algbw: float
    busbw: float
    algorithm: str
    measured: Annotated[int, "operations that count; the emulator repeats none of them: all take the same time"]
    passed: Annotated[bool | None, "result of --check; None without it"]


class Benched(NamedTuple):
    """The result of `cc bench`."""

    operation: str
    ranks: Annotated[int, "of one replica group"]
    groups: int
    unit: Annotated[str, "gb: 10^9 bytes, gib: 2^30 bytes"]
    rows: tuple[SizeRow, ...]
    average_busbw: float


def sizes_of(least: int, most: int, step: int | None, times: int | None) -> list[int]:
    """Return the sizes between two bounds, by a step or by a factor."""
    if most < least:
        raise typer.BadParameter(f"--maxbytes {most} is less than --minbytes {least}")
    found: list[int] = []
    size = least
    add = (most - least) // 10 if step is None else step
    while size <= most and len(found) <= _MOST_SIZES:
        found.append(size)
        if times is None and add == 0:
            break
        size = size * times if times is not None else size + add
    if len(found) > _MOST_SIZES:
        raise typer.BadParameter(f"more than {_MOST_SIZES} sizes")
    return found


def stats_of(texts: Sequence[str]) -> list[str]:
    """Return the statistics that are wanted: avg, or percentiles as p50."""
    wanted = [word for text in texts for word in text.split(",") if word] or ["avg"]
    for word in wanted:
        if word != "avg" and re.fullmatch(r"p(100|\d{1,2})", word, re.ASCII) is None:
            raise typer.BadParameter(f"{word!r} is no statistic: avg, p50, p99")
    return wanted


def checked(asked: Asked, kind: str, seed: int) -> bool:
    """Return whether the outputs are right: random data against the oracle, ones against the number of ranks."""
    import numpy as np

    from neurontools.cc.running import executed  # deferred: start-up
    from neurontools.cc.verify import verified  # deferred: start-up

    if kind == "random":
        found = verified(asked, seed, orders=1)
        return not found.wrong_ranks and not found.hangs
    outcome, _ = executed(asked, "ones", seed)
    sums = asked.requests[0].operation in ("allreduce", "reducescatter")
    golden = np.array(asked.requests[0].group.size if sums else 1).astype(asked.dtype)  # narrow integers wrap
    return not outcome.hangs and all((array == golden).all() for array in outcome.outputs.values())


def one_size(asked: Asked, stats: Sequence[str], unit: Unit, measured: int, passed: bool | None) -> SizeRow:
    """Return the row of one size: the time of its step lists."""
    from emulator.machine.collectives.run import timed  # deferred: start-up

    first, item = asked.requests[0], asked.dtype.itemsize
    time_ps, jobs = timed(asked.requests, item)
    size, ranks = first.elements * item, first.group.size
    micro = time_ps / 1e6
    algbw, busbw = bandwidths(first.operation, ranks, size, micro, unit)
    plan, rank = jobs[0].plan, first.group.ranks[0]
    name = first.algorithm if first.algorithm != "hier" else f"{first.inner}+{first.outer}"
    return SizeRow(size, first.elements, plan.inputs[rank] * item, plan.outputs[rank] * item, type_name(asked.dtype),
                   dict.fromkeys(stats, micro), algbw, busbw, name, measured, passed)  # fmt: skip


def view(found: Benched, algorithm: bool, sizes: bool) -> Iterator[str]:
    """Yield nccom-test's table."""
    names = list(found.rows[0].times) if found.rows else ["avg"]
    both = ["total_input_size(B)", "total_output_size(B)"] if sizes else []
    heads = ["size(B)", "count(elems)", *both, "type", *(f"time:{name}(us)" for name in names), "algbw(GB/s)",
             "busbw(GB/s)", *(["algorithm"] if algorithm else [])]  # fmt: skip
    lines = [heads]
    for row in found.rows:
        more = [str(row.input_bytes), str(row.output_bytes)] if sizes else []
        lines.append([
            str(row.size), str(row.elements), *more, row.type, *(f"{time:.2f}" for time in row.times.values()),
            f"{row.algbw:.2f}", f"{row.busbw:.2f}", *([row.algorithm] if algorithm else []),
        ])  # fmt: skip
    widths = [max(len(line[at]) for line in lines) for at in range(len(heads))]
    yield from ("    ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) for line in lines)
    yield f"Avg bus bandwidth:    {found.average_busbw:.4f} GB/s" + (" (2^30)" if found.unit == "gib" else "")
    bad = [row.size for row in found.rows if row.passed is False]
    if any(row.passed is not None for row in found.rows):
        yield f"check: {'FAILED at ' + ', '.join(map(str, bad)) + ' bytes' if bad else 'passed'}"


def bench(
    operation: OperationName,
    ranks: Ranks = None,
    nodes: Nodes = 1,
    least: Annotated[str, typer.Option("--minbytes", "-b", metavar="BYTES", help="First size.")] = "32M",
    most: Annotated[str, typer.Option("--maxbytes", "-e", metavar="BYTES", help="Last size.")] = "32M",
    step: Annotated[
        str | None, typer.Option("--stepbytes", "-i", metavar="BYTES", help="From size to size; a tenth of the way.")
    ] = None,
    times: Annotated[
        int | None, typer.Option("--stepfactor", "-f", metavar="N", min=2, help="From size to size, a factor.")
    ] = None,
    iters: Annotated[int, typer.Option("--iters", "-n", metavar="N", min=1, help="Measured operations.")] = 20,
    warmup: Annotated[
        int, typer.Option("--warmup_iters", "-w", metavar="N", min=0, help="Operations before those.")
    ] = 5,
    neff_iters: Annotated[
        int | None, typer.Option("--neff_iters", "-I", metavar="N", min=1, help="Measured runs of the NEFF.")
    ] = None,
    neff_warmup: Annotated[
        int | None, typer.Option("--neff_warmup_iters", "-W", metavar="N", min=0, help="Runs of it before those.")
    ] = None,
    dtype: DataType = "uint8",
    check: Annotated[
        str | None, typer.Option("--check", "-c", metavar="KIND", help="Compare the outputs: random or all_ones.")
    ] = None,
    seed: Seed = None,
    stats: Annotated[
        list[str] | None, typer.Option("--stats", "-t", metavar="LIST", help="avg, p50, ...; more than one by commas.")
    ] = None,
    json_file: Annotated[
        Path | None, typer.Option("--report-to-json-file", metavar="FILE", help="Write nccom-test's JSON.")
    ] = None,
    show_algorithm: Annotated[bool, typer.Option("--show-algorithm", help="A column with the algorithm.")] = False,
    show_sizes: Annotated[
        bool, typer.Option("--show-input-output-size", help="Columns with the sizes of input and output.")
    ] = False,
    unit: Annotated[
        str, typer.Option("--unit", metavar="UNIT", help="gb (10^9 bytes, as newer nccom-tests), gib (2^30, as older).")
    ] = "gb",
    instance: InstanceOption = "trn2.48xlarge",
    lnc: LncOption = None,
    algo: Algo = "auto",
    groups: GroupsFile = None,
    pairs: Pairs = None,
    metadata: MetadataFile = None,
    json: Json = False,
) -> None:
    """Time a collective over many sizes, with the options and columns of nccom-test.

    Times are those of the emulated step lists without what starts a run on a host; every operation takes the same, so
    that all percentiles are equal.  Exit status 1: --check found a wrong output.
    """
    if unit not in UNITS:
        raise typer.BadParameter(f"{unit!r} is none of {', '.join(UNITS)}", param_hint="--unit")
    if check not in (None, "random", "all_ones"):
        raise typer.BadParameter(f"{check!r} is none of random, all_ones", param_hint="--check")
    with report("cc bench", json, operation=operation, ranks=ranks, nodes=nodes, instance=instance) as out:
        if operation.strip().lower() in VARIABLE and metadata is None:
            raise UnsupportedError(f"{operation} without --variable-size-op-metadata: its sizes are not known")
        wanted, rows = stats_of(stats or []), []
        sizes = sizes_of(byte_count(least), byte_count(most), None if step is None else byte_count(step), times)
        measured = iters * (neff_iters or 1)
        with counting("bench", len(sizes), "size") as tick:
            for size in sizes:
                asked = ask(operation, size, instance=instance, nodes=nodes, lnc=lnc, ranks=ranks, algo=algo,
                            dtype=dtype, groups=groups, pairs=pairs, metadata=metadata)  # fmt: skip
                passed = None if check is None else checked(asked, check, seed or 0)
                rows.append(one_size(asked, wanted, "gib" if unit == "gib" else "gb", measured, passed))
                if tick is not None:
                    tick(size)
        mean = sum(row.busbw for row in rows) / max(1, len(rows))
        first = asked.requests[0]
        name = operation_of(operation)
        out.result = found = Benched(name, first.group.size, len(asked.requests), unit, tuple(rows), mean)
        out.lines = lambda: view(found, show_algorithm, show_sizes)
        if json_file is not None:
            with write_whole(json_file) as beside:
                beside.write_text(encoder.dumps({"results": [_nccom(row) for row in rows]}, indent=4) + "\n")
        if any(row.passed is False for row in rows):
            out.status = ExitStatus.FINDING
        if not warmup and neff_warmup:
            out.warn("no warm-up operations, but warm-up runs")


def _nccom(row: SizeRow) -> dict[str, object]:
    """Return a row under nccom-test's own keys."""
    times = {f"time:{name}(us)": time for name, time in row.times.items()}
    return {"size(B)": row.size, "count(elems)": row.elements, "type": row.type, **times, "algbw(GB/s)": row.algbw,
            "busbw(GB/s)": row.busbw, "algorithm": row.algorithm}  # fmt: skip


app = command_app(bench, result=Benched)
