"""The flags of `neuron-dump`: those of the Neuron runtime and a few of ours; reading them never refuses a call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from formats.named_tuple import NamedTuple
from formats.nrt.names import DEFAULT_LOCAL_DIRECTORY, NO_CLUSTER, FileName, expand, parse_time, time_in_path

__all__ = ["FLAGS", "Flag", "Request", "read_flags"]

RUNTIME = "AWS Neuron documentation, Deep Dive: Explore Neuron runtime core dumps"
TIMEOUT = 120.0


class Flag(NamedTuple):
    """One flag; `default` is what a call without it means, `cite` is empty for flags of ours."""

    name: str
    value: str
    meaning: str
    default: str = ""
    cite: str = ""


FLAGS: tuple[Flag, ...] = (
    Flag("--neff-name", "NAME", "Name in the header of the NEFF that ran.", "", RUNTIME),
    Flag("--neff-uuid", "UUID", "UUID in the header of the NEFF that ran.", "", RUNTIME),
    Flag("--date-time", "TIME", "Time that all ranks of an execution share, yyyy-mm-dd-HH-MM.", "now", RUNTIME),
    Flag("--pid", "N", "Process that failed.", "0", RUNTIME),
    Flag("--tid", "N", "Its thread.", "0", RUNTIME),
    Flag("--log-id", "N", "Number of this dump in its process.", "0", RUNTIME),
    Flag("--instance-id", "ID", "Instance that the process runs on.", "i-unknown", RUNTIME),
    Flag("--cluster-id", "ID", "Collective execution, sixteen zeros without one.", NO_CLUSTER, RUNTIME),
    Flag("--error-location", "CALL", "Function of libnrt that failed.", "", RUNTIME),
    Flag("--error-code", "N", "NRT_STATUS that it returned.", "0", RUNTIME),
    Flag("--local-output-dir", "DIR", "Dump directory; an empty one means none.", DEFAULT_LOCAL_DIRECTORY, RUNTIME),
    Flag("--s3-output-prefix", "URL", "s3://bucket/prefix to upload the files to.", "", RUNTIME),
    Flag("--log", "FILE", "Log of the runtime, whose end is kept; NEURON_RT_LOG_LOCATION when it names a file.", ""),
    Flag("--sysfs-root", "DIR", "Where the state of real devices is read.", "/sys"),
    Flag("--timeout", "SECONDS", "End after this time, with what has been collected.", f"{TIMEOUT:g}"),
)
_NAMES = {flag.name: flag for flag in FLAGS}
_NUMBERS = ("--pid", "--tid", "--log-id", "--error-code")


@dataclass
class Request:
    """One call: the values of all flags, those that were given, and what was wrong with them."""

    values: dict[str, str]
    given: dict[str, str] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)

    def __getitem__(self, name: str) -> str:
        return self.values[name]

    def number(self, name: str) -> int:
        """Return the value of a flag that is a number."""
        return int(self.values[name])

    @property
    def timeout(self) -> float:
        """Return the time limit in seconds."""
        return float(self.values["--timeout"])

    def file(self, kind: str, core: int = -1, device: int = -1) -> FileName:
        """Return the documented name of one file of this dump."""
        ids = (self.number("--pid"), self.number("--tid"), self.number("--log-id"))
        return FileName(kind, _component(self["--instance-id"]), *ids, device, core)


def _component(text: str) -> str:
    """Return text that can be one component of a path."""
    return "".join("-" if letter in "/\\\0\n" else letter for letter in text)[:128] or "i-unknown"


def read_flags(arguments: Sequence[str]) -> Request:
    """Read a command line; what is unknown, missing or malformed becomes a warning, since a dump is wanted anyway."""
    request = Request({flag.name: flag.default for flag in FLAGS})
    rest = list(arguments)
    while rest:
        word = rest.pop(0)
        name, equals, value = word.partition("=")
        if not name.startswith("--"):
            request.warnings.append(f"argument {word!r} belongs to no flag")
            continue
        if not equals:
            if rest and not rest[0].startswith("--"):
                value = rest.pop(0)
            elif name in _NAMES:
                request.warnings.append(f"{name} has no value")
                continue
        if name not in _NAMES:
            request.warnings.append(f"flag {name} is not known, and ignored")
            continue
        request.values[name] = request.given[name] = value
    _repair(request)
    return request


def _repair(request: Request) -> None:
    """Replace values that cannot be used by their defaults."""
    values = request.values
    for name in _NUMBERS:
        text = values[name].strip()
        if name == "--error-code" and not text.isdecimal():
            from formats.nrt.lookup import status_of  # deferred: start-up

            status = status_of(text)
            text = text if status is None else str(int(status))
        if not (text.isascii() and text.isdecimal() and len(text) <= 10):
            request.warnings.append(f"{name} {values[name]!r} is not a number")
            text = "0"
        values[name] = text
    try:
        if not 0 < float(values["--timeout"]) < 1e6:
            raise ValueError
    except ValueError:
        request.warnings.append(f"--timeout {values['--timeout']!r} is not a time in seconds")
        values["--timeout"] = f"{TIMEOUT:g}"
    now = datetime.now(UTC)
    if values["--date-time"] == "now":
        values["--date-time"] = time_in_path(now)
    elif parse_time(values["--date-time"]) is None:
        request.warnings.append(f"--date-time {values['--date-time']!r} is not yyyy-mm-dd-HH-MM")
    if "--local-output-dir" not in request.given:
        known = {"d": values["--date-time"], "c": values["--cluster-id"]}
        values["--local-output-dir"] = expand(values["--local-output-dir"], known)
