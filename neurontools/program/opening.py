"""The one opener: whatever can be run, as a NEFF with inputs in a configuration."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from formats.named_tuple import NamedTuple
from formats.neff import open_neff
from formats.targets import resolve_target
from neurontools.command.files import need_file, read_text
from neurontools.program.configuration import USUAL, RunConfiguration
from neurontools.program.inputs import program_inputs
from neurontools.program.kinds import Kind, refuse_misplaced
from neurontools.program.launches import take_launch
from neurontools.program.recording import open_recording

if TYPE_CHECKING:
    import numpy.typing as npt

    from formats.neff import Neff
    from neurontools.program.recording import End

__all__ = ["Program", "open_program"]


class Program(NamedTuple):
    """A NEFF, its inputs and the configuration to run it in; `notes` are what to tell about them.

    `name` is a kernel's or the file's. `folders` are where source files are looked for. `end` is what the recorded run
    came to, where it was one, and `named_folders` are those that the recording names. `scheduled` builds a kernel once
    more, its operations scheduled.
    """

    name: str
    neff: Neff
    inputs: dict[str, npt.NDArray[Any]]
    configuration: RunConfiguration = USUAL
    kind: Kind = Kind.NEFF
    folders: tuple[Path, ...] = ()
    notes: tuple[str, ...] = ()
    end: End | None = None
    named_folders: tuple[Path, ...] = ()
    scheduled: Callable[[], Neff] | None = None


def open_program(
    file: Path, configuration: RunConfiguration, *, aside: bool = False, keeps_orders: bool = False
) -> Program:
    """Return the program that a file holds: a script's launch, a .s program, a NEFF, or a recorded run.

    `aside` sends what a script prints to standard error; `keeps_orders` is that of `Launches`. Raises BadParameter for
    an option that means nothing to the file, ScriptEndedError where a script fails before the launch, NotFoundError
    where it launches less often than that, InputError for inputs that do not fit, FormatError for what cannot be read
    or run.
    """
    kind = refuse_misplaced(file, configuration)
    if kind is Kind.RECORDING:
        return _recorded(file, configuration)
    if kind is Kind.SCRIPT:
        taken = take_launch(file, configuration, aside=aside, keeps_orders=keeps_orders)
        # The launch has been built: what chose its target and its cores chooses nothing more.
        rest = replace(configuration, target=None, lnc=None)
        return Program(taken.kernel, open_neff(taken.neff), taken.inputs, rest, kind, _folders_of(file),
                       scheduled=taken.scheduled)  # fmt: skip
    neff = _assembled(file, configuration.target) if kind is Kind.ASSEMBLY else open_neff(need_file(file))
    _check_fit(file, neff, configuration)
    inputs, notes = program_inputs(neff, configuration)
    return Program(file.name, neff, inputs, configuration, kind, (file.parent,), (*notes, *_inferred(neff)))


def _inferred(neff: Neff) -> Iterator[str]:
    """Yield what of a file runs by inference: one line of each kind, however many descriptors are of it."""
    from formats.neff.inferred import inferred_in_subgraph  # deferred: start-up

    places: dict[str, list[str]] = {}
    for part in chain.from_iterable(map(inferred_in_subgraph, neff.subgraphs)):
        places.setdefault(part.message, []).append(part.where)
    for message, found in places.items():
        yield f"{found[0]}{f' and {len(found) - 1} more' if found[1:] else ''}: {message}"


def _folders_of(script: Path) -> tuple[Path, ...]:
    """Return where the source files of a script are: beside it, and where it imports from."""
    return (script.parent, *(Path(folder) for folder in sys.path if os.path.isdir(folder)))


def _assembled(file: Path, target: str | None) -> Neff:
    from neurontools.assembly.assemble_neff import to_open_neff  # deferred: start-up
    from neurontools.assembly.assembler import parse_program  # deferred: start-up

    return to_open_neff(parse_program(read_text(file), str(file), target))


def _check_fit(file: Path, neff: Neff, configuration: RunConfiguration) -> None:
    """Refuse a target or a number of cores that the file was not made for."""
    target, lnc = configuration.target, configuration.lnc
    if target is not None and resolve_target(target).generation != neff.target.generation:
        raise typer.BadParameter(f"{file.name} is for {neff.target.name}, not {target}",
                                 param_hint=configuration.chosen()["target"])  # fmt: skip
    if lnc is not None and lnc != len(neff.subgraphs):
        raise typer.BadParameter(f"{file.name} was built for LNC {len(neff.subgraphs)}",
                                 param_hint=configuration.chosen()["lnc"])  # fmt: skip


def _recorded(file: Path, configuration: RunConfiguration) -> Program:
    recording = open_recording(file)
    options = {key: value for key, value in recording.options.items() if value is not None}
    return Program(recording.name, open_neff(recording.neff), recording.inputs, replace(configuration, **options),
                   Kind.RECORDING, (file.parent,), (), recording.end, recording.folders)  # fmt: skip
