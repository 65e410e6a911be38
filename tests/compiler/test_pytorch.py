"""PyTorch modules through torchax, as an example does it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("jax", reason="needs jax (pip install 'neurontools[jax]')")
pytest.importorskip("torch", reason="needs torch")


def test_a_module_agrees_with_pytorch(root: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(root), os.environ.get("PYTHONPATH", "")])}
    script = root / "examples" / "models" / "pytorch.py"
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, env=environment, check=False)
    if "No module named 'torchax'" in done.stderr:
        pytest.skip("needs torchax")
    assert done.returncode == 0, done.stderr
    assert "block beside PyTorch" in done.stdout
    assert "block gradient: 12 results" in done.stdout
