"""The debugger on a terminal, in a script or in a pipe: lines in, results as text or as one JSON document each."""

from __future__ import annotations

import json
import sys
from collections import deque
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from formats.errors import NeuronError
from formats.named_tuple import NamedTuple
from neurontools.command.errors_to_exit import classify
from neurontools.command.exits import ExitStatus
from neurontools.command.output import envelope, note
from neurontools.debugger.commands.carry_out import Answer, carry_out, takes_block, without_comment
from neurontools.debugger.commands.table import completions, look_up
from neurontools.debugger.errors import UsageError
from neurontools.debugger.json_values import plain
from neurontools.debugger.results import Lines
from neurontools.debugger.scripting import MOST_LINES
from neurontools.running.view import printed_lines
from neurontools.text.terminal import History, page
from neurontools.text.visible import json_text, printable, visible

if TYPE_CHECKING:
    from neurontools.debugger.session import Session

__all__ = ["Line", "Repl", "script_lines"]


class Line(NamedTuple):
    """A line of commands; `where` is the file and line it comes from, "" where there is no file."""

    text: str
    where: str = ""


def script_lines(path: Path, text: str) -> Iterator[Line]:
    """Yield the lines of a script."""
    for number, line in enumerate(text.splitlines(), 1):
        yield Line(line, f"{path}:{number}")


