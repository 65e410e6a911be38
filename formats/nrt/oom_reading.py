"""Memory reports of the runtime read back from any text: tables, lists, blocks of one NEFF, and what did not fit.

A printed size is good to half of its last digit; whether a row adds up is judged by that. Layout: runtime.md 3.2.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Literal

from formats.errors import FormatError
from formats.named_tuple import NamedTuple
from formats.nrt.log import clean, parse_line
from formats.nrt.memory import BY_LABEL, CATEGORIES
from formats.nrt.memory_sizes import parse_size, size_step
from formats.nrt.oom import COLUMNS, NOT_GIVEN, OomRow, OomTable

__all__ = ["Failure", "MemoryReport", "Numbers", "read_memory_report"]

_LABEL = re.compile(r"(?:\\_)?(?:ND (\d{1,4}) (?:Overall|HBM (\d{1,2}))|NC (\d{1,5})|NEFF (\d{1,12}))", re.ASCII)
_NAME = re.compile(r'(\d{1,12}): "(.*)"$', re.ASCII)
_BULLET = re.compile(r"\*\s*([a-z][a-z ]{1,30}): ([\d.]{1,20}[KMGT]?B)\b", re.ASCII)
_FAILED = re.compile(
    r"Failed to allocate ([\d.]{1,20}[KMG]?B) \(alignment: ([^,]{1,20}), usage: ([^)]{1,40})\) on "
    r"ND (\d{1,4}):NC (\d{1,5})", re.ASCII)  # fmt: skip
_SHARING = re.compile(r"LNC size is (\d)\. Neuron Cores using this HBM: ([NC \dand,]{1,200})", re.ASCII)
_BLOCK = re.compile(r"Per NEFF memory usage breakdown for \[(.{1,300})\]")
_USAGE = re.compile(r"\[ND (\d{1,4}):NC (\d{1,5})\] Current Usage Total: ([\d.]{1,20}[KMG]?B)", re.ASCII)
_LIST = re.compile(r"Overall HBM usage\s*$")
_MOST_ROWS = 20_000


class Failure(NamedTuple):
    """The allocation that found no room."""

    line: int
    nbytes: int
    alignment: str
    usage: str
    device: int
    core: int


class Numbers(NamedTuple):
    """Bytes by category that a list or a block gives, with the total that it states; `name` is the NEFF's, or None."""

    line: int
    name: str | None
    values: dict[str, int]
    total: int | None
    device: int | None = None
    core: int | None = None


class MemoryReport(NamedTuple):
    """All that a text says about device memory; `problems` are sums that its own numbers contradict."""

    table: OomTable
    lists: tuple[Numbers, ...]
    blocks: tuple[Numbers, ...]
    failures: tuple[Failure, ...]
    lnc: int | None
    sharing: tuple[int, ...]
    problems: tuple[str, ...]


