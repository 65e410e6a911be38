"""The table of breakpoints."""

from __future__ import annotations

from collections.abc import Iterable

from emulator.events import Region, SemaphoreChange
from emulator.session.places import meets
from emulator.session.program import Target
from emulator.session.results import Breakpoint
from formats.errors import NotFoundError

__all__ = ["Breakpoints"]


class Breakpoints:
    """Breakpoints by number; numbers are never used again."""

    def __init__(self) -> None:
        self._table: dict[int, Breakpoint] = {}
        self._last = 0
        self.active: tuple[Breakpoint, ...] = ()
        self.watching: tuple[Breakpoint, ...] = ()

    def __len__(self) -> int:
        return len(self._table)

    @property
    def all(self) -> tuple[Breakpoint, ...]:
        """Return the breakpoints in the order they were set."""
        return tuple(self._table.values())

    def add(self, text: str, target: Target, temporary: bool) -> Breakpoint:
        """Set a breakpoint."""
        self._last += 1
        made = Breakpoint(self._last, text, target.kind, target.where, target.places, target.owners, temporary)
        self._table[made.number] = made
        self._refresh()
        return made

    def watch(self, text: str, where: str, kind: str, regions: tuple[Region, ...],
              counter: tuple[int, str, int] | None) -> Breakpoint:  # fmt: skip
        """Set a watchpoint."""
        self._last += 1
        made = Breakpoint(self._last, text, kind, where, frozenset(), frozenset(), regions=regions, counter=counter)
        self._table[made.number] = made
        self._refresh()
        return made

    def touched(self, reads: tuple[Region, ...], writes: tuple[Region, ...], changes: tuple[SemaphoreChange, ...],
                counting: bool = True) -> tuple[int, ...]:  # fmt: skip
        """Return the watchpoints that a completion meets, and count them."""
        found = [each for each in self.watching if each.touched(reads, writes, changes, meets)]
        for each in found:
            each.hits += counting
        return tuple(each.number for each in found)

    def delete(self, numbers: Iterable[int]) -> tuple[Breakpoint, ...]:
        """Remove breakpoints, all of them where no number is given, and return them."""
        gone = tuple(self._chosen(numbers))
        for each in gone:
            self._table.pop(each.number, None)
        self._refresh()
        return gone

    def enable(self, numbers: Iterable[int], enabled: bool) -> tuple[Breakpoint, ...]:
        """Enable or disable breakpoints, all of them where no number is given, and return them."""
        chosen = tuple(self._chosen(numbers))
        for each in chosen:
            each.enabled = enabled
        self._refresh()
        return chosen

    def hit(self, core: int, engine: str, pc: int, kind: str) -> tuple[int, ...]:
        """Return the enabled breakpoints on what completes next, count them, and remove the temporary ones."""
        found = [each for each in self.active if each.matches(core, engine, pc, kind)]
        for each in found:
            each.hits += 1
            if each.temporary:
                self._table.pop(each.number, None)
        if found:
            self._refresh()
        return tuple(each.number for each in found)

    def at(self, core: int, engine: str, pc: int) -> tuple[int, ...]:
        """Return the numbers of the breakpoints on a word."""
        return tuple(each.number for each in self._table.values() if (core, engine, pc) in each.places)

    def _chosen(self, numbers: Iterable[int]) -> list[Breakpoint]:
        wanted = list(dict.fromkeys(numbers))
        missing = [str(number) for number in wanted if number not in self._table]
        if missing:
            raise NotFoundError(f"no breakpoint {', '.join(missing)}")
        return [self._table[number] for number in wanted] if wanted else list(self._table.values())

    def _refresh(self) -> None:
        enabled = [each for each in self._table.values() if each.enabled]
        self.active = tuple(each for each in enabled if not each.watches)
        self.watching = tuple(each for each in enabled if each.watches)
