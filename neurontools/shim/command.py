"""`neurontools shim`: a folder that programs of the Neuron SDK find in the place of AWS's."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path
from typing import Annotated

import typer

from formats.named_tuple import NamedTuple
from formats.whole_files import naming, passing_folder
from neurontools.command.files import need_folder
from neurontools.command.lazy import command_app
from neurontools.command.options import Json
from neurontools.command.output import report
from neurontools.shim.writers import WRITERS, Writer


class Part(NamedTuple):
    """One part that was written."""

    name: str
    file: str
    summary: str
    notes: list[str]


class Shim(NamedTuple):
    """The result of `shim`."""

    folder: str
    parts: list[Part]
    environment: Annotated[dict[str, str], "Variables that make programs find the parts."]


def write_parts(folder: Path, writers: tuple[Writer, ...]) -> list[Part]:
    """Write parts into a folder; each file is there whole, or as it was."""
    parts = []
    for writer in writers:
        with passing_folder("shim", folder) as beside:
            try:
                notes = writer.write(beside)
            except OSError as error:  # it names what stands in for the part, or where it was copied from
                raise naming(error, folder, str(folder / writer.file)) from None
            for made in sorted(beside.iterdir()):
                place = folder / made.name
                if place.is_dir() and not place.is_symlink():
                    shutil.rmtree(place)
                made.replace(place)
        parts.append(Part(writer.name, str(folder / writer.file), writer.summary, notes))
    return parts


def shim(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Where to; made where it is not.", show_default=False)],
    only: Annotated[
        str | None,
        typer.Option("--only", metavar="NAME", help="Write one part: " + ", ".join(w.name for w in WRITERS) + "."),
    ] = None,
    json: Json = False,
) -> None:
    """Write stand-ins for parts of the Neuron SDK into a folder.

    neuronx-cc is the compiler's command: `neuronx-cc compile`, `list-operators` and `--version` do what
    `neurontools compile` does; every other command of the real one is refused.
    libnrt.so.1 is the Neuron runtime's C interface over the emulator: programs that link it, such as nkipy's spike, run
    on emulated devices.  It is compiled here, for the Python that runs this, and needs a C compiler and cffi, which the
    extra `nrt` brings.  Files of the same names are replaced; others in the folder stay.
    """
    with report("shim", json, folder=folder) as out:
        chosen = tuple(writer for writer in WRITERS if only in (None, writer.name))
        if not chosen:
            raise typer.BadParameter(f"{only!r} is none of {', '.join(w.name for w in WRITERS)}", param_hint="--only")
        need_folder(folder.absolute().parent)
        folder.mkdir(exist_ok=True)
        place = folder.absolute()
        parts = write_parts(place, chosen)
        environment = {"LD_LIBRARY_PATH": str(place), "PATH": str(place)}
        out.result = Shim(str(folder), parts, environment)
        out.lines = lambda: [
            *(f"{part.file}: {part.summary}" for part in parts),
            *(f"note: {note}" for part in parts for note in part.notes),
            f"export {' '.join(f'{name}={shlex.quote(value)}:${name}' for name, value in environment.items())}",
        ]


app = command_app(shim, result=Shim)
