"""`neurontools compile cache gc`: remove what a compile cache need not keep."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Iterator
from typing import Annotated, Literal

import typer

from formats.named_tuple import NamedTuple
from neurontools.command.lazy import command_app
from neurontools.command.options import Json
from neurontools.command.output import report
from neurontools.compiler.cache_commands.entries import Entry, cache_root, entries, remove, unlock
from neurontools.compiler.cache_commands.rows import CacheFolder, EntryRow, entry_row
from neurontools.text.table import bytes_text, count

_HOUR = 3600.0  # younger folders that are not complete may be those of a compilation under way
_SECONDS = {"s": 1.0, "m": 60.0, "h": _HOUR, "d": 24 * _HOUR, "w": 168 * _HOUR}
_BYTES = {"": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30,
          "TiB": 2**40}  # fmt: skip

Why = Literal["incomplete", "older", "size"]


class Going(NamedTuple):
    """One entry that goes, and why."""

    entry: EntryRow
    why: Annotated[Why, "incomplete, older than --older-than, or beyond --max-size"]


class Collected(NamedTuple):
    """The result of `compile cache gc`."""

    folder: str
    removed: Annotated[bool, "false for a dry run, which removes nothing"]
    going: tuple[Going, ...]
    locks: Annotated[int, "entries whose locks go"]
    freed: Annotated[int, "bytes of the entries that go"]
    kept: Annotated[int, "bytes of those that stay"]


def choose(found: list[Entry], now: float, older: float | None, most: int | None) -> Iterator[tuple[Entry, Why]]:
    """Yield the entries that go: incomplete ones of an hour ago, old ones, then the oldest until the rest fits.

    Locked entries stay, and count towards the size.
    """
    rest = []
    for one in sorted(found, key=lambda one: one.modified):
        age = now - one.modified
        if one.state in ("incomplete", "left over") and age > _HOUR:
            yield one, "incomplete"
        elif older is not None and age > older and one.state == "complete":
            yield one, "older"
        else:
            rest.append(one)
    total = sum(one.size for one in rest)
    for one in rest:
        if most is None or total <= most:
            return
        if one.state == "complete":
            total -= one.size
            yield one, "size"


def view(found: Collected) -> list[str]:
    """Return a line for each entry that goes, and a sum."""
    lines = [f"{one.entry.compiler}/{one.entry.key}: {_WHY[one.why]}, {bytes_text(one.entry.size)}"
             for one in found.going]  # fmt: skip
    locks = f", {count(found.locks, 'lock')}" if found.locks else ""
    told = "removed" if found.removed else "would go; --delete removes them"
    last = f"{count(len(lines), 'module')}{locks}, {bytes_text(found.freed)} {told}; {bytes_text(found.kept)} stay"
    return [*lines, f"{found.folder}: {last}"]


_WHY: dict[Why, str] = {"incomplete": "not complete", "older": "older than asked for", "size": "beyond the size"}


def _age(text: str) -> float:
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([smhdw])", text.strip())
    if found is None:
        raise typer.BadParameter(f"{text!r} is no time such as 12h, 30d or 4w")
    return _finite(float(found[1]) * _SECONDS[found[2]], text)


def _size(text: str) -> int:
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]i?B|)", text.strip())
    if found is None:
        raise typer.BadParameter(f"{text!r} is no size such as 500MB or 10GiB")
    return int(_finite(float(found[1]) * _BYTES[found[2]], text))


def _finite(value: float, text: str) -> float:
    if math.isinf(value):  # a float's text may have any number of digits
        raise typer.BadParameter(f"{text[:20]}... is more than a number can be")
    return value


def cache_collect(
    cache_dir: CacheFolder = None,
    older_than: Annotated[
        float | None,
        typer.Option(
            "--older-than",
            metavar="TIME",
            parser=_age,
            help="Remove what was written longer ago: 12h, 30d.",
            show_default=False,
        ),
    ] = None,
    max_size: Annotated[
        int | None,
        typer.Option(
            "--max-size",
            metavar="SIZE",
            parser=_size,
            help="Remove the oldest until the rest fits: 10GiB.",
            show_default=False,
        ),
    ] = None,
    locks: Annotated[
        bool, typer.Option("--locks", help="Remove locks too; no other process may be using the cache.")
    ] = False,
    delete: Annotated[bool, typer.Option("--delete", help="Remove; without it nothing is, only listed.")] = False,
    json: Json = False,
) -> None:
    """List what a compile cache need not keep; remove it with --delete.

    Entries that are not complete and an hour old always go. Locked ones stay unless --locks says that nobody uses them.
    """  # fmt: skip
    with report(
        "compile cache gc", json, cache_dir=cache_dir, older_than=older_than, max_size=max_size, locks=locks,
        delete=delete,
    ) as out:  # fmt: skip
        root = cache_root(cache_dir)
        found = list(entries(root))
        locked = [one for one in found if one.state == "locked"] if locks else []
        if locks:
            found = [one.unlocked() for one in found]
        chosen = list(choose(found, time.time(), older_than, max_size))
        if delete:
            for one in locked:
                unlock(one)
            for one, _ in chosen:
                remove(one)
        freed = sum(one.size for one, _ in chosen)
        result = Collected(
            str(root), delete, tuple(Going(entry_row(one), why) for one, why in chosen), len(locked), freed,
            sum(one.size for one in found) - freed,
        )  # fmt: skip
        out.result = result
        out.lines = lambda: view(result)


app = command_app(cache_collect, result=Collected)
