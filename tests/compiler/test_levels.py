"""The models of the examples at every optimisation level, on one core and two: bits, times, findings, schedules."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import neurontools
from neurontools.compiler.options import CompileOptions
from neurontools.compiler.pipeline import Compiled, compile_module
from tests.compiler.models import MODELS, Case, cases

jax = pytest.importorskip("jax", reason="needs jax (pip install 'neurontools[jax]')")

_SEEDED = ("experts", "mlp", "transformer")  # short ones: five more runs each


def _ran(made: Compiled, case: Case, **settings: Any) -> Any:
    leaves = [np.asarray(jax.numpy.asarray(one)) for one in jax.tree.leaves(case.args)]
    given = {
        name: (one.view(np.uint8) if one.dtype == bool else one).reshape(one.shape or (1,))
        for name, one in zip(made.names.inputs, leaves, strict=True)
        if one.size
    }
    found = neurontools.run(neurontools.open_neff(made.neff), given, **settings)
    assert found.ok
    return found


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("lnc", [1, 2])
def test_a_higher_level_takes_no_longer_and_gives_the_same_bits(model: str, lnc: int, root: Path) -> None:
    for case in cases(root, model)[:1]:  # forward; gradients take long
        module = case.module()
        times, outputs = [], []
        for level in (1, 2, 3):
            made = compile_module(module, CompileOptions(limits="ours", lnc=lnc, optlevel=level))
            found = _ran(made, case, checks="all" if level == 2 else ())
            assert [one.text() for one in found.findings if one.severity != "note"] == []
            times.append(found.time_ps)
            outputs.append(found.outputs)
        assert times[0] >= times[1] >= times[2]
        for name, value in outputs[0].items():
            assert all(np.array_equal(value, other[name]) for other in outputs[1:])
        if lnc == 2:
            alone = _ran(compile_module(module, CompileOptions(limits="ours", lnc=1)), case)
            assert times[1] <= alone.time_ps
            assert all(np.array_equal(value, alone.outputs[name]) for name, value in outputs[1].items())


@pytest.mark.parametrize("model", _SEEDED)
def test_every_schedule_gives_the_same_bits(model: str, root: Path) -> None:
    case = cases(root, model)[0]
    made = compile_module(case.module(), CompileOptions(limits="ours", lnc=2))
    first, *others = (_ran(made, case, seed=seed, timing=False).outputs for seed in range(5))
    for name, value in first.items():
        assert all(np.array_equal(value, other[name]) for other in others)
