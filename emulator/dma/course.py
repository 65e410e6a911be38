"""What transfers that move as much the same way have in common when they are planned: shares of engines, and times."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from emulator.dma.engines import Stretch
from emulator.dma.queues import descriptors_in_ring
from emulator.dma.rings import share_out

if TYPE_CHECKING:
    from emulator.cost.dma import DmaCosts
    from emulator.dma.transfer import Facts, Request, Shares

__all__ = ["PACKET_BYTES", "Course", "course_of", "maker_of"]

PACKET_BYTES = 4096  # of descriptors from load time, by default (hardware.md 4.1); those of generators are not cut
# Of a packet (formats.md 7.2). That larger packets hold several descriptors is inferred, that those of the default do
# not is observed (collectives.md 9).
_MOST_DESCRIPTORS = 64


def maker_of(request: Request) -> str:
    """Return what makes the descriptors of a transfer: "prebuilt", "software" or "hardware"."""
    return "prebuilt" if request.prebuilt else "software" if request.engine == "Pool" else "hardware"


class Course:
    """The plan of a transfer but for when it begins; `maker` of its descriptors is as in `DmaCosts.start_ps`.

    Nothing else of a transfer or its queue is asked for: `course_of` works it out once for a process.
    """

    __slots__ = (
        "cold_fill_ps",
        "cold_ps",
        "completion_ps",
        "engines",
        "fill_ps",
        "generator_ps",
        "hbm_bytes",
        "held",
        "is_even",
        "memory_ps",
        "share",
        "shares",
        "soonest_ps",
        "stagger_ps",
        "start_ps",
        "stretches",
        "writes_hbm",
    )

    def __init__(self, facts: Facts, num_queues: int, maker: str, packet_bytes: int, costs: DmaCosts) -> None:
        self.writes_hbm = writes = facts.writes_hbm
        self.shares: Shares = share_out(facts.pieces, costs.rows_per_engine, num_queues)
        self.engines = len(self.shares)
        self.share = facts.nbytes / (self.engines or 1)  # bytes of an engine, on average
        self.is_even = self.share.is_integer()
        self.held = descriptors_in_ring(self.shares)
        self.generator_ps = costs.trigger_ps(maker)
        self.start_ps = costs.start_ps(writes, maker)
        self.soonest_ps = costs.soonest_ps
        each = facts.nbytes // self.engines if self.engines else 0
        prebuilt = maker == "prebuilt"
        self.fill_ps = 0 if writes else costs.filling_ps(self.engines, each)
        self.cold_fill_ps = 0 if writes else costs.filling_ps(self.engines, each, cold=prebuilt)
        self.stagger_ps, self.cold_ps = costs.stagger_ps(writes), costs.stagger_ps(writes, cold=prebuilt)
        rate = costs.hbm_write_ps_per_byte if writes else costs.hbm_read_ps_per_byte
        self.hbm_bytes, self.memory_ps = facts.hbm_bytes, int(facts.hbm_bytes * rate)
        self.completion_ps = costs.completion_ps(self.engines)
        self.stretches = _stretches(facts, self.shares, prebuilt, packet_bytes, costs)


@lru_cache(1 << 12)
def course_of(facts: Facts, num_queues: int, maker: str, packet_bytes: int, costs: DmaCosts) -> Course:
    """Return a course, the same to all who ask for it."""
    return Course(facts, num_queues, maker, packet_bytes, costs)


def _stretches(facts: Facts, shares: Shares, prebuilt: bool, packet_bytes: int, costs: DmaCosts) -> tuple[Stretch, ...]:
    """Return which engines take as much of a transfer, and how long each is busy with it."""
    nbytes, writes, reads = facts.nbytes, facts.writes_hbm, facts.reads_hbm
    share = _share(facts, costs)
    each = nbytes / shares[-1][1] if shares else 0
    # A packet is a descriptor. Those from load time are cut; where packets were made larger, it holds as many as fit.
    cuts = max(-(-nbytes // (shares[-1][1] * packet_bytes)), 1) if prebuilt and shares else 1
    larger = prebuilt and packet_bytes > PACKET_BYTES and each
    joined = min(max(int(packet_bytes // each), 1), _MOST_DESCRIPTORS) if larger else 1
    made: list[Stretch] = []
    known: dict[int, tuple[int, int, int]] = {}
    for engine, (low, high) in enumerate(shares):
        count = high - low
        parts = known.get(count)
        if parts is None:
            duration = costs.data_ps(count, int(count * each), writes, share, reads)
            packets = -(-count // joined) * cuts
            packet = duration * min(joined, count) // (count * cuts)
            parts = known[count] = packets, packet, duration - packet * (packets - 1) + costs.signal_ps
        if made and made[-1][2:] == parts:
            made[-1] = Stretch(made[-1].first, engine, *parts)
        else:
            made.append(Stretch(engine, engine, *parts))
    return tuple(made)


def _share(facts: Facts, costs: DmaCosts) -> float:
    if facts.op in ("copy", "cast"):
        return 1.0
    if facts.op == "transpose":
        return costs.transpose_share if facts.hbm_bytes else costs.transpose_share_sbuf
    return costs.compute_share