class _Reader:
    def __init__(self, path: str | None) -> None:
        self.path = path
        self.rows: list[OomRow] = []
        self.names: dict[int, str] = {}
        self.found: dict[bool, list[Numbers]] = {True: [], False: []}  # blocks of a NEFF, lists of a stack
        self.open: Numbers | None = None
        self.failures: list[Failure] = []
        self.problems: list[str] = []
        self.lnc: int | None = None
        self.sharing: tuple[int, ...] = ()
        self.heads: list[list[str]] = []
        self.columns: Sequence[str] = tuple(key for key, _, _ in COLUMNS)
        self.usage: tuple[int, int] | None = None
        self.slack = 0.0

    def read(self, number: int, line: str) -> None:
        if "|" in line:
            self._row(number, line)
            return
        if found := _FAILED.search(line):
            self.failures.append(
                Failure(number, parse_size(found[1], self.path), found[2], found[3], int(found[4]), int(found[5]))
            )
        elif found := _SHARING.search(line):
            self.lnc = int(found[1])
            self.sharing = tuple(map(int, re.findall(r"NC (\d{1,5})", found[2])))
        elif found := _USAGE.search(line):
            self.usage = int(found[1]), int(found[2])
        elif found := _BLOCK.search(line):
            self._begin(Numbers(number, found[1], {}, None, *(self.usage or (None, None))))
        elif _LIST.search(line):
            self._begin(Numbers(number, None, {}, None))
        elif found := _NAME.match(line.strip()):
            self.names[int(found[1])] = found[2]
        elif self.open is not None:
            self._number(number, line)

    def _begin(self, numbers: Numbers) -> None:
        self.close()
        self.open, self.slack = numbers, 0.0

    def _number(self, number: int, line: str) -> None:
        assert self.open is not None  # asked only then
        text = line.strip()
        if text.startswith("Total: "):
            text = f"* total: {text.removeprefix('Total: ')}"
        found = _BULLET.match(text)
        if found is None:
            if text.strip("*. "):
                self.close()
            return
        nbytes = parse_size(found[2], self._at(number))
        if found[1] == "total":
            self.open = self.open._replace(total=nbytes)
        elif found[1] in BY_LABEL:
            self.open.values[BY_LABEL[found[1]].key] = nbytes
        elif found[1] == "profile buffers":
            self.open.values["profiler"] = nbytes
        else:
            raise FormatError("unknown category of device memory", path=self._at(number), got=repr(found[1]),
                              expected=f"one of {', '.join(BY_LABEL)}")  # fmt: skip
        self.slack += size_step(found[2]) / 2

    def close(self) -> None:
        """End the list or block that is being read; one that has every category must add up."""
        done, self.open = self.open, None
        if done is None:
            return
        self.found[done.name is not None].append(done)
        need = sum(one.by_model for one in CATEGORIES) if done.name is not None else len(CATEGORIES)
        if done.total is not None and len(done.values) >= need:
            self._judge(done.line, done.name or "the stack", done.total, sum(done.values.values()), self.slack)

    def _judge(self, line: int, of: str, total: int, added: int, slack: float) -> None:
        if abs(total - added) > slack + 1:
            self.problems.append(f"line {line}: {of} states {total:,} bytes in all, its parts are {added:,}")

    def _at(self, number: int) -> str:
        return f"{self.path}:{number}" if self.path else f"line {number}"

    def _row(self, number: int, line: str) -> None:
        label, *cells = line.split("|")
        cells = [cell.strip() for cell in cells]
        found = _LABEL.search(label)
        if found is None:
            self._heading(label, cells)
            return
        if len(self.rows) >= _MOST_ROWS:
            raise FormatError("too many rows", path=self.path, expected=f"at most {_MOST_ROWS:,}")
        cut = cells and cells[-1] in ("...", "…")
        while cells and cells[-1] in ("", "...", "…"):
            cells.pop()
        if len(cells) > len(self.columns) or (len(cells) < len(self.columns) and not cut):
            raise FormatError("not a row of the memory table", path=self._at(number),
                              expected=f"{len(self.columns)} columns", got=len(cells))  # fmt: skip
        values: dict[str, int | None] = {}
        slack = 0.0
        for key, cell in zip(self.columns, cells, strict=False):
            values[key] = None if cell == NOT_GIVEN else parse_size(cell, self._at(number))
            slack += size_step(cell) / 2
        device, stack, core, model = found.groups()
        kind: Literal["device", "core", "model"] = (
            "device" if device is not None else "core" if core is not None else "model"
        )
        row = OomRow(kind, int(device or core or model), values, None if stack is None else int(stack))
        self.rows.append(row)
        if not cut and values.get("total") is not None:
            self._judge(number, row.label.lstrip("\\_"), values["total"] or 0, row.total, slack)

    def _heading(self, label: str, cells: list[str]) -> None:
        """Take a line of the heading; when both are there they say which column is which."""
        if label.strip():
            return
        self.heads = [*self.heads[-1:], cells]
        if len(self.heads) < 2:
            return
        whole = [" ".join(filter(None, pair)) for pair in zip(*self.heads, strict=False)]
        known = {" ".join(filter(None, heads)): key for key, heads, _ in COLUMNS}
        while whole and whole[-1] in ("", "...", "... ...", "…"):
            whole.pop()
        if whole and all(head in known for head in whole):
            # What a heading leaves out at its end ("...") keeps the order that is known.
            rest = [key for key, _, _ in COLUMNS if key not in {known[head] for head in whole}]
            self.columns = [*(known[head] for head in whole), *rest]


def read_memory_report(lines: Iterable[str], path: str | None = None) -> MemoryReport:
    """Return what a log, a table file or a pasted excerpt says; FormatError for numbers that are none."""
    reader = _Reader(path)
    for number, line in enumerate(lines, 1):
        logged = parse_line(line)
        reader.read(number, clean(line) if logged is None else logged.text)
    reader.close()
    rows = tuple(reader.rows)
    return MemoryReport(
        OomTable(rows, reader.names), tuple(reader.found[False]), tuple(reader.found[True]), tuple(reader.failures),
        reader.lnc, reader.sharing, (*reader.problems, *_levels(rows)),
    )  # fmt: skip


def _levels(rows: Sequence[OomRow]) -> list[str]:
    """Return where the cores of a device, as far as every number is printed in full, give another sum than its row."""
    problems = []
    for at, row in enumerate(rows):
        if row.kind != "device":
            continue
        cores = []
        for below in rows[at + 1 :]:
            if below.kind == "device":
                break
            if below.kind == "core":
                cores.append(below)
        total = row.values.get("total")
        stated = [core.values.get("total") for core in cores]
        if total is None or not cores or None in stated:
            continue
        added = sum(value or 0 for value in stated)
        # Each number is good to half a thousandth of its unit, at worst of the total's.
        slack = max(total, 1) * 0.0005 * (len(cores) + 1) + 1
        if abs(total - added) > slack:
            problems.append(f"{row.label}: {total:,} bytes in all, its cores have {added:,}")
    return problems
