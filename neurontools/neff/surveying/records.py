"""What a survey finds: the record of a file, and the sums over all."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Literal

from formats.named_tuple import NamedTuple

__all__ = [
    "CompilerRow", "Example", "Execution", "FileRecord", "SummaryExample", "Survey", "SurveySummary",
    "WordCounts",
]  # fmt: skip

Checked = Literal["checked", "own", "unchecked"]


@dataclass
class Example:
    """Something that is not understood: how often it occurs; place and bytes of the first."""

    count: int
    place: str
    raw: Annotated[str, "hexadecimal"]


@dataclass
class SummaryExample(Example):
    """The same over several files; `first` is the path of the file that `place` is in."""

    files: int
    first: str


class WordCounts(NamedTuple):
    """The words of a file, and those that are not understood, by what is wrong with them."""

    words: int
    decoded: int
    reencoded: int
    consistent: int
    opcodes: dict[str, int]
    unknown: dict[str, Example]
    inexact: dict[str, Example]
    inconsistent: dict[str, Example]
    unnamed: dict[str, Example]

    @property
    def understood(self) -> bool:
        """Return whether every word is understood."""
        return self.words == self.decoded == self.reencoded == self.consistent and not self.unnamed


class Execution(NamedTuple):
    """How an execution ended."""

    how: Annotated[str, "finished, fault, hang, unfinished, refused or skipped"]
    reason: str | None = None
    instructions: int = 0
    transfers: int = 0
    seconds: float = 0.0


@dataclass
class FileRecord:
    """One file of a survey, filled in as far as the file can be read; `error` says why it could not be read on."""

    path: str
    bytes: int | None = None
    compiler: str | None = None
    checked: Checked | None = None
    target: str | None = None
    lnc: int | None = None
    dialect: str | None = None
    words: WordCounts | None = None
    problem_count: int = 0
    problems: list[str] = field(default_factory=list)
    executed: Execution | None = None
    error: str | None = None

    @property
    def understood(self) -> bool:
        """Return whether there is nothing to report of the file."""
        return (
            self.error is None
            and not self.problem_count
            and self.words is not None
            and self.words.understood
            and (self.executed is None or self.executed.how in ("finished", "skipped"))
        )


@dataclass
class CompilerRow:
    """The words of all files that one compiler wrote for one target."""

    compiler: str
    target: str
    checked: Checked
    files: int = 0
    words: int = 0
    decoded: int = 0
    reencoded: int = 0
    consistent: int = 0

    def add(self, words: WordCounts) -> None:
        """Count one more file."""
        self.files += 1
        self.words += words.words
        self.decoded += words.decoded
        self.reencoded += words.reencoded
        self.consistent += words.consistent


class SurveySummary(NamedTuple):
    """The sums over all files."""

    files: int
    read: int
    sound: Annotated[int, "files that verify without errors"]
    words: int
    decoded: int
    reencoded: int
    consistent: int
    compilers: list[CompilerRow]
    opcodes: dict[str, int]
    unknown: dict[str, SummaryExample]
    inexact: dict[str, SummaryExample]
    inconsistent: dict[str, SummaryExample]
    unnamed: dict[str, SummaryExample]
    executed: Annotated[dict[str, int], "files by how their execution ended"]


class Survey(NamedTuple):
    """The result of `neff survey`."""

    files: list[FileRecord]
    summary: SurveySummary
