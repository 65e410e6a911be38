"""Names that the Neuron runtime gives to dump directories and the files in them, and the variables in paths.

Source: AWS Neuron documentation, "Deep Dive: Explore Neuron runtime core dumps" and "Quickstart: Generating a Neuron
runtime core dump" (2025-12-02).  Where the pages contradict themselves both forms are read and one is written.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime

from formats.named_tuple import NamedTuple

__all__ = [
    "DEFAULT_LOCAL_DIRECTORY",
    "DIRECTORY_VARIABLE",
    "NO_CLUSTER",
    "PATH_VARIABLES",
    "PREFIX_VARIABLE",
    "DirectoryName",
    "FileName",
    "expand",
    "parse_directory",
    "parse_file",
    "parse_time",
    "time_in_flag",
    "time_in_path",
]

DIRECTORY_VARIABLE = "NEURON_RT_LOCAL_CORE_DUMP_DIRECTORY"
PREFIX_VARIABLE = "NEURON_RT_S3_CORE_DUMP_PREFIX"
DEFAULT_LOCAL_DIRECTORY = "/tmp/neuron-core-dump/dt-%d-cid-%c"  # the prose also writes /tmp/neuron-core-dumps
NO_CLUSTER = "0" * 16
PATH_VARIABLES: dict[str, str] = {
    "d": "date and time",
    "c": "cluster id",
    "p": "process id",
    "t": "thread id",
    "l": "log id",
    "i": "instance id",
}

_NUMBER = r"\d{1,10}"
_TAIL = rf"-pid-(?P<pid>{_NUMBER})-tid-(?P<tid>{_NUMBER})-lid-(?P<log_id>{_NUMBER})"
_INSTANCE = r"(?P<instance>[^/]+?)"
_FILES: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (kind, re.compile(pattern))
    for kind, pattern in (
        ("core", rf"{_INSTANCE}-nd(?P<device>{_NUMBER})-nc(?P<core>{_NUMBER}){_TAIL}"),
        ("cc-core", rf"{_INSTANCE}-nd(?P<device>{_NUMBER})-cc-core-(?P<core>{_NUMBER}){_TAIL}"),
        ("log", rf"nrt-{_INSTANCE}-pid-(?P<pid>{_NUMBER})\.log"),  # one bullet of the page writes it this way
        ("log", rf"{_INSTANCE}-nrt-pid-(?P<pid>{_NUMBER})\.log"),
        ("manifest", rf"{_INSTANCE}-neuron-dump{_TAIL}\.json"),  # ours
    )
)
_DIRECTORY = re.compile(r"dt-(?P<time>\d[\d-]{7,30})-cid-(?P<cluster>[0-9A-Za-z]{1,64})")
_TIMES = ("%Y%m%d-%H%M%S", "%Y-%m-%d-%H-%M", "%Y-%m-%d-%H-%M-%S")


class DirectoryName(NamedTuple):
    """What the default name of a dump directory says: `time` in UTC (None where it is no time), `cluster`."""

    cluster: str
    time: datetime | None


class FileName(NamedTuple):
    """What the name of a file in a dump directory says; `kind` is core, cc-core, log or manifest.

    Numbers that a kind does not have are -1. `str()` gives the name again, in the form that is written here.
    """

    kind: str
    instance: str
    pid: int
    tid: int = -1
    log_id: int = -1
    device: int = -1
    core: int = -1

    def __str__(self) -> str:
        tail = f"-pid-{self.pid}-tid-{self.tid}-lid-{self.log_id}"
        if self.kind == "core":
            return f"{self.instance}-nd{self.device}-nc{self.core}{tail}"
        if self.kind == "cc-core":
            return f"{self.instance}-nd{self.device}-cc-core-{self.core}{tail}"
        if self.kind == "log":
            return f"{self.instance}-nrt-pid-{self.pid}.log"
        return f"{self.instance}-neuron-dump{tail}.json"


def parse_file(name: str) -> FileName | None:
    """Return what the name of a file in a dump directory says, None for a name of another kind."""
    for kind, pattern in _FILES:
        found = pattern.fullmatch(name)
        if found is not None:
            numbers = {key: int(value) for key, value in found.groupdict().items() if key != "instance"}
            return FileName(kind, found["instance"], **numbers)
    return None


def parse_directory(name: str) -> DirectoryName | None:
    """Return what a dump directory's name says, None for a name of another form (users may choose their own)."""
    found = _DIRECTORY.fullmatch(name)
    return None if found is None else DirectoryName(found["cluster"], parse_time(found["time"]))


def parse_time(text: str) -> datetime | None:
    """Return a time as flags and directory names write it, in UTC; None for anything else."""
    for form in _TIMES:
        try:
            return datetime.strptime(text, form).replace(tzinfo=UTC)
        except ValueError:
            continue
    return None


def time_in_flag(moment: datetime) -> str:
    """Return a time as the flag --date-time is documented: yyyy-mm-dd-HH-MM."""
    return moment.strftime(_TIMES[1])


def time_in_path(moment: datetime) -> str:
    """Return a time as %d shows in the documentation's example directory: 20250917-194443."""
    return moment.strftime(_TIMES[0])


def expand(path: str, values: Mapping[str, object]) -> str:
    """Return a path with %d %c %p %t %l %i replaced; any other % stays as it is.

    `values` maps the letter to what it stands for.  A slash in a value becomes a dash: a value is one path component.
    """
    return re.sub(r"%([a-z])", lambda m: str(values[m[1]]).replace("/", "-") if m[1] in values else m[0], path)
