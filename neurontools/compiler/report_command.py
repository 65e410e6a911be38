"""`neurontools compile report`: operations, what they became and cost; casts and their error; the critical path."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from neurontools.command.lazy import command_app
from neurontools.command.options import Json, NeffFile
from neurontools.command.output import Report, report
from neurontools.compiler.reporting import CompileReport, short_file
from neurontools.text.table import bold, bytes_text, count, table

_RANDOM = "random"


def view(found: CompileReport, top: int) -> Iterator[str]:
    """Return the report for people."""
    yield bold(f"{found.program}: {found.target}, {found.total_ns / 1000:,.3f} us")
    yield (f"{count(len(found.operations), 'operation')} with instructions, {found.without} without; tiles up to "
           f"{bytes_text(found.sbuf_bytes)} a partition of SBUF, {bytes_text(found.psum_bytes)} of PSUM")  # fmt: skip
    ranked = sorted(found.operations, key=lambda one: (-one.critical_ns, -one.busy_ns))
    rows = [
        [f"%{one.name}", one.opcode, one.type, short_file(one.source),
         "  ".join(f"{engine} {number}" for engine, number in one.words.items()), one.transfers or None,
         bytes_text(one.bytes) if one.bytes else None, f"{one.busy_ns:,.0f}", f"{one.critical_ns:,.0f}",
         f"{one.begin_ns:,.0f}-{one.end_ns:,.0f}"]
        for one in ranked[:top]
    ]  # fmt: skip
    yield from table(["operation", "opcode", "type", "source", "instructions", "transfers", "moved", "busy ns",
                      "critical ns", "from-to ns"], rows)  # fmt: skip
    if len(ranked) > top:
        yield f"{len(ranked) - top} more; --top shows them"
    yield bold("critical path")
    for share in found.critical[:top]:
        kinds = ", ".join(f"{kind} {ns:,.0f}" for kind, ns in list(share.kinds.items())[:3])
        name = f"%{share.name}" if share.name else "none"
        yield f"  {share.percent:6.2f} %  {share.ns:>12,.0f} ns  {name}  ({kinds})"
    yield bold(f"through device memory: {count(len(found.stored), 'value')}, {bytes_text(found.stored_bytes)}")
    for value in found.stored[:top]:
        yield f"  %{value.name}  {bytes_text(value.bytes)}  {short_file(value.source)}"
    if found.casts:
        yield bold("casts")
        yield from table(["operation", "opcode", "source", "operands", "largest error", "of the largest element"], [
            [f"%{one.name}", one.opcode, short_file(one.source), one.target,
             None if one.max_abs is None else f"{one.max_abs:.3g}",
             None if one.relative is None else f"{one.relative:.2e}"]
            for one in found.casts
        ])  # fmt: skip


def report_graph(
    file: NeffFile,
    inputs: Annotated[
        str, typer.Option("--inputs", metavar="FILE|random[:SEED]", help="The inputs to run with (.npz), or random.")
    ] = _RANDOM,
    top: Annotated[int, typer.Option("--top", metavar="N", min=1, help="Rows that the text shows of each part.")] = 20,
    json: Json = False,
) -> None:
    """Show what a compiled graph costs: casts, operations, instructions, bytes, time, the critical path.

    The file runs on the emulator. Each operation of the graph has its instructions by engine, the bytes that its
    transfers wrote, the time that engines were busy with it, and its part of the critical path, which takes exactly as
    long as the run. Values that went through device memory are listed. Of operations whose operands --auto-cast
    rounded, the error is how far the result lies from what the reference interpreter makes of unrounded operands.
    """
    with report("compile report", json, file=file, inputs=inputs) as out:
        from neurontools.command.uninterrupted import import_numpy  # deferred: start-up

        import_numpy()
        found = reported(file, inputs, out)
        out.result = found
        out.lines = lambda: view(found, top)


def reported(file: Path, inputs: str, out: Report) -> CompileReport:
    """Run a file and return its report."""
    from emulator.timeline.measure import measure  # deferred: start-up
    from neurontools.compiler.reporting import cast_costs, report_of  # deferred: start-up
    from neurontools.debugger.opening import session_of  # deferred: start-up
    from neurontools.profile.rows import Timeline  # deferred: start-up
    from neurontools.program.configuration import RunConfiguration  # deferred: start-up
    from neurontools.program.interruption import interruptible  # deferred: start-up
    from neurontools.program.opening import open_program  # deferred: start-up
    from neurontools.text.progress import progress  # deferred: start-up

    program = open_program(file, RunConfiguration(inputs=inputs, timing=True))
    out.warn(*program.notes)
    with progress(program.name) as tick:
        measured = measure(program.neff, program.inputs, progress=tick, guard=interruptible,
                           settings=program.configuration.settings())  # fmt: skip
    if measured.device.outcome != "finished":
        out.warn(f"the execution ended with a {measured.device.outcome}; what is shown led up to it")
    return report_of(Timeline(measured), program.name, cast_costs(session_of(program)))


app = command_app(report_graph, result=CompileReport)
