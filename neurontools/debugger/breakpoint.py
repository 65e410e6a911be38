"""A breakpoint, watchpoint or catchpoint: what stops a program, where, and under which condition."""

from __future__ import annotations

from dataclasses import dataclass

from formats.regions import Region
from neurontools.debugger.conditions import Condition
from neurontools.debugger.program import Location

__all__ = ["BEFORE", "CATCHES", "WATCHES", "Breakpoint"]

BEFORE = ("pc", "line", "function", "opcode", "engine", "queue", "operation")  # stop before the effect
WATCHES = ("write", "read", "access")
CATCHES = ("dma", "nan", "inf", "fault", "hang", "finding")


@dataclass
class Breakpoint:
    """Where `continue` stops.

    `kind` "pc", "line", "function", "opcode", "operation", "engine" or "queue" stops before the effect of an
    instruction or transfer: `places` are (core, engine, pc), `owners` the (core, engine or queue) of which every
    completion counts.
    The other kinds stop after a completion: "write", "read" and "access" where it touches one of `regions` or changes
    `counter`, which is (core, "semaphore" or "event", number); "value" where it makes `counter` satisfy `compare`;
    "dma" where a transfer of `owners` completes; "nan" and "inf" where it writes one, into `regions` of tensor `text`
    if there are any; "fault" and "hang" where the execution ends so; "finding" where a check, of name `tool` or any,
    finds something.

    `where` is what was resolved, `text` what was asked for. It stops only where `condition` holds, not the next
    `ignore` times, once where `temporary`, and is disabled then where `once`. `commands` are for whoever drives the
    session; `error` says why the condition could not be computed (that stops as well).

    Of several ranks each has its own, under one number: `ranks` are those that it stops, one of which is `here`.
    """

    number: int
    text: str
    kind: str
    where: str
    places: frozenset[Location] = frozenset()
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
    ranks: tuple[int, ...] = ()
    here: bool = True

    @property
    def watches(self) -> bool:
        """Return whether this is a watchpoint."""
        return self.kind in WATCHES

    @property
    def noun(self) -> str:
        """Return what views call it, which is why a program stopped at it."""
        return "watchpoint" if self.watches else "catchpoint" if self.kind in CATCHES else "breakpoint"

    @property
    def after(self) -> bool:
        """Return whether it stops after a completion, not before one."""
        return self.kind not in BEFORE

    @property
    def looks(self) -> bool:
        """Return whether deciding takes a look at memory or counters, not only at what happened."""
        return self.condition is not None or self.kind in ("nan", "inf")

    def matches(self, core: int, engine: str, pc: int, kind: str) -> bool:
        """Return whether it is about something that completes; `kind` is "instruction" or "dma"."""
        if (core, engine) in self.owners:
            return (kind == "dma") == (self.kind in ("queue", "dma"))
        return kind != "dma" and (core, engine, pc) in self.places
