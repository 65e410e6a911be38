"""Say why a collective does not end: which CC-core waits for whom, down to the rank where it begins."""

from __future__ import annotations

from emulator.machine.collectives.engine import Blocked, Engine, Job
from formats.named_tuple import NamedTuple
from formats.nrt.status import NrtStatus

__all__ = ["Hang", "explain"]

_STALLED, _PROXY = NrtStatus.NRT_EXEC_HW_ERR_COLLECTIVES, NrtStatus.NRT_NETWORK_PROXY_FAILURE
_CAUSES = {
    "stopped": "rank {0} stopped at step {1}",
    "trigger": "rank {0} never started the collective",
    "lost": "what rank {0} sent to rank {1} never arrived",
    "cycle": "ranks {0} wait for each other",
    "proxy": "the network proxy of rank {0} failed",
}


class Hang(NamedTuple):
    """Why ranks wait: the chain from the first waiter to the cause, or the cycle."""

    cause: str
    ranks: tuple[int, ...]
    sentence: str
    chain: tuple[str, ...]
    status: NrtStatus
    waiting: int


def explain(engine: Engine, job: Job) -> Hang | None:
    """Return why a job is not through when nothing moves any more, None where it is."""
    if job.done:
        return None
    blocked = {(one.rank, one.channel): one for one in engine.blocked.values() if one.job == job.number}
    dead = sorted(rank for rank, proxy in job.proxies.items() if proxy.failed and (proxy.waiting or proxy.index > 0))
    waiting = len(job.plan.ranks) - len(job.finished)
    # A dead proxy, then ranks that stopped, then those that never came: each explains all that wait behind it.
    if dead:
        chain = tuple(_line(one) for one in list(blocked.values())[:1])
        return Hang("proxy", (dead[0],), _CAUSES["proxy"].format(dead[0]), chain, _PROXY, waiting)
    stopped = sorted((one for one in blocked.values() if one.reason == "stopped"), key=lambda one: one.rank)
    absent = sorted(set(job.plan.ranks) - set(job.started))
    start = next((one for one in blocked.values() if one.reason != "stopped"), None)
    chain, seen = _followed(start, blocked)
    chain = chain or _at_the_end(engine, job)
    if stopped:
        first = stopped[0]
        ranks = tuple(dict.fromkeys(one.rank for one in stopped))
        return Hang("stopped", ranks, _CAUSES["stopped"].format(first.rank, first.step), chain, _STALLED, waiting)
    if absent:
        return Hang("trigger", tuple(absent), _CAUSES["trigger"].format(absent[0]), chain, _STALLED, waiting)
    lost = _lost(engine, job)
    if lost is not None:
        return Hang("lost", lost, _CAUSES["lost"].format(*lost), chain, _STALLED, waiting)
    ranks = tuple(dict.fromkeys(one.rank for one in seen))
    return Hang("cycle", ranks, _CAUSES["cycle"].format(", ".join(map(str, ranks))), chain, _STALLED, waiting)


def _lost(engine: Engine, job: Job) -> tuple[int, int] | None:
    """Return source and target of a transfer that was started and never arrived."""
    for rank in job.plan.ranks:
        for source, channel in () if rank in job.finished else job.plan.expected.get(rank, {}):
            if engine.issued_to(job, source, rank, channel) > engine.arrived(job, source, rank, channel):
                return source, rank
    return None


def _at_the_end(engine: Engine, job: Job) -> tuple[str, ...]:
    """Return who still waits where all that is blocked is the cause itself: ranks whose own work is done."""
    found = []
    for rank in job.plan.ranks:
        for (source, channel), count in ({} if rank in job.finished else job.plan.expected.get(rank, {})).items():
            have = engine.arrived(job, source, rank, channel)
            if have < count and source != rank:
                found.append(f"rank {rank}, channel {channel}: waits for transfer {count} of rank {source}, has {have}")
    return tuple(found)


def _followed(start: Blocked | None, blocked: dict[tuple[int, int], Blocked]) -> tuple[tuple[str, ...], list[Blocked]]:
    seen: list[Blocked] = []
    here = start
    while here is not None and here not in seen and len(seen) < 64:
        seen.append(here)
        here = blocked.get((here.peer, here.channel)) if here.peer != here.rank else None
    return tuple(_line(one) for one in seen), seen


def _line(one: Blocked) -> str:
    where = f"rank {one.rank}, channel {one.channel}, {one.phase}" + (f" step {one.step}" if one.step >= 0 else "")
    if one.reason == "stopped":
        return f"{where}: stopped"
    if one.reason == "trigger":
        return f"{where}: waits for rank {one.peer} to start"
    what = "transfer" if one.reason == "receive" else "credit"
    return f"{where}: waits for {what} {one.want} of rank {one.peer}, has {one.have}"
