"""Cells in which accesses are filed by their bytes, so that few of many are looked at."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import product

from formats.named_tuple import NamedTuple
from formats.regions import Shape
from neurontools.builder.areas import repeated

__all__ = ["Grid", "grid_of", "repeated_in"]


class Grid(NamedTuple):
    """Where records of one kind of shape are filed: by their bytes, and by their place inside a step they repeat in.

    A cell spans more than a record's reach, and more than the part that repeats, so each record lies in at most four.
    `step` is 0 for shapes that are filed by bytes alone.
    """

    step: int
    byte_shift: int
    place_shift: int

    def cells(self, low: int, high: int, inside: int) -> Iterator[tuple[int, int]]:
        """Return the cells of bytes `low` to `high` - 1 of which `inside` bytes from `low` on repeat in each step."""
        buckets = range(low >> self.byte_shift, (high - 1 >> self.byte_shift) + 1)
        return product(buckets, self._places(low, inside))

    def most(self, low: int, high: int, inside: int) -> int:
        """Return an upper bound of the number of those cells."""
        places = min(inside, self.step) >> self.place_shift
        return ((high - 1 >> self.byte_shift) - (low >> self.byte_shift) + 1) * (places + 2)

    def _places(self, low: int, inside: int) -> Iterable[int]:
        step, shift = self.step, self.place_shift
        if not step:
            return (0,)
        if inside >= step:
            return range((step - 1 >> shift) + 1)
        place = low % step
        behind = place + inside
        if behind <= step:
            return range(place >> shift, (behind - 1 >> shift) + 1)
        return {*range(place >> shift, (step - 1 >> shift) + 1), *range((behind - step - 1 >> shift) + 1)}


@lru_cache(maxsize=1 << 12)
def grid_of(shape: Shape) -> Grid:
    """Return the grid of a shape; patterns that repeat in the step of their innermost jump are told apart inside it."""
    step = shape.steps[-1][0] if shape.steps else 0
    inside = repeated(shape, step) if step else 0
    # a power of two above the part that repeats
    shift = inside.bit_length()
    # one cell would hold the whole step: places tell nothing apart
    if step - 1 >> shift <= 0:
        return Grid(0, shape.reach.bit_length(), 0)
    return Grid(step, shape.reach.bit_length(), shift)


@lru_cache(maxsize=1 << 14)
def repeated_in(shape: Shape, step: int) -> int:
    """Return the reach of the part of a pattern that repeats inside a step, 0 for no step."""
    return repeated(shape, step) if step else 0
