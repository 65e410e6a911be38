"""`--lenient` of every command that runs scripts: limits of partitions and capacity become warnings."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Cli

SCRIPT = """
import numpy as np
import nki, nki.isa as nisa, nki.language as nl

@nki.jit
def kernel(x):
    out = nl.ndarray((64, 64), nl.float32, buffer=nl.shared_hbm)
    tile, result = nl.load(x), nl.ndarray((128, 64), nl.float32, buffer=nl.sbuf)
    nisa.tensor_scalar(result[16:80], tile[16:80], nl.multiply, 2.0)
    nisa.dma_copy(out, result[16:80])
    return out

kernel(np.ones((128, 64), np.float32))
"""


@pytest.mark.parametrize(
    "command",
    [("run",), ("check", "--fail-on", "error"), ("debug", "-c", "continue"), ("profile", "run", "--no-advice")],
)
def test_lenient_of_every_command_that_runs_scripts(cli: Cli, tmp_path: Path, command: tuple[str, ...]) -> None:
    file = tmp_path / "script.py"
    file.write_text(SCRIPT)
    words = command[: 2 if command[0] == "profile" else 1]
    rest = command[len(words) :]
    strict = cli(*words, str(file), *rest)
    said = strict.out if command[0] == "check" else strict.err  # there it is a finding
    assert strict.status != 0 and "64 partitions must start at 0 or 64" in said
    lenient = cli(*words, str(file), *rest, "--lenient")
    assert lenient.status == 0, lenient
    for words_of in ("neurontools: warning: nisa.tensor_scalar: data is ", "64 partitions must start at 0 or 64"):
        assert words_of in lenient.err


def test_the_variable_reaches_a_script_without_a_command(tmp_path: Path, root: Path) -> None:
    file = tmp_path / "script.py"
    file.write_text(SCRIPT)
    path = os.pathsep.join([str(root), str(root / "neurontools" / "nki_path")])
    done = subprocess.run([sys.executable, str(file)], capture_output=True, text=True, check=False, timeout=120,
                          env={**os.environ, "PYTHONPATH": path, "NEURONTOOLS_LENIENT": "1"})  # fmt: skip
    assert done.returncode == 0 and "neurontools: warning: " in done.stderr, done.stderr
