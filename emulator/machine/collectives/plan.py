"""Make a collective: its step lists for every rank, from an operation, a group, an algorithm and a size."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from emulator.machine.collectives.algorithms import Algorithm, Phase, gather, illegal, one_step, scatter
from emulator.machine.collectives.builder import Builder
from emulator.machine.collectives.group import Group, pair_findings
from emulator.machine.collectives.steps import Piece, Program, Spans, size_of, uncollected
from formats.errors import FormatError, UnsupportedError

__all__ = ["OPERATIONS", "Operation", "Plan", "Request", "build", "chunks_of"]

Operation = Literal["allgather", "reducescatter", "allreduce", "alltoall", "permute", "sendrecv"]
OPERATIONS: tuple[Operation, ...] = ("allgather", "reducescatter", "allreduce", "alltoall", "permute", "sendrecv")
REDUCES = ("add", "min", "max")


@dataclass(frozen=True)
class Request:
    """What is asked for.

    `elements` is the larger of input and output: of AllGather the output, of ReduceScatter the input, of the others
    both.  `counts` makes it a V form: the elements of each rank's chunk; of AllToAll counts[source][target], flattened
    row by row.
    """

    operation: Operation
    group: Group
    elements: int
    algorithm: Algorithm
    inner: Algorithm = "mesh"
    outer: Algorithm = "mesh"
    reduce: str = "add"
    counts: tuple[int, ...] | None = None
    pairs: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True)
class Plan:
    """The programs of all ranks, and how large their buffers are (in elements)."""

    request: Request
    programs: dict[int, Program]
    inputs: dict[int, int]
    outputs: dict[int, int]
    scratch: dict[int, int]
    steps: int
    expected: dict[int, dict[tuple[int, int], int]]  # receive counts by (source, channel) when a rank is through

    @property
    def ranks(self) -> tuple[int, ...]:
        """Return the ranks that take part."""
        return self.request.group.ranks


def chunks_of(request: Request) -> list[Spans]:
    """Return the spans of every rank's chunk: as equal as can be, or as the counts of a V form say."""
    n, total = request.group.size, request.elements
    if request.counts is not None and request.operation in ("allgather", "reducescatter"):
        if len(request.counts) != n or min(request.counts) < 0:
            raise FormatError("counts of a V form", expected=f"{n} of 0 and more", got=request.counts)
        starts = [sum(request.counts[:at]) for at in range(n + 1)]
    else:
        starts = [total * at // n for at in range(n + 1)]
    return [((starts[at], starts[at + 1]),) if starts[at] < starts[at + 1] else () for at in range(n)]


def build(request: Request) -> Plan:
    """Return the step lists of a collective.

    Raises UnsupportedError for an algorithm that the group does not allow and an AllToAll or Permute by anything but
    direct writes, FormatError for sizes that do not fit.
    """
    if request.elements < 0 or request.elements > 1 << 40:
        raise FormatError("elements of a collective", expected="0 to 2^40", got=request.elements)
    if request.reduce not in REDUCES:
        raise UnsupportedError(f"a reduction by {request.reduce!r}; there are {', '.join(REDUCES)}")
    b = Builder(request.reduce)
    maker: Callable[[Builder, Request], Plan] = {
        "allgather": _all_gather, "reducescatter": _reduce_scatter, "allreduce": _all_reduce,
        "alltoall": _all_to_all, "permute": _permute, "sendrecv": _permute,
    }[request.operation]  # fmt: skip
    if request.operation in ("allgather", "reducescatter", "allreduce"):
        reason = illegal(request.algorithm, request.group, request.operation)
        if reason and request.group.size > 1:
            raise UnsupportedError(f"{request.algorithm}: {reason}")
    elif request.algorithm != "mesh":
        raise UnsupportedError(f"{request.operation} by {request.algorithm}: it goes by direct writes (mesh) only")
    with uncollected():
        return maker(b, request)


def _plan(b: Builder, request: Request, inputs: Sequence[int], outputs: Sequence[int], steps: int) -> Plan:
    ranks = request.group.ranks
    return Plan(
        request, {rank: b.programs.get(rank, {}) for rank in ranks}, dict(zip(ranks, inputs, strict=True)),
        dict(zip(ranks, outputs, strict=True)), {rank: b.scratch[rank] for rank in ranks}, steps, b.expected(),
    )  # fmt: skip


def _phase(b: Builder, name: str, first: int, ranks: Sequence[int]) -> Phase:
    return Phase(name, first, {rank: b.everything(rank) for rank in ranks})


def _levels(group: Group) -> tuple[list[tuple[int, ...]], list[tuple[int, ...]]]:
    """Return positions in the group: those of each node, and those of the same place on all nodes."""
    index = {rank: at for at, rank in enumerate(group.ranks)}
    inside = [tuple(index[rank] for rank in ranks) for ranks in group.by_node.values()]
    return inside, [tuple(column) for column in zip(*inside, strict=True)]


def _sub(group: Group, positions: Sequence[int]) -> Group:
    return group.part([group.ranks[at] for at in positions])


def _joined(chunks: Sequence[Spans], positions: Sequence[int]) -> Spans:
    return tuple(span for at in positions for span in chunks[at])


def _check(request: Request, algorithm: Algorithm, group: Group) -> None:
    if group.size > 1 and (reason := illegal(algorithm, group, request.operation)):
        raise UnsupportedError(f"hier, {algorithm} over ranks {group.ranks[0]} to {group.ranks[-1]}: {reason}")


def _gather(b: Builder, request: Request, chunks: Sequence[Spans], buffer: str, first: int, name: str) -> int:
    """Gather over the whole group, hierarchically where asked: between nodes first, then inside."""
    group = request.group
    if request.algorithm != "hier":
        phase = _phase(b, name, first, group.ranks)
        return gather(b, request.algorithm, group, chunks, buffer, phase)
    inside, between = _levels(group)
    steps = 0
    for column in between:
        part = _sub(group, column)
        _check(request, request.outer, part)
        steps = gather(b, request.outer, part, [chunks[at] for at in column], buffer,
                       _phase(b, f"inter {name}", first, part.ranks))  # fmt: skip
    return steps + _gather_inside(b, request, chunks, inside, between, buffer, first + steps, name)


def _gather_inside(
    b: Builder, request: Request, chunks: Sequence[Spans], inside: Sequence[tuple[int, ...]],
    between: Sequence[tuple[int, ...]], buffer: str, first: int, name: str,
) -> int:  # fmt: skip
    parts, steps = [_joined(chunks, column) for column in between], 0
    for row in inside:
        part = _sub(request.group, row)
        _check(request, request.inner, part)
        steps = gather(b, request.inner, part, parts, buffer, _phase(b, f"intra {name}", first, part.ranks))
    return steps


def _scatter(b: Builder, request: Request, chunks: Sequence[Spans],
             result: Callable[[int, Spans], Piece], name: str) -> int:  # fmt: skip
    """Reduce over the whole group, hierarchically where asked: inside nodes first, then between."""
    group = request.group
    if request.algorithm != "hier":
        return scatter(b, request.algorithm, group, chunks, "in", result, _phase(b, name, 0, group.ranks))
    inside, between = _levels(group)
    steps = _scatter_inside(b, request, [_joined(chunks, column) for column in between], inside, name)
    more = 0
    for column in between:
        part = _sub(group, column)
        _check(request, request.outer, part)
        more = scatter(b, request.outer, part, [chunks[at] for at in column], "work", result,
                       _phase(b, f"inter {name}", steps, part.ranks))  # fmt: skip
    return steps + more


def _scatter_inside(b: Builder, request: Request, parts: Sequence[Spans], inside: Sequence[tuple[int, ...]],
                    name: str) -> int:  # fmt: skip
    steps = 0
    for row in inside:
        part = _sub(request.group, row)
        _check(request, request.inner, part)
        steps = scatter(b, request.inner, part, parts, "in", lambda rank, spans: Piece(rank, "work", spans),
                        _phase(b, f"intra {name}", 0, part.ranks))  # fmt: skip
    return steps


def _all_gather(b: Builder, request: Request) -> Plan:
    chunks, group = chunks_of(request), request.group
    for rank, spans in zip(group.ranks, chunks, strict=True):
        b.move(rank, [b.at(rank, "in", ((0, size_of(spans)),) if spans else ())], [b.at(rank, "out", spans)], step=-1,
               phase="own")  # fmt: skip
    steps = _gather(b, request, chunks, "out", 0, "gather")
    sizes = [size_of(spans) for spans in chunks]
    return _plan(b, request, sizes, [sum(sizes)] * group.size, steps)


def _reduce_scatter(b: Builder, request: Request) -> Plan:
    chunks, group = chunks_of(request), request.group
    starts = {rank: spans[0][0] if spans else 0 for rank, spans in zip(group.ranks, chunks, strict=True)}

    def result(rank: int, spans: Spans) -> Piece:
        return Piece(rank, "out", tuple((a - starts[rank], z - starts[rank]) for a, z in spans))

    steps = _scatter(b, request, chunks, result, "reduce")
    sizes = [size_of(spans) for spans in chunks]
    return _plan(b, request, [sum(sizes)] * group.size, sizes, steps)


def _all_reduce(b: Builder, request: Request) -> Plan:
    group, n = request.group, request.elements
    whole: Spans = ((0, n),) if n else ()
    if request.algorithm == "single-step-mesh":
        steps = one_step(b, group, whole, _phase(b, "reduce", 0, group.ranks))
        return _plan(b, request, [n] * group.size, [n] * group.size, steps)
    chunks = chunks_of(request)
    steps = _scatter(b, request, chunks, lambda rank, spans: Piece(rank, "out", spans), "reduce")
    steps += _gather(b, request, chunks, "out", steps, "gather")
    return _plan(b, request, [n] * group.size, [n] * group.size, steps)


def _all_to_all(b: Builder, request: Request) -> Plan:
    """Write part t of every rank's input to rank t: one step of direct writes."""
    ranks, n = request.group.ranks, request.group.size
    counts = request.counts
    if counts is None:
        if request.elements % n:
            raise FormatError("elements of an AllToAll", expected=f"a multiple of {n} ranks", got=request.elements)
        counts = (request.elements // n,) * (n * n)
    if len(counts) != n * n or min(counts) < 0:
        raise FormatError("counts of an AllToAllV", expected=f"{n * n} of 0 and more", got=len(counts))
    rows = [counts[at * n : (at + 1) * n] for at in range(n)]
    for at, rank in enumerate(ranks):
        for turn in range(n):
            to = (at + turn) % n
            size = rows[at][to]
            start, place = sum(rows[at][:to]), sum(row[to] for row in rows[:at])
            if size or turn == 0:
                b.move(rank, [b.at(rank, "in", ((start, start + size),) if size else ())],
                       [b.at(ranks[to], "out", ((place, place + size),) if size else ())],
                       step=0 if turn else -1, phase="exchange")  # fmt: skip
    return _plan(b, request, [sum(row) for row in rows], [sum(row[to] for row in rows) for to in range(n)],
                 1 if n > 1 else 0)  # fmt: skip


def _permute(b: Builder, request: Request) -> Plan:
    """Write each source's input to its target: one step; of SendRecv one pair is enough."""
    group = request.group
    if request.operation == "permute":
        wrong = pair_findings(group.machine, request.pairs)
        if wrong:
            raise UnsupportedError(f"permute: {wrong[0]}")
    elif not request.pairs:
        raise FormatError("pairs of a SendRecv", expected="one or more", got="none")
    receivers = [target for _, target in request.pairs]
    if len(set(receivers)) < len(receivers):  # which of two came last would decide
        twice = max(receivers, key=receivers.count)
        raise FormatError("pairs of a SendRecv", expected="one source for each target", got=f"several for rank {twice}")
    taking = {rank for pair in request.pairs for rank in pair}
    if not taking <= set(group.ranks):
        raise FormatError("pairs of a permute", expected="ranks of the group", got=min(taking - set(group.ranks)))
    n = request.elements
    for source, target in request.pairs:
        spans: Spans = ((0, n),) if n else ()
        b.move(source, [b.at(source, "in", spans)], [b.at(target, "out", spans)], step=0, phase="permute")
    senders = {source for source, _ in request.pairs}
    return _plan(b, request, [n if rank in senders else 0 for rank in group.ranks],
                 [n if rank in receivers else 0 for rank in group.ranks], 1)  # fmt: skip
