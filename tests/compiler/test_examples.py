"""The models in examples/models: each compares itself with JAX's own device and ends with an error where it differs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("jax", reason="needs jax (pip install 'neurontools[jax]')")

_MODELS = ["decoder", "experts", "lstm", "mamba", "mlp", "resnet", "transformer"]


@pytest.mark.parametrize("name", _MODELS)
def test_a_model_agrees(name: str, root: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(root), os.environ.get("PYTHONPATH", "")])}
    script = root / "examples" / "models" / f"{name}.py"
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    assert "largest difference" in done.stdout


def test_every_model_is_tried(root: Path) -> None:
    found = {one.stem for one in (root / "examples" / "models").glob("*.py")}
    assert found == {
        *_MODELS,
        "compared",
        "parallel",
        "pytorch",
    }  # of their own: test_parallel_examples.py, test_pytorch.py
