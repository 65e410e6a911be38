"""Why something happened when it did: from any completion back to time 0, without a gap.

Every time in a run is an earlier time plus a cost: a word issues when its engine is free or when a semaphore reached
it, completes a latency later, a transfer occupies an engine when that is free or when its descriptors are there. Which
of them it was is read off the recorded times: the cause that holds is the one that ended at that moment.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right

from emulator.observers import Resource
from emulator.semaphores import holds
from emulator.timeline.recorder import Recorder
from emulator.timeline.track import EngineTrack, Owner, QueueTrack, Track
from formats.errors import UnsupportedError
from formats.isa import Awaited, Instruction
from formats.isa.signals import BARRIER
from formats.named_tuple import NamedTuple

__all__ = ["Causes", "Link", "Node"]

_TURNS = 64  # how many transfers back to look for the one whose turn on a DMA engine ended as this one's began
_BANKS = 8  # ports behind those of PSUM's banks are SBUF's


class Node(NamedTuple):
    """A moment: `what` is done, issue or work (it has its ports), arrive (at a barrier), generate, or hold."""

    what: str
    owner: Owner
    row: int
    time_ps: int
    resource: Resource | None = None


class Link(NamedTuple):
    """A span of a chain and what took the time; `row` of `owner` is the word or transfer that took it.

    `kind` is execute (issue to completion), issue (its engine was busy with the word before), semaphore (from the
    change of a semaphore to its engine), order (completion in order), port (a word of another engine had the memory
    port), barrier, generate (descriptors of the transfer before), start (descriptors and first data), data (a DMA
    engine moves it), hbm (device memory does), completion (last data to semaphore), trigger, collective (of the ranks
    of a machine, from the call), or unexplained. `detail` names semaphore, DMA engine or stack.
    """

    start_ps: int
    end_ps: int
    kind: str
    owner: Owner
    row: int
    detail: str = ""

    @property
    def duration_ps(self) -> int:
        """Return how long it took."""
        return self.end_ps - self.start_ps


class Causes:
    """Find causes in what a recorder kept of a run without a seed; UnsupportedError for one with a seed."""

    def __init__(self, recorder: Recorder) -> None:
        device = recorder.device
        if device.seed is not None:
            raise UnsupportedError("a shaken schedule has no critical path: chance moved its times")
        self.recorder = recorder
        self._propagation = device.propagation_ps
        self._by_number: dict[int, tuple[Owner, int]] | None = None
        self._transfers: dict[int, tuple[Owner, int]] | None = None

    # --- lookups -----------------------------------------------------------------------------------------------------

    def completion(self, number: int) -> tuple[Owner, int] | None:
        """Return owner and row of the completion with an event number."""
        if self._by_number is None:
            self._by_number = {
                number: (owner, row)
                for owner, track in self.recorder.tracks.items()
                for row, number in enumerate(track.number)
            }
        return self._by_number.get(number)

    def transfer(self, number: int) -> tuple[Owner, int] | None:
        """Return owner and row of the transfer with a number, None where it has not completed."""
        if self._transfers is None:
            self._transfers = {
                number: (owner, row)
                for owner, track in self.recorder.tracks.items()
                if isinstance(track, QueueTrack)
                for row, number in enumerate(track.transfer)
            }
        return self._transfers.get(number)

    def _engine(self, owner: Owner) -> EngineTrack:
        track = self.recorder.tracks[owner]
        assert isinstance(track, EngineTrack)
        return track

    def _queue(self, owner: Owner) -> QueueTrack:
        track = self.recorder.tracks[owner]
        assert isinstance(track, QueueTrack)
        return track

    def word(self, owner: Owner, row: int) -> Instruction:
        """Return the word of a row."""
        engine = self.recorder.device.cores[owner.core].engines[owner.name]
        return engine.words[self._engine(owner).position[row]].word

    def waits(self, owner: Owner, row: int) -> tuple[Awaited, ...]:
        """Return what the word of a row waits for in its slots; a barrier is a matter of both cores."""
        return tuple(each for each in self.word(owner, row).waits if each.by != BARRIER)

    def _meets(self, owner: Owner, row: int) -> bool:
        """Return whether the word of a row is a core barrier."""
        return any(each.by == BARRIER for each in self.word(owner, row).waits)

    # --- one step back -----------------------------------------------------------------------------------------------

    def before(self, node: Node) -> tuple[Link, Node] | None:
        """Return what took the time before a moment, and the moment at which that began; None at the beginning."""
        if node.what == "done":
            if isinstance(self.recorder.tracks[node.owner], QueueTrack):
                return self._before_transfer(node)
            return self._before_completion(node)
        if node.what == "hold":
            return self._before_hold(node)
        if node.what == "generate":
            return self._before_generation(node)
        return self._before_work(node) if node.what == "work" else self._before_issue(node)

    def _before_completion(self, node: Node) -> tuple[Link, Node]:
        owner, row, now = node.owner, node.row, node.time_ps
        track = self._engine(owner)
        if row and track.completed[row - 1] == now:
            return Link(now, now, "order", owner, row), Node("done", owner, row - 1, now)
        begun = self._begun(owner, row)
        return Link(begun, now, "execute", owner, row), Node("work", owner, row, begun)

    def _begun(self, owner: Owner, row: int) -> int:
        """Return when a word began its work: at issue, or when it got the memory ports that it needs."""
        late = self.recorder.late.get((owner, row))
        return self._engine(owner).start[row] if late is None else late[0]

    def _before_work(self, node: Node) -> tuple[Link, Node] | None:
        """Return who had the port before, where a word got it late."""
        owner, row, now = node.owner, node.row, node.time_ps
        late = self.recorder.late.get((owner, row))
        if late is None:
            return self._before_issue(node)
        for port in late[1]:
            uses = self.recorder.ports[owner.core, port]
            for index in range(bisect_right(uses, now, key=lambda use: use.end_ps) - 1, -1, -1):
                use = uses[index]
                if use.end_ps != now:
                    break
                if (use.owner, use.row) != (owner, row):
                    name = "SBUF port" if port >= _BANKS else f"PSUM bank {port}"
                    return (
                        Link(use.start_ps, now, "port", use.owner, use.row, name),
                        Node("work", use.owner, use.row, use.start_ps),
                    )
        return self._unexplained(node)

    def _before_issue(self, node: Node) -> tuple[Link, Node] | None:
        owner, row, now = node.owner, node.row, node.time_ps
        track = self._engine(owner)
        if row and track.free[row - 1] == now:
            start = self._begun(owner, row - 1)
            return Link(start, now, "issue", owner, row - 1), Node("work", owner, row - 1, start)
        if now == 0:
            return None
        if node.what != "arrive" and self._meets(owner, row):
            found = self._before_barrier(node)
            if found is not None:
                return found
        for wait in self.waits(owner, row):
            found = self._before_wait(node, wait)
            if found is not None:
                return found
        if row and track.completed[row - 1] == now:
            return Link(now, now, "order", owner, row), Node("done", owner, row - 1, now)
        return self._unexplained(node)

    def _before_wait(self, node: Node, wait: Awaited) -> tuple[Link, Node] | None:
        """Return the change of a semaphore that reached the engine at this moment and satisfied the wait."""
        owner = node.owner
        changes = self.recorder.changes.get((owner.core, wait.kind, wait.index))
        # a change reaches the sequencer this long after it happened
        changed = node.time_ps - self._propagation
        if changes is None:
            return None
        for index in range(bisect_right(changes.time, changed) - 1, -1, -1):
            if changes.time[index] != changed:
                break
            value = changes.value[index]
            earlier = changes.value[index - 1] if index else 0
            # Of several changes at one moment the cause is the one by which the wait began to hold; an exact value may
            # be met again.
            if not holds(wait.mode, value, wait.value) or (
                holds(wait.mode, earlier, wait.value) and value != wait.value
            ):
                continue
            source = self.completion(changes.number[index])
            if source is not None:
                name = f"{'E' if wait.kind == 'event' else 'S'}[{wait.index}]"
                return (Link(changed, node.time_ps, "semaphore", owner, node.row, name), Node("done", *source, changed))
        return None

    def _before_barrier(self, node: Node) -> tuple[Link, Node] | None:
        """Return the arrival of the other core at a barrier, if it was what this core waited for."""
        owner = node.owner
        other = Owner(1 - owner.core, owner.name)
        arrived = node.time_ps - self._propagation
        track = self.recorder.tracks.get(other)
        if not isinstance(track, EngineTrack) or arrived < 0:
            return None
        row = bisect_left(track.start, arrived)
        if row >= len(track.start) or not self._meets(other, row):
            return None
        return (
            Link(arrived, node.time_ps, "barrier", owner, node.row, f"nc{other.core}"),
            Node("arrive", other, row, arrived),
        )

    def _unexplained(self, node: Node) -> tuple[Link, Node]:
        """Return a span that no cause ends at, back to the latest moment of the same engine."""
        owner, row, now = node.owner, node.row, node.time_ps
        track = self._engine(owner)
        if not row:
            return Link(0, now, "unexplained", owner, row), Node("issue", owner, row, 0)
        start, free = track.start[row - 1], track.free[row - 1]
        last = free if free < now else start
        return Link(last, now, "unexplained", owner, row), Node("issue", owner, row, last)

    # --- transfers ---------------------------------------------------------------------------------------------------

    def _before_transfer(self, node: Node) -> tuple[Link, Node]:
        owner, row, now = node.owner, node.row, node.time_ps
        track = self._queue(owner)
        if row and track.completed[row - 1] == now:
            return Link(now, now, "order", owner, row), Node("done", owner, row - 1, now)
        if track.flags[row] & 4:
            begun = track.generated[row]
            return Link(begun, now, "collective", owner, row), Node("generate", owner, row, begun)
        number = track.transfer[row]
        last: tuple[int, Resource, int] | None = None
        for resource, taken in self.recorder.holds.items():
            index = bisect_right(taken.transfer, number) - 1
            if index >= 0 and taken.transfer[index] == number and (last is None or taken.end[index] > last[0]):
                last = taken.end[index], resource, index
        if last is None:
            begun = track.generated[row]
            return Link(begun, now, "start", owner, row), Node("generate", owner, row, begun)
        return (Link(last[0], now, "completion", owner, row), Node("hold", owner, last[2], last[0], last[1]))

    def _before_hold(self, node: Node) -> tuple[Link, Node] | None:
        """Return what came before the end of an occupation: its own span, then whoever had the resource before."""
        resource, index = node.resource, node.row
        assert resource is not None
        taken = self.recorder.holds[resource]
        start, end = taken.start[index], taken.end[index]
        source = self.transfer(taken.transfer[index])
        owner, row = source if source is not None else (node.owner, 0)
        kind, detail = (
            ("data", f"DMA engine {resource[2]}")
            if resource[0] == "dma"
            else (resource[0], f"{resource[0]} {resource[1]}")
        )
        if node.time_ps == end and start < end:
            return Link(start, end, kind, owner, row, detail), Node("hold", owner, index, start, resource)
        for before in range(index - 1, max(index - _TURNS, -1), -1):
            if taken.end[before] == start:
                return Link(start, start, "order", owner, row, detail), Node("hold", owner, before, start, resource)
        if source is None:
            raise UnsupportedError("a transfer on the critical path has not completed")
        begun = self._queue(owner).generated[row]
        return Link(begun, start, "start", owner, row), Node("generate", owner, row, begun)

    def _before_generation(self, node: Node) -> tuple[Link, Node]:
        owner, row, now = node.owner, node.row, node.time_ps
        track = self._queue(owner)
        if track.triggered[row] == now:
            source = self.trigger(owner, row)
            return Link(now, now, "trigger", owner, row), Node("done", *source, now)
        if track.flags[row] & 4:  # it was called once the one before it in its stream was through
            return Link(now, now, "order", owner, row), Node("done", owner, row - 1, now)
        begun = track.generated[row - 1]
        return Link(begun, now, "generate", owner, row - 1), Node("generate", owner, row - 1, begun)

    def trigger(self, owner: Owner, row: int) -> tuple[Owner, int]:
        """Return owner and row of the word that triggered a transfer."""
        queue = self._queue(owner)
        device = self.recorder.device
        name = next(q.engine for q in device.queues if (q.core, q.name) == (owner.core, owner.name))
        # the queue's owner first, which is nearly always who triggers; then whoever else it may have been
        for engine in (name, *device.cores[owner.core].engines):
            track: Track | None = self.recorder.tracks.get(Owner(owner.core, engine))
            if track is None:
                continue
            at = bisect_left(track.completed, queue.triggered[row])
            while at < len(track.completed) and track.completed[at] == queue.triggered[row]:
                if track.pc[at] == queue.pc[row]:
                    return track.owner, at
                at += 1
        raise UnsupportedError(f"{owner.text}: nothing triggered its transfer {row}")
