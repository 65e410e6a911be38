"""Read what nccom-test printed: its table, or its JSON; which unit its bandwidths have, and whether they are right."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

from formats.errors import FormatError
from formats.named_tuple import NamedTuple
from formats.numerals import parse_decimal

__all__ = ["Measured", "Sample", "read_output"]

_MAX = 64 << 20
_LARGEST = 1 << 60
_SIZE, _COUNT = "size(B)", "count(elems)"


class Measured(NamedTuple):
    """One row of nccom-test."""

    size: int
    elements: int
    dtype: str
    time_us: float
    algbw: float
    busbw: float
    algorithm: str | None


class Sample(NamedTuple):
    """One table, with the command line above it where there is one."""

    operation: str | None
    ranks: int | None
    nodes: int | None
    rows: tuple[Measured, ...]


def read_output(path: Path) -> list[Sample]:
    """Return the tables of a file; FormatError where it has none."""
    data = path.read_bytes()[: _MAX + 1]
    if len(data) > _MAX:
        raise FormatError("file too large", path=str(path), expected=f"at most {_MAX:,} bytes")
    text = data.decode("utf-8", "replace")
    found = [_of_json(text, path)] if text.lstrip().startswith("{") else list(_tables(text, path))
    if not any(sample.rows for sample in found):
        raise FormatError("no table of nccom-test", path=str(path), expected=f"a line with {_SIZE} and rows below it")
    return [sample for sample in found if sample.rows]


def _of_json(text: str, path: Path) -> Sample:
    try:
        results = json.loads(text)["results"]
        rows = tuple(row for one in results if (row := _row(one, path)) is not None)
    except (ValueError, KeyError, TypeError, RecursionError, AttributeError):
        raise FormatError("no JSON of nccom-test", path=str(path), field="results",
                          expected='{"results": [{"size(B)": ...}]}') from None  # fmt: skip
    return Sample(None, None, None, rows)


def _row(cells: dict[str, object], path: Path) -> Measured | None:
    """Return a row from its cells by column, None where one is no number; FormatError where one cannot be measured."""
    time = next((value for key, value in cells.items() if re.fullmatch(r"time(:avg|:p50)?\(us\)", key)), None)
    try:
        row = Measured(int(str(cells[_SIZE])), int(str(cells[_COUNT])), str(cells["type"]), float(str(time)),
                        float(str(cells["algbw(GB/s)"])), float(str(cells["busbw(GB/s)"])),
                        None if (name := cells.get("algorithm")) is None else str(name))  # fmt: skip
    except (KeyError, ValueError):
        return None
    for name, number in zip(Measured._fields, row, strict=True):
        if isinstance(number, int | float) and not 0 <= number < _LARGEST:  # NaN is in no range
            raise FormatError("a row of nccom-test", path=str(path), field=name, expected="a number of 0 and more",
                              got=number)  # fmt: skip
    return row


def _tables(text: str, path: Path) -> Iterator[Sample]:
    command = ""
    heads: list[str] | None = None
    rows: list[Measured] = []
    for line in text.splitlines():
        words = line.split()
        if "nccom-test" in words:
            if rows:
                yield _sample(command, rows)
            command, heads, rows = line, None, []
        elif _SIZE in words:
            if rows:
                yield _sample(command, rows)
            heads, rows = words, []
        elif heads is not None and len(words) == len(heads):
            row = _row(dict(zip(heads, words, strict=True)), path)
            if row is not None:
                rows.append(row)
    if rows:
        yield _sample(command, rows)


def _sample(command: str, rows: list[Measured]) -> Sample:
    words = command.split()
    operations = {"allr", "all_reduce", "allg", "all_gather", "redsct", "reduce_scatter", "sendrecv", "alltoall",
                  "alltoallv", "permute", "allgv", "all_gatherv"}  # fmt: skip
    return Sample(next((word for word in words if word in operations), None), _option(words, "-r", "--nworkers"),
                  _option(words, "-N", "--nnodes"), tuple(rows))  # fmt: skip


def _option(words: list[str], *names: str) -> int | None:
    for at, word in enumerate(words[:-1]):
        if word in names and (number := parse_decimal(words[at + 1], 6)) is not None:
            return number
    return None
