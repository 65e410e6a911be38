"""Where lines of the log go, and what the log calls this library."""

from __future__ import annotations

import sys

from neurontools.version import __version__

__all__ = ["VERSION", "console"]

VERSION = f"neurontools {__version__} (emulator, no Neuron runtime)"


def console(place: str, line: str) -> None:
    """Write a line of the log where it is wanted; a file that cannot be written is the console."""
    if place not in ("console", "syslog"):
        try:
            with open(place, "a", encoding="utf-8") as file:
                file.write(line + "\n")
            return
        except OSError:
            pass
    if sys.stderr is None:
        return  # a program without standard error
    try:
        sys.stderr.write(line + "\n")  # in one piece: other threads have lines too
        sys.stderr.flush()
    except (OSError, ValueError):
        return  # nobody listens
