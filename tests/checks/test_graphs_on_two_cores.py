"""A compiled program for two cores without the barriers that the compiler puts in: racecheck finds it."""

from __future__ import annotations

import pytest

import neurontools
from neurontools.compiler.emitter import Emitter
from tests.compiler.support import OURS, compiled, floats
from tests.compiler.test_two_cores import across


@pytest.mark.parametrize("planted", [False, True])
def test_without_its_barriers_a_program_races(planted: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    x = floats(384, 384)
    if planted:
        monkeypatch.setattr(Emitter, "_meet", lambda self, **_: self._crossings.met(0, at_mark=False))
    made = compiled(across, x, options=OURS._replace(lnc=2))
    found = neurontools.run(neurontools.open_neff(made.neff), {"input0": x}, checks=("race",)).findings
    assert bool(found) == planted
