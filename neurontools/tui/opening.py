"""How the screen is opened: on this terminal, or in a browser."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from formats.errors import UnsupportedError

if TYPE_CHECKING:
    from emulator.session import Session

__all__ = ["open_screen", "serve", "wanted"]

HOST = "127.0.0.1"


def wanted() -> bool:
    """Tell whether there is a terminal for a screen at every end, or textual-serve stands in for it."""
    if os.environ.get("TEXTUAL_DRIVER"):
        return True
    streams = sys.stdin, sys.stdout, sys.stderr  # Textual paints on the third
    return all(stream.isatty() for stream in streams) and os.environ.get("TERM") not in (None, "", "dumb")


def open_screen(session: Session, name: str, notes: Iterable[str] = ()) -> None:
    """Show a session until somebody leaves; FormatError where the keymap file is wrong."""
    from neurontools.tui import settings
    from neurontools.tui.actions import ACTIONS
    from neurontools.tui.app import DebuggerApp

    keymap = settings.load_keymap([action.name for action in ACTIONS])
    DebuggerApp(session, name, notes=notes, keymap=keymap).run()


def serve(arguments: Sequence[str], port: int) -> None:
    """Serve `neurontools` with these arguments to a browser on this machine until interrupted; UnsupportedError.

    Each page that is opened is a session of its own. There is no authentication: it listens on loopback only.
    """
    try:
        from textual_serve.server import Server
    except ImportError:
        raise UnsupportedError("--serve needs textual-serve: pip install 'neurontools[web]'") from None
    command = shlex.join([sys.executable, "-m", "neurontools", *arguments])
    Server(command, host=HOST, port=port, title="neurontools debug").serve()
