"""What one transfer does to itself: reads what it writes, or writes bytes twice.

The descriptors of a transfer are spread over DMA engines that do not wait for one another (hardware.md 4.1), and an
engine reads ahead of what it writes. So bytes that a transfer touches twice, once to write, have no order of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

import numpy as np

from emulator.checks.row_sets import are_apart
from emulator.device import Device
from emulator.dma.ring_order import Numbers, Runs, meetings, runs_of_side
from emulator.dma.rows import RowsRequest
from emulator.dma.transfer import Part, Side, Transfer
from emulator.dma.views import device_bytes, sbuf_geometry, strided
from formats.named_tuple import NamedTuple

__all__ = ["Clash", "bytes_of", "clash_of", "duplicates", "is_simple"]

_BYTE = np.dtype(np.uint8)


class Clash(NamedTuple):
    """Bytes that a transfer touches twice: `kind` is a finding's, `side` one that is written there.

    `value` is that of an index which comes twice, at `rows`.
    """

    kind: str
    side: Side
    low: int
    high: int
    value: int = -1
    rows: tuple[int, int] = (-1, -1)


class _Touched(NamedTuple):
    """Runs of one memory, the part of each, and where in the walk of its part it lies."""

    runs: Runs
    part: Numbers
    place: Numbers


def clash_of(device: Device, transfer: Transfer, doubles: Sequence[Clash] | None = None) -> Clash | None:
    """Return the first thing that a transfer does to itself, None for nearly all.

    `doubles` is what `duplicates` gave when it was over; nothing for who asks right then.
    """
    if is_simple(transfer) or are_apart(transfer):
        return None
    if doubles is None:
        doubles = duplicates(device, transfer)
    if doubles:
        return doubles[0]
    targets = [(number, side) for number, part in enumerate(transfer.parts) for side in part.destinations]
    sources = [(number, source) for number, part in enumerate(transfer.parts) for source, _ in part.copies]
    for memory in dict.fromkeys(map(_memory, (side for _, side in targets))):
        written = [(number, side) for number, side in targets if _memory(side) == memory]
        # Rows of a scatter that bring equal bytes to one place count once.
        once = {
            (side.address, side.dims) if side.chosen else (number, side): (number, side) for number, side in written
        }
        written = list(once.values())
        read = [(number, side) for number, side in sources if _memory(side) == memory]
        if not _near(written, read):
            continue
        writes = _touched(written)
        found = _twice(writes) or (_moved(writes, _touched(read), transfer.parts) if read else None)
        if found is not None:
            side = next(side for number, side in written if number == found[2])
            return Clash("overlap", side, found[0], found[1])
    return None


def is_simple(transfer: Transfer) -> bool:
    """Return whether a transfer is one copy that writes no byte twice, and none that it reads elsewhere.

    Nearly all go from one kind of memory to the other.
    """
    request = transfer.request
    if type(request) is RowsRequest and request.rows.count > 1:
        return False
    parts = request.parts
    if len(parts) != 1 or len(parts[0].copies) != 1:
        return False
    ((source, target),) = parts[0].copies
    if _folds_back(target):
        return False
    if source.space != target.space:
        return True
    (low, high), (first, behind) = source.span, target.span
    if high <= first or behind <= low:
        return True
    # Each byte onto itself.
    return (
        parts[0].op != "transpose"
        and source.core == target.core
        and source.address == target.address
        and source.dims == target.dims
        and source.run == target.run
    )


def _memory(side: Side) -> tuple[str, int]:
    return side.space, -1 if side.space == "HBM" else side.core


def _near(written: list[tuple[int, Side]], read: list[tuple[int, Side]]) -> bool:
    """Return whether sides may share bytes, by their spans alone."""
    spans = sorted([(*side.span, True) for _, side in written] + [(*side.span, False) for _, side in read])
    reach = wrote = -1
    for low, high, writes in spans:
        if (low < reach and writes) or low < wrote:
            return True
        reach = max(reach, high)
        if writes:
            wrote = max(wrote, high)
    return any(_folds_back(side) for _, side in written)


def _folds_back(side: Side) -> bool:
    """Return whether steps of a side may fold back onto it."""
    return not _is_spread(side.dims, side.run)


@lru_cache(1 << 10)
def _is_spread(dims: tuple[tuple[int, int], ...], run: int) -> bool:
    """Return whether each step goes beyond all that smaller ones reach, so that no two runs share a byte."""
    reach = run
    for step, count in sorted([(abs(step), count) for step, count in dims if count > 1]):
        if step < reach:
            return False
        reach += step * (count - 1)
    return True


def _touched(sides: Iterable[tuple[int, Side]]) -> _Touched:
    lows, highs, parts, places = [], [], [], []
    for number, side in sides:
        low, high = runs_of_side(side)
        lows.append(low)
        highs.append(high)
        parts.append(np.full(low.size, number, np.int64))
        places.append(np.arange(low.size, dtype=np.int64) * side.run)
    runs = Runs(np.concatenate(lows), np.concatenate(highs), np.empty(0, np.int64))
    return _Touched(runs, np.concatenate(parts), np.concatenate(places))


def _bare(runs: Runs) -> Runs:
    return Runs(runs.low, runs.high, runs.low)


def _twice(writes: _Touched) -> tuple[int, int, int] | None:
    """Return bytes that are written twice, and the part that does it."""
    runs = _bare(writes.runs)
    for first, second in meetings(runs, runs):
        pairs = np.flatnonzero(first < second)
        if pairs.size:
            a, b = first[pairs[0]], second[pairs[0]]
            return int(max(runs.low[a], runs.low[b])), int(min(runs.high[a], runs.high[b])), int(writes.part[b])
    return None


def _moved(writes: _Touched, reads: _Touched, parts: tuple[Part, ...]) -> tuple[int, int, int] | None:
    """Return bytes that are read as one element and written as another, and the part that writes them.

    In place, element by element, is fine: each descriptor reads its bytes before it writes them.
    """
    stays = np.array([part.op != "transpose" for part in parts])
    for read, write in meetings(_bare(reads.runs), _bare(writes.runs)):
        shift = (reads.runs.low[read] - reads.place[read]) - (writes.runs.low[write] - writes.place[write])
        same = (reads.part[read] == writes.part[write]) & (shift == 0) & stays[writes.part[write]]
        moved = np.flatnonzero(~same)
        if moved.size:
            a, b = read[moved[0]], write[moved[0]]
            low, high = max(reads.runs.low[a], writes.runs.low[b]), min(reads.runs.high[a], writes.runs.high[b])
            return int(low), int(high), int(writes.part[b])
    return None


def duplicates(device: Device, transfer: Transfer) -> tuple[Clash, ...]:
    """Return two rows of a scatter that go to one place and do not bring the same bytes there, where there are any."""
    seen: dict[int, Part] = {}
    for part in transfer.parts:
        target = part.copies[-1][1]
        if target.chosen is None:
            continue
        before = seen.setdefault(target.address, part)
        if before is part:
            continue
        adds = len(part.copies) > 1
        if adds or not _alike(device, before.copies[-1][0], part.copies[-1][0]):
            earlier = before.copies[-1][1].chosen
            rows = (-1 if earlier is None else earlier[1], target.chosen[1])
            return (Clash("duplicate-index", target, *target.span, target.chosen[0], rows),)
    return ()


def _alike(device: Device, one: Side, other: Side) -> bool:
    """Return whether two sides hold the same bytes now."""
    return bytes_of(device, one).tobytes() == bytes_of(device, other).tobytes()


def bytes_of(device: Device, side: Side, *, writes: bool = False) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
    """Return the bytes of a side as they are now; for whoever `writes` them, and for whoever comes later."""
    if side.space == "SBUF":
        memory = device.cores[side.core].sbuf
        geometry = sbuf_geometry(side, memory.shape[1], memory.shape[0], lambda low, high, allowed: None)
        return strided(memory, geometry, side, _BYTE)
    return device_bytes(device.hbm, side, writes=writes)
