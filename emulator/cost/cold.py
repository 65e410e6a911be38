"""What takes an engine longer the first times, and what it has just done before.

The captures of trn2 that calibrate agree to a few nanoseconds, whatever their programs are: the first doorbell of Sync
takes 24 ns more, that of GpSimd 32, its next two 6; the second register of a doorbell 8 on Sync the first time, 6 on
GpSimd the first two times; so do two pauses of GpSimd behind doorbells. Hardware generators take longer over their
first transfer, over the first of many rows, and right behind another; so does the part that profiles show of one on
GpSimd. Source: hardware.md 3.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from emulator.cost.figures import picoseconds
from emulator.cost.model import Chip
from formats.named_tuple import NamedTuple

__all__ = ["DOORBELL", "GENERATE", "PAUSE", "REGISTER", "ROWS", "Cold", "ColdState"]

DOORBELL, REGISTER, PAUSE, GENERATE, ROWS = "doorbell", "register", "pause", "generate", "rows"

Part = tuple[str, str]  # engine, what it does

# By engine and part: the figures of what it takes longer the first time, the second, ...
_FIGURES: dict[Part, tuple[str, ...]] = {
    ("SP", DOORBELL):         ("first_doorbell_sync",),
    ("SP", REGISTER):         ("first_register_sync",),
    ("Pool", DOORBELL):       ("first_doorbell_pool", "next_doorbell_pool", "next_doorbell_pool"),
    ("Pool", REGISTER):       ("first_register_pool", "first_register_pool"),
    ("Pool", PAUSE):          ("first_pause_pool", "first_pause_pool"),
    ("SP", GENERATE):         ("first_generate",),
    ("SP", ROWS):             ("first_rows",),
    ("Activation", GENERATE): ("first_generate",),
    ("Activation", ROWS):     ("first_rows",),
}  # fmt: skip
_SHOWN = ("software_word", "software_second", "software_third")
# A generator that begins so late at most, where it could have, is right behind the one before it.
_BEHIND_PS = {"Pool": 100_000, "SP": 20_000, "Activation": 20_000}


class ColdState(NamedTuple):
    """The state of a core's first times: how often; by engine, how many generators in a row and until when."""

    times: tuple[tuple[Part, int], ...] = ()
    rows: tuple[tuple[str, tuple[int, int]], ...] = ()


class Cold:
    """How often each engine of a core has done what takes longer the first times; picoseconds.

    `left` are parts that take longer the next time: a word of none of them that generates nothing takes as ever.
    """

    __slots__ = ("_behind_ps", "_more", "_rows", "_shown", "_times", "left")
    NOT_STATE: ClassVar = {
        **dict.fromkeys(("_behind_ps", "_more", "_shown"), "figures of the chip"),
        "left": "derived from how often",
    }

    def __init__(self, chip: Chip) -> None:
        target = chip.target
        self._more = {part: more for part, names in _FIGURES.items() if any(more := picoseconds(names, target))}
        self._shown = picoseconds(_SHOWN, target)
        self._times: dict[Part, int] = {}
        self.left = set(self._more)  # parts that still take longer the next time
        (self._behind_ps,) = picoseconds(("generate_behind",), target)
        self._rows: dict[str, tuple[int, int]] = {}

    def parts(self, engine: str, names: Sequence[str]) -> tuple[Part, ...]:
        """Return which parts of a word depend on what the engine has done before."""
        parts = tuple((engine, name) for name in names)
        return tuple(part for part in parts if part in self._more or part[1] == GENERATE)

    def generate(self, engine: str, now: int, interval: int) -> tuple[int, int | None]:
        """Do as `take` for a generator that nothing takes longer for but what it did just before."""
        rows, longer, shown, row = self._rows, 0, None, 0
        held = rows.get(engine)
        if held is not None and held[1] >= now:
            row = held[0] + 1
            if engine != "Pool":
                longer = self._behind_ps
        if engine == "Pool":
            shown = self._shown[row] if row < len(self._shown) else self._shown[-1]
        rows[engine] = row, now + interval + longer + _BEHIND_PS[engine]
        return longer, shown

    def take(self, parts: Sequence[Part], now: int, interval: int) -> tuple[int, int | None]:
        """Count a word of such parts that issues; return how much longer it takes, and what profiles show of it."""
        longer, shown, left = 0, None, self.left
        for part in parts:
            engine, name = part
            if name == GENERATE:
                held = self._rows.get(engine)
                row = 0 if held is None or held[1] < now else held[0] + 1
                if engine == "Pool":
                    shown = self._shown[row] if row < len(self._shown) else self._shown[-1]
                elif row:
                    longer += self._behind_ps
                if part in left:
                    longer += self._first(part)
                self._rows[engine] = row, now + interval + longer + _BEHIND_PS[engine]
            elif part in left:
                if name == PAUSE and engine == "Pool" and ("Pool", DOORBELL) not in self._times:
                    continue  # where GpSimd makes descriptors, pauses take as long from the first on
                longer += self._first(part)
        return longer, shown

    def _first(self, part: Part) -> int:
        """Count a part that takes longer this time; return how much."""
        more, times = self._more[part], self._times.get(part, 0)
        self._times[part] = times + 1
        if times + 1 == len(more):
            self.left.discard(part)
        return more[times]

    def snapshot(self) -> ColdState:
        """Return the state as a value, for `restore`."""
        return ColdState(tuple(self._times.items()), tuple(self._rows.items()))

    def restore(self, state: ColdState) -> None:
        """Return to a state that `snapshot` gave."""
        self._times, self._rows = dict(state.times), dict(state.rows)
        self.left.clear()
        self.left.update(part for part, more in self._more.items() if self._times.get(part, 0) < len(more))
