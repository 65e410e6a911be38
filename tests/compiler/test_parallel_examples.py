"""The training steps of examples/models/parallel.py: four ranks beside one, under seeds, and the checks on them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import neurontools

pytest.importorskip("jax", reason="needs jax (pip install 'neurontools[jax]')")

CASES = ["data-parallel", "tensor-parallel", "sequence-parallel", "fully-sharded"]


@pytest.fixture(scope="module")
def kept(root: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Run the example, in a process of its own: JAX makes its devices once.  Return what it kept and said."""
    folder = tmp_path_factory.mktemp("parallel")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(root), os.environ.get("PYTHONPATH", "")])}
    script = root / "examples" / "models" / "parallel.py"
    done = subprocess.run([sys.executable, str(script), str(folder)], capture_output=True, text=True, env=environment,
                          check=False)  # fmt: skip
    assert done.returncode == 0, done.stderr
    return folder, done.stdout


def given(folder: Path, case: str) -> list[dict[str, np.ndarray]]:  # type: ignore[type-arg]
    return [dict(np.load(folder / f"{case}-{rank}.npz")) for rank in range(4)]


def test_steps_of_four_ranks_equal_that_of_one(kept: tuple[Path, str]) -> None:
    lines = kept[1].splitlines()
    assert len(lines) == 5 and "from JAX's own" in lines[0]
    for case, line in zip(CASES, lines[1:], strict=True):
        assert line.startswith(f"{case} step on 4 ranks") and "largest difference" in line


@pytest.mark.parametrize("case", CASES)
def test_seeds_change_no_bit_and_checks_are_silent(kept: tuple[Path, str], case: str) -> None:
    neff, inputs = neurontools.open_neff(kept[0] / f"{case}.neff"), given(kept[0], case)
    usual = neurontools.run_ranks(neff, inputs, checks="all")
    assert usual.ok and {len(met.group) for met in usual.collectives} == {4}
    assert [one for each in usual.results for one in each.findings if one.severity != "note"] == []
    for seed in (1, 2, 3):
        found = neurontools.run_ranks(neff, inputs, seed=seed)
        for one, other in zip(found.results, usual.results, strict=True):
            for name, array in other.outputs.items():
                np.testing.assert_array_equal(one.outputs[name], array)


def test_ranks_learn_from_the_data_of_all(kept: tuple[Path, str]) -> None:
    """The batch of one rank reaches the weights of every other: the step is no four steps side by side."""
    neff, inputs = neurontools.open_neff(kept[0] / "data-parallel.neff"), given(kept[0], "data-parallel")
    usual = neurontools.run_ranks(neff, inputs)
    last = neff.inputs[-1].name
    inputs[3][last] = inputs[3][last] + 1
    other = neurontools.run_ranks(neff, inputs)
    for one, before in zip(other.results, usual.results, strict=True):
        for name, array in before.outputs.items():
            assert not np.array_equal(one.outputs[name], array)
            np.testing.assert_array_equal(one.outputs[name], other.results[0].outputs[name])
