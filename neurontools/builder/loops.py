"""Loops that the device runs: a test and a branch on every engine, and semaphores that start each turn alike.

All five engines take part. At the head, at the end of the body and behind the loop they meet: everything that was
started is complete then, so that each knows all that came before. There Sync also puts the semaphores that the body
raises back to what they were at the head (or, behind the loop, to what they are after one turn, whether there was one
or none), and so the values that waits name hold in every turn.

A barrier takes two events an engine: each sets its own and waits for the one that Sync sets in answer.
"""

from __future__ import annotations

from formats.engines import ENGINES
from formats.isa import BranchCompare, CompareBranch, EventSemaphore, Nop, UpdateMode, WaitMode
from neurontools.builder.streams import Streams
from neurontools.builder.trace import Source

__all__ = ["REGISTER", "Loop", "close_loop", "leave_unless", "open_loop"]

# The register that each engine tests; the loader's own words use 0 to 4 (isa.md 3).
REGISTER = 16

_LEADER = "SP"
_FOLLOWERS = tuple(engine for engine in ENGINES if engine != _LEADER)
# Events of a barrier, one each way for every engine; ours, beyond those that the loader's words use (isa.md 10).
_ARRIVED = {engine: 64 + number for number, engine in enumerate(_FOLLOWERS)}
_RELEASED = {engine: 72 + number for number, engine in enumerate(_FOLLOWERS)}


class Loop:
    """One open loop: bytes of its test and of the branch out of it in each stream, and how far everybody was."""

    __slots__ = ("before", "exits", "heads", "name", "source")

    def __init__(self, streams: Streams, name: str, source: Source) -> None:
        self.name, self.source = name, source
        self.before = streams.counts()
        self.heads = {engine: len(stream.raw) for engine, stream in streams.of.items()}
        self.exits: dict[str, int] = {}


def open_loop(streams: Streams, name: str, source: Source) -> Loop:
    """Let all engines meet in front of a loop; the words that load its condition come next."""
    _meet(streams, f"{name}-enter", source, {})
    return Loop(streams, name, source)


def leave_unless(streams: Streams, loop: Loop, counting: bool) -> None:
    """Append the branch out of the loop to every engine, for a condition in `REGISTER`."""
    compare = BranchCompare.LE if counting else BranchCompare.EQ
    for engine in ENGINES:
        word = CompareBranch(compare=compare, register=REGISTER, constant=0)
        loop.exits[engine] = streams.plain(engine, word.raw, (f"{loop.name}-test", *loop.source))


def close_loop(streams: Streams, loop: Loop) -> None:
    """Let all engines meet and branch back to the head; behind the loop they meet again."""
    # by semaphore: what it was at the head, and what it is at the end of one turn
    changed = streams.raised_since(loop.before)
    _meet(streams, f"{loop.name}-again", loop.source, {index: first for index, (first, _) in changed.items()})
    for engine in ENGINES:
        raw = streams.of[engine].raw
        # offsets count from the branch word itself (isa.md 10.2)
        back = CompareBranch(compare=BranchCompare.ALWAYS, target=loop.heads[engine] - len(raw))
        streams.plain(engine, back.raw, (f"{loop.name}-branch", *loop.source))
        leave = loop.exits[engine]
        raw[leave + _TARGET : leave + _TARGET + 4] = (len(raw) - leave).to_bytes(4, "little")
    _meet(streams, f"{loop.name}-leave", loop.source, {index: last for index, (_, last) in changed.items()})


def _meet(streams: Streams, name: str, source: Source, values: dict[int, int]) -> None:
    """Make every engine wait until all are here and all transfers are complete; set semaphores to `values` then."""
    for engine in _FOLLOWERS:
        _word(streams, engine, Nop(update_mode=UpdateMode.EVENT_SET, update_index=_ARRIVED[engine]), name, source)
    streams.await_transfers(_LEADER, (name, *source))
    for one, other in zip(_FOLLOWERS[::2], _FOLLOWERS[1::2], strict=True):
        word = EventSemaphore(
            wait_mode=WaitMode.EVENT_SET,
            wait_index=_ARRIVED[one],
            wait2_mode=WaitMode.EVENT_SET,
            wait2_index=_ARRIVED[other],
        )
        _word(streams, _LEADER, word, name, source)
    for index, value in sorted(values.items()):
        word = EventSemaphore(update2_mode=UpdateMode.SEM_WRITE_IMM, update2_index=index, update2_value=value)
        _word(streams, _LEADER, word, name, source)
    for one, other in zip(_FOLLOWERS[::2], _FOLLOWERS[1::2], strict=True):
        word = EventSemaphore(
            update_mode=UpdateMode.EVENT_SET,
            update_index=_RELEASED[one],
            update2_mode=UpdateMode.EVENT_SET,
            update2_index=_RELEASED[other],
        )
        _word(streams, _LEADER, word, name, source)
    for engine in _FOLLOWERS:
        _word(streams, engine, Nop(wait_mode=WaitMode.EVENT_SET, wait_index=_RELEASED[engine]), name, source)
    streams.clocks.everything()


def _word(streams: Streams, engine: str, word: EventSemaphore | Nop, name: str, source: Source) -> None:
    streams.plain(engine, word.raw, (name, *source))


_TARGET = CompareBranch.FIELDS["target"].offset
