"""The debugger on a terminal, in a script or in a pipe: lines in, results as text or as one JSON document each."""

from __future__ import annotations

import json
import re
import sys
from collections import deque
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from formats.errors import NeuronError
from neurontools.debug_commands import COMMANDS, TOPICS, look_up
from neurontools.exits import ExitStatus
from neurontools.output import envelope, note
from neurontools.terminal import page

if TYPE_CHECKING:
    from emulator.session import Session

__all__ = ["Repl", "split_commands", "without_comment"]

# "#12" is an event's number, anything else behind # a comment.
_COMMENT = re.compile(r"(?:^|(?<=\s))#(?!\d)|^\s*#")
_REPEATED = (
    "step", "stepi", "next", "continue", "list", "x", "disassemble", "reverse-step", "reverse-next", "reverse-continue",
)  # fmt: skip


def without_comment(line: str) -> str:
    """Return a line without comment and blanks at its ends."""
    found = _COMMENT.search(line)
    return (line[: found.start()] if found else line).strip()


def split_commands(text: str) -> list[str]:
    """Return the commands of "a; b"."""
    return [part for line in text.splitlines() for part in map(str.strip, without_comment(line).split(";")) if part]


class Repl:
    """Runs command lines against a session; `status` is what the whole thing exits with.

    In a batch the first command that fails ends it, with its exit status; a person is told and asked again.
    """

    def __init__(self, session: Session, *, as_json: bool = False, inputs: dict[str, object] | None = None,
                 warnings: Iterable[str] = ()) -> None:  # fmt: skip
        self.session = session
        self.as_json = as_json
        self.inputs = inputs or {}
        self.warnings = list(warnings)
        self.status = ExitStatus.OK
        self.last = ""
        self.ended = False
        self._paging = False
        self._prints = 0  # of the program's prints, how many have been shown
        self._lines: Iterator[str] = iter(())  # what follows the line that is carried out
        self._hook: deque[str] = deque()  # what is left of the commands of the breakpoint that stopped last

    # --- commands ----------------------------------------------------------------------------------------------------

    def execute(self, line: str) -> ExitStatus:
        """Carry out one command, and those of the breakpoints it stops at; errors become one line and a status."""
        self._hook.clear()
        status = self._execute(line)
        while self._hook and not status and not self.ended:
            text = self._hook.popleft()
            if not self.as_json:
                print(f"> {text}")
            status = self._execute(text)
        return status

    def _execute(self, line: str) -> ExitStatus:
        text = without_comment(line)
        if not text:
            return ExitStatus.OK
        try:
            command, rest = look_up(text)
            self.last = command.name if command.name in ("list", "x") else text if command.name in _REPEATED else ""
            if command.name == "x" and rest.startswith("/"):
                self.last = f"x {rest.split()[0]}"
            if command.name not in ("list", "info", "print", "help"):
                self.session.forget_listing()
            result = self._block(rest) if command.name == "commands" else command.run(self.session, rest)
        except NeuronError as error:
            return self._failed(text, error)
        except OSError as error:
            from formats.errors import FormatError

            reason = (error.strerror or str(error)).lower()
            return self._failed(text, FormatError(f"cannot be written ({reason})", path=str(error.filename)))
        except KeyboardInterrupt:
            note("interrupted")
            return ExitStatus.INTERRUPTED
        if command.name == "quit":
            self.ended = True
            return ExitStatus.OK
        self._show(text, command.name, result)
        if getattr(result, "reason", "") == "interrupted":
            return ExitStatus.INTERRUPTED
        numbers = getattr(result, "breakpoints", ())
        if isinstance(numbers, tuple) and numbers:
            self._hook = deque(self.session.commands_of(numbers))
        return ExitStatus.OK

    def _block(self, rest: str) -> Any:
        """Take the lines up to `end` as the commands of a breakpoint."""
        from neurontools import debug_breaking

        lines = []
        for line in self._lines:
            text = without_comment(line)
            if text == "end":
                break
            if text:
                look_up(text)
                lines.append(text)
        return debug_breaking.commands(self.session, rest, lines)

    def _show(self, text: str, name: str, result: Any) -> None:
        from neurontools.render.session import plain, text_of

        if self.as_json:
            self._document(text, ExitStatus.OK, result={"command": name, "value": plain(result)})
            return
        lines = [*self._printed(), *text_of(result)]
        if not lines and name in ("info", "delete", "enable", "disable"):
            lines = ["none"]
        if not (self._paging and page(lines)):
            for line in lines:
                print(line)

    def _printed(self) -> Iterator[str]:
        """Yield what the program has printed since it was last looked at."""
        from neurontools.render.run import printed_lines

        prints = self.session.prints()
        new = prints[self._prints :]
        self._prints = len(prints)
        for item in new:
            yield from printed_lines(item)

    def _failed(self, text: str, error: NeuronError) -> ExitStatus:
        from emulator.session import UsageError
        from neurontools.errors_to_exit import classify

        failure = classify(error)
        usage = isinstance(error, UsageError)
        status = ExitStatus.USAGE if usage else failure.status
        if self.as_json:
            kind = "usage" if usage else failure.kind
            self._document(text, status, error={"kind": kind, "message": failure.message})
        else:
            sys.stdout.flush()
            note(f"neurontools: {failure.message}")
        return status

    def _document(self, text: str, status: ExitStatus, **content: object) -> None:
        warnings, self.warnings = self.warnings, []
        document = envelope("debug", {**self.inputs, "command": text}, int(status), warnings, **content)
        print(json.dumps(document, default=str, allow_nan=False), flush=True)

    # --- where lines come from ---------------------------------------------------------------------------------------

    def batch(self, lines: Iterable[str]) -> ExitStatus:
        """Carry out commands until one fails or quits; at the end a fault or hang is a failure too."""
        self._lines = iter(lines)
        for line in self._lines:
            text = without_comment(line)
            if not text:
                continue
            if not self.as_json:
                print(f"> {text}")
            self.status = self.execute(text)
            if self.status or self.ended:
                break
        return self.status or self.outcome()

    def outcome(self) -> ExitStatus:
        """Return the status that the execution itself ended with, as far as it has been reported."""
        outcome, fault = self.session.outcome, self.session.device.fault
        if outcome == "fault" and fault is not None and fault.kind == "unsupported":
            return ExitStatus.UNSUPPORTED
        return ExitStatus.FAULT if outcome in ("fault", "hang") else ExitStatus.OK

    def piped(self, stream: TextIO) -> ExitStatus:
        """Carry out the lines of a pipe or file; an empty line repeats the last command."""
        return self.batch(self._repeated(stream))

    def _repeated(self, stream: TextIO) -> Iterator[str]:
        for line in stream:
            yield self.last if not line.strip() else line

    def interact(self) -> ExitStatus:
        """Ask at the terminal until quit or the end of input."""
        from neurontools.terminal import History

        self._paging = sys.stdout.isatty() and not self.as_json
        self._lines = iter(self._more, None)
        with History(self.complete):
            while not self.ended:
                core, engine = self.session.focus()
                try:
                    line = input(f"(neuron nc{core} {engine}) ")
                except EOFError:
                    print()
                    break
                except KeyboardInterrupt:
                    print()
                    continue
                self.execute(line if line.strip() else self.last)
        return ExitStatus.OK

    @staticmethod
    def _more() -> str:
        """Return a line of a block at the terminal."""
        try:
            return input("> ")
        except (EOFError, KeyboardInterrupt):
            print()
            return "end"

    # --- completion --------------------------------------------------------------------------------------------------

    def complete(self, line: str) -> list[str]:
        """Return what the last word of a line may become."""
        head, _, word = line.rpartition(" ")
        if not head.strip():
            return [f"{name} " for name in COMMANDS if name.startswith(word)]
        words = head.split()
        return [name for name in self._names(words[0], len(words) > 1) if name.startswith(word)]

    def _names(self, command: str, deeper: bool) -> list[str]:
        try:
            name = look_up(command)[0].name
        except NeuronError:
            return []
        session = self.session
        if name == "info":
            return [*TOPICS, *(["pe", "act", "pool", "dve", "sp"] if deeper else [])]
        if name == "help":
            return list(COMMANDS)
        if name == "goto":
            return [*(mark.name for mark in session.when().marks), "start", "end"]
        if name in ("print", "x", "last-write", "watch", "rwatch", "awatch", "export"):
            return session.tensors.names(session.focus()[0])
        if name == "catch":
            return ["dma", "nan", "inf", "fault", "hang", "finding", *(queue.name for queue in session.device.queues)]
        if name == "checks":
            return ["on", "off", "memcheck", "initcheck", "racecheck", "synccheck", "all"]
        if name in ("delete", "enable", "disable", "condition", "ignore", "commands"):
            return [str(each.number) for each in session.breakpoints]
        engines = ["pe", "act", "pool", "dve", "sp"]
        if name in ("stepi", "disassemble", "focus", "why"):
            return [*engines, *(f"nc{core.index}" for core in session.device.cores)]
        if name in ("break", "tbreak", "until"):
            queues = [queue.name for queue in session.device.queues]
            lines = [f"{Path(file).name}:{line}" for file, lines in session.program.lines.items() for line in lines]
            return [*engines, *queues, *lines]
        return []
