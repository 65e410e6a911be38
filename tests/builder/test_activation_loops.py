"""Activation sets in loops that the device runs: loaded in front of a loop where one set serves it, and always right.

Whichever way the branches go, each activation finds a set that holds its function: the words of the Scalar engine are
followed along all paths, with the sets that may be loaded at each.
"""

from __future__ import annotations

from itertools import accumulate
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formats import isa
from formats.neff import Neff
from neurontools.builder.trace import LoopEndOp, LoopOp
from tests.builder.maker import I32, Maker
from tests.builder.test_words import body, built

NAMES = ("relu", "exp", "tanh", "log", "sqrt", "sigmoid", "gelu", "sin", "floor")


def program(parts: list[Any]) -> Neff:
    """Build activations by name; a list among them is a loop."""
    m = Maker()
    tile, turns = m.sbuf((128, 8)), m.sbuf((1, 1), I32)
    m.memset(tile, 1.0)
    m.memset(turns, 3)

    def emit(inner: list[Any]) -> None:
        for one in inner:
            if isinstance(one, str):
                m.compute(isa.Activate, "Activation", {"src": tile, "dst": tile}, function=one)
                continue
            m.trace.ops.append(LoopOp(m.view(turns), True, ("kernel.py", 1)))
            emit(one)
            m.trace.ops.append(LoopEndOp(("kernel.py", 2)))

    emit(parts)
    return built(m)


def unserved(neff: Neff) -> tuple[int, list[str]]:
    """Return how many activations can be reached, and those that may find a set without their function."""
    words = body(neff, "Activation")
    sets = neff.subgraphs[0].activation_sets
    held = {one.table_select: {function.func_id for function in one.functions} for one in sets}
    offsets = list(accumulate((word.SIZE for word in words), initial=0))
    before: list[set[int | None]] = [set() for _ in range(len(words) + 1)]
    before[0] = {None}
    waiting = [0]
    while waiting:
        at = waiting.pop()
        if at == len(words):
            continue
        word, states = words[at], before[at]
        targets = [at + 1]
        if isinstance(word, isa.ActTableLoad):
            states = {word.table_select}
        if isinstance(word, isa.CompareBranch):
            there = offsets.index(offsets[at] + word.target)
            targets = [there] if word.compare == isa.BranchCompare.ALWAYS else [at + 1, there]
        for target in targets:
            if not states <= before[target]:
                before[target] |= states
                waiting.append(target)
    activations = [(word, states) for word, states in zip(words, before[:-1], strict=True)
                   if isinstance(word, isa.Activate) and states]  # fmt: skip
    wrong = [str(word) for word, states in activations
             if any(state is None or int(word.function) not in held[state] for state in states)]  # fmt: skip
    return len(activations), wrong


def shape(neff: Neff) -> str:
    """Return the loads (their sets), activations (a), and branches out of (>) and back in (<) loops, in order."""
    found = []
    for word in body(neff, "Activation"):
        if isinstance(word, isa.ActTableLoad):
            found.append(str(word.table_select))
        elif isinstance(word, isa.Activate):
            found.append("a")
        elif isinstance(word, isa.CompareBranch):
            found.append("<" if word.target < 0 else ">")
    return "".join(found)


@pytest.mark.parametrize(
    ("parts", "want"),
    [
        ([["exp"]], "0>a<"),  # one set: loaded once, in front
        ([["exp", "sqrt"]], ">0a1a<"),  # two sets: every turn loads both
        (["exp", ["exp", "tanh"], "tanh"], "0a>aa<a"),  # what stands in front goes on behind
        (["exp", ["exp", "sqrt"], "exp"], "0a>0a1a<0a"),
        (["sqrt", ["exp"], "exp"], "0a1>a<a"),
        (["sqrt", ["relu", "exp"]], "0a1>aa<"),  # relu is in every set, but the loop needs the one with exp
        (["sqrt", ["relu"], "sqrt"], "0a>a<a"),
        ([["exp", ["tanh"]]], "0>a>a<<"),  # nested: in front of both
        ([["sqrt", ["exp"], ["tanh", ["exp"]]]], ">0a1>a<>a>a<<<"),  # the outer one needs two, the inner ones one
        ([[["exp"], "sqrt"], "exp"], ">0>a<1a<0a"),
        ([[["exp", "sqrt"]]], ">>0a1a<<"),
        (["exp", [], "exp"], "0a><a"),  # a loop without activations changes nothing
    ],
)
def test_loads_stand_where_they_are_needed(parts: list[Any], want: str) -> None:
    neff = program(parts)
    assert shape(neff) == want
    assert unserved(neff) == (want.count("a"), [])


def test_the_proof_sees_a_load_that_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two sets needed in turn, planted with one load in front: the check must find it."""
    from neurontools.builder import program as builder

    real = builder.plan_activation

    def wrong(functions: Any, loops: Any) -> Any:
        plan = real(functions, loops)
        return plan._replace(loads={1: plan.loads[1]}, ahead={loops[0].number: plan.loads[0]})

    monkeypatch.setattr(builder, "plan_activation", wrong)
    assert len(unserved(program([["exp", "sqrt"]]))[1]) == 1


PARTS = st.recursive(
    st.lists(st.sampled_from(NAMES), max_size=3),
    lambda inner: st.lists(st.one_of(st.sampled_from(NAMES), inner), min_size=1, max_size=4),
    max_leaves=6,
)


@settings(max_examples=150, deadline=None)
@given(PARTS)
def test_every_path_finds_its_functions(parts: list[Any]) -> None:
    def count(inner: list[Any]) -> int:
        return sum(1 if isinstance(one, str) else count(one) for one in inner)

    assert unserved(program(parts)) == (count(parts), [])
