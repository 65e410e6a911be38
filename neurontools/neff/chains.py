"""Where an instruction comes from, level by level: rows for JSON, and lines from the model down to the word."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from formats.named_tuple import NamedTuple

if TYPE_CHECKING:
    from formats.neff.debuginfo import DebugStep

__all__ = ["StepRow", "chain_lines", "chain_rows"]


class StepRow(NamedTuple):
    """One entry of the debug information, field by field as `formats.neff.debuginfo.DebugStep` has it."""

    level: str
    id: int
    name: str
    file: str | None
    line: int | None
    kernel: str | None
    attributes: dict[str, str]


def chain_rows(chain: Iterable[DebugStep]) -> list[StepRow]:
    """Return a chain, the word's own entry first, without the entries that say nothing."""
    return [StepRow(*step) for step in chain if step.name or step.file or step.kernel]


def chain_lines(chain: Sequence[StepRow], place: str | None = None) -> list[str]:
    """Return one line per entry, the framework's first: people read from the model down to the word.

    A source line that stands above already, or as `place`, is not repeated.
    """
    lines = []
    for step in reversed(chain):
        here = f"{step.file}:{step.line}" if step.file else None
        kernel = f"kernel {step.kernel}" if step.kernel else None
        parts = [part for part in (step.name or None, kernel, here if here != place else None) if part]
        place = here or place
        if parts:
            lines.append(f"{step.level}: {'  '.join(parts)}")
    return lines
