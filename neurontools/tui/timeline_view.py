"""Which span of time the timeline shows, what it asks, and its blocks as text."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from emulator.timeline import Owner
from neurontools.text.table import duration

if TYPE_CHECKING:
    from neurontools.debugger import Session
    from neurontools.debugger.spans import Activity, Block, Spans

__all__ = ["LEAST_NAMED", "At", "Named", "TimeView", "Timespan", "ruler"]

# Steps that a growing view takes one after the other: the same ones, whenever it was looked at.
_LADDER = tuple(digits * 10**power // 10 for power in range(13) for digits in (10, 12, 15, 20, 25, 30, 40, 50, 60, 80))

_STEPS = tuple(digit * 10**power for power in range(13) for digit in (1, 2, 5))  # picoseconds a column
LEAST_NAMED = 4  # columns
_LEAST = 1  # picosecond a column, in runs without timing


@dataclass(frozen=True)
class Timespan:
    """Engines and queues in columns of time; see `neurontools.debugger.spans`."""

    start_ps: int
    step_ps: int
    columns: int

    def answer(self, session: Session) -> Spans:
        """Return the timeline."""
        return session.inspector.timeline.spans(self.start_ps, self.step_ps, self.columns)


@dataclass(frozen=True)
class Named:
    """What takes so many columns of time that its name can be written there."""

    start_ps: int
    step_ps: int
    columns: int

    def answer(self, session: Session) -> tuple[Block, ...]:
        """Return it."""
        return session.inspector.timeline.blocks(self.start_ps, self.step_ps, self.columns, LEAST_NAMED)


@dataclass(frozen=True)
class At:
    """What an engine or queue was doing at a time."""

    owner: Owner
    time_ps: int

    def answer(self, session: Session) -> Activity | None:
        """Return it."""
        return session.inspector.timeline.activity(self.owner, self.time_ps)


@dataclass(frozen=True)
class TimeView:
    """`columns` of `step_ps` from `start_ps` on; `fits` grows with the run, else it scrolls with the cursor."""

    columns: int
    start_ps: int = 0
    step_ps: int = _LEAST
    fits: bool = True
    now_ps: int = 0

    @property
    def end_ps(self) -> int:
        """Return the time after the last column."""
        return self.start_ps + self.columns * self.step_ps

    def resized(self, columns: int) -> TimeView:
        """Return the view in another number of columns."""
        return replace(self, columns=columns, step_ps=_LEAST if self.fits else self.step_ps)

    def fitted(self, known_ps: int) -> TimeView:
        """Return the view of everything up to a time, and no more."""
        step = known_ps // max(self.columns - 1, 1) + 1
        return replace(self, start_ps=0, step_ps=max(step, _LEAST), fits=True)

    def following(self, now_ps: int, known_ps: int, over: bool = False) -> TimeView:
        """Return the view for a session at a time: it moves where that went out of it, and fits a run that is over."""
        view = replace(self, now_ps=now_ps)
        if self.fits and over:
            return view.fitted(known_ps)
        if self.fits:
            # It shrinks only on request: a picture that breathes cannot be read.
            if known_ps < view.end_ps - view.step_ps:
                return view
            step = next((each for each in _LADDER if each * (self.columns - 1) > known_ps), _LADDER[-1])
            return replace(view, start_ps=0, step_ps=step)
        if now_ps == self.now_ps or self.start_ps <= now_ps < self.end_ps:
            return view
        return view.around(now_ps)

    def around(self, time_ps: int) -> TimeView:
        """Return the view with a time in its middle."""
        start = (time_ps // self.step_ps - self.columns // 2) * self.step_ps
        return replace(self, start_ps=max(start, 0))

    def zoomed(self, by: int, now_ps: int) -> TimeView:
        """Return the view with the next smaller (1) or larger (-1) step, the cursor where it was on the screen."""
        nearest = min(range(len(_STEPS)), key=lambda index: abs(_STEPS[index] - self.step_ps))
        step = _STEPS[min(max(nearest - by, 0), len(_STEPS) - 1)]
        column = (now_ps - self.start_ps) // self.step_ps
        column = column if 0 <= column < self.columns else self.columns // 2
        return replace(self, step_ps=step, start_ps=max((now_ps // step - column) * step, 0), fits=False)

    def paged(self, by: int) -> TimeView:
        """Return the view of the time before or after."""
        start = self.start_ps + by * max(self.columns // 2, 1) * self.step_ps
        return replace(self, start_ps=max(start, 0), fits=False)


def ruler(spans: Spans, column: int) -> str:
    """Return the line above the rows: round times where they are, and the cursor."""
    columns, step = spans.busy.shape[1], spans.step_ps
    apart = next((each for each in _STEPS if each >= 14 * step), _STEPS[-1])
    line = ""
    for time_ps in range(-(-spans.start_ps // apart) * apart, spans.start_ps + columns * step, apart):
        at = (time_ps - spans.start_ps) // step
        line = line.ljust(at) + f"╵{_round(time_ps)}"
    line = line[:columns].ljust(columns)
    return line[:column] + "▼" + line[column + 1 :] if 0 <= column < columns else line


def _round(time_ps: int) -> str:
    """Return a round time without noughts at its end."""
    text, _, unit = duration(time_ps).partition(" ")
    return f"{text.rstrip('0').rstrip('.') if '.' in text else text} {unit}"
