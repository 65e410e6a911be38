"""The bytes that a view covers: exact enough to tell tiles of one tensor apart, cheap enough to ask per instruction."""

from __future__ import annotations

from functools import lru_cache

from formats.regions import Shape, shape_of
from neurontools.builder.dims import Dims

__all__ = ["Access", "Area", "Way", "access_to", "lie_apart", "overlap", "repeated", "step_of"]

Way = tuple[object, ...]


# What an operation does to one of its operands: its number, its shape, the shift, reach and step of that, whether it is
# written. A plain tuple, since taking apart a named one takes thrice as long, and each operand of each word is asked.
Access = tuple[int, Shape, int, int, int, bool]


def access_to(operand: int, dims: Dims, size: int, write: bool) -> Access:
    """Return the access to an operand whose elements of `size` bytes lie in dimensions of a partition."""
    shape = shape_of(dims, size)
    return operand, shape, shape.shift, shape.reach, step_of(shape), write


def step_of(shape: Shape) -> int:
    """Return the step of a pattern that jumps in one dimension only, the usual case; 0 for none, -1 for several."""
    steps = shape.steps
    return (steps[0][0] if len(steps) == 1 else -1) if steps else 0


class Area:
    """A shape at an address: partitions `first` to `last` - 1 and, in each, bytes within `low` to `high` - 1.

    What `formats.regions.Region` is elsewhere.
    """

    __slots__ = ("first", "high", "last", "low", "shape")

    def __init__(self, first: int, last: int, start: int, shape: Shape) -> None:
        """Take the byte of the first element as `start`."""
        self.first, self.last, self.shape = first, last, shape
        self.low = start + shape.shift
        self.high = self.low + shape.reach

    def __repr__(self) -> str:
        return f"<Area partitions {self.first}:{self.last} bytes {self.low}:{self.high} {self.shape}>"


def overlap(a: Area, b: Area) -> bool:
    """Return whether two areas may share a byte; False is certain."""
    if a.low >= b.high or b.low >= a.high or a.first >= b.last or b.first >= a.last:
        return False
    return not lie_apart(a.shape, b.shape, b.low - a.low)


def lie_apart(a: Shape, b: Shape, distance: int) -> bool:
    """Return whether two patterns certainly share no byte though their ranges do; `distance` is from a's to b's.

    Patterns are compared modulo each of their steps: where the parts inside one step lie apart, the areas do.
    """
    for step, inner_a, inner_b in _common_steps(a, b):
        place = distance % step
        if place >= inner_a and step - place >= inner_b:
            return True
    return False


@lru_cache(maxsize=1 << 14)
def _common_steps(a: Shape, b: Shape) -> tuple[tuple[int, int, int], ...]:
    """Return each step into which both patterns fit, so that they lie at the same place of every one, and their parts.

    Programs repeat the same pairs of shapes.
    """
    steps = dict.fromkeys(step for step, _ in (*a.steps, *b.steps))
    found = [(step, repeated(a, step), repeated(b, step)) for step in steps]
    return tuple(one for one in found if one[1] <= one[0] >= one[2])


def repeated(shape: Shape, modulus: int) -> int:
    """Return the reach of the part of a pattern that repeats inside `modulus`."""
    reach = shape.run
    for step, count in shape.steps:
        if step % modulus:
            reach += step * (count - 1)
    return reach
