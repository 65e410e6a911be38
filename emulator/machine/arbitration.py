"""How one DMA engine shares its time between the rings of compute and of collectives, packet by packet.

An engine serves the rings that have work in turn and changes only between packets, so of rings that are all busy each
has the share of its packet size.  Trn3 serves the highest priority that has work, and the others when it has none.
"""

from __future__ import annotations

from collections.abc import Sequence

from formats.errors import UnsupportedError
from formats.named_tuple import NamedTuple
from formats.neuron_core import DESCRIPTOR_LIMIT

__all__ = ["CC_PACKET", "COMPUTE_PACKET", "MAX_STREAMS", "Ring", "Served", "packet_sizes", "serve"]

COMPUTE_PACKET = 4096  # default; may only grow (collectives.md 9)
CC_PACKET = DESCRIPTOR_LIMIT  # default and most; may only shrink (collectives.md 9)
MAX_STREAMS = 4


class Ring(NamedTuple):
    """A ring with its backlog; a lower number of priority goes first where priorities count."""

    name: str
    packet: int
    size: int
    priority: int = 0


class Served(NamedTuple):
    """What became of a ring: its share while every ring of its priority had work, and when it was through."""

    ring: Ring
    share: float
    done_ns: float


def packet_sizes(compute: int | None, collective: Sequence[int], streams: int) -> tuple[int, tuple[int, ...]]:
    """Return the packet sizes of compute and of each stream; UnsupportedError for what the runtime does not allow."""
    if not 1 <= streams <= MAX_STREAMS:
        raise UnsupportedError(f"{streams} streams; there are 1 to {MAX_STREAMS}")
    mine = COMPUTE_PACKET if compute is None else compute
    if not COMPUTE_PACKET <= mine <= DESCRIPTOR_LIMIT:
        raise UnsupportedError(
            f"compute packets of {mine} bytes: they may only grow from {COMPUTE_PACKET} to {DESCRIPTOR_LIMIT}"
        )
    if len(collective) > streams:
        raise UnsupportedError(f"packet sizes for {len(collective)} streams, and {streams} streams")
    for size in collective:
        if not 1 <= size <= CC_PACKET:
            raise UnsupportedError(f"collective packets of {size} bytes: they may only shrink from {CC_PACKET}")
    # One size holds for every stream; of a list, streams without an entry keep the default.
    more = collective if len(collective) > 1 else tuple(collective) * streams
    return mine, (*more, *(CC_PACKET,) * (streams - len(more)))


def serve(rings: Sequence[Ring], rate: float, *, strict: bool = False) -> tuple[Served, ...]:
    """Return what becomes of rings on an engine of `rate` bytes per nanosecond; `strict` lets priorities count."""
    shares: dict[int, float] = {}
    done: dict[int, float] = {}
    now = 0.0
    classes = sorted({ring.priority for ring in rings}) if strict else [0]
    for level in classes:
        members = [at for at, ring in enumerate(rings) if not strict or ring.priority == level]
        left = {at: rings[at].size for at in members if rings[at].size}
        for at in members:
            together = sum(rings[other].packet for other in left)
            shares[at] = rings[at].packet / together if at in left else 0.0
            done.setdefault(at, now)
        while left:
            # Whole rounds at once, but for the last one of whoever is through first: its end lies inside it.
            rounds = max(0, min(size // rings[at].packet for at, size in left.items()) - 1)
            for at in left:
                left[at] -= rounds * rings[at].packet
                now += rounds * rings[at].packet / rate
            for at in list(left):
                step = min(rings[at].packet, left[at])
                now += step / rate
                left[at] -= step
                if not left[at]:
                    del left[at]
                    done[at] = now
    return tuple(Served(ring, shares[at], done[at]) for at, ring in enumerate(rings))
