"""Gathers of weights and scatters of gradients at the layer that is asked for; no node before what it needs."""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import Any

import pytest

from formats.errors import FormatError, NeuronError
from formats.hlo import Module
from formats.isa import CollectiveKind
from neurontools.compiler.collective_order import call_early
from neurontools.compiler.graph import Graph, Node, Value
from neurontools.compiler.options import CompileOptions, check_options
from neurontools.compiler.pipeline import compile_module
from neurontools.compiler.shifting import assign_streams, gathers_of, scatters_of
from neurontools.hlo.opening import open_module
from tests.compiler.layers import LAYERS

ALL = ((0, 1, 2, 3),)


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> Module:
    path = tmp_path_factory.mktemp("layers") / "layers.txt"
    path.write_text(LAYERS)
    return open_module(path)


def order_of(module: Module, **options: Any) -> str:
    """Return products and collectives in the order in which they are lowered."""
    made = compile_module(module, CompileOptions(lnc=1, limits="ours", **options), dump_after=["collectives"])
    assert made.movable == ("all-gather",) * 3 + ("reduce-scatter",) * 2
    lines = made.dumps["collectives"].splitlines()
    return " ".join(re.sub(r".*// ", "", one) for one in lines if " dot(" in one or "rank-collective(" in one)


@pytest.mark.parametrize(("options", "order"), [
    ({}, "g1 g2 d1 d2 m2 g3 u1 d3 u2 s2 s1"),
    ({"early_ag_shift": 0}, "g1 d1 g2 d2 m2 u1 g3 d3 u2 s2 s1"),
    ({"early_ag_shift": 1}, "g1 g2 d1 g3 d2 m2 u1 d3 u2 s2 s1"),
    ({"early_ag_shift": 2}, "g1 g2 g3 d1 d2 m2 u1 d3 u2 s2 s1"),
    ({"early_ag_shift": 9}, "g1 g2 g3 d1 d2 m2 u1 d3 u2 s2 s1"),
    ({"early_ag_shift": 1, "late_rs_shift": 0}, "g1 g2 d1 u1 s1 g3 d2 m2 d3 u2 s2"),
    ({"early_ag_shift": 1, "late_rs_shift": 1}, "g1 g2 d1 g3 d2 m2 d3 u1 s1 u2 s2"),
])  # fmt: skip
def test_layers_by_hand(module: Module, options: dict[str, Any], order: str) -> None:
    """Three layers, one product deep each: of the first N there is nothing before. Source: collectives.md 9."""
    assert order_of(module, **options) == order


def test_streams(module: Module) -> None:
    """Stream 0 is left to what belongs to no weight; a stream that the module names stays where nobody asks."""
    graphs = [compile_module(module, CompileOptions(lnc=1, limits="ours", cc_streams=number),
                             dump_after=["collectives"]).dumps["collectives"] for number in (1, 2, 3)]  # fmt: skip
    listed = [[(name, int(stream)) for line in text.splitlines()
               for stream, name in re.findall(r"stream=(\d).*// (\w+)$", line)] for text in graphs]  # fmt: skip
    assert {stream for _, stream in listed[0]} == {0}
    assert dict(listed[1]) == {"g1": 1, "g2": 1, "g3": 1, "s1": 1, "s2": 1, "m2": 0}
    assert sorted(dict(listed[2]).values()) == [0, 1, 1, 1, 2, 2]


def test_a_module_names_streams(tmp_path: Path) -> None:
    path = tmp_path / "named.txt"
    path.write_text(LAYERS.replace("all-gather(w3),", 'all-gather(w3), frontend_attributes={stream_id="2"},'))
    text = compile_module(open_module(path), CompileOptions(lnc=1, limits="ours"), dump_after=["collectives"])
    assert re.findall(r"stream=(\d).*// (\w+)", text.dumps["collectives"]) == [("2", "g3")]
    for wrong, what in (("many", "a stream is no number"), ("7", "is on stream 7, there are 4")):
        path.write_text(path.read_text().replace('stream_id="2"', f'stream_id="{wrong}"'))
        with pytest.raises(NeuronError, match=what):
            compile_module(open_module(path), CompileOptions(lnc=1, limits="ours"))
        path.write_text(path.read_text().replace(f'stream_id="{wrong}"', 'stream_id="2"'))


@pytest.mark.parametrize("options", [{"early_ag_shift": -2}, {"late_rs_shift": -7}, {"cc_streams": 5}])
def test_what_is_no_number_of_layers_or_streams(options: dict[str, Any]) -> None:
    with pytest.raises(FormatError):
        check_options(CompileOptions(**options))  # type: ignore[arg-type]


def drawn(chance: random.Random) -> Graph:
    """Return a graph of products, looks, gathers and scatters of what was there before."""
    graph = Graph()
    values: list[Value] = [graph.parameter("f32", (4, 4)) for _ in range(4)]

    def met(kind: CollectiveKind, one: Value) -> Value:
        return graph.add("rank-collective", (one,), "f32", (4, 4), kind=kind, groups=ALL)

    for _ in range(40):
        one, other = chance.choice(values), chance.choice(values[-6:])
        what = chance.randrange(7)
        if what < 2:
            made = graph.add("dot", (one, other), "f32", (4, 4))
        elif what < 4:
            made = met(CollectiveKind.ALL_GATHER, chance.choice(graph.parameters) if what == 2 else one)
        elif what == 4:
            made = met(chance.choice((CollectiveKind.REDUCE_SCATTER, CollectiveKind.ALL_REDUCE)), other)
        else:
            made = graph.add(chance.choice(("convert", "reshape", "tanh")), (one,), "f32", (4, 4))
        values.append(made)
    graph.roots = values[-5:]
    return graph


def test_any_graph_keeps_its_nodes_and_what_they_need() -> None:
    """Of 300 graphs every node stays, behind its operands; gathers are called no later with more layers."""
    chance = random.Random(5)
    moved = 0
    for _ in range(100):
        graph = drawn(chance)
        nodes, first = list(graph.nodes), {}
        for early, late in ((0, -1), (1, 0), (2, 2)):
            graph.nodes = list(nodes)
            assign_streams(graph, 2)
            call_early(graph, early, late)
            place: dict[Node, int] = {node: number for number, node in enumerate(graph.nodes)}
            assert place.keys() == set(nodes) and [node.number for node in graph.nodes] == list(range(len(nodes)))
            assert all(place[one.node] < place[node] for node in nodes for one in node.operands)
            own = {*gathers_of(graph), *scatters_of(graph)}
            assert all(node.attrs["stream"] == (node in own) for node in nodes if node.opcode == "rank-collective")
            products = [node for node in graph.nodes if node.opcode == "dot"]
            ahead = {node: sum(place[one] < place[node] for one in products) for node in gathers_of(graph)}
            if late < 0:
                first = ahead
            moved += sum(ahead[node] < first[node] for node in ahead)
            assert early != 1 or late >= 0 or all(ahead[node] <= first[node] for node in ahead)
    assert moved > 50
