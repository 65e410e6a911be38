"""Collectives that begin and end apart, and modules of several ranks: the machine against the interpreter and NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import neurontools
from emulator.machine.machine import Machine
from emulator.machine.ranks.machine import RankedMachine
from formats.errors import FormatError, UnsupportedError
from formats.hlo.text import parse_module, print_module
from neurontools.compiler.errors import CompileError
from neurontools.compiler.pipeline import compile_module
from neurontools.hlo_interpreter import evaluate, evaluate_ranks
from tests.compiler.support import OURS

Array = np.ndarray[Any, Any]
SUM = "sum { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }\n\n"
APART = f"""HloModule apart, replica_count=4

{SUM}shuffled {{
  y = f32[8,6] parameter(0)
  ROOT t = f32[8,6] all-to-all(y), replica_groups={{{{0,1,2,3}}}}, dimensions={{0}}
}}

ENTRY main {{
  x = f32[8,6] parameter(0)
  twice = f32[8,6] add(x, x)
  gs = (f32[8,6], f32[8,12]) all-gather-start(twice), replica_groups={{{{0,2}},{{3,1}}}}, dimensions={{1}}
  rs = f32[8,6] all-reduce-start(x), replica_groups={{{{0,1,2,3}}}}, to_apply=sum
  ps = (f32[8,6], f32[8,6], u32[], u32[]) collective-permute-start(twice),
    source_target_pairs={{{{0,1}},{{1,2}},{{2,0}}}}
  as = ((f32[8,6]), f32[8,6], s32[]) async-start(x), calls=shuffled
  square = f32[8,6] multiply(x, x)
  au = ((f32[8,6]), f32[8,6], s32[]) async-update(as)
  a = f32[8,6] async-done(au)
  g = f32[8,12] all-gather-done(gs)
  r = f32[8,6] all-reduce-done(rs)
  p = f32[8,6] collective-permute-done(ps)
  cs = (f32[8,6], f32[8,6], u32[]) copy-start(p)
  c = f32[8,6] copy-done(cs)
  part = f32[2,6] reduce-scatter(square), replica_groups={{{{0,1,2,3}}}}, dimensions={{0}}, to_apply=sum
  rank = u32[] partition-id()
  kept = f32[8,6] get-tuple-element(gs), index=0
  ROOT all = (f32[8,12], f32[8,6], f32[8,6], f32[8,6], f32[2,6], u32[], f32[8,6]) tuple(g, r, c, a, part, rank, kept)
}}
"""


def given(ranks: int = 4) -> list[Array]:
    rng = np.random.default_rng(11)
    return [rng.integers(-30, 30, (8, 6)).astype(np.float32) for _ in range(ranks)]


def wanted(xs: list[Array], rank: int) -> tuple[Array, ...]:
    """Return what a rank has at the end."""
    left, right = ((0, 2), (3, 1))[rank in (1, 3)]
    source = {1: 0, 2: 1, 0: 2}.get(rank)
    moved = np.zeros((8, 6), np.float32) if source is None else 2 * xs[source]
    mixed = np.concatenate([one[2 * rank : 2 * rank + 2] for one in xs])
    squares = sum(one * one for one in xs)
    return (np.concatenate([2 * xs[left], 2 * xs[right]], 1), sum(xs), moved, mixed,
            squares[2 * rank : 2 * rank + 2], np.array(rank), 2 * xs[rank])  # type: ignore[return-value]  # fmt: skip


def test_the_interpreter_of_several_ranks_gives_what_numpy_gives() -> None:
    xs = given()
    module = parse_module(APART)
    for text in (APART, print_module(module)):
        for rank, found in enumerate(evaluate_ranks(parse_module(text), [[x] for x in xs])):
            for got, want in zip(found, wanted(xs, rank), strict=True):
                np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("seed", [None, 1])
def test_the_machine_gives_what_the_interpreter_gives(seed: int | None) -> None:
    xs, module = given(), parse_module(APART)
    made = compile_module(module, OURS)
    machine = RankedMachine(Machine("trn2.48xlarge", lnc=1), 4, seed=seed)
    machine.load(neurontools.open_neff(made.neff))
    for rank, x in enumerate(xs):
        machine.set_inputs(rank, {"input0": x})
    assert machine.run() == "finished"
    for rank, expected in enumerate(evaluate_ranks(module, [[x] for x in xs])):
        outputs = machine.outputs(rank)
        for name, want in zip(made.names.outputs, expected, strict=True):
            np.testing.assert_array_equal(np.asarray(outputs[name]).reshape(want.shape), want)


LONE = """HloModule lone

