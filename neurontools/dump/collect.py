"""Collect one rank's dump: fill a folder, make it appear, upload it; what is missing is reported, never fatal."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from pathlib import Path

from formats.nrt.names import DIRECTORY_VARIABLE, PREFIX_VARIABLE
from neurontools.dump.flags import Request
from neurontools.dump.limits import Deadline, OutOfTime
from neurontools.dump.publish import discard, new_stage, publish, recover, sweep
from neurontools.dump.stage import Collected, Stage, fill, reason_of
from neurontools.dump.upload import UploadError, upload

__all__ = ["collect"]

_UPLOAD = 0.95  # share of the time that is left


def collect(request: Request, environ: Mapping[str, str], deadline: Deadline) -> Collected:
    """Collect what a request asks for and return what came of it; what the system refuses is not an exception."""
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
            fill(Stage(Path(folder), request, out), environ, deadline)
            _upload(Path(folder), prefix, deadline, out)
    elif out.directory is not None and prefix:
        _upload(out.directory, prefix, deadline, out)
    return out


def _local(request: Request, environ: Mapping[str, str], deadline: Deadline, directory: Path, out: Collected) -> None:
    manifest = str(request.file("manifest"))
    recover(directory)
    if (directory / manifest).exists():
        out.directory, out.already = directory, True
        out.files = [*_listed(directory / manifest), manifest]
        return
    stage: Path | None = None
    try:
        stage = new_stage(directory)
        fill(Stage(stage, request, out), environ, deadline)
        publish(stage, directory)
        out.directory = directory
        recover(directory)
        sweep(directory)
    except (OSError, OutOfTime) as error:
        reason = "took too long" if isinstance(error, OutOfTime) else reason_of(error)
        out.failures.append(f"{directory}: the dump cannot be written: {reason}")
        out.files.clear()
        if stage is not None:
            discard(stage)


def _upload(folder: Path, prefix: str, deadline: Deadline, out: Collected) -> None:
    files = [(name, folder / name) for name in out.files if (folder / name).exists()]
    try:
        with deadline.stage(_UPLOAD):
            out.uploaded = upload(files, prefix, deadline)
    except UploadError as error:
        out.failures.append(f"upload failed: {error}")
    except OutOfTime:
        out.failures.append(f"upload failed: {prefix}: no end after {deadline.seconds:g} s")


def _listed(path: Path) -> list[str]:
    """Return the files that a manifest lists, none where it cannot be read."""
    try:
        return [str(each["name"]) for each in json.loads(path.read_text(encoding="utf-8"))["files"]]
    except (OSError, ValueError, TypeError, LookupError, RecursionError):
        return []
