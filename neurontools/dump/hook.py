"""Emulated runs call the dump collector as the Neuron runtime does: same variables, same flags, same order.

After a fault or a hang the run writes its core dump and its log to a folder of its own, names both in two variables,
and starts `neuron-dump`, or the program that NEURONTOOLS_NEURON_DUMP names, so that you can try a collector of yours.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from emulator.diagnosis.causes import Reason
from emulator.dump import EventTail, write_core
from formats.errors import FormatError
from formats.named_tuple import NamedTuple
from formats.nrt.names import DEFAULT_LOCAL_DIRECTORY, DIRECTORY_VARIABLE, PREFIX_VARIABLE
from formats.whole_files import passing_folder
from neurontools.dump.call import Call
from neurontools.dump.stage import LOG_VARIABLE
from neurontools.dump.state import CORE_VARIABLE, PLACE_VARIABLE

if TYPE_CHECKING:
    from emulator.device import Device

__all__ = ["DumpObserver", "DumpSettings", "DumpedRank", "hand_over"]

SCRIPT_VARIABLE = "NEURONTOOLS_NEURON_DUMP"
LEVEL_VARIABLE = "NEURONTOOLS_DUMP_LEVEL"
_SECONDS = 150.0  # the collector ends itself after 120


@dataclass(frozen=True)
class DumpSettings:
    """Where dumps go: paths with their %-variables, "" for none."""

    local: str
    prefix: str

    @classmethod
    def of(cls, environ: Mapping[str, str], directory: Path | None = None) -> DumpSettings | None:
        """Return the settings that hold, None where no dump is wanted.

        The runtime dumps to its default directory when nothing is set; an emulated run dumps only when one of the
        runtime's variables is set and not empty, or a directory is given.
        """
        prefix = environ.get(PREFIX_VARIABLE, "")
        if directory is not None:
            return cls(f"{directory}/dt-%d-cid-%c", prefix)
        local = environ.get(DIRECTORY_VARIABLE)
        if not local and not prefix:
            return None
        return cls(DEFAULT_LOCAL_DIRECTORY if local is None else local, prefix)


class DumpedRank(NamedTuple):
    """One of several ranks: its number, the device and first core it has, the moment that all dumps share."""

    rank: int = 0
    place: tuple[int, int] = (0, 0)
    now: datetime | None = None


class DumpObserver(EventTail):
    """Observe a run, and have a dump collected when it ends in a fault or a hang.

    Afterwards `directory` is the dump directory (None without a dump) and `notes` are lines about it for people.
    """

    def __init__(
        self, settings: DumpSettings, name: str = "", environ: Mapping[str, str] | None = None,
        rank: DumpedRank | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.rank = rank
        self.settings = settings
        self.name = name
        self.environ = os.environ if environ is None else environ
        self.directory: str | None = None
        self.notes: list[str] = []
        self._device: Device | None = None

    def attach(self, device: Device) -> None:
        """Remember the device."""
        self._device = device

    def finish(self) -> None:
        """Have a dump collected of a run that failed; what goes wrong becomes a note, never an error of the run."""
        device, self._device = self._device, None
        if device is None or (device.fault is None and device.hang is None):
            return
        if device.hang is not None and device.hang.reason == Reason.INTERRUPTED:
            return  # the person who pressed Ctrl-C wants to be back at once
        which = self.rank or DumpedRank()
        call = Call(device, self.settings.local, self.settings.prefix, self.name, self.environ, place=which.place,
                    rank=which.rank, now=which.now)  # fmt: skip
        try:
            with passing_folder("core") as folder:
                self.directory, notes = hand_over(call, call.log_lines(), self, self.environ, folder)
        except (OSError, FormatError) as error:
            notes = [f"no dump: {' '.join(str(error).split())}"]
        self.notes += notes


def hand_over(
    call: Call, log: Sequence[str], events: EventTail, environ: Mapping[str, str], folder: Path
) -> tuple[str | None, list[str]]:
    """Write core and log into a folder, run the collector on them; return the dump directory and notes for people.

    Raises OSError and FormatError where the core cannot be written.
    """
    notes: list[str] = []
    (folder / "log").write_text("\n".join([*log, ""]), encoding="utf-8")
    level = environ.get(LEVEL_VARIABLE, "light")
    write_core(
        call.device,
        folder / "core",
        level="full" if level == "full" else "light",
        journal=events,
        log_tail=log,
        error_location=call.location,
    )
    script = environ.get(SCRIPT_VARIABLE)
    # -P: a json.py in the working directory must not become the standard library's.
    program = [script] if script else [sys.executable, "-P", "-m", "neurontools.dump"]
    environ = {
        **environ,
        CORE_VARIABLE: str(folder / "core"),
        PLACE_VARIABLE: f"{call.device_index}:{call.first_core}",
        LOG_VARIABLE: str(folder / "log"),
    }
    if not script:
        root = str(Path(__file__).resolve().parents[2])
        environ["PYTHONPATH"] = os.pathsep.join(filter(None, [root, environ.get("PYTHONPATH", "")]))
    try:
        ended = subprocess.run(
            [*program, *call.flags],
            env=environ,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_SECONDS,
            stdin=subprocess.DEVNULL,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return None, [f"{program[0]} did not end within {_SECONDS:g} s"]
    notes += [line for line in ended.stderr.splitlines() if line.strip()][:20]
    if ended.returncode:
        notes.append(f"{script or 'neuron-dump'} ended with status {ended.returncode}")
    if call.local and Path(call.local).is_dir():
        return call.local, notes
    if not notes and not call.prefix:
        notes.append(f"{call.local}: the dump is not there")
    return None, notes
