"""The end of a log, without reading the rest."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["log_tail"]

LINES, BYTES = 2000, 512 << 10


def log_tail(path: Path, pid: int = 0, lines: int = LINES) -> list[str]:
    """Return the last lines of a log; of one that several processes write, those of `pid`.

    Lines that name no process belong to the one before them.
    """
    from formats.nrt.log import parse_line  # deferred: start-up

    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - BYTES))
        text = file.read(BYTES).decode("utf-8", "replace")
    found = text.splitlines()
    if size > BYTES:
        found = found[1:]  # the first one is cut
    kept: list[str] = []
    mine = named = False
    for line in found:
        parsed = parse_line(line)
        if parsed is not None:
            mine = parsed.pid == pid
            named = named or mine
        if mine:
            kept.append(line)
    return (kept if named else found)[-lines:]
