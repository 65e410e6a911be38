"""Events: one completion each, light until somebody looks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from formats.regions import Region

__all__ = ["Event", "Notice", "SemaphoreChange"]


class SemaphoreChange(NamedTuple):
    """A semaphore (or event, `kind` "event") that changed."""

    number: int
    old: int
    new: int
    core: int = 0
    kind: str = "semaphore"


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


def _none() -> Regions:
    return ()


class Event:
    """One completion of the device.

    `kind` is "instruction", "dma", "fault", "hang" or "barrier"; `engine` the engine's or the queue's name;
    `instruction` the word or the DMA transfer. `semaphores` are the changes it made, at completion and, for a consuming
    wait, at issue. Regions are computed when asked for.
    """

    __slots__ = (
        "_reads",
        "_writes",
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
        reads: Callable[[], Regions] = _none,
        writes: Callable[[], Regions] = _none,
    ) -> None:
        self.number, self.time_ps, self.issued_ps = number, time_ps, issued_ps
        self.core, self.engine, self.pc = core, engine, pc
        self.instruction, self.kind, self.semaphores = instruction, kind, semaphores
        self._reads, self._writes = reads, writes

    def __getattr__(self, name: str) -> Regions:
        """Return the bytes read or written, which are attributes from the first time on that somebody asks."""
        if name == "reads":
            self.reads = found = self._reads()
        elif name == "writes":
            self.writes = found = self._writes()
        else:
            raise AttributeError(f"events have no {name!r}", name=name, obj=self)
        return found

    @property
    def text(self) -> str:
        """Return the instruction's text."""
        return str(getattr(self.instruction, "text", self.instruction))

    def __repr__(self) -> str:
        return f"<Event {self.number} at {self.time_ps} ps: nc{self.core} {self.engine} pc {self.pc} {self.kind}>"
