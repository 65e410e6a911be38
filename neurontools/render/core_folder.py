"""The core dumps of a folder, one line each."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from formats.errors import FormatError
from neurontools.render.core import one_line
from neurontools.render.table import count, table

__all__ = ["lines", "listing"]

_MAGIC = b"\x7fELF"


def listing(folder: Path) -> dict[str, Any]:
    """Return the dumps in a folder and below, by path; files that are none are counted."""
    from formats.core import open_core

    found, others = [], 0
    for root, folders, files in os.walk(folder):
        folders.sort()
        for name in sorted(files):
            path = Path(root, name)
            try:
                with path.open("rb") as file:
                    if file.read(4) != _MAGIC:
                        others += 1
                        continue
                found.append({"path": str(path.relative_to(folder)), **one_line(open_core(str(path)))})
            except (OSError, FormatError):
                others += 1
    return {"dumps": found, "others": others}


def lines(data: dict[str, Any]) -> list[str]:
    """Return the list for people."""
    rows = [[d["path"], d["level"], d["outcome"] or "-", d["status"] or "-", d["headline"]] for d in data["dumps"]]
    total = f"{count(len(rows), 'core dump')}, {count(data['others'], 'other file')}"
    return [*(table(("dump", "level", "outcome", "status", "what"), rows) if rows else []), total]
