"""The bytes that a view covers: exact enough to tell tiles of one tensor apart, cheap enough to ask per instruction."""

from __future__ import annotations

from functools import lru_cache

from formats.named_tuple import NamedTuple
from formats.regions import Shape

__all__ = ["Access", "Area", "Way", "overlap", "repeated"]

Way = tuple[object, ...]


class Access(NamedTuple):
    """What an operation does to one of its operands: number of the operand, its bytes, whether it writes them."""

    operand: int
    shape: Shape
    write: bool


class Area:
    """A shape at an address: partitions `first` to `last` - 1 and, in each, bytes within `low` to `high` - 1.

    What `formats.regions.Region` is elsewhere; this one is made for every operand of every operation, and asked of
    hundreds of neighbours, so that it holds what those ask in slots.
    As an access it also holds who makes it, as which unit, whether it writes, and whether a later one stands for it;
    `neurontools.builder.hazards` sets those. `plain` tells that the shape has no steps, `way` how a transfer walks it
    and is cut into descriptors, None for words and for transfers of which that is not known.
    """

    __slots__ = ("actor", "dead", "first", "high", "last", "low", "plain", "shape", "stamp", "step", "unit", "way",
                 "write")  # fmt: skip

    actor: int
    unit: int
    write: bool
    stamp: int
    way: Way | None

    def __init__(self, first: int, last: int, start: int, shape: Shape) -> None:
        """Take the byte of the first element as `start`."""
        shift, reach, _, steps = self.shape = shape
        self.first = first
        self.last = last
        self.low = low = start + shift
        self.high = low + reach
        self.dead = False
        self.way = None
        if steps:
            self.plain = False
            # The step of a pattern that jumps in one dimension only, the usual case; 0 for the rest.
            self.step = steps[0][0] if len(steps) == 1 else 0
        else:
            self.plain = True
            self.step = 0

    def __repr__(self) -> str:
        return f"<Area partitions {self.first}:{self.last} bytes {self.low}:{self.high} {self.shape}>"

    def contains(self, other: Area) -> bool:
        """Return whether every byte of `other` is certainly one of this area."""
        if self.first > other.first or self.last < other.last or self.low > other.low or self.high < other.high:
            return False
        if not self.shape.steps:
            return True
        return self.low == other.low and self.high == other.high and self.shape == other.shape


def overlap(a: Area, b: Area) -> bool:
    """Return whether two areas may share a byte; False is certain.

    Patterns are compared modulo each of their steps: where the parts inside one step lie apart, the areas do.
    """
    if a.low >= b.high or b.low >= a.high or a.first >= b.last or b.first >= a.last:
        return False
    for step, inner_a, inner_b in _common_steps(a.shape, b.shape):
        distance = (b.low - a.low) % step
        if distance >= inner_a and step - distance >= inner_b:
            return False
    return True


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
