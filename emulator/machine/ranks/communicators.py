"""Where collectives of ranks meet: calls that belong together become one job of the engine of CC-cores.

Ranks of one group, on one stream and one core of each, meet in the order of their calls: the n-th call of each belongs
to the n-th of the others.  Calls that ask for different things do not meet; who waits then, `explain` says.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from emulator.dma.collectives import Arrival, Arrived, Call, Caller
from emulator.dma.moves import element_dtype
from emulator.machine.collectives.choose import choose
from emulator.machine.collectives.engine import Engine, Job
from emulator.machine.collectives.group import Group
from emulator.machine.collectives.memory import Array, Buffers
from emulator.machine.collectives.plan import Operation, Plan, Request, build
from emulator.machine.machine import Machine
from formats.dtypes import Dtype
from formats.errors import FormatError, UnsupportedError
from formats.isa import AluOp, CollectiveKind
from formats.isa.enums import CollectiveKind as Kind
from formats.named_tuple import NamedTuple

__all__ = ["Communicators", "Key", "Meeting", "Signature", "group_of", "in_turn", "signature_of"]

_OPERATIONS: dict[int, Operation] = {
    Kind.ALL_GATHER: "allgather", Kind.ALL_REDUCE: "allreduce", Kind.REDUCE_SCATTER: "reducescatter",
    Kind.ALL_TO_ALL: "alltoall", Kind.PERMUTE: "sendrecv", Kind.PERMUTE_NEXT: "sendrecv",
    Kind.ALL_GATHER_V: "allgather", Kind.ALL_TO_ALL_V: "alltoall",
}  # fmt: skip
_REDUCES = {AluOp.ADD: "add", AluOp.MIN: "min", AluOp.MAX: "max"}
_SENT, _SENT_AT, _RECEIVED, _PLACED = range(4)
_BY_TABLE = ("ALL_GATHER_V", "ALL_TO_ALL_V")  # how much they move stands in a table that only the device reads


class Key(NamedTuple):
    """Where calls meet: the ranks in their order, the physical core of each, stream, channel, how many before."""

    ranks: tuple[int, ...]
    core: int
    stream: int
    channel: int
    number: int


class Signature(NamedTuple):
    """What a call asks for; those of one meeting are equal. V forms leave the sizes open."""

    kind: str
    dtype: str
    reduce: str
    elements: int
    room: int
    pairs: tuple[tuple[int, ...], ...]

    @property
    def text(self) -> str:
        """Return it as a reader knows it."""
        what = self.kind.lower() + (f" {self.reduce}" if self.reduce else "")
        return f"{what} of {self.dtype if self.kind in _BY_TABLE else f'{self.elements} {self.dtype}'}"

    @property
    def full(self) -> str:
        """Return it with all that tells it from another: how much room there is, who sends to whom."""
        pairs = ", ".join(f"{source} to {target}" for source, target in self.pairs)
        room = "" if self.kind in _BY_TABLE else f" into {self.room}"
        return f"{self.text}{room}{f' ({pairs})' if pairs else ''}"


class RankBuffers(Buffers):
    """Buffers that are filled as ranks come."""

    def __init__(self, plan: Plan, dtype: np.dtype[np.generic]) -> None:
        empty = {rank: np.zeros(plan.inputs[rank], dtype) for rank in plan.ranks}
        super().__init__(plan, empty, dtype)

    def give(self, rank: int, values: Array) -> None:
        """Take what a rank brings."""
        self.array(rank, "in")[...] = values


@dataclass
class Meeting:
    """One collective of a group: what each rank asked for, and the job once enough is known to make it."""

    key: Key
    signature: Signature
    calls: dict[int, Call] = field(default_factory=dict)
    told: dict[int, Arrived] = field(default_factory=dict)
    begun: dict[int, int] = field(default_factory=dict)
    transfers: dict[int, Caller] = field(default_factory=dict)
    ended: dict[int, int] = field(default_factory=dict)
    job: Job | None = None
    strangers: dict[int, Signature] = field(default_factory=dict)


def group_of(call: Call, rank: int) -> tuple[int, ...]:
    """Return the ranks that a call of a rank works with; nothing where it takes no part in a permute.

    Raises FormatError for a rank outside of all groups.
    """
    if call.word.kind == Kind.PERMUTE:
        everybody = sorted({each for pair in call.groups for each in pair})
        return tuple(everybody) if rank in everybody else ()
    for ranks in call.groups:
        if rank in ranks:
            return ranks
    raise FormatError(f"groups of {_name(call)}", expected=f"rank {rank}, which calls it, in one of them",
                      got=_shown(call.groups))  # fmt: skip


def in_turn(ranks: Sequence[int], rank: int, turn: int, channel: int) -> int:
    """Return whose data a rank of a ring works on in a turn: its own first, then those of the ranks before it.

    Even channels go round in the order of the group, odd ones against it (ours: the order is not published).
    """
    step = -turn if channel % 2 == 0 else turn
    return ranks[(ranks.index(rank) + step) % len(ranks)]


def _name(call: Call) -> str:
    kind = call.word.kind
    return CollectiveKind(kind).name.lower() if kind in set(CollectiveKind) else f"collective {int(kind)}"


def _shown(groups: Sequence[Sequence[int]]) -> str:
    text = ", ".join(str(list(group)) for group in groups[:4])
    return text + (", ..." if len(groups) > 4 else "")


class Communicators:
    """All meetings of a machine; jobs go to its engine of CC-cores, without `data` for their times only."""

    def __init__(self, machine: Machine, engine: Engine, trigger_ps: int, *, data: bool = True) -> None:
        self.machine, self.engine, self.trigger_ps, self.data = machine, engine, trigger_ps, data
        self.meetings: dict[Key, Meeting] = {}
        self.open: list[Meeting] = []
        self._counts: dict[tuple[int, tuple[int, ...], int, int, int], int] = {}
        self._plans: dict[Request, Plan] = {}
        self.of_job: dict[int, Meeting] = {}

    def begin(self, rank: int, call: Call, now_ps: int, arrived: Arrived) -> None:
        """Take a call of a rank; its CC-cores start a moment later.

        Raises FormatError for a rank outside of all groups and for sizes that do not fit, UnsupportedError as
        `signature_of`.
        """
        word = call.word
        start = now_ps + self.trigger_ps
        if word.kind in (Kind.RANK, Kind.RANK_IN_TURN):
            number = rank if word.kind == Kind.RANK else in_turn(group_of(call, rank), rank, word.turn, word.channel)
            value = np.array([number], element_dtype(Dtype(word.dtype)))
            self.engine.at(start, lambda: arrived(start, [Arrival(0, value)], ()))
            return
        ranks = group_of(call, rank)
        if not ranks:
            self.engine.at(start, lambda: arrived(start, (), ()))
            return
        place = rank, ranks, call.core, word.stream, word.channel
        number = self._counts.get(place, 0)
        self._counts[place] = number + 1
        key = Key(ranks, call.core, word.stream, word.channel, number)
        signature = signature_of(call)
        meeting = self.meetings.get(key)
        if meeting is None:
            _check(call, signature, ranks)
            meeting = self.meetings[key] = Meeting(key, signature)
            self.open.append(meeting)
        meeting.begun[rank], meeting.transfers[rank] = now_ps, call.transfer
        if meeting.signature != signature:
            meeting.strangers[rank] = signature
            return
        meeting.calls[rank], meeting.told[rank] = call, arrived
        if word.kind in (Kind.ALL_GATHER_V, Kind.ALL_TO_ALL_V):
            # How much goes where, all ranks say together.
            if len(meeting.calls) == len(ranks):
                self._make(meeting)
                for each in ranks:
                    self._start(meeting, each, start)
            return
        if meeting.job is None:
            self._make(meeting)
        self._start(meeting, rank, start)

    def _start(self, meeting: Meeting, rank: int, time_ps: int) -> None:
        job = meeting.job
        assert job is not None
        if not isinstance(job.buffers, RankBuffers):
            self.engine.trigger(job, rank, time_ps)
            return
        values = meeting.calls[rank].source
        if meeting.signature.kind == "ALL_GATHER_V":
            _, _, sent, at = _v_row(meeting.calls[rank], 0)
            values = values[at : at + sent]
        elif meeting.signature.kind == "ALL_TO_ALL_V":
            values = _packed(meeting.calls[rank], len(meeting.key.ranks))
        elif job.plan.inputs[rank] != values.size:
            values = values[: job.plan.inputs[rank]]
        job.buffers.give(rank, values)
        self.engine.trigger(job, rank, time_ps)

    def _make(self, meeting: Meeting) -> None:
        _check_room(meeting)
        request = _request(self.machine, meeting)
        plan = self._plans.get(request)
        if plan is None:
            plan = self._plans[request] = build(request)
        dtype = element_dtype(Dtype[meeting.signature.dtype])
        job = self.engine.add(
            plan, dtype.itemsize, buffers=RankBuffers(plan, dtype) if self.data else None, stream=meeting.key.stream,
            name=meeting.signature.kind.lower(),
        )  # fmt: skip
        meeting.job, self.of_job[job.number] = job, meeting
        job.on_finish = self._finisher(meeting)

    def _finisher(self, meeting: Meeting) -> Callable[[int, int], None]:
        def finished(rank: int, now_ps: int) -> None:
            job = meeting.job
            assert job is not None
            meeting.ended[rank] = now_ps
            if len(meeting.ended) == len(meeting.key.ranks):
                self.open.remove(meeting)
            pieces: list[Arrival] = []
            received: tuple[int, ...] = ()
            if job.buffers is not None:
                pieces, received = _results(meeting, rank, job.buffers.array(rank, "out"))
            meeting.told[rank](now_ps, pieces, received)
            if job.done:
                job.buffers = None  # their bytes are with the ranks
                meeting.calls.clear()
                meeting.told.clear()

        return finished


def signature_of(call: Call) -> Signature:
    """Return what a call asks for; UnsupportedError for an operation or a reduction that is not known."""
    word = call.word
    variable = word.kind in (Kind.ALL_GATHER_V, Kind.ALL_TO_ALL_V)
    reduces = word.kind in (Kind.ALL_REDUCE, Kind.REDUCE_SCATTER)
    if reduces and word.reduce not in _REDUCES:
        raise UnsupportedError(f"{_name(call)}: a reduction by {int(word.reduce)}")
    if word.kind not in _OPERATIONS:
        raise UnsupportedError(f"{_name(call)}: no such operation is known")
    return Signature(
        CollectiveKind(word.kind).name, Dtype(word.dtype).name, _REDUCES[AluOp(word.reduce)] if reduces else "",
        0 if variable else call.source.size, 0 if variable else call.room,
        call.groups if word.kind == Kind.PERMUTE else (),
    )  # fmt: skip


def _check(call: Call, signature: Signature, ranks: tuple[int, ...]) -> None:
    """Raise FormatError where sizes do not fit the operation."""
    if len(set(ranks)) != len(ranks) and call.word.kind != Kind.PERMUTE:
        raise FormatError(f"group of {_name(call)}", expected="every rank once", got=list(ranks))
    have, room, n = signature.elements, signature.room, len(ranks)
    wanted = {
        "ALL_GATHER": have * n, "REDUCE_SCATTER": have // n if have % n == 0 else -1,
        "ALL_TO_ALL": have if have % n == 0 else -1,
    }.get(signature.kind, have)  # fmt: skip
    if room != wanted:
        raise FormatError(f"{_name(call)} over {n} ranks", expected=f"{wanted} elements in the destination",
                          got=f"{room} for {have} in the source")  # fmt: skip


def _v_row(call: Call, rank: int) -> tuple[int, int, int, int]:
    """Return of a V form the elements of the source, those of the destination, and (sent, at) for a rank."""
    sent, at = call.counts[_SENT][rank], call.counts[_SENT_AT][rank]
    if at + sent > call.source.size:
        raise FormatError(f"counts of {_name(call)}", expected=f"at most {call.source.size} elements",
                          got=f"{sent} at {at}")  # fmt: skip
    return call.source.size, call.room, sent, at


def _check_room(meeting: Meeting) -> None:
    """Raise FormatError where a rank of a V form sends more than another has room for."""
    kind, ranks = meeting.signature.kind, meeting.key.ranks
    if kind not in _BY_TABLE:
        return
    for to, rank in enumerate(ranks):
        call = meeting.calls[rank]
        slot = call.room // len(ranks)
        for number, sender in enumerate(ranks):
            size = _v_row(meeting.calls[sender], 0 if kind == "ALL_GATHER_V" else to)[2]
            room = call.room - call.counts[_PLACED][number] if call.word.has_places else slot
            if size > room:
                raise FormatError(f"{_name(call)} at rank {rank}",
                                  expected=f"at most {room} elements of rank {sender}", got=size)  # fmt: skip


def _packed(call: Call, ranks: int) -> Array:
    parts = []
    for rank in range(ranks):
        _, _, sent, at = _v_row(call, rank)
        parts.append(call.source[at : at + sent])
    return np.concatenate(parts)


def _request(machine: Machine, meeting: Meeting) -> Request:
    """Return what the ranks of a meeting ask the CC-cores for."""
    signature, ranks = meeting.signature, meeting.key.ranks
    n = len(ranks)
    group = Group(machine, ranks)
    operation = _OPERATIONS[CollectiveKind[signature.kind]]
    elements, counts = max(signature.elements, signature.room), None
    pairs: tuple[tuple[int, int], ...] = ()
    if signature.kind == "PERMUTE":
        elements, pairs = signature.elements, tuple((a, b) for a, b in signature.pairs)
    elif signature.kind == "PERMUTE_NEXT":
        elements = signature.elements
        pairs = tuple((in_turn(ranks, rank, 1, meeting.key.channel), rank) for rank in ranks)
    elif signature.kind == "ALL_GATHER_V":
        counts = tuple(_v_row(meeting.calls[rank], 0)[2] for rank in ranks)
        elements = sum(counts)
    elif signature.kind == "ALL_TO_ALL_V":
        counts = tuple(_v_row(meeting.calls[rank], to)[2] for rank in ranks for to in range(n))
        elements = sum(counts)
    size = elements * element_dtype(Dtype[signature.dtype]).itemsize
    choice = choose(operation, group, size)
    return Request(
        operation, group, elements, choice.algorithm, choice.inner, choice.outer, signature.reduce or "add",
        counts, pairs,
    )  # fmt: skip


def _results(meeting: Meeting, rank: int, out: Array) -> tuple[list[Arrival], tuple[int, ...]]:
    """Return what arrived at a rank, and the received counts of a V form."""
    kind, ranks = meeting.signature.kind, meeting.key.ranks
    if kind in ("PERMUTE", "PERMUTE_NEXT"):
        return ([Arrival(0, out)] if out.size else []), ()
    if kind not in _BY_TABLE:
        return [Arrival(0, out)], ()
    call, mine, at = meeting.calls[rank], ranks.index(rank), 0
    slot, pieces, received = call.room // len(ranks), [], []
    for number, sender in enumerate(ranks):
        size = _v_row(meeting.calls[sender], 0 if kind == "ALL_GATHER_V" else mine)[2]
        place = call.counts[_PLACED][number] if call.word.has_places else slot * number
        pieces.append(Arrival(place, out[at : at + size].copy()))
        received.append(size)
        at += size
    return pieces, () if call.word.keeps_counts else tuple(received)
