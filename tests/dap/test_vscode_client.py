"""The adapter before a client that nobody here wrote: Microsoft's, with which Visual Studio Code's adapters are tested.

It runs where Node.js finds the package @vscode/debugadapter-testsupport (`npm install` it anywhere, and name its
`node_modules` in NODE_PATH).
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from neurontools.nki.launch import _build, trace_kernel
from tests.dap.test_adapter import FILE, ROOT, at
from tests.debugger import unrolled

_PACKAGE = "@vscode/debugadapter-testsupport"


def _node() -> str:
    node = shutil.which("node")
    if node is None:
        pytest.skip("Node.js is not installed")
    found = subprocess.run([node, "-e", f"require.resolve('{_PACKAGE}')"], capture_output=True, check=False)
    if found.returncode:
        pytest.skip(f"Node.js does not find {_PACKAGE}")
    return node


def test_the_client_of_visual_studio_code(tmp_path: Path) -> None:
    node = _node()
    launcher = tmp_path / "launcher.py"
    launcher.write_text(
        f"import sys\nsys.path.insert(0, {str(ROOT)!r})\nsys.argv = ['neurontools', 'dap']\n"
        "from neurontools.cli import main\nmain()\n"
    )
    program = tmp_path / "unrolled.neff"
    program.write_bytes(_build(trace_kernel(unrolled.unrolled, (unrolled.X,)), "unrolled").to_bytes())
    words = [node, str(Path(__file__).with_name("vscode_client.js")), sys.executable, str(launcher), str(program),
             str(FILE.parent), str(FILE), str(at("ADD"))]  # fmt: skip
    made = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)
    assert made.returncode == 0, made.stderr
    assert made.stdout, made.stderr
    seen = json.loads(made.stdout.splitlines()[-1])
    assert "nc0 DVE" in seen["threads"] and seen["frame"] == "unrolled, k=0" and seen["k"] == "0"
    assert (seen["next"], seen["back"], seen["again"]) == ("step", "breakpoint", at("ADD"))
    assert "k=3" in seen["condition"] and float(seen["value"]) == 0
    assert seen["words"] == ["TENSOR_SCALAR", "TENSOR_SCALAR"] and seen["entry"] == "entry"
