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
from formats.nrt.infodump import infodump_lines
from formats.nrt.log import format_line
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
    """One call of the collector about a device: `local` and `prefix` are paths that may hold %-variables.

    `status` is what the call of libnrt at `location` returns, where the device does not say; `place` are the numbers of
    the device and of its first core. Of several ranks in this process each stands for one of its own, numbered behind
    it; `now` is the moment that their dumps share.
    """

    def __init__(
        self,
        device: Device,
        local: str,
        prefix: str,
        name: str,
        environ: Mapping[str, str],
        *,
        status: NrtStatus | None = None,
        location: str = "nrt_execute",
        place: tuple[int, int] = (0, 0),
        rank: int = 0,
        now: datetime | None = None,
    ) -> None:
        self.device = device
        self.now = datetime.now(UTC) if now is None else now
        hung = NrtStatus.NRT_TIMEOUT if device.hang is None else device.hang.status
        failed = hung if device.fault is None else device.fault.status
        self.status = failed if status is None else status
        self.location = location
        self.device_index, self.first_core = place
        self.instance = environ.get(INSTANCE_VARIABLE) or "i-emulated"
        self.cluster = environ.get(CLUSTER_VARIABLE) or NO_CLUSTER
        self.pid, self.tid, self.log_id = os.getpid() + rank, threading.get_native_id(), next(_log_ids)
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
            "--error-location": self.location,
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
        fields = {
            "NRT version": f"neurontools {__version__} (emulator, no Neuron runtime)",
            "Instance ID": self.instance,
            "Cluster ID": self.cluster,
            "Kernel": f"{system.system} {system.release} {system.machine}",
            "Nodename": system.node,
            "Failure": f"{self.status.name} in {self.location}()",
            "LNC": str(len(device.cores)),
            "Visible cores": ", ".join(str(core.index) for core in device.cores),
        }
        variables = {name: value for name, value in self.variables.items() if name.startswith("NEURON_")}
        block = infodump_lines(fields, variables)
        return [
            *(self._line("EMU:execute", text) for text in failure.splitlines()),
            *(self._line("NRT:nrt_infodump", text) for text in block),
            self._line("NRT:nrt_execute", f"Failed to execute model {self.name} with status {int(self.status)}"),
        ]

    def _line(self, function: str, text: str) -> str:
        module, _, name = function.partition(":")
        return format_line(self.now, self.pid, self.tid, "ERROR", module, name, text)