ENTRY main {
  x = f32[4] parameter(0)
  gs = (f32[4], f32[4]) all-gather-start(x), replica_groups={{0}}, dimensions={0}
  g = f32[4] all-gather-done(gs)
  ps = (f32[4], f32[4]) collective-permute-start(g), source_target_pairs={{0,0}}
  ROOT p = f32[4] collective-permute-done(ps)
}
"""


def test_one_rank_gets_what_it_gave() -> None:
    x = np.arange(4, dtype=np.float32)
    np.testing.assert_array_equal(evaluate(parse_module(LONE), [x]), x)
    made = compile_module(parse_module(LONE), OURS)
    result = neurontools.run(neurontools.open_neff(made.neff), {"input0": x})
    np.testing.assert_array_equal(np.asarray(result.outputs["output0"]), x)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("all-gather-done(gs)", "all-gather-done(x)"), "no all-gather-start"),
        (("(f32[4], f32[4]) all-gather-start", "(f32[4], f32[8]) all-gather-start"), "gives f32"),
        (("(f32[4], f32[4]) all-gather-start", "f32[4] all-gather-start"), "no tuple of operands and results"),
        (("collective-permute-done(ps)", "async-done(ps)"), "no async-start"),
        (("(f32[4], f32[4]) collective-permute-start", "(f32[4], f32[5]) collective-permute-start"), "as the result"),
        (("all-gather-done(gs)", "copy-done(gs)"), "no copy-start"),
    ],
)  # fmt: skip
def test_ends_without_their_start_are_refused(change: tuple[str, str], said: str) -> None:
    module = parse_module(LONE.replace(*change))
    with pytest.raises(FormatError, match=said):
        evaluate(module, [np.zeros(4, np.float32)])
    with pytest.raises(CompileError, match="NCC_EVRF064"):
        compile_module(module, OURS)


def test_ranks_that_do_not_meet_end_with_the_reason() -> None:
    text = f"""HloModule apart

{SUM}yes {{ y = f32[3] parameter(0) ROOT t = f32[3] all-reduce(y), replica_groups={{{{0,1}}}}, to_apply=sum }}

no {{ y = f32[3] parameter(0) ROOT t = f32[3] add(y, y) }}

ENTRY main {{
  x = f32[3] parameter(0)
  which = s32[] parameter(1)
  ROOT c = f32[3] conditional(which, x, x), branch_computations={{yes, no}}
}}
"""
    x = np.ones(3, np.float32)
    both = evaluate_ranks(parse_module(text), [[x, np.int32(0)], [2 * x, np.int32(0)]])
    np.testing.assert_array_equal(both, [3 * x, 3 * x])
    with pytest.raises(FormatError, match=r"ranks wait for each other: rank 0 at %t; 1 ended"):
        evaluate_ranks(parse_module(text), [[x, np.int32(0)], [x, np.int32(1)]])
    with pytest.raises(UnsupportedError, match="among several ranks; 1 evaluate"):
        evaluate(parse_module(text), [x, np.int32(0)])
    with pytest.raises(FormatError, match="an argument has another shape"):
        evaluate_ranks(parse_module(text), [[x, np.int32(0)], [x[:2], np.int32(0)]])
    with pytest.raises(FormatError, match="number of ranks"):
        evaluate_ranks(parse_module(text), [])
