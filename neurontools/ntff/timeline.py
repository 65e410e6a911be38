"""`neurontools ntff timeline`: time by engine and queue, beside the emulator's."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from formats.named_tuple import NamedTuple
from neurontools.command.lazy import command_app
from neurontools.command.options import Json
from neurontools.command.output import report
from neurontools.ntff.arguments import CoreNumber, NtffFile
from neurontools.ntff.rows import Comparison, CoreActivity
from neurontools.text.table import bold, bytes_text, duration, table


class CapturedTime(NamedTuple):
    """The result of `ntff timeline`."""

    program_ns: float
    cores: list[CoreActivity]
    name: str
    target: str
    emulated: Annotated[Comparison | None, "null where no NEFF is named"]


def view(found: CapturedTime) -> list[str]:
    """Return the time by engine and queue for people."""
    lines = [bold(f"{found.name} on {found.target}: {_time(found.program_ns)} (captured)")]
    for core in found.cores:
        lines += ["", bold(f"core {core.core}, {core.name}: {_time(core.program_ns)}")]
        engines = [(one.engine, one.words, _time(one.active_ns), f"{one.active_percent:.1f}") for one in core.engines]
        lines += table(("engine", "words", "active", "active %"), engines)
        if core.queues:
            queues = [(one.queue, one.packets, bytes_text(one.bytes), _time(one.active_ns)) for one in core.queues]
            lines += ["", *table(("queue", "packets", "moved", "active"), queues)]
    return lines if found.emulated is None else [*lines, "", *_side_by_side(found.emulated)]


def _side_by_side(found: Comparison) -> list[str]:
    rows = [("program", "", _time(found.captured_ns), _time(found.emulated_ns), _ratio(found.ratio))]
    rows += [(one.core, one.engine, _time(one.captured_ns), _time(one.emulated_ns), _ratio(one.ratio))
             for one in found.engines if one.captured_ns or one.emulated_ns]  # fmt: skip
    title = bold("beside the emulator") + ("" if found.outcome == "finished" else f", which ended: {found.outcome}")
    return [title, *table(("core", "engine", "captured", "emulated", "ratio"), rows)]


def _time(nanoseconds: float) -> str:
    return duration(round(nanoseconds * 1000))


def _ratio(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def timeline(
    file: NtffFile,
    core: CoreNumber = None,
    neff: Annotated[
        Path | None,
        typer.Option("--neff", metavar="FILE", help="The NEFF that was captured: run it on the emulator and compare.",
                     show_default=False),
    ] = None,
    inputs: Annotated[
        str | None,
        typer.Option("--inputs", metavar="FILE", help="Inputs of the NEFF by name (.npz), or zeros, or random or "
                     "random:SEED; needed only where data decides what runs.", show_default=False),
    ] = None,
    json: Json = False,
) -> None:  # fmt: skip
    """Show where the time went, beside the emulator's run.

    Counted are the compiler's words; an engine is active while one of them other than EVENT_SEMAPHORE runs, and the
    program lasts from its first word's begin to its last word's end. Ratios are emulated over captured time.
    """
    with report("ntff timeline", json, file=file, core=core, neff=neff, inputs=inputs) as out:
        from neurontools.command.uninterrupted import import_numpy  # deferred: start-up

        import_numpy()
        from neurontools.ntff.activity import captured, compared  # deferred: start-up
        from neurontools.ntff.capture import open_pair  # deferred: start-up
        from neurontools.program.configuration import RunConfiguration  # deferred: start-up
        from neurontools.program.inputs import program_inputs  # deferred: start-up

        if inputs is not None and neff is None:
            raise typer.BadParameter("are of a NEFF: give it with --neff", param_hint="--inputs")
        ntff, program, odd = open_pair(file, neff)
        out.warn(*odd)
        real = captured(ntff, core)
        beside = None
        if program is not None:
            values, notes = (None, ()) if inputs is None else program_inputs(program, RunConfiguration(inputs=inputs))
            out.warn(*notes)
            beside = compared(real, program, values)
        found = CapturedTime(*real, ntff.name, ntff.target.name, beside)
        out.result = found
        out.lines = lambda: view(found)


app = command_app(timeline, result=CapturedTime)
