"""`neurontools arch cycles`: cycles come with their proof."""

from __future__ import annotations

from tests.cli.check import checked_json
from tests.cli.conftest import Cli


def test_the_torus(cli: Cli) -> None:
    found = checked_json(cli("arch", "cycles", "trn2.48xlarge", "--json"), "arch cycles")
    assert len(found["cycles"]) == 2 and found["hamiltonian"] and found["disjoint"] and found["on_links"]
    assert (found["links_used"], found["links"]) == (32, 32)
    assert found["pairs_checked"] == 120 and found["pairs_wrong"] == []
    edges = [frozenset(pair) for cycle in found["cycles"] for pair in zip(cycle, [*cycle[1:], cycle[0]], strict=True)]
    assert len(set(edges)) == 32 and all(sorted(cycle) == list(range(16)) for cycle in found["cycles"])
    assert "NOT so" not in cli("arch", "cycles", "trn2.48xlarge").out


def test_the_ring_is_one_cycle_and_no_hypercube(cli: Cli) -> None:
    text = cli("arch", "cycles", "inf2.48xlarge").out
    assert "12 of 12 links used" in text and "no hypercube" in text


def test_a_switched_fabric_has_none(cli: Cli) -> None:
    assert cli("arch", "cycles", "trn3-ultraserver-gen1").status == 6
