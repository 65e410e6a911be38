"""`import nki` after `install()`: the same modules, no second identity, and no clash with an installed package."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

PREFACE = "import sys, neurontools.nki as ours\n"


def run(code: str, root: Path, *folders: Path) -> str:
    path = os.pathsep.join([str(root), *map(str, folders)])
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_every_module_is_the_very_module(root: Path) -> None:
    code = PREFACE + (
        "assert ours.install() and ours.install()\n"
        "import nki, nki.isa as nisa, nki.language as nl, nki.isa.constants, nki.typing, nki.dtype, nki.simulator\n"
        "from nki.collectives import ReplicaGroup\n"
        "from nki.language.creation import zeros\n"
        "assert nki is ours and nl is ours.language and nisa is ours.isa\n"
        "pairs = [(n, 'neurontools.' + n) for n in sys.modules if n == 'nki' or n.startswith('nki.')]\n"
        "assert len(pairs) > 8 and all(sys.modules[a] is sys.modules[b] for a, b in pairs), pairs\n"
        "assert all(sys.modules[b].__spec__.name == b and sys.modules[b].__name__ == b for _, b in pairs)\n"
        "assert nl.zeros is zeros and nki.tensor.NkiTensor is nl.NkiTensor\n"
        "print(callable(nisa.activation), callable(nl.sum))\n"
        "try:\n    import nki.nothing\nexcept ModuleNotFoundError as error:\n    print(error.name)\n"
        "ours.uninstall()\n"
        "assert 'nki' not in sys.modules\n"
        "try:\n    import nki\nexcept ModuleNotFoundError as error:\n    print(error.name)\n"
    )
    assert run(code, root).splitlines() == ["True True", "nki.nothing", "nki"]


def test_an_installed_nki_stays_unless_overridden(root: Path, tmp_path: Path) -> None:
    (tmp_path / "nki").mkdir()
    (tmp_path / "nki" / "__init__.py").write_text("name = 'other'\n")
    code = PREFACE + (
        "print(ours.install())\nimport nki\nprint(nki.name)\n"
        "print(ours.install(override=True))\nimport nki\nprint(nki is ours)\n"
    )
    assert run(code, root, tmp_path).splitlines() == ["False", "other", "True", "True"]


def test_the_folder_for_the_path_gives_the_very_modules(root: Path) -> None:
    code = (
        "import nki, nki.isa.constants, nki.language as nl, sys\n"
        "import neurontools.nki as ours\n"
        "import nki_cpu_simulator.nki.isa.constants as constants, nki_cpu_simulator.nki.language.dtypes as dtypes\n"
        "from nki_cpu_simulator import nki as simulator\n"
        "assert nki is ours and simulator is ours and nl is ours.language and constants is ours.isa.constants\n"
        "assert dtypes.bfloat16 is nl.bfloat16 and nki.builtin.__name__ == 'neurontools.nki.builtin'\n"
        "print(nki.__name__, ours.install())\n"
    )
    assert run(code, root, root / "neurontools" / "nki_path") == "neurontools.nki True"


def test_modules_below_somebody_elses_stand_in_are_looked_for_elsewhere(root: Path, tmp_path: Path) -> None:
    """Tests of models put packages that only AWS has into `sys.modules`; what lies in them is not ours to find."""
    (tmp_path / "attention.py").write_text("kernel = 3\n")
    code = PREFACE + (
        "from types import ModuleType\n"
        "ours.install()\n"
        "import neuronxcc.nki as nki\n"
        "private = ModuleType('neuronxcc.nki._private_kernels')\n"
        f"private.__path__ = [{str(tmp_path)!r}]\n"
        "sys.modules[private.__name__] = private\n"
        "from neuronxcc.nki._private_kernels.attention import kernel\n"
        "try:\n    import neuronxcc.nki._private_kernels.mlp\nexcept ModuleNotFoundError as error:\n"
        "    print(kernel, error.name)\n"
    )
    assert run(code, root) == "3 neuronxcc.nki._private_kernels.mlp"
