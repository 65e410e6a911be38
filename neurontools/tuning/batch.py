"""Many programs, each run, checked or profiled by the command of that name, in processes of their own."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from time import perf_counter
from typing import Any
from xml.etree import ElementTree

from formats.errors import FormatError
from formats.neff.fields import Fields, load
from formats.whole_files import temporary_place
from neurontools.command.exits import ExitStatus
from neurontools.command.files import need_file
from neurontools.tuning.children import child
from neurontools.tuning.results import Batch, Done, Task
from neurontools.tuning.workers import workers

__all__ = ["ACTIONS", "junit", "read_manifest", "run_batch"]

ACTIONS = ("run", "check", "profile")
_KEYS = ("file", "do", "name", "arguments", "options")


def read_manifest(path: Path, max_seconds: float) -> list[Task]:
    """Return the tasks of a manifest: TOML with a table `[[program]]` for each.

    `file` is relative to the manifest, `do` some of run, check and profile, `arguments` are a script's, `options` those
    of the command.  Raises FormatError for anything else.
    """
    try:
        found = tomllib.loads(need_file(path).read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise FormatError(f"not TOML: {error}", path=str(path)) from None
    fields = Fields(found, str(path))
    tasks: list[Task] = []
    unknown = set(found) - {"program"}
    if unknown or not fields.array("program"):
        raise FormatError("a manifest has tables [[program]] and nothing else", path=str(path),
                          got=", ".join(sorted(unknown)) or "nothing")  # fmt: skip
    for one in fields.objects("program"):
        rest = one.rest(*_KEYS)
        if rest:
            raise FormatError("unknown key", path=one.where, field=next(iter(rest)), expected=", ".join(_KEYS))
        file = path.parent / one.text("file")
        for action in one.texts("do") if "do" in one else ("run",):
            if action not in ACTIONS:
                raise FormatError("unknown action", path=one.where, field="do", expected=", ".join(ACTIONS), got=action)
            arguments, options = (one.texts(key) if key in one else () for key in ("arguments", "options"))
            tasks.append(Task(one.text("name", one.text("file")), action, str(file), arguments, options, max_seconds))
    return tasks


def run_batch(
    manifest: Path,
    *,
    jobs: int = 1,
    cluster: str | None = None,
    max_seconds: float = 600.0,
    tell: Callable[[int, int, int], None] | None = None,
) -> Batch:
    """Carry out every task of a manifest; `tell` is called with done, all and failed."""
    started = perf_counter()
    tasks = read_manifest(manifest, max_seconds)
    done: dict[int, Done] = {}
    with workers(jobs, cluster) as hands:
        open_: dict[Any, int] = {}
        waiting = list(enumerate(tasks))[::-1]
        while waiting or open_:
            while waiting and len(open_) < hands.room:
                number, task = waiting.pop()
                open_[hands.submit(carry_out, task)] = number
            for future in hands.first(set(open_)):
                done[open_.pop(future)] = future.result()
                if tell is not None:
                    tell(len(done), len(tasks), sum(not one.ok for one in done.values()))
    results = tuple(done[number] for number in range(len(tasks)))
    return Batch(str(manifest), len(tasks), sum(not one.ok for one in results),
                 round(perf_counter() - started, 3), results)  # fmt: skip


def carry_out(task: Task) -> Done:
    """Carry out one task in a process of its own."""
    words = [sys.executable, "-m", "neurontools", task.action, task.file, "--json", *task.options]
    words += ["--", *task.arguments] if task.arguments else []
    started = perf_counter()
    with (
        tempfile.TemporaryFile(dir=temporary_place()) as said,
        child(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=said) as process,
    ):
        try:
            answer, _ = process.communicate(timeout=task.max_seconds)
        except subprocess.TimeoutExpired:
            return Done(task.name, task.action, task.file, -1, f"over {task.max_seconds:g} s", task.max_seconds)
    seconds = round(perf_counter() - started, 3)
    status, time_ps, findings = process.returncode, None, None
    what = "ok" if status == 0 else _name(status)
    try:
        document = load(answer, f"{task.action} {task.name}").raw
    except FormatError:
        document = {}
    error, result = document.get("error"), document.get("result")
    if isinstance(error, dict):
        what = f"{what}: {error.get('message', '')}"
    if isinstance(result, dict):
        summary = result.get("summary")
        if task.action == "check" and isinstance(result.get("findings"), list):
            findings = len(result["findings"])
            if findings:
                first = result["findings"][0]
                what = f"{what}: {first.get('message', '')}" if status and isinstance(first, dict) else what
        time_ps = _time_of(result) or (_time_of(summary) if isinstance(summary, dict) else None)
    return Done(task.name, task.action, task.file, status, what, seconds, time_ps, findings)


def _name(status: int) -> str:
    if status < 0:
        return f"signal {-status}"
    return next((each.name.lower().replace("_", " ") for each in ExitStatus if each == status), f"status {status}")


def _time_of(result: dict[str, Any]) -> int | None:
    """Return the emulated time that a document of a command tells: of a program, or of all launches of a script."""
    if isinstance(result.get("time_ps"), int):
        return int(result["time_ps"])
    total = result.get("total_time_ns")
    if isinstance(total, int | float):
        return int(total * 1000 + 0.5)
    runs = result.get("launches", result.get("runs"))
    if isinstance(runs, list) and runs:
        times = [_time_of(one) for one in runs if isinstance(one, dict)]
        return sum(time for time in times if time is not None) if all(time is not None for time in times) else None
    return None


def junit(batch: Batch) -> Iterator[str]:
    """Yield a JUnit report as lines: a suite per program, a case per command."""
    root = ElementTree.Element("testsuites", name="neurontools batch")
    for name in dict.fromkeys(one.name for one in batch.results):
        mine = [one for one in batch.results if one.name == name]
        failed = [one for one in mine if not one.ok]
        suite = ElementTree.SubElement(root, "testsuite", name=name, tests=str(len(mine)), failures=str(len(failed)),
                                       errors="0", time=f"{sum(one.seconds for one in mine):.3f}")  # fmt: skip
        for one in mine:
            case = ElementTree.SubElement(suite, "testcase", classname=name, name=one.action, time=f"{one.seconds:.3f}")
            if not one.ok:
                ElementTree.SubElement(case, "failure", message=one.what, type=f"status {one.status}")
    ElementTree.indent(root)
    yield '<?xml version="1.0" encoding="UTF-8"?>'
    yield from ElementTree.tostring(root, encoding="unicode").splitlines()
