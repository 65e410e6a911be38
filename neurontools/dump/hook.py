"""Emulated runs call the dump collector as the Neuron runtime does: same variables, same flags, same order.

Upon a fault or a hang the run writes its core dump and its log to a folder of its own, names both in two variables, and
starts `neuron-dump`, or the program that NEURONTOOLS_NEURON_DUMP names, so that a script of one's own can be tried.
"""

from __future__ import annotations

import itertools
import os
import platform
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from emulator.dump import EventTail, write_core
from formats.core.environment import public_variables
from formats.errors import FormatError
from formats.nrt.names import (
    DEFAULT_LOCAL_DIRECTORY,
    DIRECTORY_VARIABLE,
    NO_CLUSTER,
    PREFIX_VARIABLE,
    expand,
    time_in_flag,
    time_in_path,
)
from formats.nrt.status import NrtStatus
from neurontools.dump.collect import LOG_VARIABLE
from neurontools.dump.state import CORE_VARIABLE

if TYPE_CHECKING:
    from emulator.device import Device

__all__ = ["DumpObserver", "DumpSettings"]

SCRIPT_VARIABLE = "NEURONTOOLS_NEURON_DUMP"
INSTANCE_VARIABLE = "NEURONTOOLS_INSTANCE_ID"
CLUSTER_VARIABLE = "NEURONTOOLS_CLUSTER_ID"
LEVEL_VARIABLE = "NEURONTOOLS_DUMP_LEVEL"
_SECONDS = 150.0  # the collector ends itself after 120
_log_ids = itertools.count()


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


class DumpObserver(EventTail):
    """Observe a run, and have a dump collected when it ends in a fault or a hang.

    Afterwards `directory` is the dump directory (None without a dump) and `notes` is what to tell about it.
    """

    def __init__(self, settings: DumpSettings, name: str = "", environ: Mapping[str, str] | None = None) -> None:
        super().__init__()
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
        """Collect a dump where one is wanted; what goes wrong becomes a note, never an error of the run."""
        device, self._device = self._device, None
        if device is None or (device.fault is None and device.hang is None):
            return
        call = _Call(self, device)
        try:
            with tempfile.TemporaryDirectory(prefix="neurontools-core-") as folder:
                self._run(call, Path(folder))
        except (OSError, FormatError) as error:
            self.notes.append(f"no dump: {' '.join(str(error).split())}")

    def tell(self) -> None:
        """Print the notes to standard error."""
        for text in self.notes:
            print(f"neurontools: {text}", file=sys.stderr)

    def _run(self, call: _Call, folder: Path) -> None:
        log = call.log_lines()
        (folder / "log").write_text("\n".join([*log, ""]), encoding="utf-8")
        level = self.environ.get(LEVEL_VARIABLE, "light")
        write_core(
            call.device, folder / "core", level="full" if level == "full" else "light", journal=self, log_tail=log
        )
        script = self.environ.get(SCRIPT_VARIABLE)
        # -P: a json.py in the working directory must not become the standard library's.
        program = [script] if script else [sys.executable, "-P", "-m", "neurontools.dump"]
        environ = {**self.environ, CORE_VARIABLE: str(folder / "core"), LOG_VARIABLE: str(folder / "log")}
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
            self.notes.append(f"{program[0]} did not end within {_SECONDS:g} s")
            return
        self.notes += [line for line in ended.stderr.splitlines() if line.strip()][:20]
        if ended.returncode:
            self.notes.append(f"{script or 'neuron-dump'} ended with status {ended.returncode}")
        if call.local and Path(call.local).is_dir():
            self.directory = call.local
        elif not self.notes and not call.prefix:
            self.notes.append(f"{call.local}: the dump is not there")


class _Call:
    """One call of the collector: ids, expanded paths, flags."""

    def __init__(self, observer: DumpObserver, device: Device) -> None:
        self.device = device
        environ = observer.environ
        self.now = datetime.now(UTC)
        self.status = NrtStatus.NRT_TIMEOUT if device.fault is None else device.fault.status
        self.instance = environ.get(INSTANCE_VARIABLE) or "i-emulated"
        self.cluster = environ.get(CLUSTER_VARIABLE) or NO_CLUSTER
        self.pid, self.tid, self.log_id = os.getpid(), threading.get_native_id(), next(_log_ids)
        self.variables = public_variables(environ)
        known = {
            "d": time_in_path(self.now),
            "c": self.cluster,
            "p": self.pid,
            "t": self.tid,
            "l": self.log_id,
            "i": self.instance,
        }
        self.local = expand(observer.settings.local, known)
        self.prefix = expand(observer.settings.prefix, known)
        neff = None if device.model is None else device.model.neff
        self.name = observer.name or ("" if neff is None else neff.header.name)
        self.uuid = "" if neff is None else neff.header.uuid.hex()

    @property
    def flags(self) -> list[str]:
        """Return the flags as the runtime passes them."""
        pairs = {
            "--neff-name": self.name,
            "--neff-uuid": self.uuid,
            "--date-time": time_in_flag(self.now),
            "--pid": self.pid,
            "--tid": self.tid,
            "--log-id": self.log_id,
            "--instance-id": self.instance,
            "--cluster-id": self.cluster,
            "--error-location": "nrt_execute",
            "--error-code": int(self.status),
            "--local-output-dir": self.local,
        }
        if self.prefix:
            pairs["--s3-output-prefix"] = self.prefix
        return [str(word) for pair in pairs.items() for word in pair]

    def log_lines(self) -> list[str]:
        """Return the log of the emulated run, in the runtime's form, with its information block."""
        from neurontools import __version__

        device = self.device
        trouble: Any = device.fault if device.fault is not None else device.hang
        system = platform.uname()
        block = [
            "Neuron runtime information - please include in any support request:",
            "------------->8------------[ cut here ]------------>8-------------",
            f"NRT version: neurontools {__version__} (emulator, no Neuron runtime)",
            f"Instance ID: {self.instance}",
            f"Cluster ID: {self.cluster}",
            f"Kernel: {system.system} {system.release} {system.machine}",
            f"Nodename: {system.node}",
            f"Failure: {self.status.name} in nrt_execute()",
            f"LNC: {len(device.cores)}",
            f"Visible cores: {', '.join(str(core.index) for core in device.cores)}",
            "Environment:",
            *(f"  {name}={value}" for name, value in self.variables.items() if name.startswith("NEURON_")),
            "-------------8<-----------[ cut to here ]-----------8<------------",
        ]
        return [
            *(self._line("EMU:execute", text) for text in trouble.text().splitlines()),
            *(self._line("NRT:nrt_infodump", text) for text in block),
            self._line("NRT:nrt_execute", f"Failed to execute model {self.name} with status {int(self.status)}"),
        ]

    def _line(self, function: str, text: str) -> str:
        month = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")[self.now.month - 1]
        stamp = f"{self.now:%Y}-{month}-{self.now:%d %H:%M:%S.%f}"
        return f"{stamp}  {self.pid}:{self.tid}  ERROR  {function.rjust(4).ljust(42)}  {text}"
