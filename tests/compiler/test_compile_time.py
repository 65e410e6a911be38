"""Work of a compilation: linear in the graph, few copies of it, and no search for cycles among what it makes."""

from __future__ import annotations

import gc
from typing import Any
from unittest import mock

import numpy as np
import pytest

from formats.errors import NotFoundError
from neurontools.compiler.canonicalise import without_dead
from neurontools.compiler.expand import expand
from neurontools.compiler.graph import Graph, Node, Value
from neurontools.compiler.pipeline import compile_graph
from neurontools.compiler.rewriting import Builder
from neurontools.compiler.signature import Names
from tests.compiler.support import OURS, compiled, floats
from tests.counting import counted


def _layers(number: int) -> Any:
    def make(b: Builder, x: Value, w: Value) -> Value:
        for _ in range(number):
            made = b.graph.add("dot", (x, w), "f32", x.shape, lhs_batch=(), rhs_batch=(), lhs_contracting=(1,),
                               rhs_contracting=(0,), precision=())  # fmt: skip
            x = b.op("tanh", b.op("add", made, x))
        return x

    return make


def _inputs() -> list[np.ndarray[Any, Any]]:
    return [floats(16, 16), floats(16, 16, seed=1)]


@pytest.mark.parametrize("level", [1, 2])
def test_work_is_linear(level: int) -> None:
    options = OURS._replace(optlevel=level)
    compiled(_layers(1), *_inputs(), options=options)
    few, some, many = (counted(lambda n=n: compiled(_layers(n), *_inputs(), options=options))[0] for n in (10, 60, 160))
    assert (many - some) / 100 < 1.1 * (some - few) / 50


def test_the_first_level_is_no_more_work_than_the_second_but_for_its_words() -> None:
    found = []
    for level in (1, 2):
        options = OURS._replace(optlevel=level)
        made = compiled(_layers(40), *_inputs(), options=options)
        work = counted(lambda options=options: compiled(_layers(40), *_inputs(), options=options))[0]
        found.append(work / sum(made.report.cores[0].words.values()))
    assert found[0] <= 1.2 * found[1]  # more of its words are transfers, which are the most work


def test_a_graph_is_copied_a_few_times() -> None:
    made = 0
    init = Node.__init__

    def counted(self: Node, *arguments: Any) -> None:
        nonlocal made
        made += 1
        init(self, *arguments)

    with mock.patch.object(Node, "__init__", counted):
        compiled(_layers(100), *_inputs())
    assert made <= 4 * 302


def test_a_pass_without_work_gives_the_graph_back() -> None:
    graph = Graph("test")
    x = graph.parameter("f32", (4,))
    graph.roots = [Builder(graph).op("tanh", x)]
    assert expand(graph) is graph
    assert without_dead(graph) is graph
    Builder(graph).op("exponential", x)
    assert [node.opcode for node in without_dead(graph).nodes] == ["parameter", "tanh"]


def test_cycles_are_not_looked_for_until_the_end() -> None:
    seen: list[str] = []
    gc.callbacks.append(lambda phase, info: seen.append(phase))
    try:
        gc.collect()
        seen.clear()
        graph = Graph("test")
        graph.roots = [_layers(100)(Builder(graph), *(graph.parameter("f32", (16, 16)) for _ in range(2)))]
        seen.clear()
        names = Names(("x", "w"), ("y",))
        compile_graph(graph, names, OURS)
        assert len(seen) <= 2  # one, when it is allowed again
    finally:
        gc.callbacks.pop()
    assert gc.isenabled()
    with pytest.raises(NotFoundError):
        compile_graph(graph, names, OURS, dump_after=["nothing"])
    assert gc.isenabled()
