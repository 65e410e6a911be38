"""What `cc run`, `cc verify` and `cc fault` share: execution with data, and how it ended as rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

from formats.named_tuple import NamedTuple
from neurontools.text.table import count, duration

if TYPE_CHECKING:
    from emulator.machine.collectives.engine import Faults
    from emulator.machine.collectives.run import Outcome
    from neurontools.cc.asking import Asked

__all__ = ["HangRow", "Ran", "RankRow", "executed", "hang_lines", "ran_lines", "ran_of"]


class HangRow(NamedTuple):
    """Why a collective does not end."""

    cause: Annotated[str, "stopped, trigger, lost, proxy or cycle"]
    ranks: tuple[int, ...]
    sentence: str
    status: Annotated[int, "what the Neuron runtime returns"]
    waiting: Annotated[int, "ranks that are not through"]
    chain: Annotated[tuple[str, ...], "who waits for whom"]


class RankRow(NamedTuple):
    """One rank's part."""

    rank: int
    sent: Annotated[int, "bytes written to other ranks"]
    between_nodes: int
    between_chips: int
    hbm_bytes: int
    finished_ns: Annotated[float | None, "None where it is not through"]


class Ran(NamedTuple):
    """The result of `cc run` and `cc fault`."""

    operation: str
    algorithm: str
    ranks: int
    groups: int
    bytes: int
    dtype: str
    steps: int
    time_ns: float
    transfers: int
    hangs: tuple[HangRow, ...]
    rows: tuple[RankRow, ...]


def executed(asked: Asked, kind: str, seed: int | None, *, faults: Faults | None = None,
             absent: frozenset[int] = frozenset(), data: bool = True) -> tuple[Outcome, dict[int, Any]]:  # fmt: skip
    """Execute the requests with data of a kind (random, ones, ramp); return the outcome and the inputs."""
    from emulator.machine.collectives.plan import build  # deferred: start-up
    from emulator.machine.collectives.run import execute, make_inputs  # deferred: start-up

    inputs = make_inputs([build(one) for one in asked.requests], asked.dtype, kind, seed or 0) if data else None
    outcome = execute(asked.requests, asked.dtype, inputs, seed=seed or 0, faults=faults, absent=absent)
    return outcome, inputs or {}


def ran_of(asked: Asked, outcome: Outcome) -> Ran:
    """Return how an execution went."""
    first, item = asked.requests[0], asked.dtype.itemsize
    rows = []
    for job in outcome.jobs:
        for rank in job.plan.ranks:
            one, end = job.counters.ranks[rank], job.finished.get(rank)
            rows.append(RankRow(rank, one.sent, one.between_nodes, one.between_chips, one.hbm_reads + one.hbm_writes,
                                None if end is None else end / 1000))  # fmt: skip
    name = first.algorithm if first.algorithm != "hier" else f"hier:{first.inner}+{first.outer}"
    hangs = tuple(HangRow(h.cause, h.ranks, h.sentence, h.status, h.waiting, h.chain) for h in outcome.hangs)
    transfers = sum(one.moves for job in outcome.jobs for one in job.counters.ranks.values())
    return Ran(
        first.operation, name, first.group.size, len(asked.requests), first.elements * item, str(asked.dtype),
        outcome.jobs[0].plan.steps, outcome.time_ps / 1000, transfers, hangs, tuple(rows),
    )  # fmt: skip


def ran_lines(found: Ran) -> Iterator[str]:
    """Yield the text for people."""
    time = duration(int(found.time_ns * 1000))
    where = f" in each of {found.groups} groups" if found.groups > 1 else ""
    verb = "stopped after" if found.hangs else "took"
    what = f"{found.operation} of {found.bytes:,} bytes ({found.dtype}) over {count(found.ranks, 'rank')}{where}"
    work = f"{count(found.steps, 'step')}, {count(found.transfers, 'transfer')}"
    yield f"{what} by {found.algorithm} {verb} {time}: {work}"
    sent = [row.sent for row in found.rows]
    yield f"bytes written to other ranks: {min(sent):,} to {max(sent):,} a rank, {sum(sent):,} in all"
    for hang in found.hangs:
        yield from hang_lines(hang)


def hang_lines(hang: HangRow) -> Iterator[str]:
    """Yield the text of a hang."""
    from formats.nrt.lookup import status_of  # deferred: start-up

    yield f"hang: {hang.sentence}; {count(hang.waiting, 'rank')} wait{'s' * (hang.waiting == 1)}"
    yield from (f"  {line}" for line in hang.chain[:8])
    if len(hang.chain) > 8:
        yield f"  ... and {len(hang.chain) - 8} more"
    known = status_of(str(hang.status))
    yield f"  status {'' if known is None else known.name} ({hang.status}), what the Neuron runtime returns"
