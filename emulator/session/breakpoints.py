"""Breakpoints, watchpoints and catchpoints, and the table of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from emulator.events import Region
from emulator.session.conditions import Condition
from emulator.session.program import Place
from formats.errors import NotFoundError

__all__ = ["BEFORE", "CATCHES", "WATCHES", "Breakpoint", "Breakpoints"]

BEFORE = ("pc", "line", "opcode", "engine", "queue")  # stop before the effect
WATCHES = ("write", "read", "access")
CATCHES = ("value", "dma", "nan", "inf", "fault", "hang", "finding")


@dataclass
class Breakpoint:
    """Where `continue` stops.

    `kind` "pc", "line", "opcode", "engine" or "queue" stops before the effect of an instruction or transfer: `places`
    are (core, engine, pc), `owners` the (core, engine or queue) of which every completion counts. The other kinds stop
    behind a completion: "write", "read" and "access" where it touches one of `regions` or changes `counter`, which is
    (core, "semaphore" or "event", number); "value" where it makes `counter` fulfil `compare`; "dma" where a transfer of
    `owners` completes; "nan" and "inf" where it writes one, into `regions` of tensor `text` if there are any; "fault"
    and "hang" where the execution ends so; "finding" where a check, of name `tool` or any, finds something.

    `where` is what was resolved, `text` what was asked for. It stops only where `condition` holds, not the next
    `ignore` times, once where `temporary`, and is disabled then where `once`. `commands` are for who drives the
    session; `error` says why the condition could not be computed (that stops as well).
    """

    number: int
    text: str
    kind: str
    where: str
    places: frozenset[Place] = frozenset()
    owners: frozenset[tuple[int, str]] = frozenset()
    temporary: bool = False
    enabled: bool = True
    hits: int = 0
    regions: tuple[Region, ...] = ()
    counter: tuple[int, str, int] | None = None
    compare: tuple[str, int] | None = None
    tool: str = ""
    condition: Condition | None = None
    ignore: int = 0
    once: bool = False
    commands: tuple[str, ...] = ()
    error: str = ""

    @property
    def watches(self) -> bool:
        """Tell whether this is a watchpoint."""
        return self.kind in WATCHES

    @property
    def behind(self) -> bool:
        """Tell whether it stops behind a completion, not before one."""
        return self.kind not in BEFORE

    @property
    def looks(self) -> bool:
        """Tell whether memory or counters have to be looked at to know, not only what happened."""
        return self.condition is not None or self.kind in ("nan", "inf")

    def matches(self, core: int, engine: str, pc: int, kind: str) -> bool:
        """Tell whether something that completes is meant; `kind` is "instruction" or "dma"."""
        if (core, engine) in self.owners:
            return (kind == "dma") == (self.kind in ("queue", "dma"))
        return kind != "dma" and (core, engine, pc) in self.places


class Breakpoints:
    """Breakpoints by number; numbers are never used again."""

    def __init__(self) -> None:
        self._table: dict[int, Breakpoint] = {}
        self._last = 0
        self._met: dict[int, Breakpoint] = {}
        self.before: tuple[Breakpoint, ...] = ()
        self.behind: tuple[Breakpoint, ...] = ()

    def __len__(self) -> int:
        return len(self._table)

    @property
    def all(self) -> tuple[Breakpoint, ...]:
        """Return the breakpoints in the order they were set."""
        return tuple(self._table.values())

    def add(self, made: Breakpoint) -> Breakpoint:
        """Give a breakpoint its number and set it."""
        self._last += 1
        made.number = self._last
        self._table[made.number] = made
        self._refresh()
        return made

    def get(self, number: int) -> Breakpoint:
        """Return a breakpoint by number; NotFoundError."""
        return self._chosen([number])[0]

    def delete(self, numbers: Iterable[int]) -> tuple[Breakpoint, ...]:
        """Remove breakpoints, all of them where no number is given, and return them."""
        gone = tuple(self._chosen(numbers))
        for each in gone:
            self._table.pop(each.number, None)
        self._refresh()
        return gone

    def enable(
        self, numbers: Iterable[int], enabled: bool, once: bool = False, delete: bool = False
    ) -> tuple[Breakpoint, ...]:
        """Enable or disable breakpoints, all of them where no number is given, and return them.

        With `once` they are disabled, with `delete` deleted when they are hit.
        """
        chosen = tuple(self._chosen(numbers))
        for each in chosen:
            each.enabled, each.once, each.temporary = enabled, once, each.temporary or delete
        self._refresh()
        return chosen

    def pass_by(self, each: Breakpoint) -> bool:
        """Count that a breakpoint is met; tell whether it stops."""
        each.hits += 1
        if each.ignore > 0:
            each.ignore -= 1
            return False
        self._met[each.number] = each
        if each.temporary:
            self._table.pop(each.number, None)
            self._refresh()
        elif each.once:
            each.enabled = False
            self._refresh()
        return True

    def commands_of(self, numbers: Iterable[int]) -> tuple[str, ...]:
        """Return the commands of breakpoints that have stopped, temporary ones that are gone included."""
        return tuple(line for number in numbers if number in self._met for line in self._met[number].commands)

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
        self.before = tuple(each for each in enabled if not each.behind)
        self.behind = tuple(each for each in enabled if each.behind)
