"""A run that was checked leaves nothing that goes round in a circle, which only a collection of garbage would find."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from emulator.checks import kept
from emulator.runtime import run
from formats.neff import Neff
from neurontools.nki.launch import build_neff
from neurontools.program.configuration import USUAL
from neurontools.program.opening import open_program
from tests.checks.support import assembled, worked_out
from tests.checks.test_again import given, two_cores
from tests.checks.test_loops import X, counts
from tests.checks.test_pursuit import Words

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
Given = tuple[Neff, dict[str, Any]]


def example(name: str) -> Given:
    opened = open_program(EXAMPLES / name, USUAL)
    return opened.neff, dict(opened.inputs)


def stores() -> Given:
    neff = two_cores(((2, 0, 32, 0, 16, "own"), (1, 0, 8, 0, 4, 0)))
    return neff, given(neff, True)


def loop() -> Given:
    turns = np.array([[3]], np.int32)
    return build_neff(counts, (X, turns, -1), {}, target="trn2"), {"x": X, "turns": turns}


@pytest.fixture
def never_collected() -> Iterator[None]:
    """Keep garbage for who asks how much there is, and have each run work everything out."""
    gc.disable()
    try:
        with worked_out():
            yield
    finally:
        gc.enable()


@pytest.mark.usefixtures("never_collected")
@pytest.mark.parametrize("program", [
    *(pytest.param(lambda name=name: example(name), id=name) for name in
      ("race.s", "deadlock.s", "livelock.s", "out_of_bounds.s", "attention.py")),
    pytest.param(lambda: (assembled(Words(3).text), {}), id="undefined bytes"), stores, loop,
])  # fmt: skip
def test_a_run_that_was_checked_leaves_no_garbage(program: Callable[[], Given]) -> None:
    neff, inputs = program()
    for _ in range(3):
        kept._FILES.pop(neff, None)  # else the third one would find what the second did
        found: tuple[Any, ...] = ()
        gc.collect()
        found = run(neff, inputs, checks="all").findings
    assert gc.collect() == 0
    for one in found:
        assert one.message  # what it says is asked for when all else is gone
