"""A survey of many files: which ones, several processes to judge them, and the sums."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path

from formats.errors import NotFoundError
from neurontools.neff.surveying.judge import Options, judge
from neurontools.neff.surveying.records import CompilerRow, Example, FileRecord, SummaryExample, Survey, SurveySummary

__all__ = ["anonymous", "find_files", "summed", "survey"]

Ready = Callable[[FileRecord], None]


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


def survey(paths: list[str], options: Options, jobs: int = 1, ready: Ready | None = None) -> list[FileRecord]:
    """Return the record of every file, in the order of `paths`; `ready` is called with each as soon as it is made.

    A file that takes its process with it (memory that the system refuses, a crash) is judged once more, alone, before
    it is blamed.
    """
    records: dict[str, FileRecord] = {}
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
        records[path] = record or FileRecord(path, error=f"{path}: took its process with it")
        if ready is not None:
            ready(records[path])
    return [records[path] for path in paths]


def _executor(jobs: int) -> Executor:
    return ThreadPoolExecutor(1) if jobs == 1 else ProcessPoolExecutor(jobs, mp_context=get_context("spawn"))


def _judged(pool: Executor, paths: list[str], options: Options) -> Iterator[tuple[str, FileRecord | None]]:
    """Yield path and record as they come; None where the process was lost."""
    waiting: dict[Future[FileRecord], str] = {}
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
                # No input should raise anything else: our bug is reported in the record, and the survey goes on.
                text = " ".join(str(error).split())
                text = f"bug in neurontools: {type(error).__name__}: {text}"
                yield waiting[done], FileRecord(waiting[done], error=text)
    finally:
        pool.shutdown(cancel_futures=True)


def summed(records: list[FileRecord]) -> Survey:
    """Return the records with their sums: words by compiler, what is not understood with examples, executions."""
    compilers: dict[tuple[str | None, str | None], CompilerRow] = {}
    opcodes: Counter[str] = Counter()
    executed: Counter[str] = Counter()
    unknown: dict[str, SummaryExample] = {}
    inexact: dict[str, SummaryExample] = {}
    inconsistent: dict[str, SummaryExample] = {}
    unnamed: dict[str, SummaryExample] = {}
    for record in records:
        if record.executed is not None:
            executed[record.executed.how] += 1
        words = record.words
        if words is None:
            continue
        key = record.compiler, record.target
        if key not in compilers:
            compilers[key] = CompilerRow(record.compiler or "-", record.target or "-", record.checked or "unchecked")
        compilers[key].add(words)
        opcodes.update(words.opcodes)
        _add(unknown, words.unknown, record.path)
        _add(inexact, words.inexact, record.path)
        _add(inconsistent, words.inconsistent, record.path)
        _add(unnamed, words.unnamed, record.path)
    rows = list(compilers.values())
    return Survey(records, SurveySummary(
        len(records),
        sum(record.error is None for record in records),
        sum(record.error is None and not record.problem_count for record in records),
        sum(row.words for row in rows),
        sum(row.decoded for row in rows),
        sum(row.reencoded for row in rows),
        sum(row.consistent for row in rows),
        rows,
        dict(sorted(opcodes.items(), key=lambda item: (-item[1], item[0]))),
        unknown,
        inexact,
        inconsistent,
        unnamed,
        dict(executed),
    ))  # fmt: skip


def _add(table: dict[str, SummaryExample], examples: dict[str, Example], path: str) -> None:
    """Count the examples of one file."""
    for text, example in examples.items():
        known = table.get(text)
        if known is None:
            table[text] = SummaryExample(example.count, example.place, example.raw, 1, path)
        else:
            known.count += example.count
            known.files += 1


def anonymous(records: list[FileRecord]) -> list[FileRecord]:
    """Return the records without names: files by the beginning of their sha256, messages about their parts left out."""
    return [_without_name(record) for record in records]


def _without_name(record: FileRecord) -> FileRecord:
    try:
        with open(record.path, "rb") as file:
            name = hashlib.file_digest(file, "sha256").hexdigest()[:16]
    except OSError:
        name = "unreadable"
    executed = None if record.executed is None else record.executed._replace(reason=None)
    error = "cannot be read" if record.error else None
    return replace(record, path=name, error=error, problems=[], executed=executed)
