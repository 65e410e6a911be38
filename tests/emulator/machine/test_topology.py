"""Wiring: published neighbours, distances by search, hypercube and cycles by checkers that see planted faults."""

from __future__ import annotations

from itertools import pairwise

import pytest

from emulator.machine.cycles import check_cycles, check_hypercube, hamiltonian_cycles, hypercube_labels
from emulator.machine.instances import INSTANCES, instance_of
from emulator.machine.topology import Topology, topology_of
from formats.errors import NotFoundError, UnsupportedError

# CONNECTED DEVICES of neuron-ls, read off the published tables (machine.md 4).
TORUS = (
    (12, 3, 4, 1), (13, 0, 5, 2), (14, 1, 6, 3), (15, 2, 7, 0), (0, 7, 8, 5), (1, 4, 9, 6), (2, 5, 10, 7),
    (3, 6, 11, 4),
    (4, 11, 12, 9), (5, 8, 13, 10), (6, 9, 14, 11), (7, 10, 15, 8), (8, 15, 0, 13), (9, 12, 1, 14),
    (10, 13, 2, 15), (11, 14, 3, 12),
)  # fmt: skip
WIRED = [name for name, one in INSTANCES.items() if one.wiring not in ("unpublished", "single")]
LABELS = (0, 1, 3, 2, 4, 5, 7, 6, 12, 13, 15, 14, 8, 9, 11, 10)
PUBLISHED_PAIR = (
    (0, 12, 8, 4, 7, 3, 15, 11, 10, 6, 2, 14, 13, 9, 5, 1),
    (0, 3, 2, 1, 13, 12, 15, 14, 10, 9, 8, 11, 7, 6, 5, 4),
)


def torus() -> Topology:
    return topology_of(instance_of("trn2.48xlarge"))


def test_neighbours_are_those_of_neuron_ls() -> None:
    for name in ("trn1.32xlarge", "trn2.48xlarge"):
        topology = topology_of(instance_of(name))
        assert tuple(topology.neighbours(chip) for chip in range(16)) == TORUS
    ring = topology_of(instance_of("inf2.48xlarge"))
    assert all(ring.neighbours(chip) == ((chip - 1) % 12, (chip + 1) % 12) for chip in range(12))


@pytest.mark.parametrize("name", WIRED)
def test_routes_are_shortest_and_over_links(name: str) -> None:
    topology = topology_of(INSTANCES[name])
    for a in range(0, topology.chips, 5):
        assert [topology.distance(a, b) for b in range(topology.chips)] == topology.shortest(a)
        for b in range(topology.chips):
            way = topology.route(a, b)
            assert way[0] == a and way[-1] == b and all(topology.link(*each) for each in pairwise(way))
            assert a in topology.neighbours(b) or topology.distance(a, b) != 1


def test_what_is_not_there() -> None:
    with pytest.raises(NotFoundError, match="has no chip 16; it has 0 to 15"):
        torus().neighbours(16)
    with pytest.raises(NotFoundError, match="no link between chips 0 and 5"):
        torus().link(0, 5)
    with pytest.raises(UnsupportedError, match=r"how the 16 chips of inf1.24xlarge are wired has not been published"):
        topology_of(instance_of("inf1.24xlarge"))


def test_the_torus_is_a_hypercube() -> None:
    assert hypercube_labels(torus()) == LABELS and check_hypercube(torus(), LABELS) == []
    larger = topology_of(instance_of("trn2-ultraserver"))
    assert check_hypercube(larger, hypercube_labels(larger)) == []


def test_wrong_labels_are_found() -> None:
    swapped = (LABELS[1], LABELS[0], *LABELS[2:])
    assert len(check_hypercube(torus(), swapped)) == 12
    assert "no numbering" in check_hypercube(torus(), (1, *LABELS[1:]))[0]
    with pytest.raises(UnsupportedError, match="is no hypercube"):
        hypercube_labels(topology_of(instance_of("inf2.48xlarge")))


@pytest.mark.parametrize(
    ("name", "cycles", "links"),
    [("trn2.48xlarge", 2, 32), ("trn1.32xlarge", 2, 32), ("inf2.48xlarge", 1, 12), ("inf2.24xlarge", 1, 6),
     ("trn2-ultraserver", 3, 192)],
)  # fmt: skip
def test_cycles_cover_every_link_once(name: str, cycles: int, links: int) -> None:
    topology = topology_of(instance_of(name))
    proof = check_cycles(topology, hamiltonian_cycles(topology))
    assert proof.holds and (proof.cycles, proof.links_used, proof.links) == (cycles, links, links)


def test_the_pair_of_the_reference_holds_too() -> None:
    assert check_cycles(torus(), PUBLISHED_PAIR).holds


def test_wrong_cycles_are_found() -> None:
    first, second = PUBLISHED_PAIR
    assert not check_cycles(torus(), (first, first)).disjoint
    assert not check_cycles(torus(), (first[:-1],)).hamiltonian
    assert not check_cycles(torus(), ((*first[:2], first[3], first[2], *first[4:]), second)).on_links
    with pytest.raises(UnsupportedError, match="no cycles over its links"):
        hamiltonian_cycles(topology_of(instance_of("trn3-ultraserver-gen1")))
