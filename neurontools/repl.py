"""The debugger on a terminal, in a script or in a pipe: lines in, results as text or as one JSON document each."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from formats.errors import NeuronError
from neurontools.debug_commands import COMMANDS, TOPICS, look_up
from neurontools.exits import ExitStatus
from neurontools.output import envelope, note

if TYPE_CHECKING:
    from emulator.session import Session

__all__ = ["Repl", "split_commands", "without_comment"]

# "#12" is an event's number, anything else behind # a comment.
_COMMENT = re.compile(r"(?:^|(?<=\s))#(?!\d)|^\s*#")
_REPEATED = (
    "step", "stepi", "next", "continue", "list", "x", "disassemble", "reverse-step", "reverse-next", "reverse-continue",
)  # fmt: skip
_HISTORY = 1000


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

    # --- commands ----------------------------------------------------------------------------------------------------

    def execute(self, line: str) -> ExitStatus:
        """Carry out one command and print what came of it; errors become one line and a status."""
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
            result = command.run(self.session, rest)
        except NeuronError as error:
            return self._failed(text, error)
        except KeyboardInterrupt:
            note("interrupted")
            return ExitStatus.INTERRUPTED
        if command.name == "quit":
            self.ended = True
            return ExitStatus.OK
        self._show(text, command.name, result)
        return ExitStatus.INTERRUPTED if getattr(result, "reason", "") == "interrupted" else ExitStatus.OK

    def _show(self, text: str, name: str, result: Any) -> None:
        from neurontools.render.session import plain, text_of

        if self.as_json:
            self._document(text, ExitStatus.OK, result={"command": name, "value": plain(result)})
            return
        lines = list(text_of(result))
        if not lines and name in ("info", "delete", "enable", "disable"):
            lines = ["none"]
        for line in lines:
            print(line)

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
        for line in lines:
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
        with _History(self):
            while not self.ended:
                core, engine = self.session.state().focus
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

    # --- completion --------------------------------------------------------------------------------------------------

    def complete(self, line: str) -> list[str]:
        """Return what the last word of a line may become."""
        head, _, word = line.rpartition(" ")
        if not head.strip():
            return [f"{name} " for name in COMMANDS if name.startswith(word)]
        return [name for name in self._names(head.split()[0]) if name.startswith(word)]

    def _names(self, command: str) -> list[str]:
        try:
            name = look_up(command)[0].name
        except NeuronError:
            return []
        session = self.session
        if name == "info":
            return list(TOPICS)
        if name == "help":
            return list(COMMANDS)
        if name == "goto":
            return [*(mark.name for mark in session.when().marks), "start", "end"]
        if name in ("print", "x", "last-write", "watch", "rwatch", "awatch"):
            return session.tensors.names(session.focus()[0])
        engines = ["pe", "act", "pool", "dve", "sp"]
        if name in ("stepi", "disassemble", "focus", "why"):
            return [*engines, *(f"nc{core.index}" for core in session.device.cores)]
        if name in ("break", "tbreak", "until"):
            queues = [queue.name for queue in session.device.queues]
            lines = [f"{Path(file).name}:{line}" for file, lines in session.program.lines.items() for line in lines]
            return [*engines, *queues, *lines]
        return []


class _History:
    """Line editing with history and completion, where the platform has readline."""

    def __init__(self, repl: Repl) -> None:
        self.repl = repl
        folder = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
        self.path = Path(folder) / "neurontools" / "debug_history"
        self._matches: list[str] = []
        try:
            import readline
        except ImportError:
            self.readline: Any = None
        else:
            self.readline = readline

    def __enter__(self) -> _History:
        if self.readline is not None:
            self.readline.set_completer_delims(" ")
            self.readline.set_completer(self._complete)
            self.readline.parse_and_bind("tab: complete")
            self._quietly(lambda: self.readline.read_history_file(self.path))
        return self

    def __exit__(self, *_: object) -> None:
        if self.readline is not None:
            self.readline.set_completer(None)
            self.readline.set_history_length(_HISTORY)
            self._quietly(lambda: self.path.parent.mkdir(parents=True, exist_ok=True))
            self._quietly(lambda: self.readline.write_history_file(self.path))

    def _complete(self, word: str, number: int) -> str | None:
        if number == 0:
            line = self.readline.get_line_buffer()[: self.readline.get_endidx()]
            self._matches = self.repl.complete(line.lstrip())
        return self._matches[number] if number < len(self._matches) else None

    @staticmethod
    def _quietly(action: Any) -> None:
        try:
            action()
        except OSError:
            return  # no history is no reason to stop somebody
