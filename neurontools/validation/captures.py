"""Captures of devices that the time model is checked against, and which of them are held out of calibration."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from formats.errors import FormatError, NotFoundError
from formats.named_tuple import NamedTuple
from neurontools.validation.results import CaptureRow, CaptureSummary

if TYPE_CHECKING:
    from formats.isa import Instruction
    from neurontools.ntff.residuals import Residual

__all__ = [
    "NEAR",
    "RULE",
    "Beside",
    "active_errors",
    "beside",
    "captures",
    "compare",
    "held_out",
    "row_of",
    "summary",
    "word_errors",
]

RULE = (
    "A capture is held out when the first byte of the SHA-256 of its path, from the name of its repository on,"
    " is a multiple of 3."
)
_LEAST_PS = 1_000_000  # an engine that was active for less had two or three words
NEAR = 0.10  # aimed at: of 95 percent of the words, and of how long engines are active
_PROGRAM = 0.15


class Beside(NamedTuple):
    """A capture beside the emulator's run of its NEFF; `rows` and `streams` are those of the core that ran longest."""

    name: str
    target: str
    captured_ns: float
    emulated_ns: float
    rows: list[Residual]
    streams: Mapping[str, Sequence[Instruction]]

    @property
    def repository(self) -> str:
        """Return the folder below that of all checkouts."""
        return self.name.partition("/")[0]

    @property
    def error(self) -> float:
        """Return how far the time of the program is off."""
        return self.emulated_ns / self.captured_ns - 1


def held_out(path: str) -> bool:
    """Return whether a capture only tests the model; `path` is `repository/folder/name.ntff`, with slashes."""
    return hashlib.sha256(path.encode()).digest()[0] % 3 == 0


def captures(folder: Path) -> Iterator[tuple[Path, Path]]:
    """Yield every capture below a folder of checkouts, and the NEFF it is of: of the same name, or alone beside it.

    Raises NotFoundError where there is no capture, or where a capture's NEFF cannot be told.
    """
    found = sorted(folder.rglob("*.ntff"))
    if not found:
        raise NotFoundError(f"{folder}: holds no capture (*.ntff)")
    for path in found:
        same, beside = path.with_suffix(".neff"), sorted(path.parent.glob("*.neff"))
        if not same.is_file() and len(beside) != 1:
            raise NotFoundError(f"{path}: {len(beside)} NEFFs beside it, expected one or {same.name}")
        yield path, same if same.is_file() else beside[0]


def beside(folder: Path, path: Path, neff: Path) -> Beside:
    """Return a capture and the emulator's run of its NEFF; data are zeros where none decide."""
    from neurontools.ntff.capture import open_both  # deferred: start-up
    from neurontools.ntff.compared import compare_capture  # deferred: start-up

    ntff, program, _ = open_both(path, neff)
    found, rows = compare_capture(ntff, None, program, None)
    main = max(found.cores, key=lambda core: core.captured_ns, default=None)
    if main is None or not main.captured_ns:
        raise FormatError("has no word or transfer that the NEFF has", path=str(path), expected="a capture of it")
    streams = next(each.streams for each in program.subgraphs if each.name == main.core)
    return Beside(path.relative_to(folder).as_posix(), found.target, main.captured_ns, main.emulated_ns,
                  [row for row in rows if row.core == main.core], streams)  # fmt: skip


def compare(folder: Path, path: Path, neff: Path) -> CaptureRow:
    """Return how far a capture and the emulator's run of its NEFF are apart."""
    return row_of(beside(folder, path, neff))


def row_of(side: Beside) -> CaptureRow:
    """Return how far the two sides of a capture are apart."""
    words, transfers = word_errors(side.rows), _errors(row for row in side.rows if row.kind == "transfer")
    # The engine that is furthest off stands for all: a mean would hide it.
    engine, active = max(active_errors(side.rows), key=lambda pair: abs(pair[1]), default=("", 0.0))
    return CaptureRow(
        side.name, side.target, held_out(side.name), side.captured_ns, side.emulated_ns, side.error, len(words),
        median(words) if words else None, _most(words), sum(each <= NEAR for each in words), len(transfers),
        median(transfers) if transfers else None, engine, active,
    )  # fmt: skip


def word_errors(rows: Iterable[Residual]) -> list[float]:
    """Return how far each word is off, the nearest first."""
    return _errors(row for row in rows if row.kind == "word")


def _errors(rows: Iterable[Residual]) -> list[float]:
    # A device's clock has steps: what began and ended within one has no duration to compare with.
    return sorted(abs(row.emulated_ps / row.captured_ps - 1) for row in rows if row.captured_ps)


def _most(errors: Sequence[float]) -> float | None:
    """Return what 95 percent of the errors do not pass."""
    return errors[min(len(errors) - 1, len(errors) * 95 // 100)] if errors else None


def active_errors(rows: Iterable[Residual]) -> Iterator[tuple[str, float]]:
    """Yield each engine that had words under way for a microsecond or more, and how far ours is off."""
    engines: defaultdict[str, list[Residual]] = defaultdict(list)
    for row in rows:
        if row.kind == "word":
            engines[row.owner].append(row)
    for engine, found in engines.items():
        # Unions, since words of an engine overlap in its pipeline.
        real = _union((row.captured_start_ps, row.captured_start_ps + row.captured_ps) for row in found)
        mine = _union((row.emulated_start_ps, row.emulated_start_ps + row.emulated_ps) for row in found)
        if real >= _LEAST_PS:
            yield engine, mine / real - 1


def _union(spans: Iterable[tuple[int, int]]) -> int:
    total = until = 0
    for start, end in sorted(spans):
        total += max(end - max(start, until), 0)
        until = max(until, end)
    return total


def summary(rows: Sequence[CaptureRow]) -> tuple[CaptureSummary, ...]:
    """Return what the captures of each use come to."""
    found = []
    for use in (False, True):
        chosen = [row for row in rows if row.held_out == use]
        if not chosen:
            continue
        programs = [abs(row.error) for row in chosen]
        medians = [row.word_median for row in chosen if row.word_median is not None]
        found.append(CaptureSummary(
            use, len(chosen), median(programs), max(programs), sum(each <= _PROGRAM for each in programs),
            median(medians) if medians else None,
            sum(row.word_most is not None and row.word_most <= NEAR for row in chosen),
            sum(abs(row.active_error) <= NEAR for row in chosen), sum(row.words for row in chosen),
            sum(row.words_near for row in chosen) / max(sum(row.words for row in chosen), 1),
        ))  # fmt: skip
    return tuple(found)
