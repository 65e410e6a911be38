"""Variables and queues of a whole file, whichever subgraph declares them."""

from pathlib import Path

from formats.neff import open_neff

FIXTURES = Path(__file__).parents[3] / "fixtures" / "neff"


def test_variables_and_queues_of_all_subgraphs_are_those_of_the_file() -> None:
    path = next(FIXTURES.glob("*.neff"))
    neff = open_neff(path)
    for graph in neff.subgraphs:
        assert set(graph.variables) <= set(neff.variables)
        assert set(graph.queues) <= set(neff.queues)
    assert neff.variables["SB"] == neff.subgraphs[0].variables["SB"]
    assert {name for graph in neff.subgraphs for name in graph.variables} == set(neff.variables)
