"""Collectives in graphs: programs of several ranks against NumPy, groups that are none refused."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import neurontools
from emulator.machine.machine import Machine
from emulator.machine.ranks.machine import RankedMachine
from formats.errors import NeuronError
from neurontools import nki
from neurontools.compiler.collective_order import call_early
from neurontools.compiler.expand import expand
from neurontools.compiler.graph import Graph, Value
from neurontools.compiler.options import CompileOptions
from neurontools.compiler.rewriting import Builder, scalar_body
from neurontools.nki import collectives as ncc
from neurontools.nki import language as nl
from neurontools.nki.graph_calls import graph_call
from tests.compiler.support import OURS, compiled, floats, integers
from tests.compiler.test_native_kernels import called

Array = np.ndarray[Any, Any]
ALL = ((0, 1, 2, 3),)
TWO = ((0, 2), (3, 1))
INSTANCES = {"trn1": "trn1.32xlarge", "trn2": "trn2.48xlarge"}


def node(b: Builder, opcode: str, operands: Sequence[Value], shapes: Sequence[Sequence[int]], groups: Any = (),
         pairs: Any = (), dimension: int | None = None, fold: str = "") -> list[Value]:  # fmt: skip
    """Append a collective as the importer makes it."""
    attrs = {"groups": groups, "pairs": pairs, "dimension": dimension}
    if fold:
        attrs["body"] = scalar_body(fold, operands[0].dtype)
    kinds = [(one.dtype, tuple(shape)) for one, shape in zip(operands, shapes, strict=True)]
    return list(b.graph.node(opcode, operands, kinds, attrs).results)


def ranked(
    make: Callable[..., Any], inputs: Sequence[Sequence[Array]], target: str = "trn2", seed: int | None = None
) -> list[list[Array]]:
    """Compile one graph and run it on as many ranks as there are inputs; return the outputs of each."""
    made = compiled(make, *inputs[0], options=CompileOptions(target=target, lnc=1, limits="ours"))
    machine = RankedMachine(Machine(INSTANCES[target], lnc=1), len(inputs), seed=seed)
    machine.load(neurontools.open_neff(made.neff))
    for rank, arrays in enumerate(inputs):
        given = [one.view(np.uint8) if one.dtype == bool else one for one in arrays]
        machine.set_inputs(rank, dict(zip(made.names.inputs, given, strict=True)))
    assert machine.run() == "finished", [(one.fault, one.hang) for one in machine.devices]
    return [[np.asarray(machine.outputs(rank)[name]) for name in made.names.outputs] for rank in range(len(inputs))]


def given(*shape: int, ranks: int = 4, dtype: Any = np.float32) -> list[list[Array]]:
    rng = np.random.default_rng(7)
    return [[rng.integers(-50, 50, shape).astype(dtype)] for _ in range(ranks)]


def grouped(groups: Sequence[Sequence[int]], inputs: Sequence[Sequence[Array]], each: Any) -> list[Array]:
    """Return what every rank should have: `each` maps the arrays of a group to those of its ranks."""
    found: list[Array] = [np.zeros(0)] * len(inputs)
    for group in groups:
        for rank, array in zip(group, each([inputs[one][0] for one in group]), strict=True):
            found[rank] = array
    return found


@pytest.mark.parametrize("groups", [ALL, TWO])
@pytest.mark.parametrize("fold", ["add", "minimum", "maximum"])
def test_all_reduce(groups: Any, fold: str) -> None:
    inputs = given(8, 24)
    numpy = {"add": np.sum, "minimum": np.min, "maximum": np.max}[fold]

    def make(b: Builder, x: Value) -> Any:
        total = node(b, "all-reduce", [b.op("negate", x)], [x.shape], groups, fold=fold)[0]
        return b.op("add", total, x)  # before and after it, other operations

    wanted = grouped(groups, inputs, lambda parts: [numpy([-one for one in parts], axis=0)] * len(parts))
    for seed in (None, 1):
        for rank, (found,) in enumerate(ranked(make, inputs, seed=seed)):
            np.testing.assert_array_equal(found, wanted[rank] + inputs[rank][0])


def test_all_reduce_on_the_first_generation_of_several_operands_and_of_truth_values() -> None:
    inputs = [[one[0], one[0][:3] * 2] for one in given(8, 24)]

    def make(b: Builder, x: Value, y: Value) -> Any:
        return node(b, "all-reduce", [x, y], [x.shape, y.shape], ALL, fold="add")

    for found in ranked(make, inputs, "trn1"):
        for place, one in enumerate(found):
            np.testing.assert_array_equal(one, sum(each[place] for each in inputs))
    truths = [[one[0] > 20] for one in given(5, 7)]
    for fold, numpy in (("and", np.all), ("or", np.any)):
        for (found_,) in ranked(lambda b, x, fold=fold: node(b, "all-reduce", [x], [x.shape], ALL, fold=fold), truths):
            np.testing.assert_array_equal(found_ != 0, numpy([one[0] for one in truths], axis=0))


@pytest.mark.parametrize("groups", [ALL, TWO])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_all_gather_and_reduce_scatter_along_every_dimension(groups: Any, axis: int) -> None:
    inputs, n = given(4, 8, 12), len(groups[0])
    shape = [4, 8, 12]
    longer, shorter = list(shape), list(shape)
    longer[axis], shorter[axis] = shape[axis] * n, shape[axis] // n

    def make(b: Builder, x: Value) -> Any:
        turned = b.transpose(b.transpose(x, (2, 0, 1)), (1, 2, 0))
        return [node(b, "all-gather", [turned], [longer], groups, dimension=axis)[0],
                node(b, "reduce-scatter", [x], [shorter], groups, dimension=axis, fold="add")[0]]  # fmt: skip

    gathered = grouped(groups, inputs, lambda parts: [np.concatenate(parts, axis)] * n)
    scattered = grouped(groups, inputs, lambda parts: np.split(np.sum(parts, axis=0), n, axis))
    for rank, (first, second) in enumerate(ranked(make, inputs)):
        np.testing.assert_array_equal(first, gathered[rank])
        np.testing.assert_array_equal(second, scattered[rank])


@pytest.mark.parametrize(("cut", "joined"), [(0, 0), (1, 1), (1, 0), (0, 2)])
def test_all_to_all_with_one_operand(cut: int, joined: int) -> None:
    """XLA cuts and joins one dimension; nkipy says the second by the shape of the result."""
    inputs, shape = given(4, 8, 12), [4, 8, 12]
    shape[cut] //= 4
    shape[joined] *= 4

    def exchanged(parts: list[Array]) -> list[Array]:
        rows = [np.split(part, 4, cut) for part in parts]
        return [np.concatenate([row[to] for row in rows], joined) for to in range(4)]

    wanted = grouped(ALL, inputs, exchanged)
    for rank, (found,) in enumerate(
        ranked(lambda b, x: node(b, "all-to-all", [x], [shape], ALL, dimension=cut), inputs)
    ):
        np.testing.assert_array_equal(found, wanted[rank])


def test_collectives_are_called_before_the_first_use_of_any() -> None:
    """A use right behind its collective waits; what does not need it goes first, and collectives keep their order."""

    def make(b: Builder, x: Value) -> Any:
        first = node(b, "all-reduce", [x], [x.shape], ALL, fold="add")[0]
        used = b.op("negate", first)
        second = node(b, "all-reduce", [b.op("tanh", x)], [x.shape], ALL, fold="add")[0]
        chained = node(b, "all-reduce", [used], [x.shape], ALL, fold="maximum")[0]
        behind = node(b, "all-reduce", [b.op("abs", x)], [x.shape], ALL, fold="minimum")[0]
        return b.op("add", b.op("add", used, second), b.op("add", chained, behind))

    b = Builder(Graph("test"))
    b.graph.roots = [make(b, b.graph.parameter("f32", (4, 8)))]
    graph = expand(b.graph)
    before = [one for one in graph.nodes if one.opcode == "rank-collective"]
    graph = call_early(graph)
    order = [one.opcode for one in graph.nodes]
    assert [one for one in graph.nodes if one.opcode == "rank-collective"] == before
    assert order.index("tanh") < order.index("negate")
    assert [one.number for one in graph.nodes] == list(range(len(order)))
    known: set[Value] = set()
    for one in graph.nodes:
        assert known.issuperset(one.operands)
        known.update(one.results)
    # The second is called before the first is used; the last behind the third, as it was given.
    places = [place for place, opcode in enumerate(order) if opcode == "rank-collective"]
    assert places[1] < order.index("negate") < places[2] < places[3]


def test_all_to_all_with_an_operand_for_each_rank() -> None:
    inputs = [[10 * rank + np.full((3, 5), place, np.int32) for place in range(2)] for rank in range(4)]
    found = ranked(lambda b, x, y: node(b, "all-to-all", [x, y], [x.shape] * 2, TWO), inputs)
    for group in TWO:
        for place, rank in enumerate(group):
            for sender, array in zip(group, found[rank], strict=True):
                np.testing.assert_array_equal(array, inputs[sender][place])


def test_permutations_and_broadcasts() -> None:
    inputs = given(6, 10, dtype=np.float16)
    pairs = ((0, 2), (2, 3), (3, 0))  # nobody sends to 1

    def make(b: Builder, x: Value) -> Any:
        return [node(b, "collective-permute", [x], [x.shape], pairs=pairs)[0],
                node(b, "collective-broadcast", [x], [x.shape], TWO)[0]]  # fmt: skip

    sent = {2: 0, 3: 2, 0: 3}
    first_of = {rank: group[0] for group in TWO for rank in group}
    for rank, (moved, copied) in enumerate(ranked(make, inputs)):
        wanted = inputs[sent[rank]][0] if rank in sent else np.zeros((6, 10), np.float16)
        np.testing.assert_array_equal(moved, wanted)
        np.testing.assert_array_equal(copied, inputs[first_of[rank]][0])


def test_the_number_of_the_rank() -> None:
    inputs = given(2, 3)

    def make(b: Builder, x: Value) -> Any:
        rank = b.graph.add("partition-id", (), "u32", ())
        return b.op("add", x, b.broadcast(b.convert(rank, "f32"), x.shape, ()))

    for rank, (found,) in enumerate(ranked(make, inputs)):
        np.testing.assert_array_equal(found, inputs[rank][0] + rank)


def test_a_kernel_that_communicates() -> None:
    @nki.jit(platform_target="trn2")
    def summed(x):  # type: ignore[no-untyped-def]
        mine = nl.ndarray(x.shape, x.dtype, nl.private_hbm)
        nl.store(mine, nl.multiply(nl.load(x), 3.0))
        total = nl.ndarray(x.shape, x.dtype, nl.shared_hbm)
        ncc.all_reduce([mine], [total], ncc.ReplicaGroup([[0, 1, 2, 3]]), nl.add)
        return total

    inputs = given(16, 8)
    call = graph_call(summed, tuple(inputs[0]), {})
    assert call.has_collectives
    for (found,) in ranked(lambda b, x: b.op("negate", called(b, call, x)[0]), inputs):
        np.testing.assert_array_equal(found, -3 * sum(one[0] for one in inputs))


def test_a_rank_alone_gets_what_it_gave() -> None:
    x = floats(4, 6)

    def make(b: Builder, one: Value) -> Any:
        alone = ((0,), (1,))
        for opcode, fold in (("all-reduce", "add"), ("all-gather", ""), ("reduce-scatter", "add"), ("all-to-all", "")):
            (one,) = node(b, opcode, [one], [one.shape], alone, dimension=0, fold=fold)
        return one

    result = neurontools.run(neurontools.open_neff(compiled(make, x).neff), {"input0": x})
    np.testing.assert_array_equal(result.outputs["output0"], x)


def test_a_program_of_several_ranks_says_so_where_it_runs_alone() -> None:
    x = floats(4, 6)
    made = compiled(lambda b, one: node(b, "all-reduce", [one], [one.shape], ALL, fold="add"), x)
    result = neurontools.run(neurontools.open_neff(made.neff), {"input0": x})
    assert result.fault is not None and result.fault.kind == "unsupported"


@pytest.mark.parametrize(("code", "says", "opcode", "attrs", "array"), [
    ("EVRF064", "no rank may be in two groups, {0,1}, {1,2}", "all-gather",
     {"groups": ((0, 1), (1, 2)), "dimension": 0}, floats(4, 4)),
    ("EVRF064", "same number of ranks", "all-reduce", {"groups": ((0, 1), (2,)), "fold": "add"}, floats(4, 4)),
    ("EVRF064", "ranks must be 0 to", "all-reduce", {"groups": ((0, -1),), "fold": "add"}, floats(4, 4)),
    ("EVRF064", "source or target twice", "collective-permute", {"pairs": ((0, 1), (2, 1))}, floats(4, 4)),
    ("EVRF064", "cuts 5 elements for 4 ranks", "all-to-all", {"groups": ALL, "dimension": 0}, floats(5, 4)),
    ("EUOC002", "all-reduce by multiply is not supported; allowed are add", "all-reduce",
     {"groups": ALL, "fold": "multiply"}, floats(4, 4)),
    ("EUOC002", "all-reduce without replica groups", "all-reduce", {"fold": "add"}, floats(4, 4)),
    ("EVRF061", "all-reduce of s32", "all-reduce", {"groups": ALL, "fold": "add"}, integers(4, 4)),
])  # fmt: skip
def test_what_is_refused(code: str, says: str, opcode: str, attrs: dict[str, Any], array: Array) -> None:
    options = OURS._replace(implicit_integer_downcast="none")
    with pytest.raises(NeuronError, match=re.escape(f"[NCC_{code}]")) as caught:
        compiled(lambda b, x: node(b, opcode, [x], [x.shape], **attrs), array, options=options)
    assert says in str(caught.value) and "model.py:42" in str(caught.value)
