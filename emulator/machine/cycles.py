"""Prove what algorithms take for granted of a topology: a hypercube by Gray codes, edge-disjoint Hamiltonian cycles.

Both come with a checker that knows only the list of links, so what is printed is proved and not stated.
"""

from __future__ import annotations

import random
from itertools import combinations

from emulator.machine.topology import Topology
from formats.errors import UnsupportedError
from formats.named_tuple import NamedTuple

__all__ = ["CycleProof", "check_cycles", "check_hypercube", "hamiltonian_cycles", "hypercube_labels"]

_GRAY4 = (0, 1, 3, 2)
_TRIES = 200_000
_SEED = 1  # the search is the same in every run; another seed finds other cycles

Edge = tuple[int, int]


def hypercube_labels(topology: Topology) -> tuple[int, ...]:
    """Return the label of each chip whose bits are the axes W, X, Y, Z of recursive doubling.

    Every ring of four chips is a square, so a torus of such rings is a hypercube once each axis is Gray-coded.
    Raises UnsupportedError for other extents.
    """
    if topology.switched or any(extent != 4 for extent in topology.shape):
        raise UnsupportedError(f"{topology.name} is no hypercube: only rings of four chips are squares")
    labels = []
    for chip in range(topology.chips):
        label = 0
        for at in topology.coordinates(chip):
            label = label << 2 | _GRAY4[at]
        labels.append(label)
    return tuple(labels)


def check_hypercube(topology: Topology, labels: tuple[int, ...]) -> list[str]:
    """Return what is wrong with the labels: nothing when linked chips are those that differ in one bit."""
    wrong = [] if sorted(labels) == list(range(topology.chips)) else ["labels are no numbering of the chips"]
    linked = {(link.a, link.b) for link in topology.links}
    for a, b in combinations(range(topology.chips), 2):
        if ((labels[a] ^ labels[b]).bit_count() == 1) != ((a, b) in linked):
            wrong.append(f"chips {a} and {b}: labels {labels[a]:b} and {labels[b]:b}, linked: {(a, b) in linked}")
    return wrong


class CycleProof(NamedTuple):
    """What a list of cycles is, found by looking at its edges."""

    cycles: int
    hamiltonian: bool
    disjoint: bool
    on_links: bool
    links_used: int
    links: int

    @property
    def holds(self) -> bool:
        """Return whether they are Hamiltonian cycles over links that share no link."""
        return self.hamiltonian and self.disjoint and self.on_links


def check_cycles(topology: Topology, cycles: tuple[tuple[int, ...], ...]) -> CycleProof:
    """Return whether each cycle visits every chip once, over links only, and no link is in two of them."""
    linked = {(link.a, link.b) for link in topology.links}
    edges = [_edge(a, b) for cycle in cycles for a, b in zip(cycle, (*cycle[1:], cycle[0]), strict=True)]
    return CycleProof(
        cycles=len(cycles),
        hamiltonian=all(sorted(cycle) == list(range(topology.chips)) for cycle in cycles),
        disjoint=len(set(edges)) == len(edges),
        on_links=set(edges) <= linked,
        links_used=len(set(edges)),
        links=len(linked),
    )


def _edge(a: int, b: int) -> Edge:
    return (a, b) if a < b else (b, a)


def hamiltonian_cycles(topology: Topology) -> tuple[tuple[int, ...], ...]:
    """Return as many Hamiltonian cycles without a common link as the topology has axes; they cover every link.

    Begins with the rings of each axis as one set and swaps the opposite sides of squares between two sets, which keeps
    two links of a set at every chip, until each set is one cycle.  Raises UnsupportedError where it is no torus of
    rings, or where no cycles are found.
    """
    if topology.switched or topology.chips < 3 or any(extent < 3 for extent in topology.shape):
        raise UnsupportedError(f"{topology.name} has no cycles over its links: it is no ring and no torus")
    axes = len(topology.shape)
    names = {axis: number for number, axis in enumerate(topology.axes)}
    colour: dict[Edge, int] = {(link.a, link.b): names[link.axis] for link in topology.links}
    parts = _parts(colour, topology.chips, axes)
    squares, chance = _squares(topology), random.Random(_SEED)
    for _ in range(_TRIES if squares else 0):
        if parts == axes:
            break
        square = squares[chance.randrange(len(squares))]
        first, second = colour[square[0]], colour[square[1]]
        if first == second or colour[square[2]] != first or colour[square[3]] != second:
            continue
        _swap(colour, square)
        found = _parts(colour, topology.chips, axes)
        # Now and then a step that is no gain is taken back: sideways is allowed, downhill is not.
        if found > parts:
            _swap(colour, square)
        else:
            parts = found
    if parts != axes:
        raise UnsupportedError(f"no edge-disjoint Hamiltonian cycles found for {topology.name}")
    return tuple(_walk(colour, which) for which in range(axes))


def _squares(topology: Topology) -> list[tuple[Edge, Edge, Edge, Edge]]:
    """Return every cycle of four links, its sides in order."""
    found = []
    for a in range(topology.chips):
        for b, d in combinations(topology.neighbours(a), 2):
            for c in topology.neighbours(b):
                if c != a and c in topology.neighbours(d) and a == min(a, b, c, d):
                    found.append((_edge(a, b), _edge(b, c), _edge(c, d), _edge(d, a)))
    return found


def _swap(colour: dict[Edge, int], square: tuple[Edge, Edge, Edge, Edge]) -> None:
    first, second = colour[square[0]], colour[square[1]]
    colour[square[0]] = colour[square[2]] = second
    colour[square[1]] = colour[square[3]] = first


def _parts(colour: dict[Edge, int], chips: int, colours: int) -> int:
    """Return how many separate cycles all sets have together."""
    count = 0
    for which in range(colours):
        parent = list(range(chips))

        def root(chip: int, parent: list[int] = parent) -> int:
            while parent[chip] != chip:
                parent[chip] = parent[parent[chip]]
                chip = parent[chip]
            return chip

        left = chips
        for (a, b), mine in colour.items():
            if mine == which and (one := root(a)) != (other := root(b)):
                parent[one] = other
                left -= 1
        count += left
    return count


def _walk(colour: dict[Edge, int], which: int) -> tuple[int, ...]:
    """Return the cycle of one set from chip 0 on, towards its lower neighbour."""
    near: dict[int, list[int]] = {}
    for (a, b), mine in sorted(colour.items()):
        if mine == which:
            near.setdefault(a, []).append(b)
            near.setdefault(b, []).append(a)
    way, before, here = [0], -1, 0
    while True:
        ahead = next(chip for chip in near[here] if chip != before)
        if ahead == 0:
            return tuple(way)
        way.append(ahead)
        before, here = here, ahead
