"""Events: one completion each, light until somebody looks."""

from __future__ import annotations

from typing import Any, Protocol

from formats.named_tuple import NamedTuple
from formats.regions import Region, RegionParts

__all__ = ["Event", "Notice", "Places", "SemaphoreChange", "Touched", "Touches"]


class SemaphoreChange(NamedTuple):
    """A semaphore (or event, `kind` "event") that changed."""

    number: int
    old: int
    new: int
    core: int = 0
    kind: str = "semaphore"


WARNINGS = 100
"""So many a device keeps; behind them nobody looks any more what was written."""


class Notice(NamedTuple):
    """Something odd that does not stop the run: a read of bytes never written, an event set twice."""

    kind: str
    message: str
    core: int
    engine: str
    pc: int
    instruction_text: str
    operand: str
    time_ps: int

    @property
    def text(self) -> str:
        """Return the notice on one line."""
        return f"{self.message} (nc{self.core} {self.engine} pc {self.pc}: {self.instruction_text})"


Regions = tuple[Region, ...]
Places = tuple[RegionParts, ...]


class Touches(Protocol):
    """Whoever knows which bytes a word or a transfer reads and writes."""

    @property
    def read_regions(self) -> Regions: ...
    @property
    def write_regions(self) -> Regions: ...
    @property
    def read_places(self) -> Places: ...
    @property
    def write_places(self) -> Places: ...


class Touched(NamedTuple):
    """Bytes that are known to be read and written."""

    read_regions: Regions = ()
    write_regions: Regions = ()

    @property
    def read_places(self) -> Places:
        """Return the same as plain tuples, as who needs no more may ask for them."""
        return self.read_regions

    @property
    def write_places(self) -> Places:
        """Return the same as plain tuples."""
        return self.write_regions


_NOTHING = Touched()


class Event:
    """One completion of the device.

    `kind` is "instruction", "dma", "fault", "hang" or "barrier"; `engine` the engine's or the queue's name;
    `instruction` the word or the DMA transfer. `semaphores` are the changes it made, at completion and, for a consuming
    wait, at issue. Regions are asked for of `touches` when somebody asks for them.
    """

    __slots__ = (
        "core",
        "engine",
        "instruction",
        "issued_ps",
        "kind",
        "number",
        "pc",
        "reads",
        "semaphores",
        "time_ps",
        "touches",
        "writes",
    )
    reads: Regions
    writes: Regions

    def __init__(
        self,
        number: int,
        time_ps: int,
        issued_ps: int,
        core: int,
        engine: str,
        pc: int,
        instruction: Any,
        kind: str,
        semaphores: tuple[SemaphoreChange, ...] = (),
        touches: Touches = _NOTHING,
    ) -> None:
        self.number, self.time_ps, self.issued_ps = number, time_ps, issued_ps
        self.core, self.engine, self.pc = core, engine, pc
        self.instruction, self.kind, self.semaphores = instruction, kind, semaphores
        self.touches = touches

    def __getattr__(self, name: str) -> Regions:
        """Return the bytes read or written, which are attributes from the first time on that somebody asks."""
        if name == "reads":
            self.reads = found = self.touches.read_regions
        elif name == "writes":
            self.writes = found = self.touches.write_regions
        else:
            raise AttributeError(f"events have no {name!r}", name=name, obj=self)
        return found

    @property
    def text(self) -> str:
        """Return the instruction's text."""
        return str(getattr(self.instruction, "text", self.instruction))

    def __repr__(self) -> str:
        return f"<Event {self.number} at {self.time_ps} ps: nc{self.core} {self.engine} pc {self.pc} {self.kind}>"
