"""Random programs of index expressions on the emulator: NumPy's result, or a refusal with the kernel's line."""

from __future__ import annotations

import re
import sys
from collections import Counter

import numpy as np
import pytest

import neurontools.neuronxcc.nki as nki
from formats.errors import NeuronError
from tests.neuronxcc.index_programs import UNDEFINED, OutOfBoundsError, UndecidedError, draw

# What hardware and this package do not do; anything else that is refused is a program that should have run.
REASONS = (r"partition stride", r"a mask that leaves \d+ boxes", r"partitions?, at most 128", r"bytes per partition",
           r"a mask over \d+ places of dimension", r"which may be the first or the last")  # fmt: skip


def outcome(seed: int) -> str:
    """Return what becomes of a program; AssertionError where it goes wrong."""
    program = draw(seed)
    try:
        want = program.reference(*(one.copy() for one in program.inputs))
    except OutOfBoundsError:
        want = None
    except UndecidedError:
        return "undecided"
    said = f"program {seed} ({program.kind})"
    try:
        got = np.asarray(nki.jit(program.kernel)(*(one.copy() for one in program.inputs)))
    except NeuronError as error:
        text = str(error)
        assert "\n" not in text and re.search(r"index_programs\.py:\d+", text), f"{said}: {text}"
        assert want is None or any(re.search(one, text) for one in REASONS), f"{said} should run: {text}"
        return "refused" if want is not None else "refused as it must"
    assert want is not None, f"{said} leaves its tensor and is not refused"
    assert got.size == want.size and [one for one in got.shape if one != 1] == [one for one in want.shape if one != 1]
    known = ~np.isnan(want)
    np.testing.assert_allclose(got.reshape(want.shape)[known], want[known], rtol=1e-5, err_msg=said)
    return "equal" if known.any() else "nothing"


@pytest.mark.parametrize("first", range(0, 300, 60))
def test_programs_give_what_numpy_gives_or_are_refused(first: int) -> None:
    found = Counter(outcome(seed) for seed in range(first, first + 60))
    assert found["equal"] >= 30, found


def test_the_reference_tells_what_is_not_there_and_what_is_not_settled() -> None:
    found = Counter()
    for seed in range(1000, 1300):
        program = draw(seed)
        try:
            want = program.reference(*(one.copy() for one in program.inputs))
        except (OutOfBoundsError, UndecidedError) as error:
            found[type(error)] += 1
        else:
            found["masked" if np.isnan(want).any() or (want == -7).any() else "whole"] += 1
    assert min(found[OutOfBoundsError], found[UndecidedError], found["masked"], found["whole"]) >= 5, found
    assert np.isnan(UNDEFINED)


if __name__ == "__main__":
    print(Counter(outcome(seed) for seed in range(int(sys.argv[1]), int(sys.argv[2]))))
