"""What an emulated run passes to the collector: ids, expanded paths, flags, and a log in the runtime's form."""

from __future__ import annotations

import itertools
import os
import platform
import threading
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from formats.core.environment import public_variables
from formats.nrt.names import NO_CLUSTER, expand, time_in_flag, time_in_path
from formats.nrt.status import NrtStatus
from neurontools.version import __version__

if TYPE_CHECKING:
    from emulator.device import Device

__all__ = ["Call"]

INSTANCE_VARIABLE = "NEURONTOOLS_INSTANCE_ID"
CLUSTER_VARIABLE = "NEURONTOOLS_CLUSTER_ID"
_log_ids = itertools.count()


class Call:
    """One call of the collector about a device: `local` and `prefix` are paths that may hold %-variables."""

    def __init__(self, device: Device, local: str, prefix: str, name: str, environ: Mapping[str, str]) -> None:
        self.device = device
        self.now = datetime.now(UTC)
        self.status = NrtStatus.NRT_TIMEOUT if device.fault is None else device.fault.status
        self.instance = environ.get(INSTANCE_VARIABLE) or "i-emulated"
        self.cluster = environ.get(CLUSTER_VARIABLE) or NO_CLUSTER
        self.pid, self.tid, self.log_id = os.getpid(), threading.get_native_id(), next(_log_ids)
        self.variables = public_variables(environ)
        known = {"d": time_in_path(self.now), "c": self.cluster, "p": self.pid, "t": self.tid, "l": self.log_id,
                 "i": self.instance}  # fmt: skip
        self.local = expand(local, known)
        self.prefix = expand(prefix, known)
        neff = None if device.model is None else device.model.neff
        self.name = name or ("" if neff is None else neff.header.name)
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
        device = self.device
        failure = "" if device.hang is None else device.hang.text()
        if device.fault is not None:
            failure = device.fault.text()
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
            *(self._line("EMU:execute", text) for text in failure.splitlines()),
            *(self._line("NRT:nrt_infodump", text) for text in block),
            self._line("NRT:nrt_execute", f"Failed to execute model {self.name} with status {int(self.status)}"),
        ]

    def _line(self, function: str, text: str) -> str:
        month = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")[self.now.month - 1]
        stamp = f"{self.now:%Y}-{month}-{self.now:%d %H:%M:%S.%f}"
        return f"{stamp}  {self.pid}:{self.tid}  ERROR  {function.rjust(4).ljust(42)}  {text}"
