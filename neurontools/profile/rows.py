"""A measured run as rows: words, transfers, waits, each with its source line, in nanoseconds where a name says so."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, cast

from formats import isa
from formats.named_tuple import NamedTuple

if TYPE_CHECKING:
    from emulator.timeline import Causes, CriticalPath, Link, Owner
    from emulator.timeline.measure import Measured
    from emulator.timeline.track import EngineTrack, QueueTrack
    from formats.neff import SourceLocation

__all__ = ["SHOWN", "Line", "Timeline", "Waited"]

# Engines by the names of the public profile schema.
SHOWN = {"PE": "tensor", "DVE": "vector", "Activation": "scalar", "Pool": "gpsimd", "SP": "sync"}

Line = tuple[str, int]


class Waited(NamedTuple):
    """One wait: of which word, for how long, for whom; `kind` as in `Link`, `source` the row that ended it."""

    owner: Owner
    row: int
    ps: int
    kind: str
    detail: str
    source: tuple[Owner, int] | None


class Timeline:
    """A measured run with lookups: source lines, causes, waits, the critical path."""

    def __init__(self, measured: Measured) -> None:
        from emulator.timeline import Causes  # deferred: start-up

        self.measured = measured
        self.recorder, self.device, self.end_ps = measured.recorder, measured.device, measured.end_ps
        self.causes: Causes = Causes(self.recorder)
        self._places: dict[tuple[int, str, int], SourceLocation | None] = {}
        self._queues = {(queue.core, queue.name): queue.engine for queue in self.device.queues}

    @cached_property
    def path(self) -> CriticalPath:
        """Return the critical path."""
        from emulator.timeline import critical_path  # deferred: start-up

        return critical_path(self.recorder, self.causes)

    @cached_property
    def engines(self) -> list[EngineTrack]:
        """Return the tracks of engines, by core."""
        from emulator.timeline.track import EngineTrack  # deferred: start-up

        return [track for o in self.recorder.owners if isinstance(track := self.recorder.tracks[o], EngineTrack)]

    @cached_property
    def queues(self) -> list[QueueTrack]:
        """Return the tracks of queues, by core."""
        from emulator.timeline.track import QueueTrack  # deferred: start-up

        return [track for o in self.recorder.owners if isinstance(track := self.recorder.tracks[o], QueueTrack)]

    def engine(self, owner: Owner) -> EngineTrack:
        """Return the track of an engine."""
        return cast("EngineTrack", self.recorder.tracks[owner])

    def queue(self, owner: Owner) -> QueueTrack:
        """Return the track of a queue."""
        return cast("QueueTrack", self.recorder.tracks[owner])

    def line(self, owner: Owner, row: int) -> Line | None:
        """Return file and line of a row, for a transfer that of the word that triggered it; None where it has none.

        In a program without any line, what the row does stands in for the file, with line 0.
        """
        found = self._source(owner, row)
        if found is not None or self.has_lines:
            return found
        return (owner.name if owner.kind == "queue" else f"{SHOWN[owner.name]} {self.opcode(owner, row)}"), 0

    @cached_property
    def has_lines(self) -> bool:
        """Return whether the program names a source line for any word that ran."""
        return any(self._source(track.owner, row) is not None for track in self.engines for row in range(len(track)))

    def place(self, owner: Owner, row: int) -> SourceLocation | None:
        """Return where a row comes from, for a transfer the word that triggered it; None where nothing is known."""
        engine = owner.name if owner.kind == "engine" else self._queues[owner.core, owner.name]
        key = owner.core, engine, self.recorder.tracks[owner].pc[row]
        if key not in self._places:
            self._places[key] = self.device.cores[owner.core].source_of(engine, key[2])
        return self._places[key]

    def _source(self, owner: Owner, row: int) -> Line | None:
        source = self.place(owner, row)
        return (source.file, source.line) if source and source.file and source.line else None

    def word(self, owner: Owner, row: int) -> isa.Instruction:
        """Return the word of a row, for a transfer the word that triggered it."""
        if owner.kind == "engine":
            return self.causes.word(owner, row)
        return self.causes.word(*self.causes.trigger(owner, row))

    def opcode(self, owner: Owner, row: int) -> str:
        """Return the name of a row's word; DMA for transfers, COLLECTIVE for those that ranks make together."""
        if owner.kind == "engine":
            return self.causes.word(owner, row).name
        return "COLLECTIVE" if self.queue(owner).collective else "DMA"

    @cached_property
    def waits(self) -> list[Waited]:
        """Return every wait of every engine, with what ended it."""
        from emulator.timeline.cause import Node  # deferred: start-up

        found = []
        for track in self.engines:
            for row, waited in enumerate(track.waited):
                if not waited or row >= len(track):
                    continue
                cause = self.causes.before(Node("issue", track.owner, row, track.start[row]))
                if cause is None:
                    continue
                link, node = cause
                source = (node.owner, node.row) if node.what in ("done", "arrive") else None
                found.append(Waited(track.owner, row, waited, link.kind, link.detail, source))
        return found

    def link_line(self, link: Link) -> Line | None:
        """Return the source line that a link of the critical path belongs to."""
        return self.line(link.owner, link.row)
