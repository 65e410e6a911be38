"""Access patterns as (step, count) pairs, outermost first: merge, bring to a common shape, cut to what a word holds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from math import prod

from formats.named_tuple import NamedTuple

__all__ = ["Dims", "Limit", "Piece", "common", "elements", "merge", "split"]

Dims = tuple[tuple[int, int], ...]


class Limit(NamedTuple):
    """What one operand of a word can hold: dimensions, largest count, and the range of a step."""

    dims: int
    most: int
    low_step: int
    high_step: int


class Piece(NamedTuple):
    """One word's share of an operation: per operand the offset of its first element (in steps) and its pattern."""

    offsets: tuple[int, ...]
    dims: tuple[Dims, ...]


def elements(dims: Dims) -> int:
    """Return the number of elements of a pattern."""
    return prod(count for _, count in dims)


def merge(dims: Dims) -> Dims:
    """Return the same walk in as few dimensions as possible; a single element is one dimension of count 1."""
    merged: list[tuple[int, int]] = []
    for step, count in dims:
        if count == 1:
            continue
        # the outer dimension goes on exactly where the inner one ends
        if merged and merged[-1][0] == step * count:
            merged[-1] = (step, merged[-1][1] * count)
        else:
            merged.append((step, count))
    return tuple(merged) or ((1, 1),)


def common(patterns: Sequence[Dims]) -> tuple[Dims, ...] | None:
    """Return the same walks with equal counts in every pattern, in as few dimensions as possible.

    None where the patterns cut their elements at places that do not nest (2 x 3 against 3 x 2 with gaps).
    """
    if len(patterns) == 1:
        return (merge(patterns[0]),)
    merged = [merge(one) for one in patterns]
    first = [count for _, count in merged[0]]
    if not all([count for _, count in one] == first for one in merged[1:]):
        refined = _refine(merged)
        if refined is None:
            return None
        merged = refined
    return _merge_together(merged)


def _refine(patterns: Sequence[Dims]) -> list[Dims] | None:
    """Cut dimensions until all patterns have the same counts, from the innermost outwards."""
    rest = [[pair for pair in one if pair[1] != 1] for one in patterns]
    found: list[list[tuple[int, int]]] = [[] for _ in patterns]
    while all(rest):
        least = min(one[-1][1] for one in rest)
        if any(one[-1][1] % least for one in rest):
            return None
        for one, out in zip(rest, found, strict=True):
            step, count = one.pop()
            out.append((step, least))
            if count != least:
                one.append((step * least, count // least))
    if any(rest):
        return None
    return [tuple(reversed(out)) for out in found]


def _merge_together(patterns: Sequence[Dims]) -> tuple[Dims, ...]:
    """Merge neighbours that run on in every pattern; all patterns have equal counts."""
    columns = list(zip(*patterns, strict=True))
    merged: list[tuple[tuple[int, int], ...]] = []
    for column in columns:
        count = column[0][1]
        if count == 1:
            continue
        if merged and all(outer[0] == step * count for outer, (step, _) in zip(merged[-1], column, strict=True)):
            total = merged[-1][0][1] * count
            merged[-1] = tuple((step, total) for step, _ in column)
        else:
            merged.append(tuple(column))
    if not merged:
        return tuple(((1, 1),) for _ in patterns)
    return tuple(zip(*merged, strict=True))


def split(patterns: Sequence[Dims], limits: Sequence[Limit]) -> list[Piece]:
    """Return the pieces, in order, that words of these limits can hold; patterns have equal counts."""
    if all(
        len(one) <= limit.dims
        and all(count <= limit.most and limit.low_step <= step <= limit.high_step for step, count in one)
        for one, limit in zip(patterns, limits, strict=True)
    ):
        return [Piece((0,) * len(patterns), tuple(patterns))]
    largest = min(limit.most for limit in limits)
    looped: list[tuple[tuple[int, ...], int]] = []  # (step per operand, turns)
    kept: list[tuple[tuple[int, int], ...]] = []
    columns = list(zip(*patterns, strict=True))
    for index, column in enumerate(columns):
        count, steps = column[0][1], tuple(step for step, _ in column)
        if any(not limit.low_step <= step <= limit.high_step for step, limit in zip(steps, limits, strict=True)):
            looped.append((steps, count))
        elif count > largest:
            # equal parts need words of one shape only; below half of the limit there would be twice as many words
            part = next((size for size in range(largest, largest // 2, -1) if count % size == 0), None)
            if part is None:
                return _ragged(columns, index, largest, limits)
            looped.append((tuple(step * part for step in steps), count // part))
            kept.append(tuple((step, part) for step in steps))
        else:
            kept.append(column)
    room = min(limit.dims for limit in limits)
    while len(kept) > room:
        # the dimension of fewest elements costs the fewest words
        column = kept.pop(min(range(len(kept)), key=lambda i: kept[i][0][1]))
        looped.append((tuple(step for step, _ in column), column[0][1]))
    dims = tuple(zip(*kept, strict=True)) if kept else tuple(((1, 1),) for _ in patterns)
    return [Piece(offsets, dims) for offsets in _offsets(looped, len(patterns))]


def _offsets(looped: Sequence[tuple[tuple[int, ...], int]], operands: int) -> Iterator[tuple[int, ...]]:
    for places in product(*(range(turns) for _, turns in looped)):
        yield tuple(
            sum(steps[operand] * place for (steps, _), place in zip(looped, places, strict=True))
            for operand in range(operands)
        )


def _ragged(
    columns: Sequence[tuple[tuple[int, int], ...]], index: int, largest: int, limits: Sequence[Limit]
) -> list[Piece]:
    """Cut one dimension into parts of `largest` and a shorter last one."""
    pieces: list[Piece] = []
    for start in range(0, columns[index][0][1], largest):
        part = min(largest, columns[index][0][1] - start)
        cut = [tuple((step, part) for step, _ in column) if i == index else column for i, column in enumerate(columns)]
        shift = [step * start for step, _ in columns[index]]
        pieces += [
            Piece(tuple(a + b for a, b in zip(piece.offsets, shift, strict=True)), piece.dims)
            for piece in split(list(zip(*cut, strict=True)), limits)
        ]
    return pieces
