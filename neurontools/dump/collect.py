"""Collect one rank's dump: fill a folder, make it appear, upload it; whatever is missing is told, never fatal."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from formats.errors import FormatError
from formats.nrt.names import DIRECTORY_VARIABLE, PREFIX_VARIABLE
from neurontools.dump.flags import Request
from neurontools.dump.limits import Deadline, OutOfTime
from neurontools.dump.publish import discard, new_stage, publish, recover, sweep

__all__ = ["LOG_VARIABLE", "Collected", "collect"]

LOG_VARIABLE = "NEURONTOOLS_LOG_FILE"  # an emulated run names its log here
_GATHER, _UPLOAD = 0.6, 0.95  # shares of the time that is left


@dataclass
class Collected:
    """What came of it: `directory` is None where nothing could be written; `failures` are what was asked and is not."""

    directory: Path | None = None
    files: list[str] = field(default_factory=list)
    uploaded: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    already: bool = False


class _Stage:
    """The folder that is filled, and the list of what is in it and what is not."""

    def __init__(self, folder: Path, request: Request, out: Collected) -> None:
        self.folder, self.request, self.out = folder, request, out
        self.names: list[str] = []
        self.missing: list[dict[str, str]] = []

    def attempt(self, what: str, work: Callable[[], None], deadline: Deadline) -> None:
        """Run one part; what goes wrong with it does not touch the others."""
        try:
            with deadline.stage(_GATHER):
                work()
        except OutOfTime:
            self.lose(what, "took too long")
        except FormatError as error:
            self.lose(what, str(error))
        except OSError as error:
            self.lose(what, _reason(error))
            if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
                self.out.failures.append(f"{what}: {_reason(error)}")

    def lose(self, what: str, reason: str) -> None:
        """Note a part that is not in the dump."""
        self.missing.append({"what": what, "reason": reason})
        self.out.warnings.append(f"{what} not collected: {reason}")

    def write(self, name: str, text: str) -> None:
        """Write a small file; it is whole or not in the list."""
        path = self.folder / name
        try:
            with path.open("w", encoding="utf-8", errors="replace") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
        except OSError:
            with suppress(OSError):
                path.unlink()
            raise
        self.names.append(name)


def collect(request: Request, environ: Mapping[str, str], deadline: Deadline) -> Collected:
    """Collect what the request asks for and return what came of it; raises nothing for what the system refuses."""
    out = Collected(warnings=list(request.warnings))
    local, prefix = request["--local-output-dir"], request["--s3-output-prefix"]
    if not local and not prefix:
        out.warnings.append(f"nothing to do: {DIRECTORY_VARIABLE} and {PREFIX_VARIABLE} are empty")
        return out
    directory = Path(local) if local else None
    if directory is not None:
        _local(request, environ, deadline, directory, out)
    if out.directory is None and prefix:  # no local dump was asked for, or none could be written
        with tempfile.TemporaryDirectory(prefix="neuron-dump-") as folder:
            _fill(_Stage(Path(folder), request, out), environ, deadline)
            _upload(Path(folder), prefix, deadline, out)
    elif out.directory is not None and prefix:
        _upload(out.directory, prefix, deadline, out)
    return out


def _local(request: Request, environ: Mapping[str, str], deadline: Deadline, directory: Path, out: Collected) -> None:
    manifest = str(request.file("manifest"))
    recover(directory)
    if (directory / manifest).exists():
        out.directory, out.already = directory, True
        out.files = [each["name"] for each in _manifest(directory / manifest).get("files", [])] + [manifest]
        return
    stage: Path | None = None
    try:
        stage = new_stage(directory)
        _fill(_Stage(stage, request, out), environ, deadline)
        publish(stage, directory)
        out.directory = directory
        recover(directory)
        sweep(directory)
    except (OSError, OutOfTime) as error:
        reason = "took too long" if isinstance(error, OutOfTime) else _reason(error)
        out.failures.append(f"{directory}: the dump cannot be written: {reason}")
        out.files.clear()
        if stage is not None:
            discard(stage)


def _fill(stage: _Stage, environ: Mapping[str, str], deadline: Deadline) -> None:
    """Put everything into the stage: small files first, so that a full disk keeps them; the manifest at the end."""
    from formats.core.environment import collect as collect_environment
    from neurontools.dump.tail import log_tail

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
        "missing": stage.missing,
        "warnings": request.warnings,
    }
    stage.write(str(request.file("manifest")), json.dumps(document, indent=1) + "\n")
    out.files = list(stage.names)


def _state(stage: _Stage, environ: Mapping[str, str], environment: Any, log: list[str]) -> None:
    from neurontools.dump import state

    request = stage.request
    core = environ.get(state.CORE_VARIABLE)
    if core:
        found = state.handed_over(request, Path(core), stage.folder)
    else:
        root = Path(request["--sysfs-root"])
        found = state.real_devices(request, root, stage.folder, environment, log, environ)
    before = set(os.listdir(stage.folder))
    try:
        stage.names += [name for name, _path in found]
    except BaseException:  # what is half written must not be in the dump
        for name in set(os.listdir(stage.folder)) - before:
            with suppress(OSError):
                (stage.folder / name).unlink()
        raise
    if set(os.listdir(stage.folder)) == before:
        stage.lose("device state", f"no Neuron device below {request['--sysfs-root']}, and no core was handed over")


def _upload(folder: Path, prefix: str, deadline: Deadline, out: Collected) -> None:
    from neurontools.dump.upload import UploadError, upload

    files = [(name, folder / name) for name in out.files if (folder / name).exists()]
    try:
        with deadline.stage(_UPLOAD):
            out.uploaded = upload(files, prefix, deadline)
    except UploadError as error:
        out.failures.append(f"upload failed: {error}")
    except OutOfTime:
        out.failures.append(f"upload failed: {prefix}: no end after {deadline.seconds:g} s")


def _entry(path: Path) -> dict[str, object]:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        size = 0
        while piece := file.read(1 << 20):
            digest.update(piece)
            size += len(piece)
    return {"name": path.name, "bytes": size, "sha256": digest.hexdigest()}


def _manifest(path: Path) -> dict[str, Any]:
    with suppress(OSError, ValueError):
        document = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(document, dict):
            return document
    return {}


def _reason(error: OSError) -> str:
    where = f"{error.filename}: " if error.filename else ""
    return where + (error.strerror or str(error)).lower()
