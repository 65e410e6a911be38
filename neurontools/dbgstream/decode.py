"""`neurontools dbgstream decode`: the events in a file of a debug stream."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from formats.named_tuple import NamedTuple
from neurontools.command.files import need_file
from neurontools.command.lazy import command_app
from neurontools.command.options import Json
from neurontools.command.output import folder_whole, report
from neurontools.dbgstream.events import EventRow, array_of, event_line, event_row
from neurontools.text.table import count

EventFile = Annotated[Path, typer.Argument(metavar="FILE", help="A file of events.", show_default=False)]


class Decoded(NamedTuple):
    """The result of `dbgstream decode`."""

    events: list[EventRow]
    saved: list[str]


def dbgstream_decode(
    file: EventFile,
    save: Annotated[
        Path | None,
        typer.Option("--save", metavar="DIR", help="Save each tensor there, as event-N.npy.", show_default=False),
    ] = None,
    json: Json = False,
) -> None:
    """Show the events in a file of a debug stream.

    Headers of 64 bytes, payloads of 1,024, and the tensor behind each, as the runtime's debug client gives them.
    """
    from formats.debug_stream_files import read_events  # deferred: start-up

    with report("dbgstream decode", json, file=file, save=save) as out:
        events = list(read_events(need_file(file).read_bytes(), str(file)))
        rows = [event_row(number, event) for number, event in enumerate(events, 1)]
        saved = []
        if save is not None:
            import numpy as np

            with folder_whole(save) as beside:
                for number, event in enumerate(events, 1):
                    array = array_of(event)
                    if array is not None:
                        # NumPy's files know no bfloat16 nor fp8: the values as fp32, which holds them all.
                        plain = array if array.dtype.kind in "fiub?" else array.astype(np.float32)
                        np.save(beside / f"event-{number}.npy", plain)
                        saved.append(f"event-{number}.npy")
        out.result = Decoded(rows, saved)
        out.lines = lambda: [*map(event_line, rows), count(len(rows), "event")]


app = command_app(dbgstream_decode, result=Decoded)
