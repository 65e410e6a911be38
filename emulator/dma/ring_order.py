"""Which DMA engine moves which bytes of a transfer, and whether rings alone keep the order of two transfers.

A queue is one ring on each of up to 16 DMA engines. Each engine serves its ring in order; engines do not wait for one
another (hardware.md 4.1). So of two transfers on one queue only those bytes keep their order that the same engine moves
in both. Bytes are runs here: where each begins and ends, which engine moves it, in the order of the walk.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt

from emulator.dma.moves import COMBINING
from emulator.dma.transfer import Part, Shares, Side, Transfer
from formats.named_tuple import NamedTuple
from formats.neuron_core import DESCRIPTOR_LIMIT, SBUF_PARTITION_STRIDE
from formats.regions import Region

__all__ = ["Runs", "keeps_order", "meetings", "runs_of", "runs_of_side"]

Numbers = npt.NDArray[np.int64]
_UNKNOWN = -1  # engine of bytes that an operation brings to other places, or makes of several
_MOST_PAIRS = 1 << 20  # compared at once


class Runs(NamedTuple):
    """Contiguous bytes of one memory: `low` to `high` - 1 on the scale of `Side.address`, and who moves them."""

    low: Numbers
    high: Numbers
    engine: Numbers

    def take(self, chosen: npt.NDArray[np.bool_] | Numbers) -> Runs:
        """Return some of the runs."""
        return Runs(self.low[chosen], self.high[chosen], self.engine[chosen])


def runs_of_side(side: Side) -> tuple[Numbers, Numbers]:
    """Return where each run of a side begins and ends, in the order of its walk."""
    low = np.array([side.address], np.int64)
    for step, count in side.dims:
        low = (low[:, None] + np.arange(count, dtype=np.int64) * step).reshape(-1)
    return low, low + side.run


def runs_of(transfer: Transfer, writes: bool, space: str, core: int) -> Runs:
    """Return the runs that a transfer writes, or reads, in one memory, with the engines that move them."""
    found: list[Runs] = []
    start = 0
    for part in transfer.parts:
        for source, target in part.copies:
            side = target if writes else source
            if side.space == space and (space == "HBM" or side.core == core):
                found.append(_engines(part, source, side, writes, transfer.shares, start))
            start += source.rows * _pieces(source.run)
    return Runs(*(np.concatenate([one[at] for one in found] or [np.empty(0, np.int64)]) for at in range(3)))


def _pieces(run: int) -> int:
    return max(1, -(-run // DESCRIPTOR_LIMIT))


def _engines(part: Part, source: Side, side: Side, writes: bool, shares: Shares, start: int) -> Runs:
    """Return the runs of one side of a copy; its descriptors are the transfer's from number `start` on."""
    low, high = runs_of_side(side)
    if part.op == "transpose" or part.op in COMBINING:
        return Runs(low, high, np.full(low.size, _UNKNOWN, np.int64))
    pieces = _pieces(source.run)
    bounds = np.array([last for _, last in shares], np.int64)
    engines = np.searchsorted(bounds, start + np.arange(source.rows * pieces), "right")
    # Bytes of the walk at which a descriptor ends, and a run of this side does: between them nothing changes.
    ends = (np.arange(source.rows)[:, None] * source.run
            + np.minimum(np.arange(1, pieces + 1) * DESCRIPTOR_LIMIT, source.run)).reshape(-1)  # fmt: skip
    if writes and source.nbytes != side.nbytes:
        ends = ends // source.dtype.size * side.dtype.size
    cuts = np.union1d(ends, np.arange(1, side.rows + 1) * side.run)
    begins = np.concatenate([[0], cuts[:-1]])
    rows, inside = np.divmod(begins, side.run)
    return Runs(low[rows] + inside, low[rows] + inside + cuts - begins, engines[np.searchsorted(ends, begins, "right")])


def keeps_order(old: Transfer, old_writes: bool, new: Transfer, new_writes: bool, common: Region) -> bool:
    """Return whether rings order every byte inside a region that two transfers of one queue both touch.

    Bytes whose engine is not known keep their order where both transfers go the same way.
    """
    if _same_way(old, old_writes, new, new_writes):
        return True
    first, second = (
        _inside(runs_of(one, writes, common.space, common.core), common)
        for one, writes in ((old, old_writes), (new, new_writes))
    )
    return not any(
        bool(((first.engine[a] != second.engine[b]) | (second.engine[b] == _UNKNOWN)).any())
        for a, b in meetings(first, second)
    )


def _inside(runs: Runs, box: Region) -> Runs:
    """Return the runs that touch the box around a region."""
    if box.space == "HBM":
        return runs.take((runs.low < box.end) & (runs.high > box.byte))
    partition, byte = np.divmod(runs.low, SBUF_PARTITION_STRIDE)
    size = runs.high - runs.low
    return runs.take((partition >= box.first) & (partition < box.behind) & (byte < box.end) & (byte + size > box.byte))


def meetings(first: Runs, second: Runs) -> Iterator[tuple[Numbers, Numbers]]:
    """Yield the numbers of runs, of the first and of the second, that share a byte: every pair, some at a time."""
    if not first.low.size or not second.low.size:
        return
    order = np.argsort(first.low, kind="stable")
    low, high = first.low[order], np.maximum.accumulate(first.high[order])
    begin = np.searchsorted(high, second.low, "right")
    count = np.searchsorted(low, second.high, "left") - begin
    busy = np.flatnonzero(count > 0)
    while busy.size:
        # As many runs of the second as make a bearable number of pairs.
        total = np.cumsum(count[busy])
        some = max(1, int(np.searchsorted(total, _MOST_PAIRS, "right")))
        these, busy = busy[:some], busy[some:]
        counts = count[these]
        seconds = np.repeat(these, counts)
        within = np.arange(seconds.size) - np.repeat(np.cumsum(counts) - counts, counts)
        firsts = order[np.repeat(begin[these], counts) + within]
        really = (first.low[firsts] < second.high[seconds]) & (first.high[firsts] > second.low[seconds])
        if really.any():
            yield firsts[really], seconds[really]


def _same_way(old: Transfer, old_writes: bool, new: Transfer, new_writes: bool) -> bool:
    """Return whether both cut the same side into the same descriptors, so that each byte stays on its engine."""
    if old.shares != new.shares or len(old.parts) != len(new.parts):
        return False
    return all(
        len(one.copies) == len(other.copies)
        and one.op == other.op and one.shape == other.shape
        and _alike(one.copies, other.copies, old_writes, new_writes)
        for one, other in zip(old.parts, new.parts, strict=True)
    )  # fmt: skip


def _alike(old: Iterable[tuple[Side, Side]], new: Iterable[tuple[Side, Side]], old_at: bool, new_at: bool) -> bool:
    return all(
        (one[old_at].address, one[old_at].dims, one[old_at].run, one[old_at].space, one[old_at].core)
        == (other[new_at].address, other[new_at].dims, other[new_at].run, other[new_at].space, other[new_at].core)
        and _cut(one[0]) == _cut(other[0])
        and _cut(one[1]) == _cut(other[1])
        for one, other in zip(old, new, strict=True)
    )  # fmt: skip


def _cut(side: Side) -> tuple[int, ...]:
    return (side.run, *(count for _, count in side.dims))
