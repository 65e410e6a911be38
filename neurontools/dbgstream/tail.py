"""`neurontools dbgstream tail`: the events of a file that is still being written."""

from __future__ import annotations

from contextlib import suppress
from time import monotonic, sleep
from typing import Annotated

import typer

from formats.named_tuple import NamedTuple
from neurontools.command.files import need_file
from neurontools.command.lazy import command_app
from neurontools.command.options import Json
from neurontools.command.output import report
from neurontools.dbgstream.decode import EventFile
from neurontools.dbgstream.events import EventRow, event_line, event_row
from neurontools.text.visible import printable

_CHUNK = 1 << 20


class Tailed(NamedTuple):
    """The result of `dbgstream tail`; `waiting` are bytes of an event that had only begun."""

    events: list[EventRow]
    waiting: int


def dbgstream_tail(
    file: EventFile,
    period: Annotated[float, typer.Option("--period", metavar="S", min=0.01, help="Seconds between two looks.")] = 0.2,
    seconds: Annotated[float, typer.Option("--for", metavar="S", min=0, help="End after so long; 0: never.")] = 0,
    json: Json = False,
) -> None:
    """Show the events of a debug stream as they are written to a file.

    Ends when it is interrupted, or after the time that --for gives; --json needs that time.
    """
    from formats.debug_stream_files import EventReader  # deferred: start-up

    with report("dbgstream tail", json, file=file) as out:
        if json and not seconds:
            raise typer.BadParameter("--json needs a time to end", param_hint="--for")
        reader = EventReader(str(file))
        rows: list[EventRow] = []
        out.streamed = not json
        began = monotonic()
        with suppress(KeyboardInterrupt), need_file(file).open("rb") as stream:
            while True:
                # All that is there before the next pause: a writer may be faster than the period.
                while data := stream.read(_CHUNK):
                    for event in reader.feed(data):
                        rows.append(event_row(len(rows) + 1, event))
                        if not json:
                            print(printable(event_line(rows[-1])), flush=True)
                if seconds and monotonic() - began >= seconds:
                    break
                sleep(period)
        out.result = Tailed(rows, reader.waiting)


app = command_app(dbgstream_tail, result=Tailed)
