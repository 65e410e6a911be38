"""Standard output and standard error at the end of a command."""

from __future__ import annotations

import os
import sys
from contextlib import suppress

__all__ = ["settle"]


def settle() -> None:
    """Send nowhere what a closed pipe or a full disk did not take.

    The interpreter would write it once more as it ends, complain, and end with 120 in place of the command's status.
    """
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            with suppress(OSError, ValueError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
