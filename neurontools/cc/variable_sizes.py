"""Counts of the V forms of collectives: the JSON that nccom-test takes as --variable-size-op-metadata."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from formats.errors import FormatError, UnsupportedError
from formats.named_tuple import NamedTuple

if TYPE_CHECKING:
    from emulator.machine.collectives.plan import Request

__all__ = ["VARIABLE", "MetadataFile", "with_counts"]

VARIABLE = frozenset({"allgv", "all_gatherv", "alltoallv", "redsctv", "reduce_scatterv"})
_MOST = 1 << 40

MetadataFile = Annotated[
    Path | None,
    typer.Option("--variable-size-op-metadata", metavar="FILE", help="JSON of the counts of a V form: {\"metadata\": "
                 "[{\"send_counts\": [...], ...}]}, one entry for all ranks or one each.", show_default=False),
]  # fmt: skip


class _Entry(NamedTuple):
    """What one rank says; counts and displacements of what it receives may be missing."""

    send_counts: tuple[int, ...]
    send_displs: tuple[int, ...]
    recv_counts: tuple[int, ...]
    recv_displs: tuple[int, ...]


def with_counts(request: Request, found: Any, path: Path) -> Request:
    """Return a request with the chunks in the ratios that metadata gives, no smaller than it was in all.

    Raises FormatError for what is no metadata, or where receivers expect something else than senders send;
    UnsupportedError where displacements leave gaps between chunks.
    """
    entries, n = _entries(found, path), request.group.size
    if len(entries) not in (1, n):
        raise _wrong(path, "metadata", f"one entry, or one for each of {n} ranks", len(entries))
    every = entries * n if len(entries) == 1 else entries
    if request.operation == "alltoall":
        rows = [_sized(one.send_counts, n, path) for one in every]
        expected = [tuple(row[at] for row in rows) for at in range(n)]
        largest = max(max(map(sum, rows)), max(map(sum, expected)))
        ratios = tuple(count for row in rows for count in row)
    elif request.operation == "allgather":
        ratios = tuple(_sized(one.send_counts, 1, path)[0] for one in every)
        expected, largest = [ratios] * n, sum(ratios)
    else:
        ratios = _sized(every[0].send_counts, n, path)
        if any(one.send_counts != ratios for one in every):
            raise _wrong(path, "send_counts", "the same for every rank of a ReduceScatterV", "others")
        expected, largest = [(size,) for size in ratios], sum(ratios)
    for one, wanted in zip(every, expected, strict=True):
        if one.recv_counts and one.recv_counts != wanted:
            raise _wrong(path, "recv_counts", f"what is sent, {_shown(wanted)}", _shown(one.recv_counts))
        _dense(one.send_displs, one.send_counts, "send_displs", path)
        _dense(one.recv_displs, one.recv_counts or wanted, "recv_displs", path)
    if not largest:
        raise _wrong(path, "send_counts", "some elements", "none")
    times = -(-request.elements // largest)
    return replace(request, elements=largest * times, counts=tuple(count * times for count in ratios))


def _entries(found: Any, path: Path) -> list[_Entry]:
    if not isinstance(found, list) or not found or not all(isinstance(one, dict) for one in found):
        raise _wrong(path, "metadata", "a list of objects", type(found).__name__)
    entries = []
    for one in found:
        unknown = [key for key in one if key not in _Entry._fields]
        if unknown:
            raise _wrong(path, str(unknown[0])[:40], ", ".join(_Entry._fields), "another key")
        parts = []
        for name in _Entry._fields:
            numbers = one.get(name, [])
            good = isinstance(numbers, list) and all(type(each) is int and 0 <= each <= _MOST for each in numbers)
            if not good:
                raise _wrong(path, name, f"whole numbers of 0 to {_MOST}", "others")
            parts.append(tuple(numbers))
        entries.append(_Entry(*parts))
    return entries


def _sized(counts: tuple[int, ...], wanted: int, path: Path) -> tuple[int, ...]:
    if len(counts) != wanted:
        raise _wrong(path, "send_counts", f"{wanted} of them", len(counts))
    return counts


def _dense(displs: Sequence[int], counts: Sequence[int], name: str, path: Path) -> None:
    """Refuse chunks that do not lie side by side, in order."""
    if displs and list(displs) != [0, *accumulate(counts)][: len(counts)]:
        raise UnsupportedError(
            f"{path}: {name} {_shown(displs)}: chunks lie side by side, in order, in what is emulated"
        )


def _shown(numbers: Sequence[int]) -> str:
    return "[" + ", ".join(map(str, numbers[:8])) + (", ..." if len(numbers) > 8 else "") + "]"


def _wrong(path: Path, field: str, expected: str, got: object) -> FormatError:
    return FormatError("no metadata of a V form", path=str(path), field=field, expected=expected, got=got)
