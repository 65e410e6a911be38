"""The clocks that the records of one core count on, and how each becomes picoseconds on a common one.

Field 10 of a core names a clock per engine, one of notifications and one per DMA engine: what it read when all were
read together, what the device adds to it per cycle, and how many 1,024ths of a picosecond that cycle really lasts. On
trn2 all are one clock of picoseconds (0, 1, 1). On trn1 they are not: engines run at 1.4 GHz, DVE at 1.12 GHz, DMA at
0.85 GHz.

How it is known (inferred): in both public captures of trn1 the signals of each engine follow its words by the same time
to 4 ns once the offsets are taken off, while the offsets themselves differ by 55 ns; DMA packets end 90 ns before the
signals of them; and the cycles are those of 1.4, 1.12 and 0.85 GHz.
"""

from __future__ import annotations

from collections.abc import Mapping

from formats.engines import ENGINES
from formats.errors import UnsupportedError
from formats.named_tuple import NamedTuple
from formats.ntff.message import Message

__all__ = ["ONE_CLOCK", "Clock", "Clocks", "parse_clocks"]

# Numbers of the fields, in the order of ENGINES: Pool and DVE change places.
_ENGINE_FIELDS = dict(zip(ENGINES, (1, 2, 4, 3, 5), strict=True))
# Fields of the same message; 7 has not been seen.
_SIGNALS, _DMA = 6, 8
_SHARE = 1024  # of a picosecond: what step and period count in, where they are not both 1
_TRN2_CYCLES_PER_US = 1200


class Clock(NamedTuple):
    """One clock: its reading at the common zero, what it counts per cycle, and the cycle's true length."""

    offset: int = 0
    step: int = 1
    period: int = 1

    def ps(self, count: int) -> int:
        """Return a reading as picoseconds since the common zero."""
        return (count - self.offset) * self.period // self.step

    def cycles(self, number: int) -> int:
        """Return cycles of the engine as picoseconds: of 1.2 GHz on trn2, of the clock itself on trn1."""
        if self.step == self.period == 1:
            return number * 1_000_000 // _TRN2_CYCLES_PER_US
        return number * self.step // _SHARE


class Clocks(NamedTuple):
    """The clocks of one core; without DMA clocks of its own, DMA counts picoseconds."""

    engines: Mapping[str, Clock]
    signals: Clock
    dma: tuple[Clock, ...]

    @property
    def one(self) -> bool:
        """Return whether everything counts on one clock of picoseconds."""
        return {*self.engines.values(), self.signals, *self.dma} <= {Clock()}

    def of_dma(self, engine: int) -> Clock:
        """Return the clock of a DMA engine, by its number among those of the core."""
        if engine < len(self.dma):
            return self.dma[engine]
        if set(self.dma) <= {Clock()}:
            return Clock()
        raise UnsupportedError(f"the capture has no clock of DMA engine {engine}; there are {len(self.dma)}")


ONE_CLOCK = Clocks(dict.fromkeys(ENGINES, Clock()), Clock(), ())


def parse_clocks(core: Message) -> Clocks:
    """Return the clocks of a core; picoseconds for a core that names none."""
    found = next(core.messages(10), None)
    if found is None:
        return ONE_CLOCK
    return Clocks(
        {engine: _clock(found, field) for engine, field in _ENGINE_FIELDS.items()},
        _clock(found, _SIGNALS),
        tuple(_parsed(one) for one in found.messages(_DMA)),
    )


def _clock(message: Message, field: int) -> Clock:
    return next((_parsed(one) for one in message.messages(field)), Clock())


def _parsed(message: Message) -> Clock:
    clock = Clock(message.number(1), message.number(2, 1), message.number(3, 1))
    if not clock.step or not clock.period:
        raise message.fail(2 if not clock.step else 3, "a number above 0", 0)
    return clock
