"""The launches of a script: how its kernels are run, and where one of them is taken over."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from formats.errors import NotFoundError
from formats.named_tuple import NamedTuple
from formats.targets import resolve_target
from neurontools.command.exits import ScriptEndedError
from neurontools.program.configuration import RunConfiguration
from neurontools.program.execution import Execution, execute
from neurontools.program.interruption import Interrupted, was_interrupted
from neurontools.program.script import run_script

if TYPE_CHECKING:
    from formats.neff import Neff

__all__ = ["Launch", "Launches", "Taken", "current", "run_launches", "stand", "take_launch", "using"]

_OUTSIDE = RunConfiguration(timing=False)  # of kernels that are called in a process without a command of ours


class Launch(NamedTuple):
    """One launch: the file that was built for it, as it was handed over, and what came of running it."""

    file: Neff | bytes
    made: Execution

    @property
    def neff(self) -> bytes:
        """Return the bytes of the file, which one that was just built has once they are asked for."""
        return self.file if isinstance(self.file, bytes) else self.file.to_bytes()


@dataclass
class Launches:
    """The configuration of every launch, and what came of each so far.

    `before` is called with name, file and inputs in front of each run, and may raise to take the launch over;
    `after` is called when it is through, before a fault is raised. With `keeps_orders` what builds the launch at hand
    once more, its operations scheduled, is `scheduled`.
    """

    configuration: RunConfiguration = _OUTSIDE
    before: Callable[[str, Neff | bytes, Mapping[str, Any]], None] | None = None
    after: Callable[[Launch], None] | None = None
    folders: tuple[Path, ...] = ()
    keeps_orders: bool = False
    scheduled: Callable[[], Neff] | None = None
    done: list[Launch] = field(default_factory=list)

    def run(self, name: str, neff: Neff | bytes, inputs: Mapping[str, Any]) -> Execution:
        """Run one launch."""
        if self.before is not None:
            self.before(name, neff, inputs)
        # The launch has been built: what chose its target and its cores chooses nothing more.
        rest = replace(self.configuration, target=None, lnc=None)
        made = execute(name, neff, inputs, rest, number=len(self.done) + 1, folders=self.folders)
        if self.done:  # of all but the last the bytes are enough: a file that was just built holds its traces
            self.done[-1] = self.done[-1]._replace(file=self.done[-1].neff)
        launch = Launch(neff, made)
        self.done.append(launch)
        if self.after is not None:
            self.after(launch)
        if was_interrupted(made.result):
            raise Interrupted
        return made


_current: Launches | None = None


def current() -> Launches | None:
    """Return the launches of the running command, None outside of one."""
    return _current


def stand(launches: Launches | None) -> None:
    """Let kernels be launched this way from here on; for scripts that take turns."""
    global _current
    _current = launches


@contextlib.contextmanager
def using(launches: Launches) -> Iterator[Launches]:
    """Let kernels be launched this way for a while."""
    global _current
    before, _current = _current, launches
    try:
        yield launches
    finally:
        _current = before


def run_launches(file: Path, launches: Launches, *, aside: bool) -> int:
    """Run a script with its kernels, and return its exit status; `aside` sends what it prints to standard error.

    Raises KernelFaultError for a launch that faulted or hung where the script does not catch it, Interrupted where
    Ctrl-C ended one.
    """
    configuration = launches.configuration
    settings: dict[str, str] = {}
    if configuration.target is not None:
        settings["NEURON_PLATFORM_TARGET_OVERRIDE"] = resolve_target(configuration.target).name
    if configuration.precise_fp is not None:
        settings["NKI_PRECISE_FP"] = configuration.precise_fp
    if configuration.lenient:
        settings["NEURONTOOLS_LENIENT"] = "1"
    if configuration.schedule:
        settings["NEURONTOOLS_SCHEDULE"] = "on"
    if configuration.nki != "installed":
        from neurontools.nki.alias import install  # deferred: start-up

        install(override=configuration.nki == "neurontools")
    launches.folders = (file.resolve().parent,)
    stdout = contextlib.redirect_stdout(sys.stderr) if aside else contextlib.nullcontext()
    with using(launches), _environment(settings), stdout:
        return run_script(file, list(configuration.arguments))


class Taken(NamedTuple):
    """A launch that was taken out of its script before it ran."""

    kernel: str
    neff: Neff | bytes
    inputs: dict[str, Any]
    scheduled: Callable[[], Neff] | None = None


class _Taking(BaseException):
    """Carries a launch out of a script; no Exception, so that the script's own handlers let it pass."""

    def __init__(self, taken: Taken) -> None:
        self.taken = taken
        super().__init__(taken.kernel)


def take_launch(file: Path, configuration: RunConfiguration, *, aside: bool, keeps_orders: bool = False) -> Taken:
    """Run a script up to the launch that the configuration names, and return that one; what follows does not run.

    `keeps_orders` is that of `Launches`.
    Raises ScriptEndedError, with the script's own status, where it fails earlier, NotFoundError where it launches less
    often.
    """
    left = configuration.launch

    def take(kernel: str, neff: Neff | bytes, inputs: Mapping[str, Any]) -> None:
        nonlocal left
        left -= 1
        if not left:
            copies = {name: array.copy() for name, array in inputs.items()}
            raise _Taking(Taken(kernel, neff, copies, launches.scheduled))

    # Of those before it only the results count.
    before = replace(configuration, timing=False, checks=()).bounded(always=True)
    launches = Launches(before, take, keeps_orders=keeps_orders)
    try:
        status = run_launches(file, launches, aside=aside)
    except _Taking as taking:
        return taking.taken
    if status:
        raise ScriptEndedError(str(file), status)
    made = configuration.launch - left
    raise NotFoundError(
        f"{file}: the script launched {made or 'no'} kernel{'s' * (made != 1)}"
        + (f", not {configuration.launch}" if made else "")
    )


@contextlib.contextmanager
def _environment(values: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables for a while."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
