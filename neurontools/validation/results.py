"""What came of checking the time model against published measurements."""

from __future__ import annotations

from typing import Annotated

from formats.named_tuple import NamedTuple

__all__ = ["CaptureRow", "CaptureSummary", "LeftOutRow", "Ranking", "Row", "Summary", "Validation", "use_of"]


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


class CaptureRow(NamedTuple):
    """One capture of a device beside the emulator's run of its NEFF; errors are ours over captured, less one."""

    path: str
    chip: str
    held_out: Annotated[bool, "Whether the capture only tests the model."]
    captured_ns: float
    emulated_ns: float
    error: float
    words: int
    word_median: Annotated[float | None, "Median of the words' absolute errors."]
    word_most: Annotated[float | None, "What 95 percent of them do not pass."]
    words_near: Annotated[int, "Words within 10 percent."]
    transfers: int
    transfer_median: float | None
    active_engine: Annotated[
        str, "The engine whose time with a word under way is farthest off; under 1 us is left out."
    ]
    active_error: float


class CaptureSummary(NamedTuple):
    """How far the captures of one use are off."""

    held_out: bool
    captures: int
    median_error: Annotated[float, "Of whole programs."]
    largest_error: float
    within: Annotated[int, "Programs within 15 percent."]
    word_median: Annotated[
        float | None, "Median over captures of the median error of words; null where none has a word to compare."
    ]
    words_within: Annotated[int, "Captures of which 95 percent of the words are within 10 percent."]
    active_within: Annotated[int, "Captures whose engines are all active within 10 percent."]
    words: Annotated[int, "Of all captures together."]
    near_share: Annotated[float, "The share of them that is within 10 percent."]


class LeftOutRow(NamedTuple):
    """The captures of one repository by figures of words that were taken from the other repositories only."""

    repository: str
    chip: str
    captures: int
    figures: Annotated[int, "How many were fitted to the others."]
    without: Annotated[tuple[str, ...], "Figures that no other has: the nearest kind's, or what documents say."]
    median_error: Annotated[float, "Of whole programs."]
    largest_error: float
    words: int
    word_median: Annotated[float, "Median of the words' absolute errors."]
    near_share: Annotated[float, "The share of them that is within 10 percent."]
    active_within: Annotated[int, "Captures whose engines are all active within 10 percent."]


class Ranking(NamedTuple):
    """How well the order of emulated times agrees with the order of published ones."""

    versions: str
    number: Annotated[int, "How many are ordered."]
    spearman: Annotated[float, "The correlation of their ranks: 1 is the same order."]


class Validation(NamedTuple):
    """The time model against published measurements."""

    rows: tuple[Row, ...]
    summary: tuple[Summary, ...]
    captures: tuple[CaptureRow, ...] = ()
    capture_summary: tuple[CaptureSummary, ...] = ()
    left_out: Annotated[tuple[LeftOutRow, ...], "Where several repositories have captures of one chip."] = ()
    rankings: Annotated[tuple[Ranking, ...], "With `--all`; sets of which a row was not measured are left out."] = ()
