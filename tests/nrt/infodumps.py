"""The information blocks of a log, all at once."""

from __future__ import annotations

from collections.abc import Iterable

from formats.nrt.infodump import Infodump, InfodumpReader

__all__ = ["parse_infodumps"]


def parse_infodumps(lines: Iterable[str]) -> list[Infodump]:
    """Return every block of a log, in the order of their first lines."""
    reader = InfodumpReader()
    blocks = [block for number, line in enumerate(lines, 1) if (block := reader.feed(line, number)) is not None]
    return sorted([*blocks, *reader.rest()], key=lambda block: block.line)
