"""The folder that a dump is gathered in: log, device state, manifest, and what is missing from it."""

from __future__ import annotations

import errno
import hashlib
import json
import os
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from formats.errors import FormatError
from formats.named_tuple import NamedTuple
from formats.whole_files import write_whole
from neurontools.dump.flags import Request
from neurontools.dump.limits import Deadline, OutOfTime
from neurontools.dump.tail import log_tail

if TYPE_CHECKING:
    from formats.core.records import EnvironmentNote

__all__ = ["LOG_VARIABLE", "Collected", "Stage", "fill", "reason_of"]

LOG_VARIABLE = "NEURONTOOLS_LOG_FILE"  # an emulated run names its log here
_GATHER = 0.6  # share of the time that is left


@dataclass
class Collected:
    """What came of a call: `directory` is None where nothing could be written, `failures` is what could not be done."""

    directory: Path | None = None
    files: list[str] = field(default_factory=list)
    uploaded: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    already: bool = False


class _Missing(NamedTuple):
    """A part that is not in the dump."""

    what: str
    reason: str


class Stage:
    """The folder that is filled, with what is in it and what is missing."""

    def __init__(self, folder: Path, request: Request, out: Collected) -> None:
        self.folder, self.request, self.out = folder, request, out
        self.names: list[str] = []
        self.missing: list[_Missing] = []

    def attempt(self, what: str, work: Callable[[], None], deadline: Deadline) -> None:
        """Collect one part; what goes wrong with it does not touch the others."""
        try:
            with deadline.stage(_GATHER):
                work()
        except OutOfTime:
            self.lose(what, "took too long")
        except FormatError as error:
            self.lose(what, str(error))
        except OSError as error:
            self.lose(what, reason_of(error))
            if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
                self.out.failures.append(f"{what}: {reason_of(error)}")

    def lose(self, what: str, reason: str) -> None:
        """Note a part that is not in the dump."""
        self.missing.append(_Missing(what, reason))
        self.out.warnings.append(f"{what} not collected: {reason}")

    def write(self, name: str, text: str) -> None:
        """Write a small file; it is whole, or not in the list."""
        with write_whole(self.folder / name, durable=True) as beside:
            beside.write_text(text, encoding="utf-8", errors="replace")
        self.names.append(name)


def fill(stage: Stage, environ: Mapping[str, str], deadline: Deadline) -> None:
    """Put everything into the stage: small files first, so that a full disk keeps them; the manifest at the end."""
    from formats.core.environment import collect as collect_environment  # deferred: start-up

    request, out = stage.request, stage.out
    log: list[str] = []

    def read_log() -> None:
        place = request["--log"] or environ.get(LOG_VARIABLE) or environ.get("NEURON_RT_LOG_LOCATION", "")
        if place in ("", "console", "syslog"):
            stage.lose("log tail", "no log file is named (--log, NEURON_RT_LOG_LOCATION)")
            return
        log.extend(log_tail(Path(place), request.number("--pid")))
        stage.write(str(request.file("log")), "\n".join([*log, ""]))

    environment = collect_environment(environ, ())
    stage.attempt("log tail", read_log, deadline)
    stage.attempt("device state", lambda: _state(stage, environ, environment, log), deadline)
    document = {
        "schema": "neuron-dump/1",
        "arguments": {name.lstrip("-"): value for name, value in request.given.items()},
        "environment": environment._asdict(),
        "files": [_entry(stage.folder / name) for name in stage.names],
        "missing": [each._asdict() for each in stage.missing],
        "warnings": request.warnings,
    }
    stage.write(str(request.file("manifest")), json.dumps(document, indent=1) + "\n")
    out.files = list(stage.names)


def _remove_new(folder: Path, before: set[str]) -> None:
    for name in set(os.listdir(folder)) - before:
        with suppress(OSError):
            (folder / name).unlink()


def _state(stage: Stage, environ: Mapping[str, str], environment: EnvironmentNote, log: list[str]) -> None:
    """Put the hardware files into the stage."""
    from neurontools.dump import state  # deferred: start-up

    request = stage.request
    core = environ.get(state.CORE_VARIABLE)
    if core:
        found = state.handed_over(request, Path(core), stage.folder, environ.get(state.PLACE_VARIABLE, ""))
    else:
        root = Path(request["--sysfs-root"])
        found = state.real_devices(request, root, stage.folder, environment, log, environ)
    before = set(os.listdir(stage.folder))
    with ExitStack() as unless_whole:
        unless_whole.callback(_remove_new, stage.folder, before)  # what is half written must not be in the dump
        stage.names += [name for name, _path in found]
        unless_whole.pop_all()
    if set(os.listdir(stage.folder)) == before:
        stage.lose("device state", f"no Neuron device below {request['--sysfs-root']}, and no core was handed over")


def _entry(path: Path) -> dict[str, object]:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        size = 0
        while piece := file.read(1 << 20):
            digest.update(piece)
            size += len(piece)
    return {"name": path.name, "bytes": size, "sha256": digest.hexdigest()}


def reason_of(error: OSError) -> str:
    """Return what the system says, with the file that it is about."""
    where = f"{error.filename}: " if error.filename else ""
    return where + (error.strerror or str(error)).lower()
