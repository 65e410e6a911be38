"""What the rules of advice work with."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING, Any

from emulator.timeline import Owner
from emulator.timeline.change import Change, WordCost
from emulator.timeline.measure import Measured, data_decides, measure
from formats.named_tuple import NamedTuple
from neurontools.profile.rows import Line, Timeline
from neurontools.profile.summary import line_text

if TYPE_CHECKING:
    from emulator.loaded import LoadedWord
    from emulator.sequencer import Sequencer
    from formats import isa
    from formats.neff import Neff
    from neurontools.program.opening import Program

__all__ = ["Candidate", "Context", "Row", "pricing"]

Row = tuple[Owner, int]
WordKey = tuple[int, str, int]  # core, engine, position in the stream


class Candidate(NamedTuple):
    """A flaw: the rule, the line, what to do, the schedule without it, why that is right, and the rule's source.

    `weight` is the picoseconds that the flaw touches; the heaviest candidates of a rule are tried. `neff` is the
    program without the flaw, where another one is run.
    """

    rule: str
    line: Line | None
    message: str
    change: Change
    proof: str
    source: str
    weight: int
    neff: Neff | None = None


class Context:
    """A profiled run and ways to run it again."""

    def __init__(self, program: Program, timeline: Timeline) -> None:
        self.program, self.timeline = program, timeline
        self.decides = data_decides(program.neff)

    @property
    def end_ps(self) -> int:
        """Return when the run ended."""
        return self.timeline.end_ps

    def again(self, change: Change, neff: Neff | None = None, **asked: Any) -> Measured:
        """Return the run under a change, of another file where one is given; without data where it decides nothing."""
        data = self.decides or bool(asked)
        return measure(
            self.program.neff if neff is None else neff,
            self.program.inputs,
            change,
            data=data,
            settings=self.program.configuration.settings(),
            **asked,
        )

    @cached_property
    def rows(self) -> list[tuple[Row, isa.Instruction]]:
        """Return every word that ran with its row."""
        return [
            ((track.owner, row), self.timeline.causes.word(track.owner, row))
            for track in self.timeline.engines
            for row in range(len(track))
        ]

    def key(self, row: Row) -> WordKey:
        """Return where the word of a row stands."""
        owner, index = row
        return owner.core, owner.name, self.timeline.engine(owner).position[index]

    def busy_ps(self, row: Row) -> int:
        """Return how long a word kept its engine."""
        owner, index = row
        track = self.timeline.engine(owner)
        return track.free[index] - track.start[index]

    def by_line(self, rows: Iterable[Row]) -> dict[Line | None, list[Row]]:
        """Return rows by source line."""
        found: dict[Line | None, list[Row]] = defaultdict(list)
        for row in rows:
            found[self.timeline.line(*row)].append(row)
        return found

    def line(self, row: Row) -> str:
        """Return the source line of a row as text."""
        return line_text(self.timeline.line(*row))


def pricing(prices: dict[WordKey, tuple[float, int]], moved: dict[WordKey, int] | None = None) -> WordCost:
    """Return the hook that multiplies the intervals of words by a factor, down to a least one in picoseconds.

    What the interval loses the latency loses too: the work gets shorter, the pipeline does not. Words that are `moved`
    to another engine take nothing of their own and complete after the latency given.
    """
    elsewhere = moved or {}

    def price(engine: Sequencer, loaded: LoadedWord, interval: int, latency: int) -> tuple[int, int]:
        key = engine.core.index, engine.name, engine.position
        if key in elsewhere:
            return 0, elsewhere[key]
        found = prices.get(key)
        if found is None:
            return interval, latency
        factor, least = found
        shorter = min(interval, max(round(interval * factor), least))
        return shorter, max(1, latency - (interval - shorter)) if factor else 0

    return price
