"""View algebra on (shape, strides, offset) in elements; no tensors, no memory, nothing of NKI."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from math import prod
from typing import Any

__all__ = ["contiguous", "contiguous_strides", "infer_shape", "parse_rearrange", "reach_of", "reshape_strides"]

Shape = tuple[int, ...]


@lru_cache(maxsize=1 << 12)
def contiguous_strides(shape: Shape) -> Shape:
    """Return row-major strides."""
    strides = []
    step = 1
    for extent in reversed(shape):
        strides.append(step)
        step *= extent
    return tuple(reversed(strides))


def contiguous(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Return whether the dims are row major without holes; dims of extent 1 do not count."""
    step = 1
    for extent, stride in zip(reversed(shape), reversed(strides), strict=True):
        if extent != 1:
            if stride != step:
                return False
            step *= extent
    return True


@lru_cache(maxsize=1 << 12)
def reach_of(strides: Shape, shape: Shape) -> tuple[int, int, int]:
    """Return the elements in front of the first one and behind it, but for the first dimension, and those of that."""
    if not shape:
        return 0, 0, 0
    first, *spans = [stride * (count - 1) for stride, count in zip(strides, shape, strict=True)]
    return sum(span for span in spans if span <= 0), sum(span for span in spans if span > 0), first


def infer_shape(shape: Iterable[int], total: int) -> Shape | None:
    """Return `shape` with a -1 resolved so that its product is `total`; None where that is impossible."""
    wanted = tuple(shape)
    holes = wanted.count(-1)
    if holes > 1 or any(extent < 1 and extent != -1 for extent in wanted):
        return None
    if holes:
        known = prod(extent for extent in wanted if extent != -1)
        if total % known:
            return None
        wanted = tuple(total // known if extent == -1 else extent for extent in wanted)
    return wanted if prod(wanted) == total else None


def reshape_strides(shape: Sequence[int], strides: Sequence[int], new: Sequence[int]) -> Shape | None:
    """Return strides of the same elements in the same order seen as `new`; None where only a copy could do it.

    Both shapes have the same product.  Groups of old dims are matched with groups of new dims of equal product; the old
    dims of a group must run on from each other.
    """
    old = [(extent, stride) for extent, stride in zip(shape, strides, strict=True) if extent != 1]
    result = [0] * len(new)
    i = j = 0
    while j < len(new) and i < len(old):
        old_end, new_end = i + 1, j + 1
        old_product, new_product = old[i][0], new[j]
        while old_product != new_product:
            if old_product < new_product:
                old_product *= old[old_end][0]
                old_end += 1
            else:
                new_product *= new[new_end]
                new_end += 1
        for k in range(i, old_end - 1):
            # a gap between two dimensions that would become one
            if old[k][1] != old[k + 1][0] * old[k + 1][1]:
                return None
        step = old[old_end - 1][1]
        for k in range(new_end - 1, j - 1, -1):
            result[k] = step
            step *= new[k]
        i, j = old_end, new_end
    for k in range(j, len(new)):
        # what is left has one element, whose stride does not matter
        result[k] = 1
    return tuple(result)


def parse_rearrange(
    shape: Sequence[int], source: Sequence[Any], target: Sequence[Any], sizes: dict[str, int]
) -> tuple[list[Shape], list[int], list[Shape], str | None]:
    """Resolve an einops-like pattern.

    Returns, per source dimension, the extents it is split into; the permutation of the split dims; per target
    dimension the split dims (by position after the permutation) it merges; and a complaint instead, when the pattern
    does not fit.
    """
    groups = [(item,) if isinstance(item, str) else tuple(item) for item in source]
    wanted = [(item,) if isinstance(item, str) else tuple(item) for item in target]
    if len(groups) != len(shape):
        return [], [], [], f"src_pattern names {len(groups)} dimensions of {len(shape)}"
    names = [name for group in groups for name in group]
    order = [name for group in wanted for name in group]
    if len(set(names)) != len(names) or sorted(names) != sorted(order):
        return [], [], [], f"patterns {source!r} and {target!r} do not name the same dimensions once each"
    extents = []
    for extent, group in zip(shape, groups, strict=True):
        split = infer_shape((sizes.get(name, -1 if len(group) > 1 else extent) for name in group), extent)
        if split is None:
            return [], [], [], f"dimension of size {extent} cannot be split into {group!r} with {sizes!r}"
        extents.append(split)
    permutation = [names.index(name) for name in order]
    merged: list[Shape] = []
    position = 0
    for group in wanted:
        merged.append(tuple(range(position, position + len(group))))
        position += len(group)
    return extents, permutation, merged, None
