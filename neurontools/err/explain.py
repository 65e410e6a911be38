"""`neurontools err explain`: what an error means, what usually causes it, and where to look next."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterable, Iterator
from typing import Annotated, TextIO

import typer

from formats.errors import FormatError, NotFoundError
from formats.nrt.facts import Fact, Family
from formats.nrt.infodump import Infodump
from formats.nrt.log import LogLine, parse_line
from formats.nrt.lookup import Mention, fact_of, mentions, status_of
from formats.nrt.story import Event, Story, merge_stories, read_story
from neurontools.command.lazy import command_app
from neurontools.command.options import Json
from neurontools.command.output import report
from neurontools.err.rows import (
    Answer,
    CodeAnswer,
    ErrorRow,
    InfodumpRow,
    LineAnswer,
    LineRow,
    LogAnswer,
    LoggedError,
    LogRow,
)
from neurontools.text.table import bold

_STANDARD_INPUT = "-"
_MOST_LOGS = 10_000
_PIECE = 1 << 16  # characters of a line that are read at once
_FAMILIES: dict[Family, str] = {
    "status": "status of the Neuron runtime",
    "driver": "error family that the Neuron driver counts",
    "hardware": "hardware error in the kernel log",
    "message": "message of runtime, driver or collectives",
    "compiler": "error of the Neuron Graph Compiler",
}


def answer(words: list[str]) -> Answer:
    """Return what is known of a code, a name, a line, or the logs in files and folders ("-" for standard input).

    Raises NotFoundError where nothing is known, FileNotFoundError for what looks like the name of a file.
    """
    logs = _logs(words)
    if len(logs) > 1:
        return _of_logs(logs)
    text = logs[0] if logs else " ".join(words)
    if text == _STANDARD_INPUT:
        if isinstance(sys.stdin, io.TextIOWrapper):
            sys.stdin.reconfigure(encoding="utf-8", errors="replace")
        return _of_log(read_story(_pieces(sys.stdin)))
    # os.path answers "no" for a text that no file can be called, where Path raises.
    if status_of(text) is None and os.path.isfile(text):
        with open(text, encoding="utf-8", errors="replace") as file:
            return _of_log(read_story(_pieces(file)))
    found = mentions(text)
    if len(text.split()) > 1:
        if not found:
            raise NotFoundError(f"the line mentions no error that is known: {text[:80]!r}")
        return LineAnswer("line", tuple(_error(one) for one in found), None, _line(parse_line(text)), ())
    if not found and ("/" in text or text.endswith((".log", ".txt"))):
        raise FileNotFoundError(2, "no such file", text)
    return CodeAnswer("code", (_error(Mention(found[0].fact if found else fact_of(text), {})),), None, ())


def _logs(words: list[str]) -> list[str]:
    """Return the files that all of the words name: files, and what ends in .log below folders; none for other words."""
    found: list[str] = []
    for word in words:
        if status_of(word) is None and os.path.isfile(word):
            found.append(word)
        elif os.path.isdir(word):
            for folder, folders, files in os.walk(word):
                folders.sort()
                found += [os.path.join(folder, name) for name in sorted(files) if name.endswith(".log")]
                if len(found) > _MOST_LOGS:
                    raise FormatError("too many logs", path=word, expected=f"at most {_MOST_LOGS:,}")
            if not found:
                raise NotFoundError(f"{word}: nothing in it ends in .log")
        else:
            return []
    return list(dict.fromkeys(found))


def _of_logs(paths: list[str]) -> LogAnswer:
    stories = {}
    for path in paths:
        with open(path, encoding="utf-8", errors="replace") as file:
            stories[path] = read_story(_pieces(file))
    return _of_log(merge_stories(stories), tuple(paths))


def _pieces(file: TextIO) -> Iterator[str]:
    """Yield lines in pieces of a bounded length: a file without line ends must not fill memory."""
    while piece := file.readline(_PIECE):
        yield piece


def _of_log(story: Story, files: tuple[str, ...] | None = None) -> LogAnswer:
    first = story.first
    # One log in its own order, several in the order of time.
    events = sorted(story.events, key=lambda event: (event is not first, event.line if files is None else 0))
    first_error = None if story.first_error is None else story.first_error.isoformat()
    about = LogRow(story.lines, story.recognised, tuple(sorted(story.processes)), first_error, files)
    logs: list[str | None] = [*story.block_logs] or [None] * len(story.blocks)
    blocks = tuple(_infodump(block)._replace(log=log) for block, log in zip(story.blocks, logs, strict=True))
    return LogAnswer("log", tuple(map(_logged, events)), about, blocks)


def _error(one: Mention) -> ErrorRow:
    fact = one.fact
    return ErrorRow(_code(fact), fact.name, fact.family, fact.meaning, fact.causes, fact.next_steps,
                    fact.counter or None, fact.command or None, fact.provenance, fact.cite, fact.fatal,
                    dict(one.values))  # fmt: skip


def _code(fact: Fact) -> int | str | None:
    return int(fact.code) if fact.code.isdecimal() else fact.code or None


def _logged(event: Event) -> LoggedError:
    time = None if event.time is None else event.time.isoformat()
    return LoggedError(**vars(_error(Mention(event.fact, event.values))), line=event.line, time=time, pid=event.pid,
                       count=event.count, text=event.text, log=event.log or None)  # fmt: skip


def _line(parsed: LogLine | None) -> LineRow | None:
    return None if parsed is None else LineRow(**{**parsed._asdict(), "time": parsed.time.isoformat()})


def _infodump(block: Infodump) -> InfodumpRow:
    time = None if block.time is None else block.time.isoformat()
    return InfodumpRow(block.line, time, block.pid, block.status, block.call, block.fields, block.other,
                       block.environment, block.whole)  # fmt: skip


def view(found: Answer) -> Iterator[str]:
    """Yield the text of an answer."""
    if isinstance(found, LogAnswer):
        yield from _log_view(found)
        return
    for number, error in enumerate(found.errors):
        if number:
            yield ""
        yield from _error_view(error)


def _log_view(found: LogAnswer) -> Iterator[str]:
    about = found.log
    who = ", ".join(map(str, about.processes[:8])) or "none"
    logs = f"{len(about.files):,} logs, " if about.files else ""
    yield f"{logs}{about.lines:,} lines, {about.recognised:,} of the runtime; processes: {who}"
    if not found.errors:
        yield "no error that is known"
    for number, error in enumerate(found.errors):
        times = f", {error.count} times" if error.count > 1 else ""
        process = f", process {error.pid}" if error.pid is not None else ""
        yield ""
        where = f"{error.log} " if error.log else ""
        when = f"{error.time} " if error.log and error.time else ""
        first = "first: " if not number and error.fatal else ""
        yield f"{first}{when}{where}line {error.line}{process}{times}: {error.text}"
        yield from ("  " + text for text in _error_view(error))
    for block in found.infodumps:
        yield ""
        yield from _infodump_view(block)


def _error_view(error: ErrorRow) -> Iterator[str]:
    code = "" if error.code is None or str(error.code) in error.name else f" ({error.code})"
    yield bold(error.name + code)
    yield f"  is        {_FAMILIES[error.family]}" + ("" if error.fatal else ", no failure")
    yield f"  means     {error.meaning}"
    for name, value in error.values.items():
        yield f"  {name[:9].ljust(9)} {value}"
    yield from _listed("cause", error.causes)
    yield from _listed("next", error.next_steps)
    if error.counter:
        yield f"  counter   {error.counter} (sysfs)"
    if error.command:
        yield f"  dump      {error.command}"
    yield f"  source    {error.cite} ({error.provenance})"


def _listed(head: str, texts: Iterable[str]) -> Iterator[str]:
    for number, text in enumerate(texts):
        yield f"  {('' if number else head).ljust(9)} {text}"


def _infodump_view(block: InfodumpRow) -> Iterator[str]:
    where = f" of {block.log}" if block.log else ""
    yield bold(f"nrt_infodump at line {block.line}{where}" + ("" if block.whole else ", cut off"))
    rows = {**{key.replace("_", " "): value for key, value in block.fields.items()}, **block.other}
    width = max((len(key) for key in rows), default=0)
    yield from (f"  {key.ljust(width)}  {value}" for key, value in rows.items())
    yield from (f"  {key}={value}" for key, value in block.environment.items())


def explain(
    what: Annotated[
        list[str],
        typer.Argument(
            metavar="CODE|NAME|LINE|FILE...|-",
            help="A status (1006, NRT_EXEC_OOB), a driver or compiler error, a line of a log, log files or folders of "
            "them, or - for a log on standard input.",
            show_default=False,
        ),
    ],
    json: Json = False,
) -> None:
    """Explain an error code, a name, a log line or a whole log.

    Knows every NRT status, the errors that the driver counts and prints to the kernel log, messages of runtime and
    collectives, and the codes of the graph compiler (NCC_...).  Of a log it gives each kind of error once per process,
    the first one first, and the information blocks that the runtime prints when an execution fails.  Logs of several
    ranks are one timeline: what failed by itself comes before those that only waited for it.
    """
    with report("err explain", json, what=" ".join(what)) as out:
        out.result = found = answer(what)
        out.lines = lambda: view(found)


app = command_app(explain, Answer)
