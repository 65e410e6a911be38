"""Core barriers, and tiles that two cores exchange."""

from __future__ import annotations

from functools import cached_property

from formats.dtypes import Dtype
from formats.isa import CoreBarrier, SendReceive
from formats.named_tuple import NamedTuple
from neurontools.builder.accesses import Accesses
from neurontools.builder.chip import CORE_BARRIER, RECEIVED, SENT
from neurontools.builder.dims import common, split
from neurontools.builder.encode import limit_of, pad, refuse
from neurontools.builder.hazards import Needs
from neurontools.builder.streams import ENGINE, Origin, Streams
from neurontools.builder.tiles import Tiles
from neurontools.builder.trace import BarrierOp, SendRecvOp, Space, Trace, View

__all__ = ["Barriers", "Peer"]

_EXCHANGE = limit_of(SendReceive.OPERANDS["src"])  # type: ignore[arg-type]
_POOL = "Pool"


class Peer(NamedTuple):
    """What a core has to know of the other: where its tiles stand, and where exchanged ones land, in order."""

    tiles: Tiles
    landings: list[View]


class Barriers:
    """Emit the barriers and exchanges of one core; `accesses` orders what they touch with everything else."""

    def __init__(
        self, trace: Trace, streams: Streams, peer: Peer, tiles: Tiles, written: frozenset[int], accesses: Accesses
    ) -> None:
        self._streams, self._peer, self._tiles, self._accesses = streams, peer, tiles, accesses
        self._trace, self._written = trace, written
        self._exchanges = self._barriers = 0
        self._sent = self._received = -1
        self._last: tuple[int, int] | None = None

    @cached_property
    def _shared(self) -> list[View]:
        """Return the whole of each tensor that both cores see and one of them writes."""
        return [
            View(one, Dtype.UINT8, 0, 1, 0, ((1, one.nbytes),))
            for one in self._trace.allocations
            if one.space is Space.HBM and one.kind != "private" and one.id in self._written
        ]

    def barrier(self, op: BarrierOp) -> None:
        """Append a barrier with the other core: accesses to shared memory stay on their side of it."""
        actor = ENGINE[op.engine]
        unit = self._streams.clocks.count(actor)
        needs: Needs = {}
        # a barrier "writes" all that both cores see: what comes before or behind it stays there
        for view in self._shared if op.data is None else (*self._shared, op.data):
            self._accesses.access(view, True, actor, actor, unit, needs, actor)
        self._meet(op.engine, needs)

    def _meet(self, engine: str, needs: Needs, origin: Origin | None = None) -> None:
        """Append a barrier word; on whatever engines they stand, cores come to them in one order."""
        actor = ENGINE[engine]
        if self._last is not None and self._last[0] != actor:
            needs[self._last[0]] = max(self._last[1], needs.get(self._last[0], -1))
        word = CoreBarrier(semaphore=CORE_BARRIER, barrier_id=self._barriers).raw
        self._barriers += 1
        unit = self._streams.clocks.count(actor)
        stream = self._streams.of[engine]
        self._streams.add(stream, word, needs, origin=origin)
        self._streams.complete(stream)
        self._last = actor, unit

    def exchange(self, op: SendRecvOp, name: str) -> None:
        """Send a tile and take one: meet first, so that both landing places are free, then each side sends."""
        streams = self._streams
        if self._sent < 0:
            self._sent, self._received = streams.counter(SENT), streams.counter(RECEIVED)
        landing = self._peer.landings[self._exchanges]
        self._exchanges += 1
        if (landing.partitions, landing.dtype, landing.elements) != (op.src.partitions, op.src.dtype, op.src.elements):
            raise refuse(
                op,
                f"sends {op.src.partitions} partitions and {op.src.elements} elements of {op.src.dtype.spelling}, "
                f"the other core takes {landing.partitions} and {landing.elements} of {landing.dtype.spelling}",
            )
        pool = ENGINE[_POOL]
        needs: Needs = {}
        self._accesses.access(op.dst, True, pool, pool, streams.clocks.count(pool), needs, pool)
        self._meet(_POOL, needs, (f"{name}-meet", *op.source))
        there = self._peer.tiles.place(landing.allocation)
        shared = common([op.src.dims, landing.dims])
        pieces = [] if shared is None else split(shared, [_EXCHANGE, _EXCHANGE])
        if len(pieces) != 1:
            raise refuse(op, "has patterns that one word cannot hold")
        here = self._tiles.place(op.src.allocation)
        word = SendReceive(
            channels=op.src.partitions,
            dtype=op.src.dtype,
            semaphore=SENT,
            peer_semaphore=RECEIVED,
            src=pad(here.of(op.src), pieces[0].dims[0], _EXCHANGE.dims, 1),
            peer_pattern=pad(there.of(landing), pieces[0].dims[1], _EXCHANGE.dims, 1),
        )
        needs = {}
        self._accesses.access(op.src, False, pool, self._sent, streams.clocks.count(self._sent), needs)
        streams.add(streams.of[_POOL], word.raw, needs, self._sent)
        streams.clocks.unit(pool, self._sent)
        # What arrives is known by its semaphore alone.
        self._accesses.arrive(op.dst, self._received, streams.clocks.count(self._received))
        streams.clocks.arrival(self._received)
