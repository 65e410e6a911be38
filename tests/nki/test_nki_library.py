"""AWS's nki-library runs its own tests on this package: a checkout of it, and the bridge that starts its CPU mode."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

# What the checkout's conftest imports beyond this repository's own dependencies.
NEEDED = ("torch", "scipy", "pytest_html", "xdist", "filelock", "allpairspy", "plotext", "fabric2",
          "aws_embedded_metrics", "boto3")  # fmt: skip
# Path below test/integration/nkilib/core, cases that run there and pass (docs/nki-library.md).
FOLDERS = [
    ("cumsum", 3),
    ("embeddings", 17),
    ("subkernels", 22),
    ("qkv/test_qkv_cte.py", 15),
    ("max", 65),
    ("utils", 35),
]


@pytest.fixture(scope="module")
def checkout() -> Path:
    corpus = os.environ.get("NEURONTOOLS_CORPUS")
    folder = Path(corpus or "") / "nki-library"
    if not corpus or not (folder / "test" / "pytest.ini").is_file():
        pytest.skip("NEURONTOOLS_CORPUS names no folder with a checkout nki-library")
    return folder


@pytest.fixture(scope="module")
def bridge(root: Path) -> Path:
    folder = root.parent / "shared" / "tools" / "nki_library_bridge"
    if not folder.is_dir():
        pytest.skip("../shared/tools/nki_library_bridge is not there")
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        pytest.skip(f"nki-library's tests also need {', '.join(missing)}")
    return folder


@pytest.mark.parametrize(("folder", "wanted"), FOLDERS, ids=[one[0] for one in FOLDERS])
def test_the_fast_cases_of_a_folder_pass(
    folder: str, wanted: int, checkout: Path, bridge: Path, root: Path, tmp_path: Path
) -> None:
    path = [bridge, root / "neurontools" / "nki_path", root, checkout / "src", checkout]
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(map(str, path)),
        "NEURON_PYTHONHASHSEED": "0",
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    environment.pop("NKI_BRIDGE_PERMISSIVE", None)
    run = subprocess.run(
        [
            sys.executable, "-m", "pytest", "-p", "nki_library_bridge", f"test/integration/nkilib/core/{folder}",
            "-c", "test/pytest.ini", "--rootdir", ".", "--test-mode", "simulation", "-m", "fast and not trace_only",
            "-q", "--tb=line", "--show-capture=no", "--force-local-cleanup",
            "--output-directory", str(tmp_path), "-p", "no:cacheprovider", "-n", "0",
        ],
        cwd=checkout, env=environment, capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    summary = run.stdout.strip().rsplit("\n", 1)[-1]
    assert run.returncode == 0, run.stdout[-4000:]
    passed = re.search(r"(\d+) passed", summary)
    assert passed is not None and int(passed.group(1)) == wanted, summary
