"""How the screen is opened: on this terminal, or in a browser."""

from __future__ import annotations

import os
import shlex
import signal
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from formats.errors import UnsupportedError
from neurontools.tui.actions import ACTIONS
from neurontools.version import install_with

if TYPE_CHECKING:
    from neurontools.debugger import Session

__all__ = ["open_screen", "serve", "served", "wanted"]


def wanted() -> bool:
    """Return whether there is a terminal for a screen at every end, or textual-serve stands in for it."""
    if served():
        return True
    streams = sys.stdin, sys.stdout, sys.stderr  # Textual paints on the third
    return all(stream.isatty() for stream in streams) and os.environ.get("TERM") not in (None, "", "dumb")


def open_screen(session: Session, name: str, notes: Iterable[str] = ()) -> None:
    """Show a session until it is left; FormatError where the keymap file is wrong."""
    from neurontools.tui import settings  # deferred: start-up
    from neurontools.tui.app import TERMINATED, DebuggerApp  # deferred: start-up

    keymap = settings.load_keymap([action.name for action in ACTIONS])
    app = DebuggerApp(session, name, notes=notes, keymap=keymap, newcomer=settings.first_time())
    status = app.run()
    if status == TERMINATED:
        # With the terminal as it was, end as anybody who sent the signal expects.
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTERM)


def served() -> bool:
    """Return whether textual-serve stands in for the terminal."""
    return bool(os.environ.get("TEXTUAL_DRIVER"))


def serve(arguments: Sequence[str], host: str, port: int) -> None:
    """Serve `neurontools` with these arguments to browsers until interrupted; UnsupportedError without textual-serve.

    Each page that is opened is a session of its own.
    """
    try:
        from neurontools.tui.serving import ScreenServer  # deferred: optional textual
    except ImportError:
        raise UnsupportedError(f"--serve needs textual-serve: {install_with('web')}") from None
    command = shlex.join([sys.executable, "-m", "neurontools", *arguments])
    ScreenServer(command, host, port, "neurontools debug").serve()
