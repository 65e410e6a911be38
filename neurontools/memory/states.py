"""Sessions that other processes published: where their files are, and which of them are meant."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from formats.errors import FormatError, NotFoundError

if TYPE_CHECKING:
    from emulator.runtime.ledger_state import MachineState

__all__ = ["Place", "find_states"]

Place = Annotated[
    Path | None,
    typer.Argument(
        metavar="[PLACE]",
        help="Folder of sessions, or the file of one; what NEURONTOOLS_MACHINE names unless given.",
        show_default=False,
    ),
]


def find_states(place: Path | None, *, ended: bool = False) -> list[MachineState]:
    """Return the sessions at a place, without those that have ended unless asked, or unless a file was named.

    Raises NotFoundError without a place or with no session there, FormatError for damaged files.
    """
    from emulator.runtime.ledger_state import FOLDER_VARIABLE, read_state  # deferred: start-up

    if place is None:
        named = os.environ.get(FOLDER_VARIABLE)
        if not named:
            raise NotFoundError(f"name a folder of sessions, or set {FOLDER_VARIABLE}")
        place = Path(named)
    if place.is_file():
        return [read_state(place)]
    if not place.is_dir():
        raise FileNotFoundError(2, "no such file or folder", str(place))
    found = []
    for path in sorted(place.glob("[!.]*.json")):  # with a dot, one that is being written
        try:
            state = read_state(path)
        except FileNotFoundError:
            continue  # its session replaced or removed it just now
        except FormatError as error:
            if error.field == "schema":
                continue  # another kind of file
            raise
        if ended or not state.ended:
            found.append(state)
    if not found:
        raise NotFoundError(f"no session in {place}; start one with {FOLDER_VARIABLE}={place}")
    return found
