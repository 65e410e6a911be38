"""The hardware files of a dump: the core that an emulated run hands over, or what sysfs shows of real devices."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from formats.errors import FormatError
from formats.nrt.status import NrtStatus
from neurontools.dump import sysfs

if TYPE_CHECKING:
    from formats.core.records import EnvironmentNote
    from neurontools.dump.flags import Request

__all__ = ["CORE_VARIABLE", "PLACE_VARIABLE", "handed_over", "real_devices"]

CORE_VARIABLE = "NEURONTOOLS_CORE_FILE"  # an emulated run names the core dump it has written here
PLACE_VARIABLE = "NEURONTOOLS_CORE_PLACE"  # and its device and first physical core there: "1:2"
_PLACE = re.compile(r"(\d{1,4}):(\d{1,4})", re.ASCII)


def handed_over(request: Request, source: Path, stage: Path, where: str = "") -> Iterator[tuple[str, Path]]:
    """Put the core dump of an emulated run into `stage`, under one name per physical core; they share their bytes.

    `where` is what PLACE_VARIABLE holds.  Yields names and paths.  Raises OSError.
    """
    first: Path | None = None
    found = _PLACE.fullmatch(where)
    device, lowest = (0, 0) if found is None else (int(found[1]), int(found[2]))
    for core in range(_cores(source)):
        name = str(request.file("core", lowest + core, device))
        place = stage / name
        try:
            os.link(source if first is None else first, place)
        except FileNotFoundError:
            raise
        except OSError:  # another file system, or one without links
            shutil.copyfile(source, place)
        first = first or place
        yield name, place


def _cores(source: Path) -> int:
    from formats.core import open_core  # deferred: start-up

    try:
        return max(1, min(8, open_core(source).dump.cores))
    except FormatError:
        return 1  # not ours, or damaged: kept as it is


def real_devices(
    request: Request,
    root: Path,
    stage: Path,
    environment: EnvironmentNote,
    log: list[str],
    variables: Mapping[str, str],
) -> Iterator[tuple[str, Path]]:
    """Write one core dump per physical core that the process sees, with what sysfs shows; yield names and paths."""
    from formats.core import CoreWriter  # deferred: start-up
    from formats.core.records import DeviceNote, DumpNote, LogNote, NeffNote, StatusNote  # deferred: start-up

    status = request.number("--error-code")
    name = NrtStatus(status).name if status in NrtStatus._value2member_map_ else ""
    trees: dict[int, dict[str, str]] = {}
    for each in sysfs.device_cores(root, variables):
        if each.device not in trees:
            trees[each.device] = sysfs.read_tree(each.folder.parent, skip="neuron_core")
        place = stage / str(request.file("core", each.core, each.device))
        with CoreWriter(place) as writer:
            writer.note(DumpNote(created=_created(), tool="neuron-dump", device="neuron", pid=request.number("--pid")))
            writer.note(StatusNote(status, name, request["--error-location"]))
            writer.note(NeffNote(request["--neff-name"], request["--neff-uuid"].replace("-", "")))
            writer.note(DeviceNote(each.device, each.core, trees[each.device], sysfs.read_tree(each.folder)))
            writer.note(environment)
            if log:
                writer.note(LogNote(tuple(log)))
        yield place.name, place


def _created() -> str:
    from datetime import UTC, datetime  # deferred: start-up

    return datetime.now(UTC).isoformat(timespec="seconds")
