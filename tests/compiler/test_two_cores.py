"""Graphs on both cores of a logical core: the same bits as on one, in less time, and nothing unordered."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import neurontools
from neurontools.builder.trace import Allocation, DmaOp, Space, View
from neurontools.compiler.graph import Graph, Value
from neurontools.compiler.pipeline import Compiled
from neurontools.compiler.rewriting import Builder
from neurontools.compiler.two_cores import Crossings, halves
from tests.compiler.support import OURS, compiled, floats, run_shared
from tests.compiler.test_attention import _attention as attention

BOTH = OURS._replace(lnc=2)


def _dot(b: Builder, left: Value, right: Value) -> Value:
    shape = (left.shape[0], right.shape[1])
    return b.graph.add("dot", (left, right), "f32", shape, lhs_batch=(), rhs_batch=(), lhs_contracting=(1,),
                       rhs_contracting=(0,), precision=())  # fmt: skip


def _layers(b: Builder, x: Value, w: Value) -> Value:
    return _dot(b, b.op("tanh", _dot(b, x, w)), w)


def _chain(b: Builder, x: Value) -> Value:
    for _ in range(3):
        x = b.op("tanh", b.op("multiply", x, x))
    return x


def across(b: Builder, x: Value) -> list[Value]:
    """Rows on one side become columns on the other, so that cores need what the other one made."""
    y = b.op("tanh", x)
    return [
        b.op("multiply", b.transpose(y, (1, 0)), x),
        b.reduce(y, (1,), "add", 0.0),
        b.reduce(y, (0,), "maximum", -9.0),
    ]


def _looped(b: Builder, x: Value) -> Value:
    """A long step, three turns of a loop over its result, and a long step behind."""
    grown = b.op("exponential", _chain(b, x))
    kinds = ((grown.dtype, grown.shape), ("s32", ()))
    condition, body = Graph("condition"), Graph("body")
    for graph in (condition, body):
        for kind in kinds:
            graph.parameter(*kind)
    test = Builder(condition)
    condition.roots = [test.compare("LT", condition.parameters[1], test.constant(3, "s32"))]
    inner = Builder(body)
    value, turn = body.parameters
    body.roots = [inner.op("negate", value), inner.op("add", turn, inner.constant(1, "s32"))]
    start = b.constant(0, "s32")
    node = b.graph.node("while", (grown, start), kinds, {"condition": condition, "body": body})
    return _chain(b, node.results[0])


CASES: dict[str, tuple[Callable[..., Any], tuple[tuple[int, ...], ...]]] = {
    "element-wise": (_chain, ((512, 600),)),
    "odd rows": (_chain, ((301, 700),)),
    "products": (_layers, ((384, 256), (256, 256))),
    "few rows": (_layers, ((16, 640), (640, 640))),
    "attention": (attention, ((2, 256, 64),) * 3),
    "across": (across, ((512, 512),)),
    "loop": (_looped, ((384, 512),)),
}


def _ran(made: Compiled, *inputs: np.ndarray[Any, Any]) -> Any:
    found = neurontools.run(
        neurontools.open_neff(made.neff), dict(zip(made.names.inputs, inputs, strict=True)), checks="all"
    )
    assert found.fault is None
    assert found.hang is None
    return found


@pytest.mark.parametrize("name", CASES)
def test_two_cores_make_the_same_bits_in_less_time(name: str) -> None:
    make, shapes = CASES[name]
    inputs = [floats(*shape, seed=number) * np.float32(0.5) for number, shape in enumerate(shapes)]
    one, both = (_ran(compiled(make, *inputs, options=options), *inputs) for options in (OURS, BOTH))
    for output, value in one.outputs.items():
        assert np.array_equal(value, both.outputs[output])
    assert [found.text() for found in both.findings if found.severity != "note"] == []
    assert both.time_ps <= one.time_ps
    made = compiled(make, *inputs, options=BOTH)
    assert len(made.report.cores) == 2
    if both.time_ps < 0.95 * one.time_ps:
        assert all(sum(core.words.values()) > 20 for core in made.report.cores)
    else:
        assert name in ("few rows", "products", "loop")  # loading what both need, or meeting, takes what is gained


def test_most_of_these_are_shared() -> None:
    shared = 0
    for make, shapes in CASES.values():
        made = compiled(make, *(floats(*one) for one in shapes), options=BOTH)
        shared += sum(made.report.cores[1].words.values()) > 20
    assert shared >= 5


def test_small_work_stays_on_one_core() -> None:
    made = compiled(_chain, floats(4, 8), options=BOTH)
    assert not made.report.cores[1].transfers


@pytest.mark.parametrize("name", ["element-wise", "products"])
def test_an_output_may_lie_in_an_input_on_two_cores(name: str) -> None:
    make, shapes = CASES[name]
    inputs = [floats(*shape, seed=number) * np.float32(0.5) for number, shape in enumerate(shapes)]
    made = compiled(make, *inputs, options=BOTH)
    want = _ran(compiled(make, *inputs), *inputs).outputs["output0"]
    assert np.array_equal(run_shared(made, inputs, 0)[0], want)


def test_only_shared_bytes_that_somebody_writes_make_cores_meet() -> None:
    from formats.dtypes import Dtype

    def tensor(number: int, kind: str) -> Allocation:
        return Allocation(number, Space.HBM, f"t{number}", Dtype.FLOAT32, (64,), kind)

    def part(one: Allocation, first: int, count: int) -> View:
        return View(one, Dtype.FLOAT32, 0, 1, 4 * first, ((1, count),))

    tile = Allocation(9, Space.SBUF, "tile", Dtype.FLOAT32, (1, 64))
    inside = View(tile, Dtype.FLOAT32, 0, 1, 0, ((1, 32),))
    mine, given, result = tensor(0, "private"), tensor(1, "input"), tensor(2, "output")

    def copy(dst: View, src: View) -> DmaOp:
        return DmaOp(dst, src, None, False, ("model.py", 1))

    crossings = Crossings(2)
    crossings.note(0, copy(part(mine, 0, 32), inside))
    crossings.note(0, copy(inside, part(given, 0, 64)))
    assert not crossings.meets(1, copy(inside, part(mine, 32, 32)))  # other bytes
    assert crossings.meets(1, copy(inside, part(mine, 31, 8))) == "behind"
    assert not crossings.meets(1, copy(inside, part(given, 0, 32)))  # both read
    assert not crossings.meets(0, copy(inside, part(mine, 0, 32)))  # the core itself
    assert crossings.meets(1, copy(part(result, 0, 8), inside)) == "behind"  # the caller's one memory, perhaps
    crossings.mark()
    assert crossings.meets(1, copy(inside, part(mine, 31, 8))) == "before"
    crossings.met(1, at_mark=True)
    assert not crossings.meets(1, copy(inside, part(mine, 31, 8)))
    assert halves(5, 2) == [(0, 0, 3), (1, 3, 5)]
    assert halves(1, 2) == halves(1, 1) == [(0, 0, 1)]
