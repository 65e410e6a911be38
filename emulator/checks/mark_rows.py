"""Marks of partitions by elements, where partitions that are alike have one row between them.

The rows of a tile are mostly of one kind, or of two: those that were loaded, and those that were not. What comes of
marks is worked out for each kind, whatever number of partitions is of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property, lru_cache
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from emulator.checks.poison import Marks
from formats.named_tuple import NamedTuple

__all__ = [
    "MarkRows",
    "Stencil",
    "Which",
    "common",
    "distinct",
    "folded",
    "in_use",
    "larger",
    "of_lanes",
    "stencil_of",
    "transposed",
    "uniform",
    "used",
    "with_stencil",
]

Which = npt.NDArray[np.intp]
Element = TypeVar("Element", bound="np.generic[Any]")
_KEPT = 1 << 9
_STENCILS = 1 << 7
_SPOTS = 1 << 12  # elements of a stencil that is kept
_SHORT = 1 << 10  # bytes of a row, beyond which all rows together are more than what goes through a cache
_NUMBER = 8  # bytes that are compared at once
_PACKED = 4  # marks that are a number of 64 bits together
_BITS = 8  # of what `packbits` makes


class MarkRows(NamedTuple):
    """Marks: partition p has row `which[p]` of `rows`, an array of elements; some partition has each of the rows.

    `number` is the only one among them but 0, or 0 where there may be others. Where it is known, `stencil` is which of
    `numbers`, all that are among them, smallest first, are where.
    """

    which: Which
    rows: Marks
    number: int = 0
    stencil: Stencil | None = None
    numbers: tuple[int, ...] = ()

    @property
    def is_any(self) -> bool:
        """Return whether any element has a mark."""
        return bool(self.rows.any()) if self.stencil is None else self.stencil.is_any

    def has(self, number: int) -> bool:
        """Return whether any element has this mark."""
        return bool((self.rows == number).any()) if self.stencil is None else number in self.numbers

    def spread(self) -> Marks:
        """Return the marks with a row for each partition."""
        return self.rows[self.which]

    def lanes(self) -> Marks:
        """Return the largest mark of each partition."""
        largest: Marks = self.rows.max(1)
        return largest[self.which]


class Stencil:
    """Where numbers of some marks are: `spots` has the rows, with 1 for the smallest number, 2 for the next, and so on.

    Tiles are alike, and so is what was not written of them: other numbers go through the same stencil again and again,
    and what words make of it is worked out once.
    """

    def __init__(self, which: Which, spots: Marks) -> None:
        self.which, self.spots = which, spots
        self.count = int(spots.max(initial=0))
        self.is_any = self.count > 0
        self._marks: MarkRows | None = None  # with the last numbers that were asked for
        self._larger: dict[tuple[Stencil, tuple[int, ...], tuple[int, ...]], tuple[Stencil, tuple[int, ...]]] = {}

    def marks(self, *numbers: int) -> MarkRows:
        """Return numbers above 0, smallest first, in their places of the stencil."""
        found = self._marks
        if found is None or found.numbers != numbers:
            if self.count < 2:
                number = numbers[0] if numbers else 0
                found = MarkRows(self.which, self.spots * np.int16(number), number, self, numbers[: self.count])
            else:
                rows = np.array((0, *numbers), np.int16).take(self.spots)
                found = MarkRows(self.which, rows, 0, self, numbers)
            self._marks = found
        return found

    def larger(self, mine: tuple[int, ...], other: Stencil, its: tuple[int, ...]) -> MarkRows:
        """Return the larger of the numbers in each place of two stencils; either may have one column for all."""
        numbers = mine if mine == its else tuple(sorted({*mine, *its}))
        ranks = tuple([numbers.index(each) + 1 for each in mine]), tuple([numbers.index(each) + 1 for each in its])
        found = self._larger.get((other, *ranks))
        if found is None:
            which, places = common(((self.which, self.spots.shape[0]), (other.which, other.spots.shape[0])))
            spots = np.maximum(
                *[
                    np.array((0, *to), np.int16).take(one.spots[of])
                    for one, of, to in zip((self, other), places, ranks, strict=True)
                ]
            )
            left = np.flatnonzero(np.bincount(spots.ravel(), minlength=len(numbers) + 1))
            kept = left[left > 0]  # of others all places have a larger one
            stencil = stencil_of(which, np.searchsorted(kept, spots, "right").astype(np.int16))
            if len(self._larger) >= _STENCILS:
                self._larger.clear()
            found = self._larger[other, *ranks] = stencil, tuple((kept - 1).tolist())
        stencil, kept_ranks = found
        return stencil.marks(*[numbers[each] for each in kept_ranks])

    @cached_property
    def lanes(self) -> int:
        """Return the partitions that have a mark, as bits."""
        marked: npt.NDArray[np.bool_] = np.logical_or.reduce(self.spots, 1)[self.which]
        return int.from_bytes(np.packbits(marked, bitorder="little").tobytes(), "little")

    @cached_property
    def backwards(self) -> Stencil:
        """Return the stencil with the elements in the opposite order."""
        return stencil_of(self.which, self.spots[:, ::-1])

    @cached_property
    def turned(self) -> Stencil:
        """Return the stencil with partitions and elements exchanged."""
        turned = transposed(MarkRows(self.which, self.spots, 1 if self.count == 1 else 0))
        return stencil_of(turned.which, turned.rows)


def stencil_of(which: Which, spots: Marks) -> Stencil:
    """Return the stencil of such spots: the same for equal ones, as far as they are kept."""
    if spots.size > _SPOTS:
        return Stencil(which, spots)
    return _stencil(which.tobytes(), spots.tobytes(), spots.shape[1])


@lru_cache(_STENCILS)
def _stencil(which: bytes, spots: bytes, elements: int) -> Stencil:
    return Stencil(np.frombuffer(which, np.intp), np.frombuffer(spots, np.int16).reshape(-1, elements))


def with_stencil(which: Which, rows: Marks, number: int = 0) -> MarkRows:
    """Return marks with the stencil of their numbers, where they are few; `number` as that of the marks."""
    if rows.size > _SPOTS:
        return MarkRows(which, rows, number)
    if number:
        return stencil_of(which, (rows != 0).astype(np.int16)).marks(number)
    numbers = sorted({*rows.ravel().tolist()} - {0})
    return stencil_of(which, np.array(numbers).searchsorted(rows, "right").astype(np.int16)).marks(*numbers)


def uniform(partitions: int, row: Marks, number: int = 0) -> MarkRows:
    """Return marks of partitions that are all alike."""
    return MarkRows(np.zeros(partitions, np.intp), row[None, :], number)


def folded(marks: Marks) -> MarkRows:
    """Return marks that have a row for each partition."""
    return MarkRows(*distinct(np.arange(marks.shape[0]), marks))


def of_lanes(lanes: Marks, number: int = 0) -> MarkRows:
    """Return marks of one element of each partition."""
    values, which = np.unique(lanes, return_inverse=True)
    return MarkRows(which, values[:, None], number)


def distinct(which: Which, rows: npt.NDArray[Element]) -> tuple[Which, npt.NDArray[Element]]:
    """Return which of the rows each partition has, and the rows, of rows that may be the same: each of them once."""
    count = rows.shape[0]
    if count == 1:
        return which, rows
    size = rows[0].nbytes
    firsts: Iterable[int] = range(count)
    if 0 < size <= _SHORT:
        # Rows of a kind lie together: only those that begin another kind are looked up.
        packed = not size % _NUMBER and rows.strides[1] == rows.itemsize
        numbers = rows.view(np.uint64) if packed else rows
        changed = numbers[1:] != numbers[:-1]
        if not changed.any():
            return np.zeros(which.size, np.intp), rows[:1]
        firsts = [0, *(np.flatnonzero(np.logical_or.reduce(changed, 1)) + 1).tolist()]
    known: dict[bytes, int] = {}
    kinds: list[int] = []
    kind, last = 0, b""
    for first in firsts:
        piece = rows[first].tobytes()
        if piece != last or not kinds:
            kind, last = known.setdefault(piece, len(known)), piece
        kinds.append(kind)
    if len(known) == count:
        return which, rows
    if len(known) == 1:
        return np.zeros(which.size, np.intp), rows[:1]
    to = np.repeat(np.array(kinds, np.intp), np.diff([*firsts, count]))
    return to[which], rows[_one_of_each(to, len(known))]


def used(which: Which, rows: Marks, number: int = 0) -> MarkRows:
    """Return marks without rows that no partition has."""
    return MarkRows(*in_use(which, rows), number)


def in_use(which: Which, rows: npt.NDArray[Element]) -> tuple[Which, npt.NDArray[Element]]:
    """Return which of the rows each partition has, and the rows, without those that none has."""
    count = rows.shape[0]
    if count > 1:
        which, places = _counted(which.tobytes(), count)
        if places.size < count:
            rows = rows[places]
    return which, rows


def common(kinds: Sequence[tuple[Which, int]]) -> tuple[Which, tuple[Which, ...]]:
    """Return which of common rows each partition has, and for each of the kinds which of its rows those are.

    A kind says which of so many rows each partition has.
    """
    return _common(tuple([(which.tobytes(), count) for which, count in kinds]))


# Words of a program mark the same partitions again and again: what follows from that is kept, by all it depends on.


@lru_cache(_KEPT)
def _common(kinds: tuple[tuple[bytes, int], ...]) -> tuple[Which, tuple[Which, ...]]:
    (first, bound), *others = dict(kinds).items()
    keys = np.frombuffer(first, np.intp)
    for which, count in others:
        keys, places = _counted((keys * count + np.frombuffer(which, np.intp)).tobytes(), bound * count)
        bound = places.size
    one = _one_of_each(keys, bound)
    found = {which: np.frombuffer(which, np.intp)[one] for which, _ in kinds}
    return keys, tuple([found[which] for which, _ in kinds])


@lru_cache(_KEPT)
def _counted(keys: bytes, bound: int) -> tuple[Which, Which]:
    """Return numbers below a bound as places in the ascending list of those that are there, and that list."""
    numbers = np.frombuffer(keys, np.intp)
    there = np.zeros(bound, np.bool_)
    there[numbers] = True
    return (np.cumsum(there) - 1)[numbers], np.flatnonzero(there)


@lru_cache(_KEPT)
def _kinds_of(keys: bytes) -> tuple[Which, Which]:
    """Return which kind each byte is of, and the place of one of each kind."""
    which, kinds = _counted(np.frombuffer(keys, np.uint8).astype(np.intp).tobytes(), 1 << _BITS)
    return which, _one_of_each(which, kinds.size)


def _one_of_each(which: Which, count: int) -> Which:
    one = np.zeros(count, np.intp)
    one[which] = np.arange(which.size)
    return one


def larger(one: MarkRows, other: MarkRows) -> MarkRows:
    """Return the larger of two marks of each element; either may have one column for all."""
    if one.stencil is not None and other.stencil is not None:
        return one.stencil.larger(one.numbers, other.stencil, other.numbers)
    which, (mine, its) = common(((one.which, one.rows.shape[0]), (other.which, other.rows.shape[0])))
    return MarkRows(which, np.maximum(one.rows[mine], other.rows[its]), one.number if one.number == other.number else 0)


def transposed(marks: MarkRows) -> MarkRows:
    """Return the marks of elements by partitions."""
    if marks.stencil is not None:
        return marks.stencil.turned.marks(*marks.numbers)
    which, rows, number = marks[:3]
    if number and rows.shape[0] <= _BITS:
        # Columns differ in where the number is.
        turned, columns = _kinds_of(np.packbits(rows != 0, axis=0).tobytes())
        return MarkRows(turned, rows[:, columns].T[:, which], number)
    if rows.shape[0] <= _PACKED:
        packed: Marks = np.zeros((rows.shape[1], _PACKED), np.int16)
        packed[:, : rows.shape[0]] = rows.T
        known: dict[int, int] = {}
        turned = np.array([known.setdefault(key, len(known)) for key in packed.view(np.int64)[:, 0].tolist()], np.intp)
        return MarkRows(turned, rows[:, _one_of_each(turned, len(known))].T[:, which], number)
    turned, kinds = distinct(np.arange(rows.shape[1]), np.ascontiguousarray(rows.T))
    return MarkRows(turned, kinds[:, which], number)
