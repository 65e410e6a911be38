"""A survey of many files: which ones, one process each at a time, and the sums over them."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from formats.errors import NotFoundError
from neurontools.survey.judge import Options, judge, unread

__all__ = ["anonymous", "find_files", "summary", "survey", "understood"]

Ready = Callable[[dict[str, Any]], None]
_TABLES = ("unknown", "inexact", "inconsistent", "unnamed")
_COUNTS = ("words", "decoded", "reencoded", "consistent")


def find_files(places: Iterable[Path]) -> list[str]:
    """Return the files named, and all that end in .neff below the folders named, sorted by folder, each file once.

    Raises NotFoundError where a place does not exist or nothing is found.
    """
    found: dict[str, str] = {}
    for place in places:
        if place.is_dir():
            for folder, folders, names in os.walk(place):
                folders.sort()
                for name in sorted(names):
                    if name.endswith(".neff"):
                        path = os.path.join(folder, name)
                        found.setdefault(os.path.realpath(path), path)
        elif place.exists():
            found.setdefault(os.path.realpath(place), str(place))
        else:
            raise NotFoundError(f"{place}: no such file or folder")
    if not found:
        raise NotFoundError(f"no file ends in .neff below {', '.join(map(str, places))}")
    return list(found.values())


def survey(paths: list[str], options: Options, jobs: int = 1, ready: Ready | None = None) -> list[dict[str, Any]]:
    """Return the record of every file, in the order of `paths`; `ready` gets each record when it is made.

    A file that takes its process with it (memory that the system refuses, a crash) is judged alone once more before it
    is said to have done so.
    """
    records: dict[str, dict[str, Any]] = {}
    jobs = min(jobs, len(paths))
    with _executor(jobs) as pool:
        for path, record in _judged(pool, paths, options):
            if record is not None:
                records[path] = record
                if ready is not None:
                    ready(record)
    for path in (path for path in paths if path not in records):
        with _executor(2) as pool:
            record = next(iter(dict(_judged(pool, [path], options)).values()))
        records[path] = record or unread(path, f"{path}: took its process with it")
        if ready is not None:
            ready(records[path])
    return [records[path] for path in paths]


def _executor(jobs: int) -> Executor:
    return ThreadPoolExecutor(1) if jobs == 1 else ProcessPoolExecutor(jobs, mp_context=get_context("spawn"))


def _judged(pool: Executor, paths: list[str], options: Options) -> Iterator[tuple[str, dict[str, Any] | None]]:
    """Yield path and record as they come; None where the process was lost."""
    waiting: dict[Future[dict[str, Any]], str] = {}
    try:
        for path in paths:
            waiting[pool.submit(judge, path, options)] = path
    except BrokenProcessPool:
        pass
    try:
        for done in as_completed(waiting):
            error = done.exception()
            if error is None:
                yield waiting[done], done.result()
            elif isinstance(error, BrokenProcessPool):
                yield waiting[done], None
            else:
                # No input should raise anything else: our bug is told in the record, and the survey goes on.
                text = " ".join(str(error).split())
                yield waiting[done], unread(waiting[done], f"bug in neurontools: {type(error).__name__}: {text}")
    finally:
        pool.shutdown(cancel_futures=True)


def summary(records: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the sums: files, words by compiler, what is not understood with counts and examples, executions."""
    compilers: dict[tuple[str, str], dict[str, Any]] = {}
    tables: dict[str, dict[str, dict[str, Any]]] = {name: {} for name in _TABLES}
    opcodes: dict[str, int] = {}
    executed: dict[str, int] = {}
    for record in records:
        words = record["words"]
        if record["executed"] is not None:
            executed[record["executed"]["how"]] = executed.get(record["executed"]["how"], 0) + 1
        if words is None:
            continue
        key = record["compiler"] or "-", record["target"]
        row = compilers.setdefault(
            key,
            {
                "compiler": key[0],
                "target": key[1],
                "checked": record["checked"],
                "files": 0,
                **dict.fromkeys(_COUNTS, 0),
            },
        )
        row["files"] += 1
        for name in _COUNTS:
            row[name] += words[name]
        for name, number in words["opcodes"].items():
            opcodes[name] = opcodes.get(name, 0) + number
        for name in _TABLES:
            for text, example in words[name].items():
                known = tables[name].get(text)
                if known is None:
                    tables[name][text] = {**example, "files": 1, "first": record["path"]}
                else:
                    known["count"] += example["count"]
                    known["files"] += 1
    return {
        "files": len(records),
        "read": sum(record["error"] is None for record in records),
        "sound": sum(record["error"] is None and not record["problem_count"] for record in records),
        **{name: sum(row[name] for row in compilers.values()) for name in _COUNTS},
        "compilers": list(compilers.values()),
        "opcodes": dict(sorted(opcodes.items(), key=lambda item: (-item[1], item[0]))),
        **tables,
        "executed": executed,
    }


def understood(record: dict[str, Any]) -> bool:
    """Tell whether there is nothing to report of a file."""
    words = record["words"]
    return (
        record["error"] is None
        and not record["problem_count"]
        and words is not None
        and words["words"] == words["decoded"] == words["reencoded"] == words["consistent"]
        and not words["unnamed"]
        and (record["executed"] is None or record["executed"]["how"] in ("finished", "skipped"))
    )


def anonymous(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the records without names: files by the beginning of their sha256, messages about their parts left out."""
    return [_without_name(record) for record in records]


def _without_name(record: dict[str, Any]) -> dict[str, Any]:
    path = record["path"]
    name = path
    try:
        with open(path, "rb") as file:
            name = hashlib.file_digest(file, "sha256").hexdigest()[:16]
    except OSError:
        name = "unreadable"
    executed = record["executed"] and {**record["executed"], "reason": None}
    error = "cannot be read" if record["error"] else None
    return {**record, "path": name, "error": error, "problems": [], "executed": executed}
