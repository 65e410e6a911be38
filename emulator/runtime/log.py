"""What the runtime logs: lines of the documented form, by level and module, and the block about a failure."""

from __future__ import annotations

import os
import platform
import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime

from formats.nrt.infodump import infodump_lines
from formats.nrt.log import format_line

__all__ = ["LEVELS", "Log", "Sink"]

# Where a line goes: the place that a variable names ("console" unless one does), and the line.
Sink = Callable[[str, str], object]
LEVELS = ("TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL", "QUIET")
_KEPT = 2000


class Log:
    """The log of one process: everything that is wanted goes to the sink, and the last lines are kept for a dump."""

    def __init__(self, environ: Mapping[str, str], sink: Sink) -> None:
        self._sink = sink
        self._level = _level(environ.get("NEURON_RT_LOG_LEVEL", ""), "ERROR")
        self._location = environ.get("NEURON_RT_LOG_LOCATION", "") or "console"
        self._environ = environ
        self._modules: dict[str, tuple[int, str]] = {}
        self.tail: deque[str] = deque(maxlen=_KEPT)

    def _of(self, module: str) -> tuple[int, str]:
        found = self._modules.get(module)
        if found is None:
            level = self._environ.get(f"NEURON_RT_LOG_LEVEL_{module}", "")
            location = self._environ.get(f"NEURON_RT_LOG_LOCATION_{module}", "") or self._location
            found = (LEVELS.index(_level(level, "")) if level else LEVELS.index(self._level), location)
            self._modules[module] = found
        return found

    def write(self, level: str, module: str, function: str, text: str) -> None:
        """Write a line where its module's level asks for it."""
        least, location = self._of(module)
        if LEVELS.index(level) < least:
            return
        now = datetime.now(UTC)
        line = format_line(now, os.getpid(), threading.get_native_id(), level, module, function, text)
        self.tail.append(line)
        self._sink(location, line)

    def say(self, module: str, function: str, text: str) -> None:
        """Write a line of level ERROR."""
        self.write("ERROR", module, function, text)

    def infodump(self, fields: Mapping[str, str], environment: Mapping[str, str]) -> None:
        """Write the block about a failure."""
        for text in infodump_lines(fields, environment):
            self.say("NRT", "nrt_infodump", text)


def _level(text: str, default: str) -> str:
    wanted = text.strip().upper()
    wanted = {"WARNING": "WARN", "CRITICAL": "FATAL"}.get(wanted, wanted)
    return wanted if wanted in LEVELS else default or "ERROR"


def system_fields() -> dict[str, str]:
    """Return what the block says of the host."""
    system = platform.uname()
    return {"Kernel": f"{system.system} {system.release} {system.machine}", "Nodename": system.node}


def cores_text(cores: Iterable[int]) -> str:
    """Return cores as the block writes them."""
    return ", ".join(map(str, cores))
