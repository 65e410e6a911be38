"""Which chips are wired to which: neighbours in the order of neuron-ls, distances, routes.

A torus is numbered row by row, chip = row * columns + column, and the ring between servers is its first axis.  In a
switched fabric every chip reaches every other one through a switch of its sled or of its rack.
"""

from __future__ import annotations

from collections import deque
from functools import cache
from math import prod
from typing import Literal

from emulator.machine.instances import Instance
from formats.errors import NotFoundError, UnsupportedError
from formats.named_tuple import NamedTuple

__all__ = ["Kind", "Link", "Topology", "topology_of"]

Kind = Literal["neuronlink", "between-servers", "sled-switch", "rack-switch"]
_AXES = ("row", "column")  # of the chips of one server, outermost first: "row" moves between rows


class Link(NamedTuple):
    """One two-way connection of two chips, the lower one first."""

    a: int
    b: int
    axis: str
    kind: Kind


class Topology:
    """The chips of one instance and how they are wired."""

    def __init__(self, name: str, shape: tuple[int, ...], *, switched: bool = False) -> None:
        self.name, self.shape, self.switched = name, shape, switched
        self.chips = prod(shape)
        found: dict[tuple[int, int], Link] = {}
        self._neighbours: list[tuple[int, ...]] = []
        for chip in range(self.chips):
            near = []
            for axis, other in self._steps(chip):
                near.append(other)
                pair = (min(chip, other), max(chip, other))
                found.setdefault(pair, Link(*pair, axis, self._kind(axis)))
            self._neighbours.append(tuple(dict.fromkeys(near)))
        self.links = tuple(sorted(found.values()))
        self._by_pair = {(link.a, link.b): link for link in self.links}
        self._routes: dict[tuple[int, int], tuple[int, ...]] = {}

    def _kind(self, axis: str) -> Kind:
        if self.switched:
            return "sled-switch" if axis == "sled" else "rack-switch"
        return "between-servers" if axis == "server" else "neuronlink"

    @property
    def axes(self) -> tuple[str, ...]:
        """Return the names of the axes, outermost first."""
        if len(self.shape) == 1:
            return ("ring",)
        if self.switched:
            return ("rack", "sled")
        return ("server",) * (len(self.shape) - 2) + _AXES

    def coordinates(self, chip: int) -> tuple[int, ...]:
        """Return the place of a chip on each axis, outermost first."""
        self._known(chip)
        found: list[int] = []
        for extent in reversed(self.shape):
            chip, at = divmod(chip, extent)
            found.append(at)
        return tuple(reversed(found))

    def chip_at(self, place: tuple[int, ...]) -> int:
        """Return the chip at a place; places wrap around."""
        chip = 0
        for at, extent in zip(place, self.shape, strict=True):
            chip = chip * extent + at % extent
        return chip

    def _steps(self, chip: int) -> list[tuple[str, int]]:
        """Return (axis, neighbour) of a chip: up, left, down, right as neuron-ls lists them, then other servers."""
        at = self.coordinates(chip)
        if self.switched:
            return [("sled" if self.coordinates(c)[0] == at[0] else "rack", c) for c in range(self.chips) if c != chip]
        order = [(axis, step) for step in (-1, 1) for axis in range(max(0, len(self.shape) - 2), len(self.shape))]
        order += [(axis, step) for step in (-1, 1) for axis in range(max(0, len(self.shape) - 2))]
        names, found = self.axes, []
        for axis, step in order:
            other = self.chip_at(tuple(c + step if i == axis else c for i, c in enumerate(at)))
            if other != chip:
                found.append((names[axis], other))
        return found

    def _known(self, chip: int) -> None:
        if not 0 <= chip < self.chips:
            raise NotFoundError(f"{self.name} has no chip {chip}; it has 0 to {self.chips - 1}")

    def neighbours(self, chip: int) -> tuple[int, ...]:
        """Return the chips wired to a chip; on a torus up, left, down, right, as neuron-ls lists them."""
        self._known(chip)
        return self._neighbours[chip]

    def link(self, a: int, b: int) -> Link:
        """Return the link of two chips; NotFoundError where there is none."""
        try:
            return self._by_pair[min(a, b), max(a, b)]
        except KeyError:
            raise NotFoundError(f"{self.name} has no link between chips {a} and {b}") from None

    def distance(self, a: int, b: int) -> int:
        """Return the least number of links between two chips."""
        return len(self.route(a, b)) - 1

    def route(self, a: int, b: int) -> tuple[int, ...]:
        """Return the chips that data pass from one to another, both ends included.

        A shortest way, along the last axis first, the lower direction where both are as long.  The order of axes that
        the hardware takes has not been published; it is ours.
        """
        found = self._routes.get((a, b))
        if found is None:
            found = self._routes[a, b] = self._route(a, b)
        return found

    def _route(self, a: int, b: int) -> tuple[int, ...]:
        self._known(a)
        self._known(b)
        if self.switched:
            return (a,) if a == b else (a, b)
        at, goal, way = list(self.coordinates(a)), self.coordinates(b), [a]
        for axis in reversed(range(len(self.shape))):
            extent = self.shape[axis]
            ahead = (goal[axis] - at[axis]) % extent
            step = 1 if ahead <= extent - ahead else -1
            while at[axis] != goal[axis]:
                at[axis] = (at[axis] + step) % extent
                way.append(self.chip_at(tuple(at)))
        return tuple(way)

    def shortest(self, a: int) -> list[int]:
        """Return the least number of links from a chip to every chip, by search and not by coordinates."""
        far = [-1] * self.chips
        far[a], queue = 0, deque([a])
        while queue:
            chip = queue.popleft()
            for other in self._neighbours[chip]:
                if far[other] < 0:
                    far[other] = far[chip] + 1
                    queue.append(other)
        return far


@cache
def _topology(name: str, shape: tuple[int, ...], switched: bool) -> Topology:
    return Topology(name, shape, switched=switched)


def topology_of(instance: Instance) -> Topology:
    """Return how an instance is wired; UnsupportedError where that has not been published."""
    if instance.wiring == "unpublished":
        raise UnsupportedError(f"how the {instance.chips} chips of {instance.name} are wired has not been published")
    return _topology(instance.name, instance.shape, instance.wiring == "switched")
