"""Real files and the tutorial kernels: not one finding."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import neurontools.nki as nki
from formats.neff import Neff, open_neff
from neurontools.nki.launch import build_neff
from tests.checks.support import checked, drop_wait, serious, waits_of
from tests.nki.test_tutorials import KERNELS, load

FILES = [
    "nkipy/spike/tests/artifacts/matmul_small.neff",
    *(
        f"trainium-kernel-fusion/profiling/artifacts/{kind}_{dtype}_s{length}/{kind}.neff"
        for kind in ("baseline", "fused")
        for dtype in ("fp32", "bf16")
        for length in (512, 1024)
    ),
    "trainium-kernel-fusion/profiling/baseline_attention/baseline.neff",
    "trainium-kernel-fusion/profiling/fused_attention/fused.neff",
]


def inputs_of(neff: Neff) -> dict[str, Any]:
    random = np.random.default_rng(0)
    types = {"bfloat16": ml_dtypes.bfloat16}
    return {
        tensor.name: random.standard_normal(tensor.shape).astype(types.get(tensor.dtype, tensor.dtype))
        for tensor in neff.inputs
    }


def opened(corpus: Path, name: str) -> Neff:
    path = corpus / name
    if not path.exists() or path.stat().st_size < 1000:
        pytest.skip(f"{path.name} is not in this checkout")
    return open_neff(path)


@pytest.mark.parametrize("name", FILES)
def test_real_files_are_clean(corpus: Path, name: str) -> None:
    neff = opened(corpus, name)
    for seed in (None, 7):
        found, device = checked(neff, inputs_of(neff), seed=seed)
        assert serious(found) == [], "\n".join(finding.text() for finding in serious(found))
        assert device.outcome == "finished"


def test_dropped_waits_of_a_real_file(corpus: Path) -> None:
    """Published for one core of this file: 8 dropped waits race, 1 is not needed (isa.md 14.2)."""
    neff = opened(corpus, FILES[0])
    inputs = inputs_of(neff)
    _, device = checked(neff, inputs, ("race",))
    waits = list(waits_of(device))
    racy = [place for place in waits if checked(neff, inputs, ("race",), edit=drop_wait(place))[0]]
    assert len(racy) >= 8 * len(waits) // 9


@pytest.mark.parametrize("name", KERNELS)
def test_tutorial_kernels_are_clean(corpus: Path, name: str, request: pytest.FixtureRequest) -> None:
    folder = corpus / "aws-neuron-sdk" / "nki" / "examples"
    file, function, arguments = KERNELS[name][:3]
    if not (folder / file).exists():
        pytest.skip(f"{file} is not in this checkout")
    assert nki.install()
    request.addfinalizer(nki.uninstall)
    random = np.random.default_rng(0)
    values = [(random.random(one) / 8).astype(np.float32) if isinstance(one, tuple) else one for one in arguments]
    neff: Any = build_neff(load(folder / file, function), tuple(values), {}, target="trn2")
    arrays = [value for value in values if isinstance(value, np.ndarray)]
    inputs = {tensor.name: array.reshape(tensor.shape) for tensor, array in zip(neff.inputs, arrays, strict=True)}
    found, device = checked(neff, inputs)
    assert serious(found) == [], "\n".join(finding.text() for finding in serious(found))
    assert device.outcome == "finished"
