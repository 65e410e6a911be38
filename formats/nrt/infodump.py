"""The block that `nrt_infodump` prints between two scissors lines when an execution fails, as fields.

Source: AWS Neuron documentation, "Quickstart: Generating a Neuron runtime core dump".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from formats.nrt.log import clean, parse_line

__all__ = ["FIELDS", "Infodump", "InfodumpReader", "infodump_lines"]

FIELDS: dict[str, str] = {
    "NRT version": "nrt_version",
    "Embedded FW version": "firmware_version",
    "CCOM version": "ccom_version",
    "NCFW version": "ncfw_version",
    "Instance ID": "instance_id",
    "Cluster ID": "cluster_id",
    "Kernel": "kernel",
    "Nodename": "nodename",
    "Driver version": "driver_version",
    "Failure": "failure",
    "LNC": "lnc",
    "Visible cores": "visible_cores",
}
_BEGIN, _END = "[ cut here ]", "[ cut to here ]"
_FAILURE = re.compile(r"(?P<status>NRT_[A-Z0-9_]{2,60}|\d{1,6}) in (?P<call>\w{1,80})\(\)", re.ASCII)
_VARIABLE = re.compile(r"\s*(?P<name>[A-Za-z_]\w{0,200})=(?P<value>.*)", re.ASCII)
_KEY = re.compile(r"\s*(?P<key>[A-Za-z][\w /-]{1,40}?):\s?(?P<value>.*)", re.ASCII)
MOST_LINES = 2000  # of one block; what follows belongs to no block


@dataclass
class Infodump:
    """One block: the keys of `FIELDS` under their names, other keys in `other`, variables in `environment`.

    `status` and `call` come from the failure line; `whole` is whether the closing line was there.
    """

    line: int
    time: datetime | None = None
    pid: int | None = None
    fields: dict[str, str] = field(default_factory=dict)
    other: dict[str, str] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)
    whole: bool = False

    @property
    def status(self) -> str | None:
        """Return the status as the failure line writes it: a name, rarely a number."""
        found = _FAILURE.search(self.fields.get("failure", ""))
        return None if found is None else found["status"]

    @property
    def call(self) -> str | None:
        """Return the libnrt function that failed."""
        found = _FAILURE.search(self.fields.get("failure", ""))
        return None if found is None else found["call"]


class InfodumpReader:
    """Take lines one by one and give each block when it ends; blocks of several processes may be interleaved."""

    def __init__(self) -> None:
        self._open: dict[int | None, Infodump] = {}
        self._in_environment: set[int | None] = set()

    def feed(self, line: str, number: int) -> Infodump | None:
        """Take one line; return the block that it ends, if it ends one."""
        parsed = parse_line(line, number)
        pid = None if parsed is None else parsed.pid
        text = clean(line) if parsed is None else parsed.text
        if _END in text:
            done = self._open.pop(pid, None)
            if done is not None:
                done.whole = True
            return done
        if _BEGIN in text:
            broken = self._open.pop(pid, None)
            self._open[pid] = Infodump(number, None if parsed is None else parsed.time, pid)
            self._in_environment.discard(pid)
            return broken
        block = self._open.get(pid)
        if block is None or (parsed is not None and parsed.function != "nrt_infodump"):
            return None
        if number - block.line > MOST_LINES:
            return self._open.pop(pid)
        self._take(block, pid, text)
        return None

    def rest(self) -> list[Infodump]:
        """Return the blocks that never ended."""
        return list(self._open.values())

    def _take(self, block: Infodump, pid: int | None, text: str) -> None:
        if pid in self._in_environment:
            variable = _VARIABLE.fullmatch(text)
            if variable is not None:
                block.environment[variable["name"]] = variable["value"]
                return
        found = _KEY.fullmatch(text)
        if found is None:
            return
        key, value = found["key"].strip(), found["value"].strip()
        if key == "Environment":
            self._in_environment.add(pid)
            variable = _VARIABLE.fullmatch(value)
            if variable is not None:
                block.environment[variable["name"]] = variable["value"]
        elif key in FIELDS:
            block.fields[FIELDS[key]] = value
        else:
            block.other[key] = value


def infodump_lines(fields: Mapping[str, str], environment: Mapping[str, str]) -> Iterator[str]:
    """Yield the texts of a block: keys of `FIELDS` in their order, as far as they are given, then the variables."""
    unknown = set(fields) - set(FIELDS)
    if unknown:
        raise KeyError(f"no field of the block: {', '.join(sorted(unknown))}")
    yield "Neuron runtime information - please include in any support request:"
    yield f"------------->8------------{_BEGIN}------------>8-------------"
    yield from (f"{key}: {fields[key]}" for key in FIELDS if key in fields)
    yield "Environment:"
    yield from (f"    {name}={value}" for name, value in sorted(environment.items()))
    yield f"-------------8<-----------{_END}-----------8<------------"
