"""The runs of a program note: which words a dump holds, and where they come from, checked where they enter."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable

from formats.core.records import Stream
from formats.neuron_core import WORD

__all__ = ["location_runs", "sound_streams"]

_MOST = 1 << 40  # a pc or an index beyond is damage


def sound_streams(streams: Iterable[Stream], size: int, warnings: list[str]) -> tuple[Stream, ...]:
    """Return streams that claim no more words than a file of some bytes can hold; a stream that does has none."""
    found, left = [], size
    for stream in streams:
        claimed = 0
        for first, pc, slot, nbytes, count in stream.runs:
            if nbytes <= 0 or nbytes % WORD or min(first, pc, slot, count) < 0 or max(first, pc, slot, count) > _MOST:
                claimed = size + 1
                break
            claimed += nbytes * count
        if claimed > left:
            warnings.append(f"runs of words of nc{stream.core} {stream.engine} make no sense")
            stream = stream._replace(runs=())
            claimed = 0
        left -= claimed
        found.append(stream)
    return tuple(found)


def location_runs(stream: Stream) -> Callable[[int], int | None]:
    """Return what gives the index of a pc's source location, None where the dump names none."""
    known = sorted(run for run in stream.sources if 0 <= run[2] < len(stream.locations))
    starts = [first for first, _, _ in known]

    def location(pc: int) -> int | None:
        index = bisect_right(starts, pc) - 1
        if index < 0 or pc >= known[index][0] + known[index][1]:
            return None
        return known[index][2]

    return location
