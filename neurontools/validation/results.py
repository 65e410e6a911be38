"""What came of checking the time model against published measurements."""

from __future__ import annotations

from typing import Annotated, NamedTuple

__all__ = ["Row", "Summary", "Validation", "use_of"]


class Row(NamedTuple):
    """One published number beside ours."""

    id: str
    chip: str
    group: str
    what: str
    published: float
    ours: Annotated[float | None, "Null of a row that was not run."]
    unit: str
    error: Annotated[float | None, "Ours over published, less one."]
    limit: Annotated[float, "The error aimed at."]
    within: bool | None
    held_out: Annotated[bool, "Whether the row only tests the model."]
    quality: str
    source: str
    not_run: Annotated[str | None, "Why it was not run."]


class Summary(NamedTuple):
    """How far the rows of one group are off that calibrate, or that test."""

    group: str
    title: str
    held_out: bool
    rows: int
    median_error: float
    largest_error: float
    limit: Annotated[float, "The error aimed at."]
    within: Annotated[int, "How many rows are within it."]

    @property
    def use(self) -> str:
        """Return what the rows are for."""
        return use_of(self.held_out)


def use_of(held_out: bool) -> str:
    """Return what a row is for: held-out ones test the model, the others calibrate it."""
    return "test" if held_out else "calibrate"


class Validation(NamedTuple):
    """The time model against published measurements."""

    rows: tuple[Row, ...]
    summary: tuple[Summary, ...]
