"""The executable `neuronx-cc` of a shim folder, so that real programs find this compiler."""

from __future__ import annotations

import sys
from pathlib import Path

__all__ = ["FILE", "write_compiler"]

FILE = "neuronx-cc"
_SCRIPT = """\
#!{python}
# Hands its command line to neurontools: made by `neurontools shim`.
import gc
import sys

gc.set_threshold(200_000, 20, 20)  # a start makes a hundred thousand objects that all stay
sys.path[:0] = {path!r}
from neurontools.compiler.entry import main

sys.exit(main(sys.argv[1:]))
"""


def write_compiler(folder: Path) -> list[str]:
    """Write the executable into a folder; there is nothing to note."""
    root = str(Path(__file__).resolve().parents[2])
    script = folder / FILE
    script.write_text(_SCRIPT.format(python=sys.executable, path=[root]), encoding="utf-8")
    script.chmod(0o755)
    return []
