"""`neurontools dbgstream record`: run a program, and write what it prints as events of a debug stream."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from formats.named_tuple import NamedTuple
from neurontools.command.files import need_place
from neurontools.command.lazy import command_app
from neurontools.command.options import Inputs, Json, LaunchNumber, Limit, MaxTime, ProgramFile, Seed, given
from neurontools.command.output import report, write_whole
from neurontools.dbgstream.events import EventRow, event_line, event_row
from neurontools.text.table import count

if TYPE_CHECKING:
    from emulator.debug_stream import Printed
    from formats.debug_events import DebugEvent


class RecordedEvents(NamedTuple):
    """The result of `dbgstream record`; `status` is the execution's."""

    status: str
    events: list[EventRow]
    bytes: int


def event_of(printed: Printed) -> DebugEvent:
    """Return what a program printed as an event."""
    import numpy as np

    from formats.debug_events import DebugEvent  # deferred: start-up

    values = np.ascontiguousarray(printed.values)
    return DebugEvent(printed.prefix, printed.core, 1, values.dtype.name, values.shape, values.tobytes())


def dbgstream_record(
    context: typer.Context,
    file: ProgramFile,
    out_file: Annotated[
        Path, typer.Option("--output", "-o", metavar="OUT", help="Where the events go.", show_default=False)
    ],
    launch: LaunchNumber = 1,
    inputs: Inputs = None,
    seed: Seed = None,
    limit_ps: Limit = None,
    max_seconds: MaxTime = None,
    json: Json = False,
) -> None:
    """Run a program on the emulator, and write what it prints as a debug stream.

    Of a script one launch runs.  The exit status is 5 when the execution faulted or hung; what it printed before is
    written.
    """
    from neurontools.command.uninterrupted import import_numpy  # deferred: start-up

    options = given(context)
    options.pop("out_file", None)
    with report("dbgstream record", json, file=file, output=out_file, seed=seed) as out:
        import_numpy()
        from formats.debug_stream_files import write_events  # deferred: start-up
        from neurontools.program.configuration import RunConfiguration  # deferred: start-up
        from neurontools.program.execution import execute, outcome  # deferred: start-up
        from neurontools.program.opening import open_program  # deferred: start-up

        need_place(out_file)
        configuration = RunConfiguration(launch=launch, inputs=inputs, seed=seed, limit_ps=limit_ps,
                                         max_seconds=max_seconds, given=options)  # fmt: skip
        program = open_program(file, configuration, aside=json)
        out.warn(*program.notes)
        made = execute(program.name, program.neff, program.inputs, program.configuration, folders=program.folders)
        events = [event_of(one) for one in made.result.prints]
        # Written at the end: a program that is refused half-way leaves no file that looks whole.
        data = b"".join(write_events(events))
        with write_whole(out_file) as beside:
            beside.write_bytes(data)
        rows = [event_row(number, event) for number, event in enumerate(events, 1)]
        out.result = RecordedEvents(made.result.status.name, rows, len(data))
        out.status = outcome(made.result)
        out.lines = lambda: [*map(event_line, rows), f"{count(len(rows), 'event')}, {made.result.status.name}"]


app = command_app(dbgstream_record, result=RecordedEvents)
