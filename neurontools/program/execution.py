"""One execution of a program on the emulator, dumped and recorded where the configuration asks for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from formats.named_tuple import NamedTuple
from neurontools.command.exits import ExitStatus
from neurontools.dump.wanted import dump_observers
from neurontools.program.configuration import RunConfiguration
from neurontools.program.interruption import interruptible

if TYPE_CHECKING:
    import numpy.typing as npt

    from emulator.device import Device
    from emulator.runtime import Result
    from formats.neff import Neff

__all__ = ["Execution", "execute", "numbered", "outcome"]


class Execution(NamedTuple):
    """What came of one execution: `dump` is the folder of its dump, `notes` what its collector had to say."""

    name: str
    result: Result
    dump: str | None = None
    notes: tuple[str, ...] = ()


def execute(
    name: str,
    neff: Neff | bytes,
    inputs: Mapping[str, npt.NDArray[Any]],
    configuration: RunConfiguration,
    *,
    number: int = 1,
    folders: tuple[Path, ...] = (),
    progress: Callable[[Device], None] | None = None,
) -> Execution:
    """Run a program once; faults and hangs are values of the result.

    `number` counts the launches of a script; their recordings are numbered from the second one on. `folders` are where
    source files are looked for when the recording is opened.
    """
    from emulator import runtime  # deferred: start-up

    dumpers = dump_observers(name, configuration.dump_dir)
    watchers: list[Any] = [*dumpers]
    if configuration.record is not None:
        from neurontools.program.recording import RecordingObserver  # deferred: start-up

        path = numbered(configuration.record, number)
        watchers.append(RecordingObserver(path, name, neff, inputs, configuration, folders))
    result = runtime.execute(neff, inputs, configuration.bounded().settings(), checks=configuration.checks,
                             observers=watchers, progress=progress, guard=interruptible)  # fmt: skip
    directory = next((dumper.directory for dumper in dumpers), None)
    return Execution(name, result, directory, tuple(note for dumper in dumpers for note in dumper.notes))


def numbered(path: Path, number: int) -> Path:
    """Return the path of the file that belongs to a launch: the first one has the name as it is."""
    return path if number == 1 else path.with_stem(f"{path.stem}-{number}")


def outcome(result: Result) -> ExitStatus:
    """Return the exit status of an execution; a word that is not modelled is no fault of the program."""
    if result.fault is not None:
        # a limit of the emulator is no failure of the program
        return ExitStatus.UNSUPPORTED if result.fault.kind == "unsupported" else ExitStatus.FAULT
    if result.hang is None:
        return ExitStatus.OK
    return ExitStatus.INTERRUPTED if result.hang.reason == "interrupted" else ExitStatus.FAULT
