"""`nki_cpu_simulator`: the package in which nki-library's simulation mode looks for a CPU `nki` (nki.md 4.1).

It holds `nki` and nothing else; `nki_cpu_simulator.nki` and everything below it are the modules of `nki`.
"""

from __future__ import annotations

from neurontools import nki
from neurontools.nki import builtin, compiler  # noqa: F401  that mode takes them as attributes of `nki`

__all__ = ["nki"]

# Submodules are found by `neurontools.nki.alias`, not in a folder.
__path__: list[str] = []