class Repl:
    """Runs command lines against a session; `status` is the exit status of the whole.

    In a batch the first command that fails ends it, with its exit status; at the prompt it is only reported.
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
        self._lines: Iterator[Line] = iter(())  # what follows the present line
        self._where = ""
        self._hook: deque[Line] = deque()  # what is left of the commands of the breakpoint that stopped last
        self._script: deque[Line] = deque()  # of a file of commands, or of a command that the person made

    # --- commands ----------------------------------------------------------------------------------------------------

    def execute(self, line: str) -> ExitStatus:
        """Run one command, and those of the breakpoints it stops at; errors become one line and a status."""
        # What a line before set off ended with it: a mistake there must not let the rest run later.
        self._hook.clear()
        self._script.clear()
        status, count = self._execute(line), 0
        while (self._hook or self._script) and not status and not self.ended:
            text, self._where = (self._hook or self._script).popleft()
            count += 1
            if count > MOST_LINES:
                return self._failed(line, UsageError(f"{line.split()[0]} runs more than {MOST_LINES} lines"))
            if not self.as_json:
                for each in text.splitlines():
                    print(visible(f"> {each}"))
            status = self._execute(text)
        return status

    def _execute(self, line: str) -> ExitStatus:
        text = without_comment(line)
        if not text:
            return ExitStatus.OK
        try:
            whole = "\n" in text or not takes_block(text)
            answer = carry_out(self.session, text) if whole else self._block(text)
        except KeyboardInterrupt:
            return self._interrupted(text)
        if answer.command is not None:
            self.last = _repeated(text, answer.command.repeats)
        if answer.error is not None:
            return self._failed(text, answer.error)
        if answer.name == "quit":
            self.ended = True
            return ExitStatus.OK
        among = self.session.among
        if among is not None:  # the command may have chosen another rank, or stopped at one
            self.session = among.sessions[among.selected]
        self._show(answer)
        if answer.reason == "interrupted":
            return ExitStatus.INTERRUPTED
        if isinstance(answer.value, Lines):
            name, lines, numbers = answer.value
            places = [f"{name}:{number}" for number in numbers] or [self._where] * len(lines)
            (self._hook or self._script).extendleft(reversed(list(map(Line, lines, places))))
        if answer.stopped_at:  # what was left of the commands of the stop before goes
            self._hook = deque(Line(text, self._where) for text in self.session.commands_of(answer.stopped_at))
        return ExitStatus.OK

    def _block(self, text: str) -> Answer:
        """Take the lines up to `end` as a part of the command; a mistake in those of a breakpoint is told at once."""
        lines, depth = [text], 0
        named = look_up(text)[0].name
        for line in self._lines:
            self._where = line.where
            more = without_comment(line.text)
            if more == "end" and not depth:
                break
            if more:
                depth += takes_block(more) - (more == "end")
                if named == "commands":
                    try:
                        look_up(self.session.scripting.expanded(more))
                    except NeuronError as error:
                        return Answer(text, error=error)
                lines.append(more)
        return carry_out(self.session, "\n".join(lines))

    def _show(self, answer: Answer) -> None:
        if self.as_json:
            result = {"command": answer.name, "value": plain(answer.value), "displays": plain(answer.displays)}
            self._document(answer.text, ExitStatus.OK, result=result)
            return
        lines = list(map(printable, [*self._printed(), *answer.lines]))
        if not (self._paging and page(lines)):
            for line in lines:
                print(line)

    def _printed(self) -> Iterator[str]:
        """Yield what the program has printed since it was last looked at."""
        prints = self.session.prints()
        new = prints[self._prints :]
        self._prints = len(prints)
        for item in new:
            yield from printed_lines(item)

    def _interrupted(self, text: str) -> ExitStatus:
        if self.as_json:
            error = {"kind": "interrupted", "message": "interrupted"}
            self._document(text, ExitStatus.INTERRUPTED, error=error)
        else:
            note("interrupted")
        return ExitStatus.INTERRUPTED

    def _failed(self, text: str, error: NeuronError) -> ExitStatus:
        failure = classify(error)
        usage = isinstance(error, UsageError)
        status = ExitStatus.USAGE if usage else failure.status
        message = f"{self._where}: {failure.message}" if self._where else failure.message
        if self.as_json:
            self._document(text, status, error={"kind": "usage" if usage else failure.kind, "message": message})
        else:
            sys.stdout.flush()
            note(f"neurontools: {message}")
        return status

    def _document(self, text: str, status: ExitStatus, **content: object) -> None:
        warnings, self.warnings = self.warnings, []
        document = envelope("debug", {**self.inputs, "command": text}, int(status), warnings, **content)
        print(json_text(json.dumps(document, default=str, allow_nan=False)), flush=True)

    # --- where lines come from ---------------------------------------------------------------------------------------

    def batch(self, lines: Iterable[str | Line], *, repeats: bool = False) -> ExitStatus:
        """Run commands until one fails or quits; at the end a fault or hang is a failure too.

        Where an empty line `repeats` the last command, those of a block do not.
        """
        self._lines = (line if isinstance(line, Line) else Line(line) for line in lines)
        for line in self._lines:
            again = self.last if repeats and not line.text.strip() else ""
            text, self._where = without_comment(line.text) or again, line.where
            if not text:
                continue
            if not self.as_json:
                print(visible(f"> {text}"))
            self.status = self.execute(text)
            if self.status or self.ended:
                break
        self._where = ""
        return self.status or self.outcome()

    def outcome(self) -> ExitStatus:
        """Return the status that the execution itself ended with, as far as it has been reported."""
        among = self.session.among
        for session in (self.session,) if among is None else among.sessions.values():
            status = self._outcome_of(session)
            if status:
                return status
        return ExitStatus.OK

    @staticmethod
    def _outcome_of(session: Session) -> ExitStatus:
        outcome, fault = session.outcome, session.device.fault
        if outcome == "fault" and fault is not None and fault.kind == "unsupported":
            return ExitStatus.UNSUPPORTED
        return ExitStatus.FAULT if outcome in ("fault", "hang") else ExitStatus.OK

    def piped(self, stream: TextIO) -> ExitStatus:
        """Run the lines of a pipe or file; an empty line repeats the last command."""
        return self.batch(stream, repeats=True)

    def interact(self) -> ExitStatus:
        """Ask at the terminal until quit or the end of input."""
        # Scripts are read by programs, which a pager would stop.
        self._paging = sys.stdout.isatty() and not self.as_json
        self._lines = iter(self._more, Line("", "never"))
        with History(self.complete):
            while not self.ended:
                core, engine = self.session.focus()
                try:
                    among = self.session.among
                    rank = "" if among is None else f"rank {among.rank} "
                    line = input(f"(neuron {rank}nc{core} {engine}) ")
                except EOFError:
                    print()
                    break
                except KeyboardInterrupt:
                    print()
                    continue
                try:
                    self.execute(line if line.strip() else self.last)
                except KeyboardInterrupt:  # while lines were printed: to the prompt, as in gdb
                    note("interrupted")
        return ExitStatus.OK

    @staticmethod
    def _more() -> Line:
        """Return a line of a block at the terminal."""
        try:
            return Line(input("> "))
        except (EOFError, KeyboardInterrupt):
            print()
            return Line("end")

    def complete(self, line: str) -> list[str]:
        """Return what the last word of a line may become."""
        return completions(self.session, line)


def _repeated(text: str, how: str) -> str:
    """Return the line that an empty one stands for after this one: of `x/8f PLACE` the values that follow."""
    word, *rest = text.replace("/", " /", 1).split()
    if how == "name":
        return " ".join([word, *(part for part in rest[:1] if part.startswith("/"))])
    return text if how == "line" else ""
