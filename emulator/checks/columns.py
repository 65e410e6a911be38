"""Which regions lie in different columns of one row-major tensor, and so share no byte wherever their rows are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from formats.regions import RegionParts

__all__ = ["apart_by_columns"]


def apart_by_columns(regions: Sequence[RegionParts]) -> list[list[int]]:
    """Return the places of regions of one memory in lists, each in order: no two of different lists share a byte.

    Where many leave bytes out, the step that most of them make is taken to be the length of a row, and what lies in
    different parts of it is apart. Regions that touch all of a row bring all others together.
    """
    together = [list(range(len(regions)))]
    steps = [max(pattern[0])[0] for _, _, _, _, _, _, pattern in regions if pattern is not None and pattern[0]]
    if not steps:
        return together
    row = steps[0]
    if steps.count(row) < len(steps):
        row, _ = Counter(steps).most_common(1)[0]
    columns: list[tuple[int, int, int]] = []  # the first one, the one behind the last, and whose they are
    for place, (_, _, _, _, low, nbytes, pattern) in enumerate(regions):
        reach = nbytes
        if pattern is not None:
            dims, run = pattern
            reach = run + sum([step * (count - 1) for step, count in dims if step % row])
        if reach >= row:
            return together
        columns.append((low % row, low % row + reach, place))
    columns.sort()
    # What goes on at the begin of the next row: the first list is of those that meet it there, and the last one's.
    end = around = max([behind for _, behind, _ in columns]) - row
    lists: list[list[int]] = [[]] if around > 0 else []
    for first, behind, place in columns:
        if first >= end:
            lists.append([])
        end = max(end, behind)
        lists[-1].append(place)
    if around > 0 and len(lists) > 1:
        lists[0] += lists.pop()
    return [sorted(each) for each in lists]
