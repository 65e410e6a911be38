"""A person's terminal: line editing with history and completion, and a pager for what is longer than the screen."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

__all__ = ["HISTORY", "History", "kept_file", "page"]

HISTORY = "debug_history"  # one for the prompt and the screen
_LINES = 1000  # of it


def kept_file(name: str) -> Path:
    """Return where a file is that a person's next session finds again."""
    folder = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    return Path(folder) / "neurontools" / name


def page(lines: list[str]) -> bool:
    """Show lines in $PAGER, else less, where they do not fit the terminal; tell whether that was done."""
    if len(lines) < shutil.get_terminal_size().lines - 1:
        return False
    try:
        words = shlex.split(os.environ.get("PAGER") or "less")
    except ValueError:  # quotes that nobody closed
        return False
    if not words or shutil.which(words[0]) is None:
        return False
    sys.stdout.flush()
    # Ctrl-C is the pager's, which ends a search by it. A function, since a pager would inherit that it is ignored.
    before = signal.signal(signal.SIGINT, lambda number, frame: None)
    try:
        subprocess.run(words, input="\n".join([*lines, ""]).encode(), env={"LESS": "FRX", **os.environ}, check=False)
    finally:
        signal.signal(signal.SIGINT, before)
    return True


class History:
    """Line editing with history and completion, where the platform has readline."""

    def __init__(self, complete: Callable[[str], list[str]]) -> None:
        self.complete = complete
        self.path = kept_file(HISTORY)
        self._matches: list[str] = []
        try:
            import readline  # deferred: start-up
        except ImportError:
            self.readline: Any = None
        else:
            self.readline = readline

    def __enter__(self) -> Self:
        if self.readline is not None:
            self.readline.set_completer_delims(" ")
            self.readline.set_completer(self._complete)
            self.readline.parse_and_bind("tab: complete")
            self._quietly(lambda: self.readline.read_history_file(self.path))
        return self

    def __exit__(self, *_: object) -> None:
        if self.readline is not None:
            self.readline.set_completer(None)
            self.readline.set_history_length(_LINES)
            self._quietly(lambda: self.path.parent.mkdir(parents=True, exist_ok=True))
            self._quietly(lambda: self.readline.write_history_file(self.path))

    def _complete(self, word: str, number: int) -> str | None:
        if number == 0:
            line = self.readline.get_line_buffer()[: self.readline.get_endidx()]
            self._matches = self.complete(line.lstrip())
        return self._matches[number] if number < len(self._matches) else None

    @staticmethod
    def _quietly(action: Any) -> None:
        try:
            action()
        except OSError:
            return  # no history is no reason to stop somebody
