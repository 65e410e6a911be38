"""`neurontools shim --only neuronx-cc`: the executable stands in the place of neuronx-cc."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from formats.hlo import save_hlo
from neurontools.compiler.entry import translated
from tests.cli.check import checked_json
from tests.cli.conftest import Cli
from tests.compiler.support import adder


def test_the_shim_compiles_as_public_programs_call_it(cli: Cli, tmp_path: Path) -> None:
    model = tmp_path / "adder.hlo.pb"
    save_hlo(model, adder())
    folder = tmp_path / "shim"
    (part,) = checked_json(cli("shim", folder, "--only", "neuronx-cc", "--json"), "shim")["parts"]
    assert part["file"] == f"{folder}/neuronx-cc"
    line = ["neuronx-cc", "compile", "--framework", "XLA", str(model), "--pipeline", "tensorize", "SaveTemps",
            "--target", "trn2", "--output=file.neff", "--lnc", "1", "--internal-tensorizer-opt-level=2",
            "--internal-other", "3", "--tensorizer-options=--print-nki"]  # fmt: skip
    environment = {**os.environ, "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(line, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "file.neff").exists()
    assert "def adder(v0, v1):" in (tmp_path / "nki.py").read_text()


def test_command_lines_are_translated() -> None:
    assert translated(["list-operators", "--framework", "XLA"]) == ["compile", "list-operators", "--framework", "XLA"]
    assert translated(["compile", "a.pb", "--pipeline", "compile", "SaveTemps", "--disable-dge", "b.pb"]) == [
        "compile", "model", "a.pb", "--pipeline", "SaveTemps", "b.pb"
    ]  # fmt: skip
